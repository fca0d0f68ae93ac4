"""Ridge regression of private power on public features, with proved sensitivities.

The weights are `beta(y) = M y`, `M = W (XW)'`, where `W` comes from public features only; with
`W'(X'X + lam I)W = I` that is `(X'X + lam I)^-1 X'`.  The loss is `l(y) = ||y - X beta||_2`.
What is proved here holds for the `W` at hand, whatever its own rounding: `M` and
`T = I - XM` are fixed matrices, so on neighbours (one entry moves by at most `alpha`)

    ||beta(y) - beta(y')||_1 <= alpha max_i ||M e_i||_1,
    |l(y) - l(y')| <= alpha max_i ||T e_i||_2.

**Rounding.**  Write `u` for the unit roundoff and `gamma_n = n u / (1 - n u)`, which bounds the
relative error of a sum of `n` products in any order.  For every `y` in `[0, 1]^m` (power is
clipped to that range first, which keeps neighbours neighbours), with computed `Xt = fl(XW)` and
barring underflow:

- `|Xt - XW| <= gamma_p |X||W|`.
- `z = (XW)'y` is summed over runs of `RUN` rows, and the runs exactly (`math.fsum`):
  `|dz| <= ez = gamma_p |W|'sum|x| + (gamma_RUN + 2u) S`, `S = sum|xt|`, and `|z| <= S`.
- Weights: `|dbeta| <= |W|(ez + gamma_k S)`: the `weights_tolerance`.
- Residual, by rows, with column norms `g = ||xt_j||`, `c = ||x_j||`: the error vector's norm is at
  most `g'ez + gamma_p c'|W|S + gamma_(k+2) (g'S + sqrt m)`; squaring, adding up and the root add
  `gamma_RUN l`, and `l <= sqrt m`: the `loss_tolerance`.

So two *computed* answers on neighbours differ by at most the sensitivity plus twice the tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.errors import InputError
from gridveil.privacy.mechanisms import Blocks
from gridveil.wind.features import RBF, Features
from gridveil.wind.records import Group, Records
from gridveil.wind.restoration.passes import Whitening, whiten
from gridveil.wind.row_blocks import ArrayRows, Block, BlockRows, LocalRows, Rows, total

Floats = NDArray[np.float64]

RUN = 256
UNIT = 2.0**-53
# Bounds are themselves computed with a few thousand roundings at most per unit of their size
# (sums over m <= 1e9 rows): this factor covers them.
UP = 1 + 1e-6
# The same for sensitivities, whose sums run over p and k only.
UP_SHORT = 1 + 1e-12


def gamma(n: int) -> float:
    """Return `n u / (1 - n u)`."""
    return n * UNIT / (1 - n * UNIT)


@dataclass(frozen=True, eq=False, repr=False)
class Ridge:
    """Ridge regression on public features; made by :func:`fit_features`.

    Attributes
    ----------
    rows
        The public rows it was built from.
    ridge
        The ridge parameter `lam`.
    whitening
        The basis `W`.
    weights_tolerance
        Bound on the rounding error of every computed weight, `(p,)`.
    loss_tolerance
        Bound on the rounding error of the computed loss.
    weights_bound
        How large each weight can be for any power in `[0, 1]`, `(p,)`.
    feature_sums
        `sum_i |x_i|`, `(p,)`; rounded up.
    """

    rows: Rows
    ridge: float
    whitening: Whitening
    weights_tolerance: Floats
    loss_tolerance: float
    weights_bound: Floats
    feature_sums: Floats
    _column: float
    _residual: float

    def __repr__(self) -> str:
        return (
            f"Ridge({self.whitening.rows:,} rows, {self.rows.features.width} features, "
            f"ridge={self.ridge:g})"
        )

    @property
    def factor(self) -> Floats:
        """`(X'X + lam I)^-1`, `(p, p)`; `M` is this times `X'`."""
        W = self.whitening.W
        return W @ W.T

    def delta_beta(self, alpha: float) -> float:
        """Bound how much the weights move between neighbours, in 1-norm; rounded up."""
        return _scaled(alpha, self._column)

    def delta_loss(self, alpha: float) -> float:
        """Bound how much the loss moves between neighbours; rounded up."""
        return _scaled(alpha, self._residual)

    def sensitivity(self, A: ArrayLike, alpha: float) -> float:
        """Bound how much `A beta` moves between neighbours, in 1-norm, for a public matrix `A`.

        Takes one pass over the public rows.
        """
        matrix = np.asarray(A, dtype=np.float64)
        p = self.rows.features.width
        if matrix.ndim != 2 or matrix.shape[1] != p or not np.isfinite(matrix).all():
            raise ValueError(f"A must be a finite matrix with {p} columns, not {matrix.shape}")
        row = partial(_image_norm, W=self.whitening.W, A=matrix)
        return _scaled(alpha, max(self.rows.map(row)))

    def weights(self, y: ArrayLike | LocalRows) -> Floats:
        """Compute the weights of private power, in one pass.

        Power is an array in the order of the rows, or rows with the same public columns, in the
        same order, that carry it.
        """
        return np.asarray(self.whitening.W @ self._moments(y))

    def loss(self, y: ArrayLike | LocalRows) -> float:
        """Compute the loss of private power, in two passes."""
        return self._loss(y, self._moments(y))

    def weights_and_loss(self, y: ArrayLike | LocalRows) -> tuple[Floats, float]:
        """Compute both in two passes."""
        z = self._moments(y)
        return np.asarray(self.whitening.W @ z), self._loss(y, z)

    def _moments(self, y: ArrayLike | LocalRows) -> Floats:
        W = self.whitening.W
        runs = [sum_runs((X @ W) * power[:, None]) for X, power in self._blocks(y)]
        return np.array([math.fsum(column) for column in np.vstack(runs).T])

    def _loss(self, y: ArrayLike | LocalRows, z: Floats) -> float:
        W = self.whitening.W
        runs = (sum_runs((power - (X @ W) @ z) ** 2) for X, power in self._blocks(y))
        return math.sqrt(math.fsum(run for block in runs for run in block))

    def _blocks(self, y: ArrayLike | LocalRows) -> Iterator[Block]:
        """Yield features with private power, clipped to its range."""
        m, seen = self.whitening.rows, 0
        for X, power in _joined(self.rows, y, m):
            if len(power) != len(X) or np.isnan(power).any():
                raise ValueError("power is missing in some rows: drop those rows first")
            seen += len(X)
            yield X, np.clip(power, 0.0, 1.0)
        if seen != m:
            raise ValueError(f"power has {seen} rows, but the regression was built on {m}")


def fit_features(rows: Rows, ridge: float = 1e-3) -> Ridge:
    """Build the regression from public features: two passes, three if they scale badly.

    Raises
    ------
    ValueError
        If features are not finite or `ridge` is negative.
    """
    basis = whiten(rows, ridge)
    size = _sizes(rows, basis)
    p, k = basis.W.shape
    absW, m = np.abs(basis.W), basis.rows
    S, g, c = size.xt_sum, size.xt_norm, size.x_norm
    ez = gamma(p) * (absW.T @ size.x_sum) + (gamma(RUN) + 2 * UNIT) * S
    weights = absW @ (ez + gamma(k) * S)
    residual = g @ ez + gamma(p) * (c @ absW @ S) + gamma(k + 2) * (g @ S + math.sqrt(m))
    loss = residual + gamma(RUN + 4) * math.sqrt(m)
    return Ridge(
        rows,
        ridge,
        basis,
        weights * UP,
        float(loss) * UP,
        (absW @ (S + ez)) * UP,
        size.x_sum * UP,
        size.column,
        size.residual,
    )


@dataclass(frozen=True, eq=False)
class _Sizes:
    """Sizes of the public columns, and the two largest column norms of `M` and `T`."""

    x_sum: Floats
    x_norm: Floats
    xt_sum: Floats
    xt_norm: Floats
    column: float
    residual: float


def _sizes(rows: Rows, basis: Whitening) -> _Sizes:
    """Take one pass for the norms of all columns of `M` and of `T`.

    With `xt = W'x_i` and the Gram matrix `Gt = (XW)'(XW)`,
    `||T e_i||^2 = 1 - 2 xt'xt + xt'Gt xt = 1 - xt'xt - xt'E xt + xt'(Gt - I + E) xt`; the last
    term, nought but for rounding, is bounded by the norm of the matrix in it.
    """
    W, E = basis.W, basis.E
    parts = list(rows.map(partial(_block_sizes, W=W, E=E)))
    x_sum, x_square, xt_sum, gram = total([part[:4] for part in parts])
    column, peak, longest, block = np.max([part[4] for part in parts], axis=0)
    p, k = W.shape
    x_norm, xt_norm = np.sqrt(x_square), np.sqrt(np.diag(gram))
    length, spread = np.linalg.norm(xt_norm), np.linalg.norm(x_norm @ np.abs(W))
    error = gamma(p) * (2 * length * spread + spread**2)
    error += (gamma(int(block)) + 2 * UNIT * len(parts)) * length**2
    error += np.linalg.norm(gram - np.eye(k) + E) + gamma(2 * k + 4) * (k + np.linalg.norm(E))
    residual = math.sqrt(max(peak + float(error) * UP * longest, 0.0)) * UP_SHORT
    return _Sizes(x_sum, x_norm, xt_sum, xt_norm, float(column), residual)


def _block_sizes(X: Floats, y: Floats, W: Floats, E: Floats) -> tuple[Floats, ...]:
    """Return a block's sums, then its maxima: `||M e_i||_1`, `||T e_i||^2`, `||xt||^2`, rows."""
    p, k = W.shape
    xt = X @ W
    q = np.einsum("ij,ij->i", xt, xt)
    rough = np.linalg.norm(np.abs(X) @ np.abs(W), axis=1)  # |Xt - XW| <= gamma_p rough
    slack = 5 * gamma(p) * rough * (np.sqrt(q) + gamma(p) * rough)
    slack += gamma(k * k + 8) * (1 + q * (2 + float(np.linalg.norm(E))))
    left = 1 - q - np.einsum("ij,ij->i", xt @ E, xt) + slack
    peaks = [_image_norm(X, y, W, np.eye(p)), left.max(), (q + slack).max(), float(len(X))]
    return np.abs(X).sum(0), (X * X).sum(0), np.abs(xt).sum(0), xt.T @ xt, np.array(peaks)


