"""Restoration against CVXPY with Clarabel on the same instances, then alone at scale.

    python benchmarks/wind_restore.py [--largest 10000000]

The peer gets its best honest form: weights as variables, objective divided by `gamma_y` (unscaled
it fails from about 30,000 rows on).  CVXPY's time includes building the problem, as a user's does;
both get the same number of tries, and the best counts.
Noise is not timed.  Memory is the peak of the process above what it held before the call (the
data), as Linux reports it; each run is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gridveil.wind.features import RBF
from gridveil.wind.restoration.restore import restore
from gridveil.wind.row_blocks import ArrayRows

Floats = NDArray[np.float64]
ALPHA, EPSILON, RIDGE, GAMMA = 0.15, 1.0, 1e-3, 1e-5


def instance(m: int) -> tuple[Floats, Floats, float, Floats]:
    """Draw speeds, noisy power, noisy loss and noisy weights as the paper's algorithm would."""
    rng = np.random.default_rng(m)
    speed = 8 * rng.weibull(2, m)
    y = np.clip(np.clip((speed / 12) ** 3, 0, 1) + 0.08 * rng.normal(size=m), 0, 1)
    gram, moment, loss2 = np.zeros((5, 5)), np.zeros(5), 0.0
    blocks = np.array_split(np.arange(m), max(1, m // 100_000))
    for rows in blocks:
        X = RBF()({"speed": speed[rows]})
        gram, moment = gram + X.T @ X, moment + X.T @ y[rows]
    beta = np.linalg.solve(gram + RIDGE * np.eye(5), moment)
    for rows in blocks:
        loss2 += float(np.sum((y[rows] - RBF()({"speed": speed[rows]}) @ beta) ** 2))
    y0 = y + rng.laplace(scale=2 * ALPHA / EPSILON, size=m)
    lbar = np.sqrt(loss2) + rng.laplace(scale=4 * ALPHA / EPSILON)
    bbar = beta + rng.laplace(scale=4 * ALPHA / EPSILON * 10 / m, size=5)
    return speed, y0, float(lbar), bbar


def ours(m: int, repeats: int) -> dict[str, float | str]:
    """Time our solver, rows in memory."""
    speed, y0, lbar, bbar = instance(m)
    before, best = _peak(reset=True), np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        rows = ArrayRows({"speed": speed}, RBF(), y0)
        got = restore(rows, loss=lbar, weights=bbar, ridge=RIDGE)
        best = min(best, time.perf_counter() - start)
    memory = _peak() - before
    found = {"seconds": best, "memory": memory, "objective": got.objective}
    return found | {"passes": got.passes, "gap": got.gap, "solver": got.solver}


def peer(m: int, repeats: int) -> dict[str, float | str]:
    """Time CVXPY with Clarabel at its default tolerances."""
    import cvxpy as cp

    speed, y0, lbar, bbar = instance(m)
    X = RBF()({"speed": speed})
    before, best = _peak(reset=True), np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        y, beta, loss = cp.Variable(m), cp.Variable(5), cp.Variable()
        fit = (X.T @ X + RIDGE * np.eye(5)) @ beta == X.T @ y
        limits = [y >= 0, y <= 1, fit, cp.norm(X @ beta - y) <= loss]
        miss = cp.abs(lbar - loss) / GAMMA + cp.norm(bbar - beta) + cp.norm(y0 - y)
        problem = cp.Problem(cp.Minimize(miss), limits)
        problem.solve(solver=cp.CLARABEL)
        best = min(best, time.perf_counter() - start)
    return {
        "seconds": best,
        "memory": _peak() - before,
        "objective": float(problem.value) * GAMMA,
        "solver": str(problem.status),
    }


def _peak(reset: bool = False) -> float:
    """Return this process's peak memory in MB, since the last reset (Linux)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def _apart(who: str, m: int, repeats: int) -> dict[str, float | str]:
    """Run one measurement in a process of its own."""
    command = [sys.executable, __file__, "--run", who, str(m), str(repeats)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, float | str] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=10_000_000)
    parser.add_argument("--run", nargs=3)
    given = parser.parse_args()
    if given.run:
        who, m, repeats = given.run
        print(json.dumps({"ours": ours, "peer": peer}[who](int(m), int(repeats))))
        return
    print("      rows    ours s  passes      gap     MB |  cvxpy s     MB  status  | ratio  differ")
    for m, repeats in ((1_000, 20), (100_000, 2), (1_000_000, 1), (10_000_000, 1)):
        if m > given.largest:
            break
        a = _apart("ours", m, repeats)
        line = "{seconds:9.4f} {passes:7d} {gap:8.0e} {memory:6.0f}".format_map(a)
        if m <= 100_000:
            b = _apart("peer", m, repeats)
            differ = abs(float(a["objective"]) / float(b["objective"]) - 1)
            ratio = float(b["seconds"]) / float(a["seconds"])
            line += " | {seconds:8.3f} {memory:6.0f} {solver:>8}".format_map(b)
            line += f" | {ratio:4.0f}x {differ:7.0e} {'ok' if differ <= 1e-6 else 'DIFFER'}"
        print(f"{m:10,d} {line}", flush=True)


if __name__ == "__main__":
    main()
