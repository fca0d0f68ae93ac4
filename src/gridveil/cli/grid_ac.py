"""``gridveil grid solve --ac``: how the answers of AC optimal power flow are shown."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridveil.cli.console import counted, out, plain, print_json, table
from gridveil.errors import InputError

if TYPE_CHECKING:
    from gridveil.grid.model.network import Network
    from gridveil.grid.model.population import Population
    from gridveil.grid.opf.ac.engine import AcSolutions


def check_only_dc(given: dict[str, Any]) -> None:
    """Raise `InputError` if options of DC models (by name, None or their default) are set."""
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{name} is for DC models, and --ac was given.", remedy=f"Leave {name} out."
            )


def solve_ac(
    network: Network,
    models: Population | None,
    *,
    output: Path | None,
    plot: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Solve AC optimal power flow, write and draw what was asked for, and show the rest."""
    from gridveil.grid import solve_ac as solved

    with counted("solving", quiet=quiet or as_json) as progress:
        found = solved(network, models, progress=progress)
    if output is not None:
        _write(found, output)
    if plot is not None:
        _plot(network, models, found, plot)
    if as_json:
        print_json(_json(network, found))
    elif not quiet:
        _show(network, found)


def _write(found: AcSolutions, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        "status": [_word(status) for status in found.status],
        "cost": found.cost,
        "shortfall_mva": found.shortfall,
        "worst_miss_pu": found.miss,
        "losses_mw": found.losses,
        "voltage_pu": list(found.voltage),
        "flow_mva": list(found.flow),
        "dispatch_mw": list(found.dispatch),
        "reactive_mvar": list(found.reactive),
    }
    pq.write_table(pa.table(columns), path)


def _plot(network: Network, models: Population | None, found: AcSolutions, path: Path) -> None:
    import numpy as np

    from gridveil.grid.picture import draw_ac_network

    served = found.served
    if not served.any():
        raise InputError(
            "No model is served, so there is nothing to draw.",
            remedy="See how far the models are from it: leave --plot out.",
        )
    loading = found.flow[served] / network.branches.capacity
    if models is not None and models.capacity is not None:
        loading = loading / models.capacity[served]
    title = network.name if len(found) == 1 else f"{network.name}, mean of {served.sum():,} models"
    mean = np.nan_to_num(loading).mean(0)
    draw_ac_network(network, mean, found.voltage[served], path, title=title)


def _json(network: Network, found: AcSolutions) -> dict[str, Any]:
    rows: dict[str, list[Any]] = {
        "status": [_word(status) for status in found.status],
        "cost": [_number(value) for value in found.cost],
        "shortfall_mva": [_number(value) for value in found.shortfall],
        "worst_miss_pu": [_number(value) for value in found.miss],
        "losses_mw": [_number(value) for value in found.losses],
    }
    if len(found) > 1:
        return {**rows, "served": int(found.served.sum())}
    one: dict[str, Any] = {name: values[0] for name, values in rows.items()}
    tables: tuple[tuple[str, Any, Any], ...] = (
        ("voltage_pu", network.buses, found.voltage),
        ("flow_mva", network.branches, found.flow),
        ("dispatch_mw", network.generators, found.dispatch),
        ("reactive_mvar", network.generators, found.reactive),
    )
    for name, elements, values in tables:
        shown = map(_number, values[0])
        one[name] = dict(zip(elements.name, shown, strict=True))
    return one


def _show(network: Network, found: AcSolutions) -> None:
    import numpy as np

    from gridveil.grid.opf.ac.engine import AcStatus

    shown = table(
        *("models", "status", "cost ($/h): lowest", "mean", "highest"),
        *("shortfall (MVA)", "losses (MW)", "voltages (p.u.)", "worst miss (p.u.)"),
    )
    for status in AcStatus:
        some = found.status == status
        if not some.any():
            continue
        costs = found.cost[some][np.isfinite(found.cost[some])]
        ends = [f"{x:,.2f}" for x in (costs.min(), costs.mean(), costs.max())] if len(costs) else []
        served = status is AcStatus.SERVED
        volts = found.voltage[some]
        shown.add_row(
            f"{some.sum():,}",
            _word(status),
            *(ends or ["", "", ""]),
            f"{found.shortfall[some].max():.4g}" if status is AcStatus.NOT_SERVED else "",
            f"{found.losses[some].mean():,.2f}" if served else "",
            f"{np.nanmin(volts):.3f} to {np.nanmax(volts):.3f}" if served else "",
            f"{found.miss[some].max():.1e}",
        )
    out().print(plain(network.name))
    out().print(shown)


def _word(status: int) -> str:
    from gridveil.grid.opf.ac.engine import AcStatus

    return AcStatus(status).name.lower().replace("_", " ")


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
