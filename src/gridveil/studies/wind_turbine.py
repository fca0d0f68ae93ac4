"""The public records of wind studies, and the releases made from them.

Records are made up about a turbine's power curve, or are a user's own public ones. Because they are
public, comparing releases with them and using seeded noise are permissible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.privacy.exact_numbers import exact
from gridveil.studies.figure_style import BLUE, GREEN, ORANGE, PURPLE
from gridveil.studies.study_plan import Cell, Measures, Study
from gridveil.wind.demo import made_up
from gridveil.wind.features import RBF, Features
from gridveil.wind.methods import Wpo
from gridveil.wind.records import Records, read_records
from gridveil.wind.regression import Fit, default_features, fit_records
from gridveil.wind.release import WindPlan, plan

Vector = NDArray[np.float64]

RIDGE = Wpo.default("ridge")
GAMMA = Wpo.default("gamma_records")

NAMES = {"laplace": "Laplace", "wpo": "WPO", "tuned": "GridVeil", "published": "published code"}
COLOURS = {"laplace": ORANGE, "wpo": BLUE, "tuned": GREEN, "published": PURPLE}
MARKERS = {"laplace": "s", "wpo": "o", "tuned": "^", "published": "D"}


@dataclass(frozen=True, eq=False)
class Turbine:
    """Public records: wind speed in m/s, and power in shares of capacity."""

    speed: Vector
    power: Vector
    features: Features


@dataclass(eq=False)
class WindWorld:
    """A turbine with its regression and the plans that runs share."""

    turbine: Turbine
    records: Records = field(init=False)
    fit: Fit = field(init=False)
    X: Vector = field(init=False)
    weights: Vector = field(init=False)
    loss: float = field(init=False)
    _plans: dict[tuple[Fraction, Fraction, str], WindPlan] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        turbine = self.turbine
        columns = {
            "row": np.arange(len(turbine.speed)),  # the released order is that of the key
            "speed": turbine.speed,
            "power": turbine.power,
        }
        self.records = read_records(
            pa.table(columns), speed="speed", power="power", capacity=1.0, key="row"
        )
        (self.fit,) = fit_records(self.records, turbine.features, RIDGE)
        self.X = turbine.features({"speed": turbine.speed})
        self.weights, self.loss = self.fit.ridge.weights_and_loss(turbine.power)

    def release(self, cell: Cell, seed: int) -> Vector:
        """Make a seeded release; return the released power in shares of capacity."""
        alpha, epsilon = (exact(cell[name], name=name) for name in ("alpha", "epsilon"))
        key = alpha, epsilon, str(cell["method"])
        if key not in self._plans:
            self._plans[key] = plan(
                self.records,
                epsilon=epsilon,
                alpha=alpha,
                method=key[2],
                features=self.turbine.features,
            )
        planned = self._plans[key]
        return np.concatenate(list(planned.run(planned.study(seed)).blocks()))

    def compare(self, released: Vector) -> dict[str, float]:
        """Measure the errors of released power."""
        weights, loss = self.fit.ridge.weights_and_loss(released)
        error = released - self.turbine.power
        curve = self.X @ (weights - self.weights)
        return {
            "loss": loss,
            "rmse": float(np.sqrt(np.mean(error**2))),
            "curve_error": float(np.sqrt(np.mean(curve**2))),
            "weight_error": float(np.linalg.norm(weights - self.weights)),
        }


MEASURES = {
    "loss": pa.float64(),
    "rmse": pa.float64(),
    "curve_error": pa.float64(),
    "weight_error": pa.float64(),
}
"""The measures of `WindWorld.compare`."""

ALPHAS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)


@dataclass(frozen=True)
class TurbineStudy(Study):
    """Releases of the paper's records, for growing alpha."""

    measures: ClassVar = MEASURES

    alphas: tuple[float, ...] = ALPHAS
    epsilon: float = 1.0
    rows: int = 1000
    data_seed: int = 0

    def each(self, methods: Sequence[str]) -> list[Cell]:
        """One cell for each of the methods and each alpha."""
        return [
            {"method": method, "alpha": alpha, "epsilon": self.epsilon}
            for method in methods
            for alpha in self.alphas
        ]

    def prepare(self) -> Turbine:
        """Make the paper's records."""
        return paper_turbine(self.rows, self.data_seed)

    def world(self, shared: Turbine) -> WindWorld:
        """Fit the regression to the records."""
        return WindWorld(shared)

    def run(self, world: WindWorld, cell: Cell, seed: int) -> Measures:
        """Make one release, and measure it."""
        return world.compare(world.release(cell, seed))


def paper_turbine(rows: int, seed: int) -> Turbine:
    """Make the paper's records: about the curve of a GE 2.75-103, 2.5 to 12.5 m/s, five RBFs."""
    return Turbine(*made_up(rows, seed=seed, noise=0.1), RBF(5))


def curve_turbine(turbine_type: str, rows: int, noise: float, seed: int) -> Turbine:
    """Make up records about the public curve of a turbine, by windpowerlib's name for it."""
    speed, power = made_up(rows, seed=seed, noise=noise, turbine_type=turbine_type)
    return Turbine(speed, power, RBF(5))


def file_turbine(path: Path, speed: str, power: str, capacity: float) -> Turbine:
    """Read a user's own public records from CSV or Parquet; leave out rows with missing values.

    Raises
    ------
    InputError
        If they can't be used.
    """
    if not (np.isfinite(capacity) and capacity > 0):
        raise InputError(f"The capacity {capacity} is not a positive number.")
    table = _read(path, [speed, power])
    whole = np.isfinite(table).all(axis=1)
    if not whole.any():
        raise InputError(f"The columns '{speed}' and '{power}' of {path} have no whole row.")
    speeds, powers = table[whole].T
    records = read_records(
        pa.table({"speed": speeds, "power": powers}),
        speed="speed",
        power="power",
        capacity=capacity,
    )
    return Turbine(speeds, np.clip(powers / capacity, 0.0, 1.0), default_features(records))


def _read(path: Path, columns: list[str]) -> Vector:
    import pandas as pd

    try:
        if path.suffix == ".parquet":
            frame = pd.read_parquet(path, columns=columns)
        else:
            frame = pd.read_csv(path, usecols=columns)
        return frame[columns].to_numpy(dtype=np.float64)
    except (OSError, ValueError, KeyError, pa.ArrowException):
        raise InputError(
            f"The columns {' and '.join(columns)} can't be read as numbers from {path}.",
            remedy="Give a CSV or Parquet file, and its columns with --speed and --power.",
        ) from None
