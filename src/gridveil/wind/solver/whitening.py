"""A basis in which ridge regression is a projection: `beta = W z`, `z = W'X'y`.

With `W'(X'X + lam I)W = I` the weights of `y` are `W (XW)'y` and the residual is `y - XW z`.
Everything else needs only `E = lam W'W` and `G = (XW)'(XW) = I - E`.  Both are kept: along a strong
direction `E` is tiny and `1 - G` would have no digits left, along a weak one it is the reverse.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gridveil.wind.rows import Rows, total

Floats = NDArray[np.float64]

# Below this ratio of eigenvalues, or this share of data in a direction, the Gram matrix has lost
# too many digits: form it again in the new basis, where it is nearly diagonal.
POOR, WEAK = 1e-7, 1e-4
# Below this share of data a direction is rounding: a zero or an exactly collinear feature.
EMPTY = 1e-20


@dataclass(frozen=True, eq=False)
class Whitening:
    """The basis and what it took to find it.

    Attributes
    ----------
    W
        Basis, `(p, k)`; `k < p` only where features are zero or collinear.
    E, G
        `lam W'W` and `(XW)'(XW)`, `(k, k)`.
    rows
        Number of rows, `m`.
    passes
        Passes over the rows it took: 1, or 2 where features are badly scaled.
    """

    W: Floats
    E: Floats
    G: Floats
    rows: int
    passes: int


def whiten(rows: Rows, ridge: float) -> Whitening:
    """Find the basis in one pass over public features, or two where the numbers need it."""
    if not (np.isfinite(ridge) and ridge >= 0):
        raise ValueError(f"ridge is {ridge}; give a finite number that is not negative")
    p = rows.features.width
    count, gram = total(rows.map(partial(_gram, W=np.eye(p))))
    if not np.isfinite(gram).all():
        raise ValueError("the features are not finite or overflow when squared: rescale them")
    m = int(count)
    diagonal = np.diag(gram) + ridge
    W = np.diag(1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)))
    W, spread = _orthonormal(W, W @ gram @ W, ridge, m)
    if ridge == 0 and W.shape[1] < p:
        # Of all weights that fit alike take the least: those in the span of X'(XW).
        W = np.asarray(np.linalg.pinv(gram @ W, rcond=1e-15).T, dtype=np.float64)
    W = W @ np.linalg.eigh(W.T @ W)[1]  # strong directions first, weak ones last
    gram = W.T @ gram @ W
    passes = 1
    if W.shape[1] and (spread < POOR or np.diag(gram).min() < WEAK):
        _, gram = total(rows.map(partial(_gram, W=W)))
        full = np.diag(gram) > EMPTY
        W, gram = W[:, full], gram[np.ix_(full, full)]
        # Nearly the identity: its triangular root does not mix strong and weak directions.
        root = np.linalg.inv(np.linalg.cholesky(gram + ridge * W.T @ W))
        W, gram = W @ root.T, root @ gram @ root.T
        passes = 2
    return Whitening(W, ridge * W.T @ W, gram, m, passes)


def _gram(X: Floats, y: Floats, W: Floats) -> tuple[Floats, Floats]:
    xt = X @ W
    return np.array(float(len(X))), xt.T @ xt


def _orthonormal(W: Floats, gram: Floats, ridge: float, m: int) -> tuple[Floats, float]:
    """Turn a basis in which `X'X` is `gram` into one in which `X'X + lam I` is the identity.

    Directions that rounding cannot tell from zero are dropped.  Also returns the smallest over
    the largest eigenvalue kept.
    """
    values, vectors = np.linalg.eigh(gram + ridge * W.T @ W)
    noise = len(values) if ridge else max(m, len(values))
    keep = values > noise * np.finfo(float).eps * values.max(initial=0.0)
    values = values[keep]
    W = W @ (vectors[:, keep] / np.sqrt(values))
    return W, float(values[0] / values[-1]) if values.size else 1.0
