"""A public prior of a power curve's weights.

The curves of all kinds of turbines belong to one family (`synthetic.curves.REFERENCES`). The prior
has the mean and covariance of the weights of regressions on these curves, with room for a misfit.
If the records are informative it has almost no weight. If noise drowns them, it keeps the released
curve in the shape of a turbine's.
"""

from __future__ import annotations

import numpy as np

from gridveil.wind.methods.tuned_estimate import Floats
from gridveil.wind.regression import Fit
from gridveil.wind.synthetic.curves import REFERENCE_PRIOR, REFERENCES

_ROWS = 4096
_MISFIT = 0.2  # how far a real curve may be from the family's, as a share of capacity


def weight_prior(fit: Fit) -> tuple[Floats, Floats]:
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
