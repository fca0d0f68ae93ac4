"""The grid half of the report: the released network, and what the models do on it.

Everything is computed from released and public data. Elements are not named: names may tell about
their ratings, and the files have them where they are public.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.io.released_columns import lines
from gridveil.grid.model.network import Network
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.grid.model.population import Population
from gridveil.grid.model.public_network import PublicNetwork
from gridveil.grid.opf.ac.engine import AcSolutions
from gridveil.grid.opf.engine import Solutions
from gridveil.grid.picture import CONGESTED, map_svg, mapped_positions
from gridveil.report.charts import histogram, log_range
from gridveil.report.page import Picture, Section, Snippet, Table, shown

Floats = NDArray[np.float64]

_THOUSANDS = 10_000.0  # $/h from which costs are counted in thousands
_WORDS = {
    "capacity": "line capacity",
    "load": "load",
    "reactive_load": "reactive load",
    "generator_limit": "generator limit",
    "cost": "cost",
}
_SNIPPETS = {
    ".m": (
        Snippet("MATPOWER", "mpc = loadcase('{name}');\nresults = rundcopf(mpc);"),
        Snippet(
            "pandapower",
            "from pandapower.converter.matpower.from_mpc import from_mpc\n\n"
            "net = from_mpc({name!r})  # needs matpowercaseframes as well",
        ),
    ),
    ".json": (Snippet("pandapower", "import pandapower\n\nnet = pandapower.from_json({name!r})"),),
    ".nc": (Snippet("PyPSA", "import pypsa\n\nnetwork = pypsa.Network({name!r})"),),
    **dict.fromkeys(
        (".raw", ".xiidm", ".zip"),
        (Snippet("pypowsybl", "import pypowsybl\n\nnetwork = pypowsybl.network.load({name!r})"),),
    ),
}
_MODELS = Snippet(
    "pandas, for the models",
    'import pandas as pd\n\nmodels = pd.read_parquet("population.parquet")  # a row per model',
)
_ERRORS = Snippet(
    "pandas, error bars",
    "import pandas as pd\n\n"
    'errors = pd.read_parquet("deviations.parquet")  # rows as in the tables of the network\n'
    'errors["low"] = errors["value"] - 2 * errors["deviation"]\n'
    'errors["high"] = errors["value"] + 2 * errors["deviation"]',
)
_OWN = Snippet(
    "GridVeil",
    "import gridveil as gv\n\nnetwork = gv.grid.read_case({name!r})\n"
    'population = gv.grid.Population.read("population.parquet", network)\n'
    '# The DC model of PowerModels; convention="matpower" is that of MATPOWER, pandapower, PyPSA.\n'
    "costs = gv.grid.solve_population(network, population).cost",
)


def grid_sections(
    network: Network,
    public: PublicNetwork,
    values: Floats,
    population: Population,
    solutions: Solutions,
) -> tuple[Section, ...]:
    """A map of the released network, its released values, and the models' costs on it."""
    served = np.isfinite(solutions.cost)
    return (
        Section(
            "The released network",
            f"{len(network.buses):,} buses, {len(network.branches):,} branches and "
            f"{len(network.generators):,} generators. "
            f"{public.entries:,} values were released with noise: "
            + ", ".join(
                f"{part.stop - part.start:,} of {_WORDS[name]}"
                for name, part in public.parts.items()
            )
            + ". "
            + _rest(public),
            (
                _map(network, population, solutions, served),
                *(_distribution(public, values, name) for name in public.parameters),
            ),
            tables=_changed(public),
        ),
        _models(network, solutions, served),
    )


def _rest(public: PublicNetwork) -> str:
    if public.changes:
        return "What else is not as in its owner's file is listed below; the rest is."
    return "All else is as its owner published it."


def _changed(public: PublicNetwork) -> tuple[Table, ...]:
    if not public.changes:
        return ()
    rows = [(columns, fate, reason) for fate, columns, reason in lines(public.changes)]
    heads = "column", "fate", "why"
    return (Table("Columns that are not as in the source", heads, rows, words=True),)


