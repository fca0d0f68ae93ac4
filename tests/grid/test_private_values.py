"""Private values decide nothing: no refusal, no warning, no byte beside the noisy values.

Twins have the same public part. Their private values are the same once they are linear and clipped
to their range, so with the same noise they must leave the same bytes.
"""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from grid.making import write_case
from grid.releasing import ALPHA, LIMITS, linear_tables
from typer.testing import CliRunner

from gridveil import grid
from gridveil.cli.commands import app
from gridveil.cli.release_orders import Listening
from gridveil.errors import InputError, NotPrivateWarning
from gridveil.grid import problems, read_case
from gridveil.privacy.noise import SecureNoise, listening

STEP = 2.0**-10
HUGE = 1.7e308


@listening
class SameNoise(SecureNoise):
    """Answers that do not depend on the private values, nor on chance."""

    def laplace(self, values, scale):
        return np.arange(len(values), dtype=np.int64) + 50


def case(folder, edit):
    """A case of three buses with linear costs, changed by `edit`."""
    parts = linear_tables()
    edit(parts)
    folder.mkdir()
    return write_case(folder, parts)


def polynomial(quadratic, linear):
    def edit(parts):
        parts["gencost"][0, 4:6] = quadratic, linear

    return edit


def curve(*points):
    def edit(parts):
        parts["gencost"][0, [0, 3]] = 1, len(points)
        parts["gencost"][0, 4 : 4 + 2 * len(points)] = np.ravel(points)

    return edit


def number(table, column, value):
    def edit(parts):
        parts[table][1, column] = value

    return edit


def crossed(over):
    """Limits of which the lower one is above the upper one, which is at the end of its range."""

    def edit(parts):
        high = LIMITS["generator_limit"][1]
        parts["gen"][1, [8, 9]] = high, high + over

    return edit


# The unit's limits are 10 and 120 MW.
TWINS = {
    "polynomial": (
        "cost",
        [polynomial(0, 20), polynomial(STEP, 20 - 130 * STEP), polynomial(-STEP, 20 + 130 * STEP)],
    ),
    "curve": (
        "cost",
        [
            curve((10, 0), (65, 1100), (120, 2200)),
            curve((10, 0), (65, 800), (120, 2200)),
            curve((10, 0), (65, 1400), (120, 2200)),
        ],
    ),
    "large curve": (
        "cost",
        [
            curve((0, 0), (1, 1e300), (2, 3e300)),
            curve((0, 0), (1, 1e307), (2, HUGE)),
            curve((0, -HUGE), (1e-9, 0), (2e-9, HUGE)),
            curve((0, 0), (0, 5), (0, 5)),
            curve((0, 0), (1, np.inf), (2, np.inf)),
        ],
    ),
    "large cost": (
        "cost",
        [polynomial(0, 1e9), polynomial(HUGE, 0), polynomial(HUGE, -HUGE), polynomial(0, np.inf)],
    ),
    "cost with limits": (
        "cost,generator_limit",
        [polynomial(0, 20), polynomial(1e-9, 20), polynomial(-3, 20), polynomial(np.inf, 20)],
    ),
    "infinite load": ("load", [number("bus", 2, value) for value in (1e9, HUGE, np.inf)]),
    "infinite limit": (
        "generator_limit",
        [number("gen", 8, value) for value in (1e9, HUGE, np.inf)],
    ),
    "crossed limits": (
        "generator_limit",
        [crossed(over) for over in (0, 1e-6, 10, 1e9)],
    ),
}


@pytest.fixture(params=TWINS)
def twins(request, tmp_path):
    names, edits = TWINS[request.param]
    return names, [case(tmp_path / str(at), edit) for at, edit in enumerate(edits)]


def released(path, names, folder):
    """The bytes of a release with seeded noise, with what its statement says."""
    private = names.split(",")
    made = grid.release(
        read_case(path),
        parameter=names,
        epsilon=1,
        alpha={name: ALPHA[name] for name in private},
        range={name: LIMITS[name] for name in private},
        method="laplace",
        seed=3,
    )
    target = folder / "network.m"
    made.data.write_release(target, names)
    body = made.statement.body
    return target.read_bytes(), repr([body[key] for key in ("settings", "limitations")])


