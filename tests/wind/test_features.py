"""Feature maps: values, settings, sums."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridveil.wind.features import RBF, BSpline, Columns, Features, Polynomial, Sum, parse_features

SPEED = {"speed": np.linspace(0.0, 30.0, 61), "direction": np.linspace(0.0, 360.0, 61)}
MAPS = [
    RBF(),
    RBF(3, 1, 9, spread=4.0),
    Polynomial(4, 0, 25),
    BSpline(6, low=0, high=25),
    BSpline(2, degree=0, low=0, high=25),
    Columns("direction", "speed", scale=(360.0, 25.0)),
    RBF(2) + Polynomial(1) + Columns("direction"),
]


@given(st.floats(-5, 40), st.integers(0, 4))
def test_default_is_the_papers_rbf(speed: float, j: int) -> None:
    mu = [2.5, 5, 7.5, 10, 12.5][j]
    paper = math.exp(-((0.5 * abs(speed - mu)) ** 2))
    assert RBF()({"speed": np.array([speed])})[0, j] == pytest.approx(paper, rel=1e-14)


@pytest.mark.parametrize("features", MAPS, ids=repr)
def test_protocol(features: Features) -> None:
    X = features(SPEED)
    assert isinstance(features, Features)
    assert X.shape == (61, features.width)
    assert X.dtype == np.float64
    assert len(set(features.names)) == features.width
    assert json.loads(json.dumps(features.describe())) == features.describe()
    assert hash(features) == hash(eval(repr(features).split(" + ")[0])) or " + " in repr(features)


@pytest.mark.parametrize("features", MAPS, ids=repr)
def test_rows_do_not_depend_on_each_other(features: Features) -> None:
    """Nothing is learnt from data: a row's features are the same alone and in company."""
    alone = [features({k: v[i : i + 1] for k, v in SPEED.items()})[0] for i in range(61)]
    np.testing.assert_array_equal(features(SPEED), alone)


@pytest.mark.parametrize("features", MAPS[:-1], ids=repr)
def test_repr_makes_it_again(features: Features) -> None:
    assert eval(repr(features)) == features


def test_polynomials_span_the_powers() -> None:
    speed = np.linspace(0, 25, 40)
    X = Polynomial(3, 0, 25)({"speed": speed})
    powers = np.vander(speed, 4)
    fitted = X @ np.linalg.lstsq(X, powers, rcond=None)[0]
    np.testing.assert_allclose(fitted, powers, atol=1e-9 * np.abs(powers).max())
    assert np.linalg.cond(X) < 5 < np.linalg.cond(powers)


def test_splines_sum_to_one_and_clamp() -> None:
    spline = BSpline(7, degree=3, low=2, high=20)
    X = spline({"speed": np.array([-3.0, 2.0, 7.7, 20.0, 55.0])})
    np.testing.assert_allclose(X.sum(1), 1.0, rtol=1e-14)
    assert (X >= 0).all()
    np.testing.assert_array_equal(X[0], X[1])
    np.testing.assert_array_equal(X[3], X[4])


def test_sums_concatenate_flatten_and_associate() -> None:
    a, b, c = RBF(2), Polynomial(1), Columns("direction")
    assert (a + b) + c == a + (b + c) == Sum(a, b, c)
    assert (a + b + c).parts == (a, b, c)
    np.testing.assert_array_equal((a + b)(SPEED), np.hstack([a(SPEED), b(SPEED)]))
    assert (a + b).names == a.names + b.names


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: RBF(0), "count is 0"),
        (lambda: RBF(2.5), "whole number"),
        (lambda: RBF(low=5, high=1), "low < high"),
        (lambda: RBF(spread=0), "spread is 0"),
        (lambda: RBF(spread=math.nan), "spread is nan"),
        (lambda: Polynomial(-1), "degree is -1"),
        (lambda: Polynomial(2, 3, 3), "low < high"),
        (lambda: BSpline(3), "count is 3"),
        (lambda: BSpline(5, high=math.inf), "not finite"),
        (lambda: Columns(), "at least one"),
        (lambda: Columns("a", scale=0.0), "positive"),
        (lambda: Columns("a", "b", scale=(1.0,)), "one for each"),
        (lambda: Sum(), "at least one"),
    ],
)
def test_bad_settings_are_refused_when_made(make, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=says):
        make()


def test_bad_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="no public column 'speed'"):
        RBF()({"wind": np.zeros(3)})
    with pytest.raises(ValueError, match="missing or infinite"):
        RBF()({"speed": np.array([1.0, np.nan])})
    with pytest.raises(ValueError, match="give a vector"):
        RBF()({"speed": np.zeros((2, 2))})
    with pytest.raises(TypeError, match="not a feature map"):
        RBF() + 3  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["rbf(5 0 10)", "rbf(5, low, 10)", "rbf(2.5)", "polynomial(3; 0; 25)", "rbf()", "rbf"]
)
def test_numbers_that_are_none_get_the_way_to_write_them(text):
    with pytest.raises(ValueError, match=r"is not a feature map: use rbf\(COUNT, LOW, HIGH\)"):
        parse_features(text)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("rbf(5, 2.5, 12.5)", RBF(5, 2.5, 12.5)),
        ("polynomial(3,-1,.5e1)", Polynomial(3, -1.0, 5.0)),
        ("bspline(8, 0, 25.)", BSpline(8, 0.0, 25.0)),
    ],
)
def test_features_as_they_are_typed(text, made):
    assert parse_features(text) == made