def error_bars(
    public: PublicNetwork, values: Floats, deviations: Floats | None
) -> Iterator[dict[str, Any]]:
    """Released values and their error bars, by parameter and row of its table, from 0."""
    start = 0
    for name in public.parameters:
        for column in PARAMETERS[name].columns:
            rows = np.flatnonzero(public.support[column])
            if not len(rows):  # lower limits that are all 0, for one
                continue
            some = slice(start, start + len(rows))
            start += len(rows)
            yield {
                "parameter": [column] * len(rows),
                "row": rows.astype(np.int64),
                "value": values[some],
                "deviation": np.full(len(rows), np.nan) if deviations is None else deviations[some],
            }


def loading_snippets(file: str, suffix: str) -> tuple[Snippet, ...]:
    """Lines of code that load the released network, its models and its error bars."""
    return _of_file(file, *_SNIPPETS[suffix], _MODELS, _ERRORS, _OWN)


def network_snippets(file: str, suffix: str) -> tuple[Snippet, ...]:
    """Lines of code that load the released network alone."""
    return _of_file(file, *_SNIPPETS[suffix])


def _of_file(file: str, *some: Snippet) -> tuple[Snippet, ...]:
    return tuple(
        Snippet(one.tool, one.code.replace("{name!r}", repr(file)).replace("{name}", file))
        for one in some
    )


def _loading(
    network: Network, population: Population, solutions: Solutions, served: NDArray[np.bool_]
) -> Floats | None:
    """Mean loading of every branch over the models that are served, 0 without a limit.

    None if no model is served.
    """
    assert solutions.flow is not None
    if not served.any():
        return None
    flow = np.abs(np.nan_to_num(solutions.flow[served]))
    limited = np.isfinite(network.branches.capacity)
    limit = np.where(limited, network.branches.capacity, 1.0)
    if population.capacity is not None:
        limit = limit * population.capacity[served]
    found: Floats = np.where(limited, flow / np.maximum(limit, 1e-9), 0.0).mean(0)
    return found


def _map(
    network: Network, population: Population, solutions: Solutions, served: NDArray[np.bool_]
) -> Picture:
    loading = _loading(network, population, solutions, served)
    limit = network.branches.capacity
    limited = np.isfinite(limit)
    most = float(limit[limited].max(initial=1.0))
    # The square root: capacities span decades, and the eye sees areas.
    width = np.where(limited, np.sqrt(np.where(limited, limit, 0.0) / most), 0.1)
    words, colour = _colour_words(loading, served)
    return Picture(
        map_svg(network, loading, width=width),
        f"Map of {len(network.buses):,} buses and {len(network.branches):,} branches. {words}",
        caption=f"The released network. Thick lines have much capacity; {colour}. "
        + _places(network),
        legend=(
            *((("c2", "line loaded to more than 90%"),) if loading is not None else ()),
            ("c3", "bus with generation"),
            ("c1", "bus with load alone"),
            ("c0", "other bus"),
        ),
    )


def _places(network: Network) -> str:
    if mapped_positions(network) is None:
        return "Places are drawn from the topology, not from a map."
    return "Places are the coordinates of the file."


def _colour_words(loading: Floats | None, served: NDArray[np.bool_]) -> tuple[str, str]:
    """What the lines' colour shows, for those who can't see it and for the caption."""
    if loading is None:
        none = "no model has a solution, so no loading is known"
        return f"{none.capitalize()}.", f"{none}, and lines are grey"
    models = "the models" if served.all() else f"the {int(served.sum()):,} models that are served"
    full = int((loading > CONGESTED).sum())
    return (
        f"{full:,} branches are loaded to more than 90% on average over {models}.",
        f"orange ones are loaded to more than 90%, and shades of grey show the mean loading over "
        f"{models}",
    )


def left_out_words(left_out: int, size: int) -> str:
    """Why there are fewer models than were sampled."""
    return (
        f"{left_out:,} of {left_out + size:,} sampled models were left out: generation can't match "
        "the load in them, by public numbers."
    )