def test_twins_leave_the_same_bytes_and_no_warning(twins, tmp_path):
    names, paths = twins
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", NotPrivateWarning)
        assert len({released(path, names, tmp_path) for path in paths}) == 1


def test_twins_leave_the_same_screen_and_exit_code(twins, tmp_path):
    names, paths = twins
    seen = set()
    for path in paths:
        ledger, out = path.parent / "ledger", path.parent / "out"
        words = ["grid", "release", str(path), "--parameter", names, "--method", "laplace"]
        words += ["--alpha", ",".join(f"{name}={ALPHA[name]}" for name in names.split(","))]
        for name in names.split(","):
            low, high = LIMITS[name]
            words += ["--range", f"{name}={low}:{high}"]
        words += ["--dataset", "d", "--ledger", str(ledger), "-o", str(out)]
        made = CliRunner().invoke(app, words, obj=Listening(SameNoise()))
        shown = (made.stdout + made.stderr).replace(str(path.parent), "")
        assert "Warning" not in shown
        seen.add((made.exit_code, re.sub(r"[0-9a-f-]{8,}", "#", "".join(shown.split()))))
    assert len(seen) == 1, seen
    assert next(iter(seen))[0] == 0, seen


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (polynomial(-STEP, 20), "quadratic cost is negative"),
        (curve((10, 0), (65, 1400), (120, 2200)), "not convex"),
        (polynomial(0, np.inf), "not a finite number"),
        (number("bus", 2, np.inf), "not a finite number"),
        (number("gen", 8, np.inf), "not a finite number"),
    ],
)
def test_public_values_are_checked_before_anything_is_charged(tmp_path, edit, says):
    path = case(tmp_path / "bad", edit)
    network = read_case(path)
    assert [one for one in problems(network) if says in one.what]
    with pytest.raises(InputError, match=says):
        grid.plan(network, parameter="capacity", epsilon=1, alpha=5, range=(1, 500))
    for words in (["info", str(path)], ["solve", str(path)]):
        told = CliRunner().invoke(app, ["grid", *words])
        assert told.exit_code in (1, 2)
        assert says in " ".join((told.stdout + told.stderr).split())


def test_costs_that_are_left_out_of_a_private_parameter_are_checked(tmp_path):
    network = read_case(case(tmp_path / "bad", polynomial(-STEP, 20)))
    name = network.generators.name[0]
    asked = {"parameter": "cost", "epsilon": 1, "alpha": 1, "range": (0, 200)}
    grid.plan(network, **asked, only=f"name={name}")
    with pytest.raises(InputError, match="quadratic cost is negative"):
        grid.plan(network, **asked, only=f"name!={name}")


def test_missing_values_are_refused_whoever_asks(tmp_path):
    with pytest.raises(InputError, match="not a finite number"):
        read_case(case(tmp_path / "bad", polynomial(0, np.nan)))


def test_curves_and_limits_together_are_refused_by_their_model_alone(tmp_path):
    """Points on a line are refused as others are: that a cost has points is public."""
    for at, middle in enumerate((1100, 800, 1400)):
        network = read_case(case(tmp_path / str(at), curve((10, 0), (65, middle), (120, 2200))))
        with pytest.raises(InputError, match="piecewise-linear costs, whose breakpoints"):
            grid.plan(network, parameter="cost,generator_limit", epsilon=1, alpha=ALPHA)


def test_slopes_do_not_depend_on_private_limits(tmp_path):
    network = read_case(case(tmp_path / "one", polynomial(STEP, 20)))
    units = network.generators
    wider = replace(network, generators=replace(units, p_max=units.p_max + 50))
    for one in (network, wider):
        slopes = one.linearised(private_limits=True).generators.linear
        assert slopes.tolist() == [20, 30, 40]
    assert wider.linearised().generators.linear[0] != network.linearised().generators.linear[0]


def test_the_number_of_coefficients_is_refused_not_their_values(tmp_path):
    for at, leading in enumerate((0, 1e-9)):

        def edit(parts, leading=leading):
            parts["gencost"][0, 3:8] = 4, leading, 0, 20, 0

        with pytest.raises(InputError, match="degree above 2") as caught:
            read_case(case(tmp_path / str(at), edit))
        assert "1e-09" not in str(caught.value)