def _image_norm(X: Floats, y: Floats, W: Floats, A: Floats) -> float:
    """Return the largest `||A W W'x||_1` in a block, rounded up."""
    (p, k), rows = W.shape, len(A)
    norms = np.abs(((X @ W) @ W.T) @ A.T).sum(1)
    reach = np.abs(A).sum(0) @ np.abs(W)
    slack = gamma(2 * p + k + rows + 8) * (np.abs(X) @ (np.abs(W) @ reach))
    return float((norms + UP_SHORT * slack).max()) * UP_SHORT


def sum_runs(values: Floats) -> Floats:
    """Add up runs of `RUN` rows."""
    return np.add.reduceat(values, np.arange(0, len(values), RUN), axis=0)


def _joined(rows: Rows, y: ArrayLike | LocalRows, m: int) -> Iterator[Block]:
    """Yield the blocks of rows that hold power, or public blocks with power from an array."""
    if isinstance(y, LocalRows):
        yield from y.blocks()
        return
    if not isinstance(rows, LocalRows):
        raise ValueError(
            "private power stays in this process: give it as ArrayRows or BlockRows, "
            "not as an array beside rows that live elsewhere"
        )
    power = np.asarray(y, dtype=np.float64)
    if power.shape != (m,):
        raise ValueError(f"power has shape {power.shape}, but there are {m} rows")
    start = 0
    for X, _ in rows.blocks():
        yield X, power[start : start + len(X)]
        start += len(X)


