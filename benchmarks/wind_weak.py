"""Where the tuned method is weak: records unlike those that its split is planned for.

    python benchmarks/wind_weak.py [--runs 40]

Records about the same curve as in wind_accuracy.py, with residuals that are small, large, or make
power only ever 0 or full; few records; a small epsilon; each at the default nominal residual, and
some at a better guess. Shows how far the mean loss is off, and RMSE.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pyarrow as pa
from wind_accuracy import METHODS, study

import gridveil as gv
from gridveil.errors import NotPrivateWarning
from gridveil.privacy.sealed import unseal
from gridveil.wind.demo import power_curve
from gridveil.wind.regression import fit_records

THREE = ("0.05", "0.15", "0.30")
CASES = (  # residual (None: 0 or full), rows, epsilon, nominal, alphas
    (0.03, 1000, "1", 0.1, THREE),
    (0.03, 1000, "1", 0.03, ("0.15",)),
    (0.1, 100, "1", 0.1, THREE),
    (0.1, 1000, "0.1", 0.1, ("0.15",)),
    (0.3, 1000, "1", 0.1, THREE),
    (0.3, 1000, "1", 0.3, ("0.15",)),
    (None, 1000, "1", 0.1, THREE),
    (None, 1000, "1", 0.3, ("0.15",)),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=40)
    options = parser.parse_args()
    options.seed = 0
    warnings.simplefilter("ignore", NotPrivateWarning)
    print("residual   rows epsilon nominal alpha   mean loss: laplace, wpo, tuned", end="")
    print("    RMSE: laplace, wpo, tuned    tuned to the better one")
    for residual, rows, epsilon, nominal, alphas in CASES:
        options.epsilon = epsilon
        table = pa.table(made_up(residual, rows))
        records = gv.wind.read_records(table, speed="speed", power="power", capacity=1.0)
        fits = fit_records(records, gv.wind.RBF(5), 1e-3)
        real = np.concatenate(list(unseal(records.power)()))
        beta, loss = fits[0].ridge.weights_and_loss(real)
        for alpha in alphas:
            seen = [study(n, alpha, options, records, fits, real, beta, nominal) for n in METHODS]
            off = "".join(f"{one[0].mean() / loss - 1:>+10.0%}" for one in seen)
            rmse = [one[1].mean() for one in seen]
            size = "0 or full" if residual is None else f"{residual:g}"
            print(f"{size:9}{rows:>6}{epsilon:>8}{nominal:>8g}{alpha:>6}   {off}     ", end="")
            shown = "".join(f"{one:>9.4f}" for one in rmse)
            print(f"{shown}{rmse[2] / min(rmse[:2]):>12.2f}", flush=True)


def made_up(residual: float | None, rows: int) -> dict[str, np.ndarray]:
    """Speeds, and power about the curve."""
    rng = np.random.default_rng(7)
    speed = rng.uniform(2.5, 12.5, rows)
    mean = np.interp(speed, *power_curve())
    if residual is None:
        return {"speed": speed, "power": (rng.random(rows) < mean).astype(float)}
    return {"speed": speed, "power": np.clip(mean + rng.normal(0, residual, rows), 0, 1)}


if __name__ == "__main__":
    main()
