"""How accurate each wind method is at the same epsilon: the paper's setting, many runs, one table.

    python benchmarks/wind_accuracy.py [--runs 100] [--rows 1000] [--epsilon 1] [--seed 1]

Loss: that of the regression on the released records. RMSE: to the real records. Weights: distance
from those of the real records. Shape: largest gap between the distributions of residuals, scaled
to unit length (Kolmogorov's distance). The noise is seeded, so a run can be repeated; it has the
distribution of the secure one.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict

import numpy as np

import gridveil as gv
from gridveil.errors import NotPrivateWarning
from gridveil.privacy.sealed import unseal
from gridveil.wind.demo import CAPACITY, demo_records
from gridveil.wind.regression import fit_records

ALPHAS = ("0.05", "0.10", "0.15", "0.20", "0.25", "0.30")
METHODS = ("laplace", "wpo", "tuned")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore", NotPrivateWarning)
    table = demo_records(options.rows, seed=options.seed)
    records = gv.wind.read_records(table, speed="wind_speed", power="power", capacity=CAPACITY)
    fits = fit_records(records, gv.wind.RBF(5), 1e-3)
    real = np.concatenate(list(unseal(records.power)()))
    beta, loss = fits[0].ridge.weights_and_loss(real)
    print(f"{options.rows:,} records, epsilon {options.epsilon}, {options.runs} runs", end="")
    print(f"; real loss {loss:.3f}")
    print(f"{'alpha':>5} {'method':8} {'loss, mean and 90% band':>26}", end="")
    print(f" {'RMSE':>8} {'weights':>8} {'shape':>6}   shares")
    for alpha in ALPHAS:
        seen = {name: study(name, alpha, options, records, fits, real, beta) for name in METHODS}
        for name, (losses, errors, weights, shapes, shares) in seen.items():
            low, high = np.percentile(losses, [5, 95])
            band = f"{losses.mean():.3f} [{low:.3f}, {high:.3f}]"
            print(f"{alpha:>5} {name:8} {band:>26} {errors.mean():8.4f}", end="")
            print(f" {weights.mean():8.4f} {shapes.mean():6.3f}   {shares}")
        compare(seen, loss)


def study(name, alpha, options, records, fits, real, beta, nominal=None):  # type: ignore[no-untyped-def]
    """Losses, RMSEs and weight errors of many runs of one method."""
    plan = gv.wind.plan(
        records,
        epsilon=options.epsilon,
        alpha=alpha,
        method=name,
        features=fits[0].features,
        **({} if nominal is None or name != "tuned" else {"nominal": nominal}),
    )
    seen = defaultdict(list)
    X = np.vstack(list(fits[0].ridge.rows.map(lambda X, _: X)))
    for number in range(options.runs):
        made = plan.run(plan.study(options.seed * 10**6 + number))
        released = np.concatenate(list(made.blocks()))
        weights, loss = fits[0].ridge.weights_and_loss(released)
        seen["loss"].append(loss)
        seen["rmse"].append(np.sqrt(np.mean((released - real) ** 2)))
        seen["weights"].append(np.linalg.norm(weights - beta))
        seen["shape"].append(shape(released - X @ weights, real - X @ beta))
    shares = "/".join(f"{float(share):.3g}" for share in plan.prepared.shares)
    return *(np.array(seen[name]) for name in ("loss", "rmse", "weights", "shape")), shares


def shape(one: np.ndarray, other: np.ndarray) -> float:
    """The largest gap between the distributions of two sets of residuals, each of unit length."""
    one, other = np.sort(one / np.std(one)), np.sort(other / np.std(other))
    every = np.concatenate([one, other])
    shares = [np.searchsorted(sample, every, "right") / len(sample) for sample in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


def compare(seen, loss):  # type: ignore[no-untyped-def]
    """Print how tuned stands to the other two."""
    width = {name: np.diff(np.percentile(one[0], [5, 95]))[0] for name, one in seen.items()}
    rmse = {name: one[1].mean() for name, one in seen.items()}
    weights = {name: one[2].mean() for name, one in seen.items()}
    better = min(rmse["laplace"], rmse["wpo"])
    print(f"      tuned: band {width['tuned'] / width['wpo']:.2f} of wpo's", end="")
    print(f", RMSE {rmse['tuned'] / better:.3f} of the better one's", end="")
    print(f", weight error {weights['tuned'] / weights['wpo']:.2f} of wpo's", end="")
    print(f", mean loss {seen['tuned'][0].mean() / loss - 1:+.1%}")


if __name__ == "__main__":
    main()
