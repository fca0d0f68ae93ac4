"""The mix of the weights: a public matrix that gives better weights for the same epsilon.

If ``A beta`` is asked for and solved for ``beta``, the error is ``A^-1`` times Laplace noise of
scale ``alpha D(A)/epsilon``, ``D(A) = max_i ||A M e_i||_1``: its expected square is proportional to
``D(A)^2 ||A^-1||_F^2``. Asking for the weights themselves (``A = I``) is 1.9 to 3.8 times worse
than the best mix for the features tried. Any mix is private, so a poor one costs accuracy only.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from gridveil.wind.regression import Ridge
from gridveil.wind.row_blocks import Rows

Floats = NDArray[np.float64]

_SAMPLE = 256
_CONDITION = 1e6
# D is a maximum of sums of absolute values: minimise a smoothed version, then a less smooth one.
_SMOOTHING = ((8, 1e-2), (20, 3e-3), (60, 1e-3))


def weight_mix(ridge: Ridge) -> Floats:
    """Find a good mix ``A``, ``(p, p)``, from public features.

    Starts at the best power of ``P^-1``, ``P = (X'X + lam I)^-1``, and improves it on a sample of
    rows; the sensitivity is computed later, from all rows.
    """
    from scipy.optimize import minimize  # slow to load

    P = ridge.factor
    columns = P @ _sample(ridge.rows, ridge.whitening.rows).T
    values, vectors = np.linalg.eigh((P + P.T) / 2)
    values = np.maximum(values, values.max() * 1e-14)
    powers = [(vectors * values**-t) @ vectors.T for t in (0.0, 0.25, 0.5, 0.75, 1.0)]
    best = min(powers, key=partial(_cost, columns=columns))
    best = best / np.abs(best @ columns).sum(0).max()
    start = best
    for sharpness, blur in _SMOOTHING:
        smooth = partial(_smooth_cost, columns=columns, sharpness=sharpness, blur=blur)
        found = minimize(
            smooth, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 300}
        )
        start = np.asarray(found.x).reshape(best.shape)
        if _cost(start, columns) < _cost(best, columns):
            best = start
    return _tamed(best)


def _tamed(A: Floats) -> Floats:
    """Bound the condition number: directions without data could be scaled without limit."""
    left, singular, right = np.linalg.svd(A)
    return np.asarray((left * np.minimum(singular, _CONDITION * singular[-1])) @ right)


def _cost(A: Floats, columns: Floats) -> float:
    """Compute ``log D(A) + log ||A^-1||_F``."""
    singular = np.linalg.svd(A, compute_uv=False)
    if not singular[-1] > 1e-12 * singular[0]:
        return np.inf
    reach = np.abs(A @ columns).sum(0).max()
    return float(np.log(reach) + 0.5 * np.log((1 / singular**2).sum()))


def _smooth_cost(
    flat: Floats, columns: Floats, sharpness: int, blur: float
) -> tuple[float, Floats]:
    """Compute the cost with a norm in place of the maximum, and its gradient."""
    A = flat.reshape(len(columns), -1)
    image = A @ columns
    size = np.sqrt(image * image + blur * blur)
    sums = size.sum(0)
    top = sums.max()
    norm = top * ((sums / top) ** sharpness).sum() ** (1 / sharpness)
    reach = (image / size * (sums / norm) ** (sharpness - 1)) @ columns.T / norm
    inverse = np.linalg.pinv(A.T @ A, hermitian=True)
    trace = np.trace(inverse)
    gradient = reach - A @ inverse @ inverse / trace
    return float(np.log(norm) + 0.5 * np.log(trace)), gradient.ravel()


def _sample(rows: Rows, count: int) -> Floats:
    """Pick some rows of features: evenly spaced ones, and the extremes of every feature."""
    step = max(count // _SAMPLE, 1)
    picked = list(rows.map(partial(_pick, step=step)))
    every = np.vstack(picked)
    extremes = np.concatenate([every.argmax(0), every.argmin(0)])
    spaced = np.linspace(0, len(every) - 1, _SAMPLE).astype(int)
    return np.asarray(every[np.unique(np.concatenate([extremes, spaced]))])


def _pick(X: Floats, y: Floats, step: int) -> Floats:
    ends = np.concatenate([X.argmax(0), X.argmin(0)])
    return np.asarray(X[np.unique(np.concatenate([ends, np.arange(0, len(X), step)]))])
