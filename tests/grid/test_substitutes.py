"""Set points of a released file: the least losses between limits, from public numbers alone."""

from dataclasses import replace

import numpy as np
import pytest
from grid.making import even_dispatch, pglib
from grid.releasing import tiny
from scipy.optimize import lsq_linear

from gridveil import grid
from gridveil.errors import InputError
from gridveil.grid import cases, read_case
from gridveil.grid.io.matpower import tables_of
from gridveil.grid.io.substitutes import ENDLESS_MW, light_dispatch

CASES = ("rts96", "pglib_opf_case5_pjm", "pglib_opf_case39_epri", "pglib_opf_case118_ieee")


def network_of(name):
    return cases.rts96() if name == "rts96" else read_case(pglib(name))


def losses(network):
    """Dense A and b with losses ``|A p + b|^2`` of outputs p, and what the outputs must sum to."""
    buses, units, lines = network.buses, network.generators, network.branches
    on = lines.in_service & (lines.reactance != 0)
    ends = np.zeros((int(on.sum()), len(buses)))
    ends[np.arange(len(ends)), lines.from_bus[on]] = 1.0
    ends[np.arange(len(ends)), lines.to_bus[on]] -= 1.0
    root = 1 / np.sqrt(np.abs(lines.reactance[on]))
    spread = root[:, None] * ends @ np.linalg.pinv((ends.T * root**2) @ ends)
    at = np.zeros((len(buses), len(units)))
    at[units.bus, np.arange(len(units))] = units.in_service
    need = buses.load + buses.shunt
    return spread @ at, -spread @ need, need.sum()


@pytest.mark.parametrize("name", CASES)
def test_no_dispatch_between_the_limits_has_smaller_losses(name):
    network = network_of(name)
    units, output = network.generators, light_dispatch(network)
    a, b, need = losses(network)
    on = units.in_service
    assert (output >= np.where(on, units.p_min, 0.0)).all()
    assert (output <= np.where(on, units.p_max, 0.0)).all()
    assert abs(output.sum() - need) < 1e-4 * len(units)
    free = on & (units.p_max > units.p_min)
    held = np.where(free, 0.0, output)
    # The balance as one more row, heavy enough to hold.
    rows = np.vstack([a, 1e4 * np.ones(len(units))])
    right = -np.concatenate([b, [-1e4 * need]]) - rows @ held
    best = lsq_linear(rows[:, free], right, (units.p_min[free], units.p_max[free]), method="bvls")
    reference = held.copy()
    reference[free] = best.x
    least, ours, control = (
        float(((a @ p + b) ** 2).sum()) for p in (reference, output, even_dispatch(network))
    )
    assert ours < 1.0001 * least + 1e-6
    assert control > 1.01 * least


def test_a_unit_without_limits_takes_what_is_near(tmp_path):
    network = tiny(tmp_path)
    units = network.generators
    high = units.p_max.copy()
    high[0] = 10 * ENDLESS_MW
    output = light_dispatch(network.with_limits(units.p_min, high))
    need = (network.buses.load + network.buses.shunt).sum()
    assert output.sum() == pytest.approx(need, abs=1e-3)
    assert abs(output[0]) < 10 * need


def test_units_that_cannot_cover_the_load_are_at_their_limits(tmp_path):
    network = tiny(tmp_path)
    units, load = network.generators, network.buses.load
    for factor, limits in ((1e3, units.p_max), (-1e3, units.p_min)):
        output = light_dispatch(network.with_load(factor * np.maximum(load, 1.0)))
        np.testing.assert_array_equal(output, np.where(units.in_service, limits, 0.0))


@pytest.mark.parametrize("seed", range(20))
def test_released_limits_of_any_size_make_a_dispatch(seed, tmp_path):
    """With limits private they are noise: crossed, huge, tiny, equal; none of that is an error."""
    draw = np.random.default_rng(seed)
    network = network_of("pglib_opf_case39_epri") if seed % 2 else tiny(tmp_path)
    count = len(network.generators)
    size = 10.0 ** draw.uniform(-6, 9.3, (2, count))
    ends = np.where(draw.random((2, count)) < 0.2, 0.0, size * draw.choice([-1, 1], (2, count)))
    lines = network.branches
    near = lines.reactance * 10.0 ** draw.uniform(-12, 3, len(lines))
    network = replace(network.with_limits(*ends), branches=replace(lines, reactance=near))
    with np.errstate(all="raise", under="ignore"):
        output = light_dispatch(network)
    units = network.generators
    low, high = np.minimum(*ends), np.maximum(*ends)
    on = units.in_service & (np.abs(ends) < ENDLESS_MW).all(axis=0)
    assert np.isfinite(output).all()
    assert (output[on] >= low[on]).all()
    assert (output[on] <= high[on]).all()


@pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")
def test_a_dispatch_that_is_declared_public_stays(tmp_path):
    network = grid.cases.rts96()
    given = {"epsilon": 1, "alpha": 30, "range": (1, 5000), "method": "laplace"}
    made = grid.release(network, **given, public_dispatch=True, seed=1)
    made.data.write_release(tmp_path / "out.m", "capacity")
    theirs = tables_of(grid.read_case(tmp_path / "out.m").source.data).gen
    assert np.array_equal(theirs[:, 1], tables_of(network.source.data).gen[:, 1])
    body = made.statement.body
    assert body["settings"]["public_dispatch"] is True
    assert "set points of units" in body["published_in_clear"]
    assert any("lines that were full" in line for line in body["limitations"])
    # Without the declaration they are others.
    other = grid.release(network, **given, seed=1)
    other.data.write_release(tmp_path / "other.m", "capacity")
    others = tables_of(grid.read_case(tmp_path / "other.m").source.data).gen
    assert not np.array_equal(others[:, 1], theirs[:, 1])
    with pytest.raises(InputError, match="tell loads"):
        grid.plan(network, **given, parameter="capacity,load", public_dispatch=True)
