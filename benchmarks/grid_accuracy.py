"""Accuracy of grid releases on RTS-96 at 60% capacity, with secure noise: one table.

    python benchmarks/grid_accuracy.py                   the methods, for capacities
    python benchmarks/grid_accuracy.py --which others    the other parameters
    options: --runs 20 --models 1000 --alphas 5,10,15,20,25,30 --methods certified,paper,laplace

Every run is a real release (OpenDP's noise, a ledger of its own). Figures are the mean over runs,
with the standard deviation over runs in brackets, and the worst run for shares of models. The
real network's answers are computed once.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gridveil import grid
from gridveil.grid.evaluation import parameter_errors
from gridveil.grid.model_comparison import Reference
from gridveil.privacy.ledger import Ledger

SETTINGS: dict[str, dict[str, Any]] = {
    "capacity": {"parameter": "capacity"},
    "capacity, catalogue": {"parameter": "capacity", "catalogue": "own"},
    "load, total bought": {"parameter": "load"},
    "load, total published": {"parameter": "load", "published_total": "own"},
    "load that varies, bought": {"parameter": "load", "varying": True},
    "limits, one unit a bus": {"parameter": "generator_limit", "merged": True},
    "limits, every unit": {"parameter": "generator_limit"},
    "cost in [80, 100]": {"parameter": "cost", "range": (80.0, 100.0)},
    "capacity and load": {"parameter": "capacity,load", "varying": True},
}


def main() -> None:
    """Print the table."""
    given = _arguments()
    alphas = [float(alpha) for alpha in given.alphas.split(",")]
    print(
        f"RTS-96 (paper), {given.models:,} models, epsilon {given.epsilon}, {given.runs} runs\n"
        f"{'release':<24}{'method':<11}{'alpha':>6}  {'infeasible %':>16}  {'unseen %':>16}  "
        f"{'cost error %':>17}  {'unseen %':>9}  {'error':>14}  {'price $':>8}  "
        f"{'lines missed/added %':>21}  {'s':>6}"
    )
    if given.which == "capacity":
        cases = [("capacity", method, alphas) for method in given.methods.split(",")]
    else:
        others = [name for name in SETTINGS if name != "capacity"]
        cases = [
            (name, "certified", [1.0, 5.0] if name.startswith("cost") else alphas)
            for name in others
            if given.only in name
        ]
    for name, method, some in cases:
        case = Case(name, given.models)
        for alpha in some:
            rows = [case.run(method, alpha, given.epsilon) for _ in range(given.runs)]
            print(_line(name, method, alpha, np.array(rows)), flush=True)


class Case:
    """One kind of release with its reference answers."""

    def __init__(self, name: str, models: int) -> None:
        self.settings = dict(SETTINGS[name])
        private = self.settings["parameter"]
        network = grid.cases.rts96(variant="paper")
        if self.settings.pop("merged", False):
            network = _one_unit_a_bus(network)
        if private == "cost":
            # The paper's costs, as the network's own: one draw, public, the same in every run.
            rng = np.random.default_rng(7)
            network = network.with_linear_costs(rng.uniform(80, 100, len(network.generators)))
        costs = None if private == "cost" else (80.0, 100.0)
        self.network = network
        steady = "load" in private and not self.settings.pop("varying", False)
        self.population, unseen = (
            _population(network, size, costs, private, seed, steady=steady)
            for size, seed in ((models, 0), (1000, 1))
        )
        if self.settings.get("catalogue") == "own":
            self.settings["catalogue"] = np.unique(network.branches.capacity)
        if self.settings.get("published_total") == "own":
            self.settings["published_total"] = float(network.buses.load.sum())
        self.references = Reference(network, self.population), Reference(network, unseen)
        self.adequate = private in ("capacity", "cost")

    def run(self, method: str, alpha: float, epsilon: str) -> list[float]:
        """One release, and its errors."""
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            made = grid.release(
                self.network,
                self.population,
                epsilon=epsilon,
                alpha=alpha,
                method=method,  # type: ignore[arg-type]
                dataset="benchmark",
                ledger=Ledger(Path(folder) / "ledger.sqlite"),
                **self.settings,
            )
            seconds = time.perf_counter() - start
        one, other = (
            reference.errors(made.data, penalty=3000.0, adequate=self.adequate)
            for reference in self.references
        )
        wrong = parameter_errors(self.network, made.data, made.public.parameters)
        share = sum(e.mean * e.entries for e in wrong) / sum(e.entries for e in wrong)
        return [
            one.infeasible,
            other.infeasible,
            one.cost_error,
            other.cost_error,
            share,
            one.price_error,
            one.missed,
            one.added,
            seconds,
        ]


def _one_unit_a_bus(network: grid.Network) -> grid.Network:
    """The paper's formulation: one output, one pair of limits and one cost a bus."""
    units = network.generators
    buses, first, which = np.unique(units.bus, return_index=True, return_inverse=True)
    merged = replace(
        units,
        name=tuple(units.name[place] for place in first),
        bus=buses,
        p_min=np.bincount(which, units.p_min),
        p_max=np.bincount(which, units.p_max),
        in_service=units.in_service[first],
        quadratic=units.quadratic[first],
        linear=units.linear[first],
        constant=units.constant[first],
        points=tuple(units.points[place] for place in first),
        q_min=np.bincount(which, units.q_min),
        q_max=np.bincount(which, units.q_max),
    )
    return replace(network, generators=merged, source=None)


def _population(
    network: grid.Network, size: int, costs: Any, private: str, seed: int, *, steady: bool
) -> grid.Population:
    """The paper's models; where loads are private, capacities vary in place of loads."""
    found = grid.sample_population(network, size, costs=costs, private=private, seed=seed)
    if not steady:
        return found
    rng = np.random.default_rng([seed, 1])
    capacity = rng.uniform(0.875, 1.125, (size, len(network.branches)))
    return replace(found, load=None, capacity=capacity)


def _line(name: str, method: str, alpha: float, rows: np.ndarray[Any, Any]) -> str:
    mean, spread, worst = np.nanmean(rows, 0), np.nanstd(rows, 0), rows.max(0)
    return (
        f"{name:<24}{method:<11}{alpha:>6g}  {mean[0]:>7.3f} ({worst[0]:>6.2f})  "
        f"{mean[1]:>7.3f} ({worst[1]:>6.2f})  {mean[2]:>8.4f} ({spread[2]:>6.4f})  "
        f"{mean[3]:>9.4f}  {mean[4]:>6.2f} ({spread[4]:>5.2f})  {mean[5]:>8.3f}  "
        f"{mean[6]:>10.1f}/{mean[7]:<10.1f}  {mean[8]:>6.1f}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--which", choices=("capacity", "others"), default="capacity")
    parser.add_argument("--only", default="", help="with others: those whose name has this in it")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--alphas", default=None)
    parser.add_argument("--methods", default="certified,paper,laplace")
    given = parser.parse_args()
    given.alphas = given.alphas or ("5,10,15,20,25,30" if given.which == "capacity" else "5,15,30")
    return given


if __name__ == "__main__":
    main()
