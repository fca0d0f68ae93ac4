"""How far the exact restoration of capacities gets on RTS-96: times, gaps and proofs.

    python benchmarks/grid_exact.py [--seeds 4] [--models 1 2] [--time-limit 60]

A run draws models, noise of 60 MW on every capacity and noise on every cost ($5,000, and the
$120,000 that the paper's budget asks for). Four ways solve it: convex-concave steps; the exact
restoration from there, with HiGHS and with SCIP; and the plain complementarity model in SCIP, from
scratch and without a first linear programme to end on. Times are CPU seconds on one core, the limit
is by the clock. Gaps are to the way's own bound. Objectives are checked against all bounds.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from fractions import Fraction  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

import gridveil.grid as gg  # noqa: E402
from gridveil.grid.model.release_problem import ReleaseProblem  # noqa: E402
from gridveil.grid.restoration.paper_bilevel import describe  # noqa: E402
from gridveil.grid.restoration.paper_exact import restore_exactly  # noqa: E402
from gridveil.grid.restoration.paper_relaxation import LowerSolver, Relaxation  # noqa: E402
from gridveil.grid.restoration.paper_steps import Matcher  # noqa: E402

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from grid.scip import Complementarity, search_by_scip  # noqa: E402

NOISE = (5_000.0, 120_000.0)
CAPACITY_NOISE, LOW, HIGH = 60.0, 1.0, 5000.0
PRICE = Fraction(3000)
SAME = 1e-6


def instance(seed, size, noise):
    """Draw a restoration: the network, its models, goals, a start and limits."""
    network = gg.cases.rts96(variant="paper")
    models = gg.sample_population(network, size, costs=(80.0, 100.0), seed=seed)
    rng = np.random.default_rng(seed)
    capacity = network.branches.capacity
    start = np.maximum(capacity + rng.laplace(0, CAPACITY_NOISE, len(capacity)), LOW)
    goal = gg.solve_population(network, models).cost + rng.laplace(0, noise, size)
    limits = np.full(len(capacity), LOW), np.full(len(capacity), HIGH)
    return network, models, goal, start, *limits


def plain(given, time_limit):
    """Solve the complementarity model in SCIP from scratch: objective and bound."""
    problem = describe(*given, 1.0)
    below = [LowerSolver(model) for model in problem.models]
    whole = Complementarity(Relaxation(problem, np.ones(len(below), dtype=bool)), below)
    found, bound = whole.solve(1e-7, time_limit)
    costs = [np.array([solver.solve(phi).cost for solver in below]) for phi in found]
    values = [problem.objective(phi, cost) for phi, cost in zip(found, costs, strict=True)]
    return min(values, default=np.inf), bound


def steps(network, models, goal, start, low, high):
    """Restore by convex-concave steps."""
    _, public = network.split("capacity", (LOW, HIGH))
    return Matcher(ReleaseProblem(public, models, PRICE), low, high).match(models, goal, start)


def ways(given, time_limit):
    """Solve one instance in every way: name, objective, bound and when it began."""
    begin = time.process_time()
    found = steps(*given)
    yield "convex-concave steps", found.objective, found.bound, begin
    warm = found.values
    for solver, search in (("HiGHS", None), ("SCIP", search_by_scip)):
        begin = time.process_time()
        found = restore_exactly(*given, search=search, warm=warm, time_limit=time_limit)
        yield f"exact, {solver}", found.objective, found.bound, begin
    begin = time.process_time()
    yield "plain model, SCIP", *plain(given, time_limit), begin


def main():
    """Print the table; exit code 1 if two ways contradict each other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--models", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--time-limit", type=float, default=60.0)
    chosen = parser.parse_args()
    print(f"{'noise $':>8}{'T':>3}{'seed':>5}  {'way':24}{'CPU s':>8}{'objective':>15}{'gap':>9}")
    good = True
    for noise in NOISE:
        for size in chosen.models:
            for seed in range(chosen.seeds):
                given = instance(seed, size, noise)
                least, most = np.inf, -np.inf
                for name, objective, bound, begin in ways(given, chosen.time_limit):
                    spent = time.process_time() - begin
                    gap = max(objective - bound, 0.0) / max(1.0, abs(objective))
                    label = f"{noise:8,.0f}{size:3}{seed:5}  {name:24}"
                    print(f"{label}{spent:8.2f}{objective:15,.4f}{gap:9.1e}", flush=True)
                    least, most = min(least, objective), max(most, bound)
                if most > least + SAME * max(1.0, abs(least)):
                    print("  a bound is above an objective")
                    good = False
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
