"""The least-squares restoration: against a general solver, and where it must give up."""

import cvxpy as cp
import numpy as np
import pytest

from gridveil.wind.features import RBF
from gridveil.wind.regression import fit_features
from gridveil.wind.restoration.projection import restore_closely
from gridveil.wind.row_blocks import ArrayRows


def case(seed, rows=200, width=4, noise=0.3):
    rng = np.random.default_rng(seed)
    speed = rng.uniform(2.5, 12.5, rows)
    y = np.clip(1 / (1 + np.exp(7.5 - speed)) + rng.normal(0, 0.1, rows), 0, 1)
    data = ArrayRows({"speed": speed}, RBF(width), y + rng.laplace(0, noise, rows))
    ridge = fit_features(ArrayRows({"speed": speed}, RBF(width)))
    spread = rng.normal(size=(width, width)) * 0.02
    weights = ridge.weights(y) + rng.normal(0, 0.02, width)
    return data, ridge, ridge.loss(y), weights, spread @ spread.T + 1e-4 * np.eye(width)


@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_a_general_solver(seed):
    data, ridge, loss, weights, slack = case(seed)
    found = restore_closely(
        data, loss=loss, weights=weights, slack=slack, whitening=ridge.whitening, price=0.1
    )
    assert found is not None
    assert found.gap < 1e-9
    y = np.concatenate(list(found.records(data)))
    assert ((y >= 0) & (y <= 1)).all()
    assert ridge.loss(y) == pytest.approx(found.loss, rel=1e-9)
    assert ridge.loss(y) == pytest.approx(loss, rel=1e-6)
    assert ridge.weights(y) == pytest.approx(found.weights, abs=1e-10)
    # The same problem for CVXPY, at the bound on the distance from the curve that was reached.
    X = np.vstack([X for X, _ in data.blocks()])
    curve = X @ weights
    reached = np.linalg.norm(y - curve)
    v, e = cp.Variable(len(y)), cp.Variable(len(weights))
    root = np.linalg.inv(np.linalg.cholesky(slack))
    gram = X.T @ X + 1e-3 * np.eye(len(weights))
    problem = cp.Problem(
        cp.Minimize(0.5 * cp.sum_squares(v - data.y0) + 0.5 * cp.sum_squares(root @ e)),
        [v >= 0, v <= 1, gram @ (weights + e) == X.T @ v, cp.norm(v - curve) <= reached],
    )
    problem.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_feas=1e-10)
    assert found.objective == pytest.approx(problem.value, rel=1e-6)
    assert np.abs(v.value - y).max() < 1e-3


def test_weights_out_of_reach_do_not_drag_the_records_along():
    data, ridge, loss, weights, slack = case(3)
    far = weights + np.array([0, 0, 0, 0.5])  # full power is not enough for this
    found = restore_closely(
        data, loss=loss, weights=far, slack=slack, whitening=ridge.whitening, price=0.1
    )
    assert found is None or found.gap < 1e-9
    if found is not None:
        assert np.linalg.norm(found.weights - far) > 0.05


def test_a_loss_out_of_reach_is_none():
    data, ridge, _, weights, slack = case(4)
    far = weights + 2.0
    assert (
        restore_closely(
            data, loss=0.01, weights=far, slack=slack, whitening=ridge.whitening, price=0.1
        )
        is None
    )


def test_records_that_need_no_change_stay():
    data, ridge, _, _, slack = case(5)
    y = np.clip(data.y0, 0, 1)
    rows = ArrayRows(data.columns, data.features, y)
    found = restore_closely(
        rows,
        loss=2 * ridge.loss(y),
        weights=ridge.weights(y),
        slack=slack,
        whitening=ridge.whitening,
        price=0.1,
    )
    assert np.concatenate(list(found.records(rows))) == pytest.approx(y, abs=1e-9)
