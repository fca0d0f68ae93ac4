"""How many runs of a study two worker processes do in the time of one.

    python benchmarks/studies.py [--runs 100] [--rounds 3]

The study is the paper's figure of the loss against alpha at one alpha, by all methods. Runs a
minute are counted from the first result to the last, and, in brackets, from the command to the
finished figure. All tables must be the same.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

from gridveil.studies import Plan, run_study
from gridveil.studies.fig3 import Fig3


def main() -> None:
    """Print runs a minute, and the ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    plan = Plan(Fig3(alphas=(0.15,)), options.runs)
    total = len(plan.all_runs())
    print(f"{total:,} runs a study, {options.rounds} rounds")
    speeds: dict[int, list[float]] = {1: [], 2: []}
    tables = []
    for round_ in range(options.rounds):
        for workers, seen in speeds.items():
            moments: list[float] = []
            began = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                found = run_study(
                    plan,
                    Path(folder) / "study",
                    workers=workers,
                    progress=lambda done, _, at=moments: at.append(time.perf_counter()),
                )
            tables.append(found.table)
            whole = 60 * total / (time.perf_counter() - began)
            seen.append(60 * (total - 1) / (moments[-1] - moments[1]))
            print(f"round {round_ + 1}: {workers} workers {seen[-1]:7.0f} runs a minute", end="")
            print(f" ({whole:.0f})")
    assert all(table.equals(tables[0]) for table in tables), "the tables differ"
    ratio = median(speeds[2]) / median(speeds[1])
    print(f"two workers do {ratio:.2f} times the runs of one; all tables are the same")


if __name__ == "__main__":
    main()