def _scaled(alpha: float, norm: float) -> float:
    if not (math.isfinite(alpha) and alpha > 0):
        raise ValueError(f"alpha is {alpha}; give a positive finite number")
    return math.nextafter(alpha * norm, math.inf)


Vector = NDArray[np.float64]

_HELD = 65_536  # rows whose features are worth keeping between passes
_SPACING = 2.5  # m/s between centres, as in the paper


@dataclass(frozen=True, eq=False)
class Fit:
    """One turbine: its records' public columns, and ridge regression on their features."""

    group: Group
    features: Features
    ridge: Ridge

    @property
    def rows(self) -> int:
        """How many records."""
        return self.group.rows

    def with_noisy(self, noisy: Vector) -> LocalRows:
        """Public features beside the noisy records of this turbine."""
        return _rows(self.group, self.features, _slices(noisy))

    def with_blocks(self, power: Blocks) -> LocalRows:
        """Public features beside blocks of power: released, or opened inside a mechanism."""
        return BlockRows(_beside(self.group, self.features.inputs, power), self.features)

    def speed_and_rows(self, power: Blocks) -> Iterator[tuple[Vector, Vector, Vector]]:
        """Wind speed, features and power, block by block."""
        names = tuple(dict.fromkeys(("speed", *self.features.inputs)))
        for columns, y in _beside(self.group, names, power)():
            yield columns["speed"], self.features(columns), y


