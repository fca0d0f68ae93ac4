"""The public family of power curves, and the prior of a curve's weights that follows from it.

The curves of all kinds of turbines belong to one family (`REFERENCES`). The prior has the mean and
covariance of the weights of regressions on these curves, with room for a misfit. If the records are
informative it has almost no weight. If noise drowns them, it keeps the released curve in the shape
of a turbine's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridveil.wind.regression import Fit

Vector = NDArray[np.float64]

_ROWS = 4096
_MISFIT = 0.2  # how far a real curve may be from the family's, as a share of capacity
_HALF_SPEEDS = np.arange(6.5, 11.01, 0.2)
_KNEES = ((3.2, 3.4), (3.5, 2.0), (4.3, 1.4))
_USUAL = (8.4, 1.2)  # mean and deviation of the wind speed at half power, for turbines on land


@dataclass(frozen=True)
class Reference:
    """A public curve: ``(1 + (2^s - 1) (v/v50)^(-a s))^(-1/s)``.

    ``v50`` is the wind speed at half power, ``a`` the growth below it and ``s`` the sharpness of
    the knee. Published curves of all kinds of turbines, relative to their speed at half power,
    agree with one of this family to about 2% of capacity; nacelle anemometers show a softer knee.
    """

    half_speed: float
    growth: float
    sharpness: float

    def __call__(self, speed: Vector) -> Vector:
        """Compute the power at these wind speeds, as shares of capacity."""
        ratio = np.maximum(speed / self.half_speed, 1e-2)
        s = self.sharpness
        return np.asarray((1 + (2**s - 1) * ratio ** (-self.growth * s)) ** (-1 / s))


REFERENCES = tuple(Reference(v50, *knee) for v50 in _HALF_SPEEDS for knee in _KNEES)
"""The public candidates for the reference curve."""
REFERENCE_PRIOR = np.array(
    [-0.5 * ((one.half_speed - _USUAL[0]) / _USUAL[1]) ** 2 for one in REFERENCES]
)


def weight_prior(fit: Fit) -> tuple[Vector, Vector]:
    """Compute mean and covariance of one turbine's weights, from some of its public rows."""
    names = tuple(dict.fromkeys(("speed", *fit.features.inputs)))
    step = max(fit.rows // _ROWS, 1)
    speeds, rows, start = [], [], 0
    for columns in fit.group.columns(names)():
        some = {name: values[-start % step :: step] for name, values in columns.items()}
        speeds.append(some["speed"])
        rows.append(fit.features(some))
        start += len(columns["speed"])
    X, speed = np.vstack(rows), np.concatenate(speeds)
    p = X.shape[1]
    gram = X.T @ X
    gram += (1e-9 * np.trace(gram) / p + fit.ridge.ridge * len(X) / fit.rows) * np.eye(p)
    curves = np.stack([curve(speed) for curve in REFERENCES], axis=1)
    weights = np.linalg.solve(gram, X.T @ curves)
    chances = np.exp(REFERENCE_PRIOR - REFERENCE_PRIOR.max())
    chances /= chances.sum()
    mean = weights @ chances
    apart = (weights - mean[:, None]) * np.sqrt(chances)
    misfit = _MISFIT**2 * len(X) / p * np.linalg.inv(gram)
    return mean, apart @ apart.T + (misfit + misfit.T) / 2
