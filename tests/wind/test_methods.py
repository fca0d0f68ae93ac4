"""The methods as classes of options: by name and keywords or as an object, checked when made."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gridveil as gv
from gridveil import wind
from gridveil.errors import InputError
from gridveil.wind.features import parse_features
from gridveil.wind.methods import BY_NAME

pytestmark = pytest.mark.filterwarnings("ignore:Seeded noise")


def table(rows=300):
    speed = np.linspace(2.5, 12.5, rows)
    return pa.table({"v": speed, "p": np.clip((speed - 3) / 8, 0, 1)})


def records():
    return wind.read_records(table(), speed="v", power="p", capacity=1, name="farm")


def seeded(**call):
    return wind.release(records(), **{"epsilon": 1, "alpha": 0.1, "seed": 1, **call})


@pytest.mark.parametrize(
    ("made", "name", "options"),
    [
        (wind.Tuned(nominal=0.02), "tuned", {"nominal": 0.02}),
        (wind.Tuned(split=("1/2", "1/4", "1/4")), "tuned", {"split": ["1/2", "1/4", "1/4"]}),
        (wind.Wpo(gamma_weights=1e-4, ridge=0.01), "wpo", {"gamma_weights": 1e-4, "ridge": 0.01}),
        (wind.Laplace(ridge=0.1), "laplace", {"ridge": 0.1}),
    ],
)
def test_an_object_and_a_name_with_keywords_are_the_same(made, name, options):
    one, other = seeded(method=made), seeded(method=name, **options)
    assert one.data.equals(other.data)
    assert one.statement.body["settings"] == other.statement.body["settings"]
    plain = seeded(method=name).statement.body["settings"]
    assert one.statement.body["settings"] != plain  # the control: the options do something


@pytest.mark.parametrize("method", BY_NAME)
def test_the_settings_of_a_statement_have_stable_names(method):
    whole = {"alpha": 1} if method == "synthetic" else {}
    settings = seeded(method=method, **whole).statement.body["settings"]
    assert set(BY_NAME[method].about()) <= set(settings)
    assert [key for key in settings if not re.fullmatch("[a-z]+(_[a-z]+)*", key)] == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: wind.Tuned(nominal=2), "nominal is 2"),
        (lambda: wind.Wpo(ridge=-1), "ridge is -1"),
        (lambda: wind.Wpo(gamma_records=0), "gamma_records is 0"),
        (lambda: wind.Tuned(split=[0.5, 0.5]), "three shares"),
        (lambda: seeded(method="wpo", nominal=0.2), "nominal has no meaning for method wpo"),
        (lambda: seeded(method="laplace", gamma_records=0.1), "no meaning for method laplace"),
        (lambda: seeded(method=wind.Tuned(), nominal=0.2), "beside method=Tuned"),
        (lambda: seeded(speed="v"), "There is no option speed"),
    ],
)
def test_options_are_checked_when_they_are_made(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_an_option_of_another_method_may_be_given_at_its_default():
    plain = seeded(method="laplace").data
    assert seeded(method="laplace", gamma_records=1e-5).data.equals(plain)


def test_options_can_be_read_from_text():
    for kind in BY_NAME.values():
        for name, about in kind.about().items():
            assert about.help
            assert getattr(kind(**{name: kind.read(name, about.example)}), name) is not None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: wind.plan("r.csv", epsilon=1, alpha=0.1), "Expected a Records, got str"),
        (
            lambda: wind.plan(records(), epsilon=1, alpha=0.1, features="rbf(5)"),
            "Expected a feature map, got str",
        ),
        (lambda: wind.plan(records(), epsilon=1, alpha=0.1, method=5), "got int"),
        (lambda: gv.wind.evaluate(5, "r.csv"), "Expected a folder, got int"),
    ],
)
def test_a_wrong_type_is_named(call, words):
    with pytest.raises(InputError, match=words):
        call()


# -- features --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("bspline(14, 0, 20)", wind.BSpline(14, 0, 20)),
        ("rbf(5, 2.5, 12.5)", wind.RBF(5, 2.5, 12.5)),
        ("polynomial(3, 0, 25)", wind.Polynomial(3, 0, 25)),
    ],
)
def test_features_have_the_same_order_in_python_and_on_the_command_line(text, made):
    assert parse_features(text) == made
    with pytest.raises(TypeError):
        type(made)(5, 3, 0, 20)  # the order that BSpline had


@pytest.mark.parametrize(
    "features",
    [
        wind.BSpline(8, 0, 10),
        wind.Polynomial(3, 5, 25),
        wind.RBF(3, 2.5, 8),
        wind.RBF(3) + wind.Polynomial(2, 0, 9),
    ],
)
def test_features_that_miss_public_speeds_are_unusual(features):
    found = wind.plan(records(), epsilon=1, alpha=0.1, features=features).unusual
    assert any("wind speeds go from 2.5 to 12.5" in one for one in found)


@pytest.mark.parametrize("features", [None, wind.BSpline(8, 0, 20), wind.RBF(4, 4, 11)])
def test_features_that_reach_all_speeds_are_not(features):
    found = wind.plan(records(), epsilon=1, alpha=0.1, features=features).unusual
    assert not any("wind speeds" in one for one in found)


# -- tables of other libraries ---------------------------------------------------------------------


class Capsule:
    """A table of a library that nobody knows, but that speaks Arrow's PyCapsule interface."""

    def __init__(self, inner):
        self._inner = inner

    def __arrow_c_stream__(self, requested_schema=None):
        return self._inner.__arrow_c_stream__(requested_schema)


def test_any_table_with_arrows_interface_is_read():
    made = wind.read_records(Capsule(table()), speed="v", power="p", capacity=1, name="farm")
    one = wind.release(made, epsilon=1, alpha=0.1, method="laplace", seed=1).data
    other = seeded(method="laplace").data
    assert one.equals(other)
    assert isinstance(one, pa.Table)


def test_what_such_a_table_says_of_a_problem_is_not_repeated():
    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            raise ValueError("private 1234.5")

    with pytest.raises(InputError) as caught:
        wind.read_records(Broken(), speed="v", power="p", capacity=1)
    assert "1234" not in f"{caught.value} {caught.value.__cause__} {caught.value.__context__}"


def test_a_pandas_frame_is_still_a_pandas_frame():
    made = wind.read_records(table().to_pandas(), speed="v", power="p", capacity=1)
    assert isinstance(made.to_table(np.zeros(300)), pd.DataFrame)