def default_features(records: Records) -> RBF:
    """Bumps every 2.5 m/s over the range of the public wind speeds, to the half m/s.

    For speeds from 2.5 to 12.5 m/s, the paper's, these are the paper's five.
    """
    low = np.floor(2 * records.speed_range[0]) / 2
    high = np.ceil(2 * records.speed_range[1]) / 2
    count = max(round((high - low) / _SPACING) + 1, 2)
    if high == low or count > 100:
        raise InputError(
            f"Wind speeds from {records.speed_range[0]:g} to {records.speed_range[1]:g} have no "
            "sensible default features.",
            remedy="Check the speed column and its unit (m/s), or name features.",
        )
    return RBF(count, float(low), float(high))


def fit_records(records: Records, features: Features, ridge: float) -> tuple[Fit, ...]:
    """Build every turbine's regression from public data.

    Raises
    ------
    InputError
        If the features can't be computed from the published columns.
    """
    try:
        return tuple(
            Fit(group, features, fit_features(_rows(group, features, None), ridge))
            for group in records.groups
        )
    except ValueError as problem:  # public columns and settings only
        raise InputError(
            f"The regression can't be built: {problem}.",
            remedy="Name other features, or a larger ridge.",
        ) from None


def _rows(group: Group, features: Features, power: Blocks | None) -> LocalRows:
    read = _beside(group, features.inputs, power)
    if group.rows > _HELD:
        return BlockRows(read, features)
    pairs = list(read())
    columns = {n: np.concatenate([c[n] for c, _ in pairs]) for n in features.inputs}
    if power is None:
        return ArrayRows(columns, features)
    return ArrayRows(columns, features, np.concatenate([y for _, y in pairs]))


def _beside(
    group: Group, names: tuple[str, ...], power: Blocks | None
) -> Callable[[], Iterator[tuple[dict[str, Vector], Any]]]:
    columns = group.columns(names)

    def read() -> Iterator[tuple[dict[str, Vector], Any]]:
        if power is None:
            yield from ((block, None) for block in columns())
            return
        rest = iter(power())
        kept = np.empty(0)
        for block in columns():
            size = len(next(iter(block.values())))
            while len(kept) < size:
                more = next(rest)
                kept = np.concatenate([kept, more]) if len(kept) else more
            yield block, kept[:size]
            kept = kept[size:]

    return read


def _slices(values: Vector) -> Blocks:
    return lambda: iter([values])
