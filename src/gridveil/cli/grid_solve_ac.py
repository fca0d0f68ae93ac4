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
    from gridveil.grid.opf.outages import Contingencies

# So many outages are named on the screen; JSON has all of them.
_NAMED = 10


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
    outages: Contingencies | None,
    *,
    output: Path | None,
    plot: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Solve AC optimal power flow, write and draw what was asked for, and show the rest."""
    from gridveil.grid import solve_ac as solved

    with counted("solving", quiet=quiet or as_json) as progress:
        found = solved(network, models, contingencies=outages, progress=progress)
    if output is not None:
        _write(found, output)
    if plot is not None:
        _plot(network, models, found, plot)
    if as_json:
        said = {} if outages is None else _json_after(network, found, outages)
        print_json({**_json(network, found), **said})
    elif not quiet:
        _show(network, found)
        for words in [] if outages is None else _after_words(network, found, outages):
            out().print(plain(words))


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
    if found.after is not None:
        columns["outages_not_survived"] = (found.after != 0).sum(1)
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


def _json_after(network: Network, found: AcSolutions, outages: Contingencies) -> dict[str, Any]:
    assert found.after is not None
    names = network.branches.name
    rows = [
        {
            names[line]: _word(status)
            for line, status in zip(outages.lines, row, strict=True)
            if status
        }
        for row in found.after
    ]
    return {
        "outages": len(outages.lines),
        "outages_left_out": [names[line] for line in outages.left_out],
        "not_survived": rows[0] if len(rows) == 1 else rows,
    }


def _after_words(network: Network, found: AcSolutions, outages: Contingencies) -> list[str]:
    """Say how many models survive all outages, and which outages they do not survive."""
    assert found.after is not None
    names, missed = network.branches.name, found.after != 0
    served = int(found.served.sum())
    words = [
        f"{served:,} of {len(found):,} models have a dispatch that survives each of "
        f"{len(outages.lines):,} outages."
    ]
    counts = [(int(n), names[k]) for k, n in zip(outages.lines, missed.sum(0), strict=True) if n]
    if counts:
        worst = sorted(counts, key=lambda one: -one[0])[:_NAMED]
        more = len(counts) - len(worst)
        words.append(
            "Outages not survived (in how many models): "
            + ", ".join(f"{name} ({n:,})" for n, name in worst)
            + (f", and {more:,} more" if more else "")
        )
    if outages.left_out:
        apart = ", ".join(names[line] for line in outages.left_out)
        words.append(f"Outages left out, which cut the network apart: {apart}")
    return words


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
