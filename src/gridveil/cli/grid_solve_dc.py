"""``gridveil grid solve`` in DC: how the answers are written and shown."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridveil.cli.console import out, plain, print_json, table
from gridveil.errors import InputError

if TYPE_CHECKING:
    from gridveil.grid.model.network import Network
    from gridveil.grid.model.population import Population
    from gridveil.grid.opf.engine import Solutions
    from gridveil.grid.opf.outages import Contingencies

# What is kept of every model, and what it is called in files and JSON; the last two for models
# that may shed load, and for those that may break limits.
_COLUMNS = {
    "dispatch": "dispatch_mw",
    "flow": "flow_mw",
    "nodal_price": "nodal_price",
    "shed": "shed_mw",
    "overload": "overload_mw",
}
_ALWAYS = ("dispatch", "flow", "nodal_price")
_IF_BOUGHT = {"shed": "shed", "relaxed": "overload"}


def kept(
    kinds: tuple[str, ...], size: int, *, output: Path | None, plot: Path | None, as_json: bool
) -> tuple[str, ...]:
    """What must be kept of each of `size` models, beside its cost, for what is shown of it."""
    if output is None and not (as_json and size == 1):
        return ("flow",) if plot is not None else ("cost",)
    return (*_ALWAYS, *(name for kind, name in _IF_BOUGHT.items() if kind in kinds))


def write(found: Solutions, path: Path) -> None:
    """Write one row per model: what it costs, and its dispatch, flows and prices."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from gridveil.grid.opf.engine import Status

    columns = {
        "cost": found.cost,
        "status": [Status(status).name.lower() for status in found.status],
        "bound": found.bound,
        "gap": found.gap,
        **{_COLUMNS[name]: list(values) for name, values in _details(found).items()},
    }
    pq.write_table(pa.table(columns), path)


def plot(network: Network, models: Population | None, found: Solutions, path: Path) -> None:
    """Draw the network, each line by its mean loading over the models that have a solution."""
    import numpy as np

    from gridveil.grid.picture import draw_network

    if found.flow is None or not np.isfinite(found.cost).any():
        raise InputError(
            "No model is feasible, so there is nothing to draw.",
            remedy="Draw a relaxed one: --model relaxed --slack-price 3000.",
        )
    some = np.isfinite(found.cost)
    loading = np.abs(found.flow[some]) / network.branches.capacity
    if models is not None and models.capacity is not None:
        loading = loading / models.capacity[some]
    title = network.name if len(found) == 1 else f"{network.name}, mean of {some.sum():,} models"
    draw_network(network, np.nan_to_num(loading).mean(0), path, title=title)


def show(
    network: Network,
    found: Solutions,
    outages: Contingencies | None,
    *,
    kinds: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    """Print what was found: a table for people, or JSON, which has all of a model that is alone."""
    import numpy as np

    from gridveil.grid.opf.engine import Status

    finite = found.cost[np.isfinite(found.cost)]
    apart = [] if outages is None else [network.branches.name[k] for k in outages.left_out]
    if as_json:
        said = {} if outages is None else {"outages_left_out": apart}
        if len(found) == 1:
            cost, bound = _number(found.cost[0]), _number(found.bound[0])
            word = Status(found.status[0]).name.lower()
            one = {"cost": cost, "status": word, "bound": bound, **said}
            print_json({**one, **_named(network, found)})
        else:
            costs = [_number(cost) for cost in found.cost]
            print_json({"cost": costs, "infeasible": len(found) - len(finite), **said})
        return
    if quiet:
        return
    shown = table("models", "status", "cost ($/h): lowest", "mean", "highest", "largest gap")
    for status in Status:
        some = found.status == status
        if some.any():
            costs = found.cost[some]
            ends = (costs.min(), costs.mean(), costs.max()) if np.isfinite(costs).all() else ()
            figures = [f"{cost:,.2f}" for cost in ends] or ["", "", ""]
            # The ends of a proof are computed apart, and may pass each other by a rounding.
            gap = f"{max(0.0, found.gap[some].max()):.1e}" if ends else ""
            shown.add_row(f"{some.sum():,}", status.name.lower(), *figures, gap)
    out().print(plain(network.name))
    out().print(shown)
    if outages is not None:
        served, tried = len(finite), len(outages.lines)
        model = "+".join(kinds)
        bought = "" if model == "strict" else f", with what --model {plain(model)} lets one buy"
        out().print(
            f"{served:,} of {len(found):,} models have a dispatch that survives each of {tried:,} "
            f"outage{'' if tried == 1 else 's'}{bought}."
        )
    if apart:
        out().print(f"Outages left out, which cut the network apart: {plain(', '.join(apart))}")


def _details(found: Solutions) -> dict[str, Any]:
    """What was kept of every model, by its name in `Solutions`: a row for each."""
    kept = {name: getattr(found, name) for name in _COLUMNS}
    return {name: values for name, values in kept.items() if values is not None}


def _named(network: Network, found: Solutions) -> dict[str, dict[str, float | None]]:
    """The same of the first model, by the names of units, branches and buses."""
    tables: dict[str, Any] = {"dispatch": network.generators, "flow": network.branches}
    tables["overload"] = network.branches
    return {
        _COLUMNS[name]: dict(
            zip(tables.get(name, network.buses).name, map(_number, values[0]), strict=True)
        )
        for name, values in _details(found).items()
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
