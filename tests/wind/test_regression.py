"""Ridge regression: against closed forms, brute force and exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.sizes import FULL

from gridveil.wind.features import RBF, Columns
from gridveil.wind.regression import Ridge, fit_features
from gridveil.wind.row_blocks import ArrayRows, BlockRows, DaskRows

Floats = NDArray[np.float64]


def rows_of(X: Floats, y: Floats | None = None, block: int = 65_536) -> ArrayRows:
    names = [f"c{j}" for j in range(X.shape[1])]
    columns = dict(zip(names, X.T, strict=True))
    return ArrayRows(columns, Columns(*names), y, block)


def design(seed: int) -> tuple[Floats, float]:
    """A random design: any shape, sometimes collinear, zero, badly scaled or without ridge."""
    rng = np.random.default_rng(seed)
    m, p = int(rng.integers(1, 60)), int(rng.integers(1, 9))
    X = rng.normal(size=(m, p))
    kind = rng.integers(5)
    if kind == 1:
        X[:, -1] = X[:, 0]
    elif kind == 2:
        X[:, 0] = 0.0
    elif kind == 3:
        X *= 10.0 ** rng.uniform(-4, 4, size=p)
    elif kind == 4:
        X = RBF(p, 2.5, 12.5)({"speed": 8 * rng.weibull(2, m)})
    return X, float(rng.choice([1e-3, 1.0, 100.0, 0.0]))


def closed_form(X: Floats, ridge: float) -> Floats:
    if ridge == 0:
        return np.linalg.pinv(X, rcond=1e-12)
    return np.linalg.solve(X.T @ X + ridge * np.eye(X.shape[1]), X.T)


@pytest.mark.parametrize("seed", range(60))
def test_weights_and_loss_are_the_closed_form(seed: int) -> None:
    X, ridge = design(seed)
    y = np.random.default_rng(seed).uniform(size=len(X))
    M = closed_form(X, ridge)
    model = fit_features(rows_of(X, block=7), ridge)
    weights, loss = model.weights_and_loss(y)
    scale = np.linalg.norm(X, axis=0)
    np.testing.assert_allclose(X @ weights, X @ (M @ y), atol=1e-8)
    np.testing.assert_allclose(weights * scale, (M @ y) * scale, atol=2e-6 * max(1, len(X)))
    assert loss == pytest.approx(np.linalg.norm(X @ M @ y - y), abs=1e-7)
    assert loss == model.loss(y)
    np.testing.assert_array_equal(weights, model.weights(y))


@pytest.mark.parametrize("seed", range(200))
def test_sensitivities_equal_brute_force(seed: int) -> None:
    """Against the dense matrices of the map that is computed; never below, hardly above."""
    X, ridge = design(seed)
    model = fit_features(rows_of(X, block=11), ridge)
    W = model.whitening.W.astype(np.longdouble)
    wide = X.astype(np.longdouble)
    M = W @ (wide @ W).T
    T = np.eye(len(X)) - wide @ M
    A = np.random.default_rng(seed).normal(size=(3, X.shape[1]))
    for bound, exact in [
        (model.delta_beta(0.25), 0.25 * np.abs(M).sum(0).max()),
        (model.delta_loss(0.25), 0.25 * np.sqrt((T * T).sum(0).max())),
        (model.sensitivity(A, 0.25), 0.25 * np.abs(A @ M).sum(0).max()),
    ]:
        assert bound >= exact
        # The loss's norm is a root: a rounding error of 1e-10 in its square is 1e-5 next to nought.
        assert bound**2 <= exact**2 * (1 + 1e-6) + 1e-9


def test_residual_norm_agrees_with_the_svd_formula() -> None:
    X = np.random.default_rng(0).normal(size=(50, 5)) * [1, 1e-2, 3, 4, 5]
    U, s, _ = np.linalg.svd(X, full_matrices=False)
    h = s**2 / (s**2 + 1e-3)
    norms2 = ((1 - h) ** 2 * U**2).sum(1) + 1 - (U**2).sum(1)
    got = fit_features(rows_of(X), 1e-3).delta_loss(1.0)
    assert got == pytest.approx(np.sqrt(norms2.max()), rel=1e-11)
    assert got < 1 - 1e-6


MODEL_X = RBF()({"speed": 8 * np.random.default_rng(1).weibull(2, 40)})
MODEL = fit_features(rows_of(MODEL_X), 1e-3)
ALPHA = 0.3


@settings(max_examples=10_000 if FULL else 300, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(0, 1), min_size=40, max_size=40),
    st.integers(0, 39),
    st.floats(-ALPHA, ALPHA),
)
def test_no_neighbours_violate_the_bounds(power: list[float], i: int, move: float) -> None:
    y = np.array(power)
    other = y.copy()
    other[i] = np.clip(other[i] + move, 0, 1)
    (b1, l1), (b2, l2) = MODEL.weights_and_loss(y), MODEL.weights_and_loss(other)
    assert np.abs(b1 - b2).sum() <= MODEL.delta_beta(ALPHA) + 2 * MODEL.weights_tolerance.sum()
    assert abs(l1 - l2) <= MODEL.delta_loss(ALPHA) + 2 * MODEL.loss_tolerance


def test_bounds_are_attained() -> None:
    """Weights: at the worst entry.  Loss: from nought, where the norm is steepest."""
    worst = max(
        np.abs(MODEL.weights(ALPHA * unit) - MODEL.weights(0 * unit)).sum() for unit in np.eye(40)
    )
    assert worst == pytest.approx(MODEL.delta_beta(ALPHA), rel=1e-9)
    worst = max(MODEL.loss(ALPHA * unit) for unit in np.eye(40))
    assert worst == pytest.approx(MODEL.delta_loss(ALPHA), rel=1e-9)


def test_control_the_squared_loss_violates_the_same_bound() -> None:
    y = np.tile([0.0, 1.0], 20)
    square = MODEL.loss(y) ** 2
    towards = ALPHA * np.sign(0.5 - y)
    worst = max(abs(MODEL.loss(y + towards * unit) ** 2 - square) for unit in np.eye(40))
    assert worst > 1.1 * MODEL.delta_loss(ALPHA)


def exact_answers(model: Ridge, X: Floats, y: Floats) -> tuple[list[Fraction], Fraction]:
    """Weights and squared loss of the fixed map, in rational arithmetic."""
    W = [[Fraction(float(w)) for w in row] for row in model.whitening.W]
    F = [[Fraction(float(x)) for x in row] for row in X]
    v = [Fraction(float(value)) for value in y]
    p, k = model.whitening.W.shape
    moments = [sum((F[i][j] * v[i] for i in range(len(v))), Fraction(0)) for j in range(p)]
    z = [sum((W[j][c] * moments[j] for j in range(p)), Fraction(0)) for c in range(k)]
    beta = [sum((W[j][c] * z[c] for c in range(k)), Fraction(0)) for j in range(p)]
    left = [v[i] - sum((F[i][j] * beta[j] for j in range(p)), Fraction(0)) for i in range(len(v))]
    return beta, sum((r * r for r in left), Fraction(0))


@pytest.mark.parametrize("seed", range(25))
def test_tolerances_hold_in_exact_arithmetic(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, ridge = design(seed)
    if seed < 5:
        X = RBF(4)({"speed": 8 * rng.weibull(2, 600)})
    y = rng.choice([0.0, 1.0, rng.uniform()], size=len(X))
    model = fit_features(rows_of(X, block=300), ridge)
    weights, loss = model.weights_and_loss(y)
    beta, square = exact_answers(model, X, y)
    for got, want, tolerance in zip(weights, beta, model.weights_tolerance, strict=True):
        assert abs(Fraction(float(got)) - want) <= Fraction(float(tolerance))
    # |got - sqrt(square)| <= t, without roots: (got - t)+^2 <= square <= (got + t)^2.
    got, t = Fraction(loss), Fraction(model.loss_tolerance)
    assert max(got - t, Fraction(0)) ** 2 <= square <= (got + t) ** 2


def test_control_a_tolerance_of_zero_fails() -> None:
    X = RBF(4)({"speed": 8 * np.random.default_rng(3).weibull(2, 600)})
    y = np.random.default_rng(4).uniform(size=600)
    model = fit_features(rows_of(X), 1e-3)
    beta, square = exact_answers(model, X, y)
    weights, loss = model.weights_and_loss(y)
    assert any(Fraction(float(w)) != b for w, b in zip(weights, beta, strict=True))
    assert Fraction(loss) ** 2 != square


def test_tolerances_are_small() -> None:
    rng = np.random.default_rng(0)
    rows = ArrayRows({"speed": 8 * rng.weibull(2, 100_000)}, RBF())
    model = fit_features(rows, 1e-3)
    assert model.weights_tolerance.sum() < 1e-3 * model.delta_beta(0.15)
    assert model.loss_tolerance < 1e-6 * model.delta_loss(0.15)


def test_blocks_do_not_matter() -> None:
    rng = np.random.default_rng(2)
    speed, y = 8 * rng.weibull(2, 5_000), rng.uniform(size=5_000)
    whole = fit_features(ArrayRows({"speed": speed}, RBF()), 1e-3)
    want = whole.weights_and_loss(y)
    pieces = [({"speed": part}, q) for part, q in zip(
        np.array_split(speed, 7), np.array_split(y, 7), strict=True)]  # fmt: skip
    stream = BlockRows(lambda: iter(pieces), RBF())
    model = fit_features(stream, 1e-3)
    for got in (model.weights_and_loss(y), model.weights_and_loss(stream)):
        np.testing.assert_allclose(got[0], want[0], rtol=1e-9)
        assert got[1] == pytest.approx(want[1], rel=1e-12)
    assert model.delta_loss(1) == pytest.approx(whole.delta_loss(1), rel=1e-9)


def test_power_outside_its_range_is_clipped() -> None:
    y = np.linspace(-1, 2, 40)
    np.testing.assert_array_equal(MODEL.weights(y), MODEL.weights(np.clip(y, 0, 1)))
    assert MODEL.loss(y) == MODEL.loss(np.clip(y, 0, 1))


def test_private_power_does_not_go_to_a_cluster() -> None:
    rows = DaskRows([({"speed": np.linspace(3, 12, 20)}, None)], RBF())
    model = fit_features(rows, 1e-3)
    with pytest.raises(ValueError, match="stays in this process"):
        model.weights(np.zeros(20))
    local = ArrayRows({"speed": np.linspace(3, 12, 20)}, RBF(), np.ones(20))
    assert model.weights(local).shape == (5,)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (np.zeros(39), "40 rows"),
        (np.full(40, np.nan), "missing in some rows"),
        (rows_of(MODEL_X), "missing in some rows"),
        (rows_of(MODEL_X[:9], np.zeros(9)), "built on 40"),
    ],
)
def test_bad_power_is_refused(bad: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        MODEL.loss(bad)  # type: ignore[arg-type]


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="ridge is -1"):
        fit_features(rows_of(MODEL_X), -1.0)
    with pytest.raises(ValueError, match="overflow"), np.errstate(over="ignore"):
        fit_features(rows_of(MODEL_X * 1e200), 1.0)
    with pytest.raises(ValueError, match="no rows"):
        fit_features(BlockRows(lambda: [], RBF()), 1.0)
    with pytest.raises(ValueError, match="alpha is 0"):
        MODEL.delta_loss(0)
    with pytest.raises(ValueError, match="5 columns"):
        MODEL.sensitivity(np.eye(4), 1.0)
