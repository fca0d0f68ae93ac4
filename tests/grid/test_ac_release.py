"""Releases that serve their models in AC power flow, and the reactive power of released loads."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from grid.making import pglib
from typer.testing import CliRunner

from gridveil import grid
from gridveil.auditing.triangle_network import triangle_text
from gridveil.cli.commands import app
from gridveil.errors import InputError
from gridveil.grid import Certified, cases, read_case, sample_population, solve_ac
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.grid.model.population import take
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.opf.ac.check import SERVED
from gridveil.grid.restoration import ac_serving
from gridveil.grid.restoration.ac_oracle import AcOracle
from gridveil.grid.restoration.ac_serving import serve_in_ac
from gridveil.grid.restoration.master import Aim, Unsolved
from gridveil.grid.restoration.project import Search, in_dc, serve
from gridveil.grid.restoration.rounding import Rounding

pytestmark = pytest.mark.filterwarnings("ignore:Seeded noise")


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """Three buses, where all of bus 2 comes over two lines: MVA and losses count there."""
    path = tmp_path_factory.mktemp("ac") / "triangle.m"
    path.write_text(triangle_text({}))
    return read_case(path)


def models_of(network, size=3, **options):
    return sample_population(network, size, spread=0.03, costs=0.05, **options)


def problem_of(network, models, parameter="capacity", range=(1, 500)):
    _, public = network.split(parameter, range)
    return ReleaseProblem(public, models, Fraction(100))


def aim_of(problem, centre, noise):
    ends = problem.public.low, problem.public.high
    entries = problem.public.entries
    return Aim(np.full(entries, centre), np.full(entries, 0.5 / noise**2), *ends)


def both_of(problem, centre, noise, **how):
    """Projections of one aim in DC alone, and in AC too."""
    aim = aim_of(problem, centre, noise)
    noises = np.full(problem.public.entries, noise)
    in_ac = serve_in_ac(in_dc(aim, problem, decimals=3, **how), noises)
    return [serve(aim, problem, decimals=3, **how), in_ac]


def test_projected_values_serve_every_model_in_ac_and_those_of_dc_do_not(network):
    problem = problem_of(network, models_of(network))
    # Far too narrow, so that both projections end on the edge of what serves the models.
    flat, full = both_of(problem, 5.0, 1.0, margin=0.0)
    assert flat.short == full.short == 0
    served = [
        solve_ac(problem.public.with_values(one.values), problem.models) for one in (flat, full)
    ]
    assert served[1].served.all()
    assert served[1].mismatch.max() <= SERVED
    assert not served[0].served.all()
    assert full.values.sum() > flat.values.sum()
    assert (flat.drawn, full.drawn.models) == (None, problem.models.size)


def test_values_that_serve_in_ac_stay_as_they_are(network):
    problem = problem_of(network, models_of(network))
    flat, full = both_of(problem, 5.0, 1.0, margin=0.08)  # some 4.4% more MVA than MW
    assert full.values.tobytes() == flat.values.tobytes()
    assert full.drawn.not_served == 0
    assert full.cuts == flat.cuts


@pytest.mark.parametrize(("noise", "widened"), [(3.0, False), (0.5, True)])
def test_no_entry_moves_by_more_than_its_noise_unless_a_model_needs_it(network, noise, widened):
    problem = problem_of(network, models_of(network))
    flat, full = both_of(problem, 5.0, noise, margin=0.0)
    assert full.unserved == ()
    moved = np.abs(full.values - flat.values).max()
    assert moved > 0
    assert (moved > noise) == widened


def test_drawn_models_that_fall_short_are_served_too(network, monkeypatch):
    problem = problem_of(network, models_of(network, 2))
    models, draws = ac_serving._drawn(problem)
    first = take(models, draws[0])
    served = {}
    for times in (1, 5):  # a single draw is looked at, and no more
        monkeypatch.setattr(ac_serving, "_DRAWS", times)
        _, full = both_of(problem, 5.0, 1.0, margin=0.0)
        served[times] = solve_ac(problem.public.with_values(full.values), first).served.all()
    assert served == {1: False, 5: True}


def test_a_drawn_model_is_given_up_before_one_of_the_population(network):
    problem = problem_of(network, models_of(network, 1))
    search = Search(aim_of(problem, 40.0, 1.0), problem, Rounding(3), print, deep=False)
    # Each can be kept alone, and both can't.
    search.cuts.add(np.array([1.0, 0.0, 0.0]), 30.0, 0)
    search.cuts.add(np.array([-1.0, 0.0, 0.0]), -35.0, 1)
    assert search._nearest()[0] <= 30
    assert search.lost == {1}


@pytest.mark.parametrize("behind", [0.0, 2.0])
def test_values_lie_as_far_behind_a_cut_as_asked_for(network, behind):
    problem = problem_of(network, models_of(network, 1))
    search = Search(aim_of(problem, 40.0, 1.0), problem, Rounding(3), print, deep=False)
    search.behind = np.full(3, behind)
    search._cut(np.array([0]), np.array([5.0]), np.array([[3.0, 4.0, 0.0]]), deep=False)
    moved = np.linalg.norm(search._nearest() - 40.0)
    assert moved == pytest.approx(1.0 + behind, abs=0.01)  # 5 MW short, at a slope of 5


def test_what_no_values_can_serve_is_given_up(network):
    models = models_of(network, 2)
    heavy = replace(models, load=models.load * np.array([[1.0], [4.0]]))  # above all generation
    problem = problem_of(network, heavy)
    _, found = both_of(problem, 40.0, 1.0, margin=0.02)
    assert found.unserved == (1,)


@pytest.fixture(scope="module")
def both(network):
    models = models_of(network)
    how = {"epsilon": 1, "alpha": 10, "seed": 5, "range": (1, 500)}
    made = {
        ac: grid.release(network, models, method=Certified(ac=ac), **how) for ac in (False, True)
    }
    return network, models, made


def test_a_release_serves_its_models_and_says_so(both):
    network, models, made = both
    assert solve_ac(network, models).served.all()
    assert solve_ac(made[True].data, models).served.all()
    settings = made[True].statement.body["settings"]
    assert settings["ac"] is True
    assert settings["capacity_is"] == "MVA"
    assert settings["models_not_served"] == 0
    assert (settings["drawn_models"], settings["drawn_models_not_served"]) == (models.size, 0)
    assert made[False].statement.body["settings"]["capacity_is"] == "MW"
    assert made[False].in_ac is None
    said = made[True].quality()[-1]
    voltage = made[True].in_ac.voltage
    assert said.startswith(
        f"It serves 3 of 3 models in AC power flow, at voltages from {voltage.min():.3f}"
    )
    assert "% of any rating (MVA)" in said


def test_what_is_written_serves_them_too(both, tmp_path):
    _, models, made = both
    made[True].write(tmp_path / "out")
    assert solve_ac(read_case(tmp_path / "out" / "network.m"), models).served.all()


def test_the_same_noisy_answers_give_the_same_values(both):
    network, models, made = both
    again = grid.release(
        network, models, method=Certified(ac=True), epsilon=1, alpha=10, seed=5, range=(1, 500)
    )
    assert again.values.tobytes() == made[True].values.tobytes()


@pytest.mark.parametrize(
    ("parameter", "limits"),
    [
        ("capacity", (1, 500)),
        ("load", (-100, 300)),
        ("generator_limit", (-50, 500)),
        ("load,reactive_load", {"load": (-100, 300), "reactive_load": (-500, 500)}),
    ],
)
def test_slopes_of_shortfalls_are_right_for_every_parameter(network, parameter, limits):
    models = take(models_of(network, private=parameter), np.array([1]))
    problem = problem_of(network, models, parameter, limits)
    factor = {"capacity": 0.3, "load": 2.6, "generator_limit": 0.2, "reactive_load": 12.0}
    name = parameter.split(",")[-1]  # reactive loads are wrong, and the active ones beside not
    values = np.concatenate(
        [
            getattr(getattr(network, kind.table), column)[problem.public.support[column]]
            * (factor[name] if kind.name == name else 1.0)
            for kind in map(PARAMETERS.get, parameter.split(","))
            for column in kind.columns
        ]
    )

    def look(at):
        return AcOracle(problem, models).at(at)

    here = look(values)
    assert here.value[0] > 0.1
    own = np.arange(len(values))[problem.public.parts[name]]
    place = int(own[np.abs(here.slope[0, own]).argmax()])
    there = look(values + np.where(np.arange(len(values)) == place, 0.01, 0.0))
    assert (there.value[0] - here.value[0]) / 0.01 == pytest.approx(here.slope[0, place], rel=0.1)


def test_a_failure_of_ac_alone_leaves_what_dc_made(monkeypatch, both):
    network, models, made = both

    def fails(*_, **__):
        raise Unsolved("no answer")

    monkeypatch.setattr(AcOracle, "at", fails)
    found = grid.release(
        network, models, method=Certified(ac=True), epsilon=1, alpha=10, seed=5, range=(1, 500)
    )
    assert found.values.tobytes() == made[False].values.tobytes()
    assert found.statement.body["settings"]["ac_failed"] == "no answer"


def test_loads_leave_with_a_public_power_factor(tmp_path):
    network = cases.rts96()
    how = {"parameter": "load", "epsilon": 1, "alpha": 5, "seed": 1}
    models = models_of(network, 3, private="load")
    made = grid.release(network, models, power_factor=0.8, **how)
    made.write(tmp_path / "out")
    written = read_case(tmp_path / "out" / "network.m").buses
    assert written.load.any()
    assert np.allclose(written.reactive_load, 0.75 * written.load, rtol=1e-12)
    assert made.statement.body["settings"]["power_factor"] == 0.8
    # Without one they have none, and written once more they keep what they have.
    bare = grid.release(network, models, **how)
    assert not bare.data.buses.reactive_load.any()
    made.data.write(tmp_path / "again.m")
    assert np.array_equal(
        read_case(tmp_path / "again.m").buses.reactive_load, written.reactive_load
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"parameter": "load", "power_factor": 2}, "between 0.1 and 1"),
        ({"parameter": "load", "power_factor": "much"}, "between 0.1 and 1"),
        ({"parameter": "capacity", "power_factor": 0.9}, "not private here"),
        ({"parameter": "capacity", "ac": "yes"}, "ac is 'yes'"),
        ({"parameter": "capacity", "ac": True, "method": "laplace"}, "ac has no meaning"),
    ],
)
def test_what_is_refused_before_a_charge(options, words):
    with pytest.raises(InputError, match=words):
        grid.plan(cases.rts96(), epsilon=1, alpha=5, **options)


def test_the_flag_on_the_command_line(tmp_path):
    case = pglib("pglib_opf_case14_ieee")
    models = tmp_path / "models.parquet"
    words = ["grid", "population", case, "--size", 2, "--spread", 0.02, "-o", models]
    assert CliRunner().invoke(app, list(map(str, words))).exit_code == 0
    words = ["grid", "release", case, "--alpha", "20%", "--ac", "--population", models, "--json"]
    words += [
        "-o",
        tmp_path / "out",
        "--ledger",
        tmp_path / "l.sqlite",
        "--dataset",
        "case14",
        "--yes",
    ]
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["statement"]["settings"]["ac"] is True


def test_the_owner_sees_ac_beside_dc(both, tmp_path):
    network, models, made = both
    for ac in (False, True):
        made[ac].write(tmp_path / str(ac))
    flat, full = (grid.evaluate(tmp_path / str(ac), network) for ac in (False, True))
    assert flat.ac is None
    seen, unseen = full.ac
    assert (seen.models, seen.not_served, seen.unknown) == (models.size, 0.0, 0)
    real, released = solve_ac(network, models), solve_ac(made[True].data, models)
    change = np.abs(released.cost / real.cost - 1).mean()
    assert seen.cost_error == pytest.approx(100 * change)
    assert seen.voltage_error == pytest.approx(np.abs(released.voltage - real.voltage).mean())
    assert unseen.models <= models.size
    assert json.loads(json.dumps(full.to_json()))["ac"][0]["not_served"] == 0
    page = full.write_report(tmp_path / "owner.html").read_text()
    assert "Models in AC power flow" in page
    words = ["grid", "evaluate", tmp_path / "True", "--against", tmp_path / "real.m"]
    network.write(tmp_path / "real.m")
    shown = CliRunner().invoke(app, list(map(str, words)))
    assert "models in AC" in " ".join(shown.stdout.split())
