"""Dispatches that survive outages in AC: against networks without the branch, and in releases."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from grid.making import pglib
from typer.testing import CliRunner

from gridveil import grid
from gridveil.cli.commands import app
from gridveil.grid import Certified, read_case, sample_population, solve_ac
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.opf.ac import programme
from gridveil.grid.opf.ac.check import SERVED, misses
from gridveil.grid.opf.ac.engine import AcEngine, AcModels, AcStatus
from gridveil.grid.opf.ac.secured import BAND
from gridveil.grid.restoration.ac_oracle import AcOracle


@pytest.fixture(scope="module")
def network():
    """Five buses and six branches: it survives all outages, but not with the cheapest dispatch."""
    return read_case(pglib("pglib_opf_case5_pjm"))


def after(network, line, emergency, dispatch, slack=1e-6):
    """The network without a branch, with emergency ratings and the units about where they were."""
    lines, units = network.branches, network.generators
    on = lines.in_service & (np.arange(len(lines)) != line)
    free = np.full(len(lines), np.inf)
    room = BAND * np.maximum(np.abs(units.p_min), np.abs(units.p_max)) + slack
    return replace(
        network,
        branches=replace(
            lines,
            in_service=on,
            capacity=emergency * lines.capacity,
            angle_min=-free,
            angle_max=free,
        ),
        generators=replace(
            units,
            p_min=np.maximum(units.p_min, dispatch - room),
            p_max=np.minimum(units.p_max, dispatch + room),
        ),
    )


def survived(network, given, dispatch):
    """The outages that a dispatch survives, by networks without the branch."""
    left = [after(network, line, given.emergency, dispatch) for line in given.lines]
    return [bool(solve_ac(one).served[0]) for one in left]


@pytest.mark.parametrize("emergency", [1.0, 1.2])
def test_the_dispatch_survives_on_every_network_without_the_branch(network, emergency):
    given = grid.contingencies(network, "all", emergency)
    found, plain = solve_ac(network, contingencies=given), solve_ac(network)
    assert found.served.all()
    assert found.after.tolist() == [[AcStatus.SERVED] * 6]
    assert found.miss[0] <= SERVED
    assert all(survived(network, given, found.dispatch[0]))
    # The control: the cheapest dispatch does not survive all of them.
    assert plain.after is None
    assert found.cost[0] > 1.1 * plain.cost[0]
    assert not all(survived(network, given, plain.dispatch[0]))


def test_a_few_critical_outages_cost_as_much_as_all_of_them_together(network):
    given = grid.contingencies(network, "all", 1.2)
    few, every = AcEngine(network, given), AcEngine(network, given)
    every._security.critical = tuple(range(6))
    costs = [engine.solve().cost[0] for engine in (few, every)]
    assert 0 < len(few._security.critical) < 6
    assert costs[0] == pytest.approx(costs[1], rel=1e-6)


def test_outages_that_no_dispatch_survives_are_named():
    network = grid.cases.rts96()
    # Bus 106 has a reactor for the cable 106-110: without the cable Mvar are missing.
    given = grid.contingencies(network, ["106-110", "101-102"], 1.2)
    found = solve_ac(network, contingencies=given)
    assert found.status.tolist() == [AcStatus.NOT_SERVED]
    assert found.cost[0] == np.inf
    assert found.shortfall[0] > 100
    by_line = dict(zip(given.lines, found.after[0].tolist(), strict=True))
    named = {network.branches.name[line]: status for line, status in by_line.items()}
    assert named == {"101-102": AcStatus.SERVED, "106-110": AcStatus.NOT_SERVED}
    without = after(network, given.lines[1], 1.2, found.dispatch[0])
    assert not solve_ac(without).served[0]


def test_what_no_solver_ended_on_is_unknown_after_outages_too(network, monkeypatch):
    monkeypatch.setitem(programme._SETTINGS, "ipopt.max_iter", 2)
    found = solve_ac(network, contingencies=grid.contingencies(network))
    assert found.status.tolist() == [AcStatus.UNKNOWN]
    assert found.after.tolist() == [[AcStatus.UNKNOWN] * 6]


def test_the_check_finds_units_outside_their_band(network):
    engine = AcEngine(network, grid.contingencies(network, "all", 1.2))
    security, model = engine._security, AcModels(engine.numbers, grid.Population(1))[0]
    stack, both = security.stack(1), security.together(model, (0,))
    point = engine.programme(elastic=False, outages=1).solve(both).point
    assert misses(stack, both, point).serves
    moved = point.output + np.where(np.arange(len(point.output)) == 5, 1.0, 0.0)
    narrow = replace(both, high=both.high + 10)  # only the band is in the way
    assert misses(stack, narrow, replace(point, output=moved)).output > 0.9


def problem_of(network, models, parameter):
    _, public = network.split(parameter, (1, 2000))
    return ReleaseProblem(public, models, Fraction(100))


@pytest.mark.parametrize(("parameter", "factor"), [("capacity", 0.55), ("load", 1.4)])
def test_slopes_are_those_of_the_shortfall(network, parameter, factor):
    models = sample_population(network, 1, spread=0.02, private=parameter, seed=1)
    problem = problem_of(network, models, parameter)
    oracle = AcOracle(problem, models, grid.contingencies(network, "all", 1.2))
    table = network.branches.capacity if parameter == "capacity" else network.buses.load
    values = factor * table[problem.public.support[parameter]]
    look = oracle.at(values)
    assert look.value[0] > 1.0
    assert len(oracle._security.critical) > 0
    step = 0.05
    for entry in np.flatnonzero(look.slope[0]):
        moved = values + step * (np.arange(len(values)) == entry)
        slope = (oracle.at(moved).value[0] - look.value[0]) / step
        assert slope == pytest.approx(look.slope[0, entry], abs=0.03)


@pytest.fixture(scope="module")
def made(network):
    """Releases of small capacities with the same noise: outages in DC, AC alone, and both."""
    tight = network.with_capacity(0.7 * network.branches.capacity)
    models = sample_population(tight, 2, spread=0.02, seed=1)
    how = {"epsilon": 1, "alpha": 30, "seed": 4, "range": (1, 1000)}
    outages = {"contingencies": "all", "emergency": 1.2}
    with pytest.warns(UserWarning, match="Seeded noise"):
        found = [
            grid.release(tight, models, method=Certified(margin=0, **one), **how)
            for one in (outages, {"ac": True}, {"ac": True, **outages})
        ]
    return tight, models, found


def test_released_networks_survive_every_outage_in_ac(made):
    tight, models, found = made
    given = grid.contingencies(tight, "all", 1.2)
    assert solve_ac(tight, models, contingencies=given).served.all()
    seen = [solve_ac(one.data, models, contingencies=given) for one in found]
    assert [one.served.all() for one in seen] == [False, False, True]
    for model in range(models.size):
        buses, share = found[2].data.buses, models.load[model]
        loads = {"load": share * buses.load, "reactive_load": share * buses.reactive_load}
        data = replace(found[2].data, buses=replace(buses, **loads))
        units = data.generators
        limits = {name: getattr(models, name)[model] for name in ("p_min", "p_max")}
        units = replace(units, **{k: v * getattr(units, k) for k, v in limits.items()})
        data = replace(data, generators=units)
        assert all(survived(data, given, seen[2].dispatch[model]))


def test_the_release_says_what_it_was_certified_for(made):
    _, _, found = made
    settings = [one.statement.body["settings"] for one in found]
    assert [one.get("outages_are_in") for one in settings] == ["DC", None, "DC and AC"]
    assert settings[2]["models_not_served"] == 0
    assert found[0].secured_in_ac is found[1].secured_in_ac is None
    said = found[2].quality()[-1]
    assert said == (
        "It serves 2 of 2 models in AC with one dispatch that survives each of 6 listed outages."
    )


def test_the_owner_sees_ac_after_outages(made, tmp_path):
    tight, models, found = made
    seen = grid.evaluate(found[2].write(tmp_path / "out"), tight)
    first, _ = seen.secured_in_ac
    assert (first.models, first.not_served) == (models.size, 0.0)
    assert json.loads(json.dumps(seen.to_json()))["secured_in_ac"][0]["not_served"] == 0
    assert "population, after 6 outages" in seen.write_report(tmp_path / "o.html").read_text()


def test_the_command_takes_outages(tmp_path):
    case, some, out = pglib("pglib_opf_case5_pjm"), tmp_path / "some.txt", tmp_path / "out.parquet"
    some.write_text("1-2\n1-4\n", encoding="utf-8")
    words = ["grid", "solve", case, "--ac", "--contingencies", some, "--emergency", 1.2]

    def run(*more):
        return CliRunner().invoke(app, [str(one) for one in (*words, *more)])

    shown = run("-o", out)
    assert "1 of 1 models have a dispatch that survives each of 2 outages." in shown.stdout
    found = json.loads(run("--json").stdout)
    assert (found["outages"], found["not_survived"], found["status"]) == (2, {}, "served")


def test_compensators_are_sources_before_and_after_outages(network):
    given = grid.contingencies(network, "all", 1.2)
    room = np.where(np.arange(len(network.buses)) == 1, 3.0, 0.0)
    helped = replace(network, buses=replace(network.buses, q_min=-room, q_max=room))
    found, every = AcEngine(helped, given), AcEngine(helped, given)
    every._security.critical = tuple(range(6))
    few, all_at_once = found.solve(), every.solve()
    assert few.served.all()
    assert len(found._security.critical) > 0
    assert few.cost[0] == pytest.approx(all_at_once.cost[0], rel=1e-6)
    # Mvar near the load cost less than those that come over lines.
    assert few.cost[0] < solve_ac(network, contingencies=given).cost[0]