def served_words(served: int, size: int) -> str:
    """How many models the released network serves."""
    if served == size:
        return f"The released network serves {served:,} of {size:,} models."
    none = size - served
    return (
        f"The released network serves only {served:,} of {size:,} models: {none:,} have no "
        "solution on it."
    )


def survived_words(found: Solutions, outages: int) -> str:
    """How many models the released network serves after each of some outages."""
    served = int(np.isfinite(found.cost).sum())
    return (
        f"It serves {served:,} of {len(found):,} models with one dispatch that survives each of "
        f"{outages:,} listed outages (in DC)."
    )


def ac_words(network: Network, found: AcSolutions, after: AcSolutions | None) -> list[str]:
    """How many models the released network serves in AC, and after outages if there are any."""
    words = [_in_ac(network, found)]
    return words if after is None else [*words, _survived_in_ac(after)]


def _in_ac(network: Network, found: AcSolutions) -> str:
    """How many models are served in AC, with which voltages and loadings."""
    served = found.served
    words = f"It serves {int(served.sum()):,} of {len(found):,} models in AC power flow"
    if not served.any():
        return f"{words}."
    voltage = found.voltage[served]
    load = 100 * (found.flow[served] / network.branches.capacity).max(initial=0.0)
    return (
        f"{words}, at voltages from {np.nanmin(voltage):.3f} to {np.nanmax(voltage):.3f} per unit, "
        f"with at most {load:.0f}% of any rating (MVA)."
    )


def _survived_in_ac(found: AcSolutions) -> str:
    """How many models the released network serves in AC after outages, and how many pairs fail."""
    assert found.after is not None
    models, outages = found.after.shape
    words = (
        f"It serves {int(found.served.sum()):,} of {models:,} models in AC with one dispatch that "
        f"survives each of {outages:,} listed outages"
    )
    missed = int((found.after != 0).sum())
    if not missed:
        return f"{words}."
    return f"{words}; of {models * outages:,} pairs of a model and an outage {missed:,} fail."


def _distribution(public: PublicNetwork, values: Floats, name: str) -> Picture:
    some = values[public.parts[name]]
    unit, word = PARAMETERS[name].unit, _WORDS[name]
    low, middle, high = (shown(float(one)) for one in (some.min(), np.median(some), some.max()))
    return Picture(
        histogram(some, f"{word} ({unit})", "entries", "c1"),
        f"Histogram of {len(some):,} released values of {word}, from {low} to {high} {unit}, half "
        f"of them below {middle}.",
        f"Released values of {word}"
        + (", in classes of equal ratio." if log_range(some) is not None else "."),
    )


def _models(network: Network, solutions: Solutions, served: NDArray[np.bool_]) -> Section:
    count, cost = len(served), solutions.cost[served]
    figures = [
        ("models of the population", f"{count:,}"),
        ("served by the released network", f"{int(served.sum()):,}"),
    ]
    text = "Each model is an optimal power flow with its own loads, limits and costs."
    pictures: tuple[Picture, ...] = ()
    if cost.any():
        assert solutions.line_price is not None
        congested = (np.nan_to_num(solutions.line_price[served]) > 1e-4).sum(1)
        figures += [
            ("mean cost ($/h)", shown(float(cost.mean()))),
            ("congested lines a model, mean", f"{congested.mean():.1f}"),
        ]
        large = float(np.abs(cost).max()) >= _THOUSANDS
        unit = "thousand $/h" if large else "$/h"
        some = cost / 1000 if large else cost
        pictures = (
            Picture(
                histogram(some, f"cost of a model ({unit})", "models", "c2"),
                f"Histogram of the costs of {len(cost):,} models, from {shown(float(cost.min()))} "
                f"to {shown(float(cost.max()))} dollars an hour.",
                "Costs of the models on the released network.",
            ),
        )
    elif served.any():
        text += " No unit has a cost here, so they tell whether they are served, and no prices."
    warnings: tuple[str, ...] = ()
    if served.all():
        text += " The released network serves all of them."
    else:
        warnings = (
            f"{served_words(int(served.sum()), count)} If this is not expected, its owner "
            "should check the range and the units of the case.",
        )
    return Section("What the models do on it", text, pictures, figures, warnings=warnings)
