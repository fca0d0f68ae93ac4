"""AC optimal power flow: published objectives, the independent check, the elastic form."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from grid.making import pglib, tables, write_case
from typer.testing import CliRunner

from gridveil.cli.commands import app
from gridveil.errors import InputError
from gridveil.grid import Population, cases, read_case, sample_population
from gridveil.grid.opf.ac import programme
from gridveil.grid.opf.ac.check import SERVED, misses
from gridveil.grid.opf.ac.engine import AcEngine, AcModels, AcStatus

# From the table that comes with PGLib-OPF v23.07, $/h; the benchmark compares all of it.
PUBLISHED = {"case5_pjm": 17552, "case14_ieee": 2178.1, "case30_as": 803.13, "case118_ieee": 97214}


@pytest.mark.parametrize("case", PUBLISHED)
def test_objectives_are_those_that_were_published(case):
    found = AcEngine(read_case(pglib(f"pglib_opf_{case}"))).solve()
    assert found.served.all()
    assert found.cost[0] == pytest.approx(PUBLISHED[case], rel=1e-4)
    assert found.miss[0] <= SERVED


@pytest.fixture(scope="module")
def rts():
    return AcEngine(cases.rts96())


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def one_model(engine):
    return AcModels(engine.numbers, Population(1))[0]


def test_the_check_is_plain_arithmetic_and_finds_every_kind_of_miss(rts):
    model = one_model(rts)
    point = rts.programme(elastic=False).solve(model).point
    assert misses(rts.numbers, model, point).serves
    # Controls: each small change must be found, and as what it is.
    off = 1e-4
    moved = misses(rts.numbers, replace(model, load=model.load + off), point)
    assert moved.mismatch == pytest.approx(off, rel=0.01)
    ends = np.abs(point.output.real).max()
    tight = misses(rts.numbers, replace(model, high=model.high - ends - off), point)
    assert tight.output >= off
    turned = replace(point, voltage=point.voltage * np.where(np.arange(73) == 5, 1.2, 1.0))
    assert misses(rts.numbers, model, turned).voltage > 0.1
    narrow = misses(rts.numbers, replace(model, rating=model.rating * 0.1), point)
    assert narrow.rating > off
    assert not any(one.serves for one in (moved, tight, narrow))
    assert not misses(rts.numbers, model, replace(point, voltage=point.voltage * np.nan)).serves


def test_power_balance_by_an_admittance_matrix(rts):
    # The textbook's S = V conj(Y V), with a matrix that is built here from the tables.
    network = rts.numbers.network
    lines, buses = network.branches, network.buses
    matrix = np.diag((buses.shunt + 1j * buses.reactive_shunt) / network.base_mva)
    for k in range(len(lines)):
        a, b = lines.from_bus[k], lines.to_bus[k]
        y = 1 / (lines.resistance[k] + 1j * lines.reactance[k])
        half = 1j * lines.charging[k] / 2
        ratio = lines.tap[k] * np.exp(1j * np.radians(lines.shift[k]))
        matrix[a, a] += (y + half) / abs(ratio) ** 2
        matrix[b, b] += y + half
        matrix[a, b] -= y / np.conj(ratio)
        matrix[b, a] -= y / ratio
    found = rts.solve()
    voltage = found.voltage[0] * np.exp(1j * np.radians(found.angle[0]))
    power = np.zeros(len(buses), dtype=complex)
    np.add.at(power, network.generators.bus, found.dispatch[0] + 1j * found.reactive[0])
    power -= buses.load + 1j * buses.reactive_load
    apart = power / network.base_mva - voltage * np.conj(matrix @ voltage)
    assert np.abs(apart).max() <= SERVED
    drawn = float((buses.shunt * found.voltage[0] ** 2).sum())
    balance = found.dispatch[0].sum() - buses.load.sum() - drawn
    assert found.losses[0] == pytest.approx(balance, abs=1e-3)


def test_a_network_that_is_too_narrow_is_not_served_and_says_by_how_much():
    network = cases.rts96()
    narrow = network.with_capacity(network.branches.capacity * 0.3)
    found = AcEngine(narrow).solve()
    assert found.status.tolist() == [AcStatus.NOT_SERVED]
    assert found.cost[0] == np.inf
    assert found.shortfall[0] > 10
    wider = AcEngine(network.with_capacity(network.branches.capacity * 0.35)).solve()
    assert wider.shortfall[0] < found.shortfall[0]


def test_multipliers_of_the_elastic_form_are_its_slopes():
    network = cases.rts96()
    engine = AcEngine(network.with_capacity(network.branches.capacity * 0.4))
    model, elastic = one_model(engine), engine.programme(elastic=True)
    found, step = elastic.solve(model), 1e-4

    def slope(**changed):
        return (elastic.solve(replace(model, **changed)).value - found.value) / step

    def at(place, size=step):
        return np.where(np.arange(len(model.load)) == place, size, 0.0)

    line = int(found.rating_price.argmax())
    wider = model.rating + np.where(np.arange(len(model.rating)) == line, step, 0.0)
    assert found.rating_price[line] > 0.1
    assert slope(rating=wider) == pytest.approx(-found.rating_price[line], rel=0.02)
    for part, size in (("real", step), ("imag", 1j * step)):
        prices = getattr(found.load_price, part)
        bus = int(np.abs(prices).argmax())
        assert slope(load=model.load + at(bus, size)) == pytest.approx(prices[bus], rel=0.05)
    unit = int(found.high_price.real.argmax())
    higher = model.high + np.where(np.arange(len(model.high)) == unit, step, 0.0)
    assert slope(high=higher) == pytest.approx(-found.high_price[unit].real, rel=0.05, abs=1e-3)


def test_what_no_solver_ended_on_is_unknown_and_never_served(monkeypatch):
    monkeypatch.setitem(programme._SETTINGS, "ipopt.max_iter", 2)
    found = AcEngine(cases.rts96()).solve()
    assert found.status.tolist() == [AcStatus.UNKNOWN]
    assert np.isnan(found.cost[0])
    assert np.isnan(found.shortfall[0])
    assert "1 unknown" in repr(found)


def test_models_scale_active_and_reactive_loads_and_the_answers_repeat_to_the_bit(rts):
    network = rts.numbers.network
    models = sample_population(network, 3, spread=0.05, seed=4)
    found = rts.solve(models)
    assert found.served.all()
    assert len(set(found.cost)) == 3
    bus = int(network.buses.reactive_load.argmax())
    place = int(np.flatnonzero(rts.numbers.buses == bus)[0])
    load = AcModels(rts.numbers, models)[1].load[place] * network.base_mva
    nominal = network.buses.load[bus] + 1j * network.buses.reactive_load[bus]
    assert load == pytest.approx(models.load[1, bus] * nominal)
    again = AcEngine(network).solve(models)
    for name in ("cost", "voltage", "flow", "miss"):
        assert np.array_equal(getattr(found, name), getattr(again, name), equal_nan=True)


def test_piecewise_costs_are_those_of_their_lines(tmp_path):
    parts = tables()
    curved = read_case(write_case(tmp_path, parts))
    assert any(points is not None for points in curved.generators.points)
    found = AcEngine(curved).solve()
    assert found.served.all()
    units, cost = curved.generators, 0.0
    for k in np.flatnonzero(units.in_service):
        p, points = found.dispatch[0, k], units.points[k]
        cost += units.quadratic[k] * p**2 + units.linear[k] * p + units.constant[k]
        cost += 0.0 if points is None else np.interp(p, *points.T)
    assert found.cost[0] == pytest.approx(cost, rel=1e-6)


def test_numbers_that_ac_needs_are_asked_for_by_ac_alone():
    network = cases.rts96()
    volts = np.where(np.arange(73) == 3, np.nan, network.buses.v_max)
    odd = replace(network, buses=replace(network.buses, v_max=volts))
    with pytest.raises(InputError, match=r"bus 104: not a finite number \(v_max nan\)"):
        AcEngine(odd)
    units = replace(network.generators, q_min=network.generators.q_max + 1)
    with pytest.raises(InputError, match="reactive limit"):
        AcEngine(replace(network, generators=units))


def test_without_its_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(InputError, match=r"casadi") as refused:
        AcEngine(cases.rts96()).solve()
    assert "gridveil[ac]" in str(refused.value)


def test_the_command_shows_draws_and_writes(tmp_path):
    models, picture, out = (tmp_path / name for name in ("m.parquet", "ac.png", "out.parquet"))
    one = json.loads(run("grid", "solve", "rts96", "--ac", "--json", "--plot", picture).stdout)
    assert one["status"] == "served"
    assert one["cost"] == pytest.approx(189764, rel=1e-4)
    assert 0.9 < one["voltage_pu"]["101"] < 1.1
    assert picture.stat().st_size > 10_000
    run("grid", "population", "rts96", "--size", 2, "--spread", 0.05, "-o", models)
    shown = run("grid", "solve", "rts96", "--ac", "--population", models, "-o", out)
    assert "served" in shown.stdout
    assert out.exists()
    many = json.loads(
        run("grid", "solve", "rts96", "--ac", "--population", models, "--json").stdout
    )
    assert many["served"] == 2
    assert len(many["cost"]) == 2
    refused = run("grid", "solve", "rts96", "--ac", "--model", "relaxed")
    assert refused.exit_code == 2
    assert "--model is for DC models" in refused.output


def test_no_reactive_copy_of_a_private_parameter_passes_a_split_or_a_release(tmp_path):
    network = cases.rts96()
    _, public = network.split("load", (0, 1000))
    whole = public.with_values(np.full(public.entries, 50.0))
    assert not public.buses.reactive_load.any()
    assert not whole.buses.reactive_load.any()
    _, public = network.split("generator_limit", (0, 1000))
    assert set(np.unique(public.generators.q_max)) <= {0.0, 1.0}
    whole = public.with_values(np.full(public.entries, 40.0))
    sides = (network.generators.q_max > 0) & (network.generators.p_max > 0)
    assert (whole.generators.q_max[sides] == 30.0).all()
    # The owner's own network, written as a release: it has real reactive numbers in it.
    for name in ("load", "generator_limit"):
        network.write_release(tmp_path / f"{name}.m", name)
    assert not read_case(tmp_path / "load.m").buses.reactive_load.any()
    written = read_case(tmp_path / "generator_limit.m").generators
    assert np.array_equal(written.q_max[sides], np.round(0.75 * written.p_max[sides], 4))
