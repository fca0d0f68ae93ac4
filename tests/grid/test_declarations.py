"""A part of a parameter is protected: placeholders without a limit, and rules of public facts."""

from dataclasses import replace

import numpy as np
import pytest
from grid.making import tables, write_case
from grid.releasing import linear_tables, models_for
from typer.testing import CliRunner

from gridveil import grid
from gridveil.cli.commands import app
from gridveil.errors import InputError, LedgerRefused
from gridveil.grid import read_case
from gridveil.grid.cases import rts96
from gridveil.grid.evaluation import evaluate
from gridveil.grid.io.matpower import tables_of
from gridveil.grid.model.release_problem import highest_cost
from gridveil.grid.release import plan

pytestmark = pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")


def case(folder, *, rates=(100, 9900, 120), voltages=(380, 380, 110)):
    """Three buses and three lines, with ratings and voltage levels."""
    parts = linear_tables()
    count = len(parts["branch"])
    parts["branch"][:, 5] = np.resize(rates, count)
    parts["branch"][:, 6:8] = parts["branch"][:, 5:6] * [1.1, 1.2]
    parts["branch"][:, 8:10] = 0
    parts["gen"][:, [3, 4, 6]] = 33, -11, 77
    parts["bus"][:, 9] = np.resize(voltages, len(parts["bus"]))
    return write_case(folder, parts)


def asked(**options):
    return {"epsilon": 1, "alpha": 5, "range": (1, 500), "method": "laplace", **options}


def made(path, ledger, **options):
    network = read_case(path)
    names = options.get("parameter", "capacity")
    return network, grid.release(
        network, models_for(network, names), dataset="case", ledger=ledger, **asked(**options)
    )


def test_placeholders_become_lines_without_a_limit(tmp_path, ledger):
    path = case(tmp_path)
    network, found = made(path, ledger, unlimited_above=9000)
    limited = network.branches.capacity < 9000
    assert 0 < limited.sum() < len(limited)
    assert found.public.entries == limited.sum()
    released = read_case(found.write(tmp_path / "out") / "network.m").branches.capacity
    assert np.isinf(released[~limited]).all()
    assert (released[limited] <= 500).all()
    body = found.statement.body
    assert body["settings"]["unlimited_above"] == 9000
    assert any("at least 9000 MW is public" in line for line in body["limitations"])
    assert "capacity outside of below 9000 MW" in body["published_in_clear"]


def test_twins_with_other_placeholders_leave_the_same_plan(tmp_path):
    """What is declared public is which lines have one; nothing else of a private rating shows."""
    plans = []
    for rate in (9900, 99999):
        (tmp_path / str(rate)).mkdir()
        network = read_case(case(tmp_path / str(rate), rates=(100 + rate / 99999, rate, 120)))
        plans.append(plan(network, models_for(network, "capacity"), **asked(unlimited_above=9000)))
    one, other = (repr(one) + repr(one.problem.public) for one in plans)
    assert one == other
    assert plans[0].terms == plans[1].terms


@pytest.mark.parametrize("above", [0, -1, float("nan"), "9000", float("inf")])
def test_a_number_that_is_none_is_refused(tmp_path, above):
    network = read_case(case(tmp_path))
    with pytest.raises(InputError, match="unlimited_above"):
        plan(network, **asked(unlimited_above=above))


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("voltage>=220", lambda lines: lines["high"] >= 220),
        ("voltage<220", lambda lines: lines["high"] < 220),
        ("kind=line", lambda lines: lines["low"] == lines["high"]),
        ("kind!=line,voltage=380", lambda lines: lines["low"] < lines["high"]),
        ("name=1-*", lambda lines: np.array([name.startswith("1-") for name in lines["name"]])),
    ],
)
def test_a_rule_protects_its_lines_and_publishes_the_rest(rule, wanted, tmp_path, ledger):
    levels = np.array([380.0, 110.0, 110.0])
    path = case(tmp_path, rates=(90, 80, 120), voltages=levels)
    network, found = made(path, ledger, only=rule)
    ends = levels[network.branches.from_bus], levels[network.branches.to_bus]
    lines = {"low": np.minimum(*ends), "high": np.maximum(*ends), "name": network.branches.name}
    hidden = wanted(lines) & np.isfinite(network.branches.capacity)
    assert 0 < hidden.sum() < len(hidden)
    assert found.public.support["capacity"].tolist() == hidden.tolist()
    bundle = found.write(tmp_path / "out")
    released = read_case(bundle / "network.m").branches.capacity
    assert released[~hidden].tolist() == network.branches.capacity[~hidden].tolist()
    # All others are released values: one of them may be the real one, by chance of the noise.
    assert released[hidden].tolist() == found.values.tolist()
    assert all(one.record.size == hidden.sum() for one in found.account.answers)
    settings = found.statement.body["settings"]
    assert list(settings["only"]) == ["capacity"]
    assert any("alone" in line for line in found.statement.body["public_inputs"])
    compared = evaluate(bundle, network)
    assert compared.parameters[0].entries == hidden.sum()


def test_the_rest_of_a_private_parameter_is_all_that_can_be_seen(tmp_path):
    network = read_case(case(tmp_path, rates=(90, 80, 120)))
    public = plan(network, **asked(only="voltage>=220")).problem.public
    hidden = public.support["capacity"]
    assert (public.rest("capacity")[hidden] == 0).all()
    assert public.rest("capacity")[~hidden].tolist() == network.branches.capacity[~hidden].tolist()


@pytest.mark.parametrize("parameter", ["load", "generator_limit", "cost"])
def test_other_parameters_take_rules_too(parameter, tmp_path, ledger):
    limits = {"load": (-50, 300), "generator_limit": (-200, 500), "cost": (0, 200)}[parameter]
    options = {"parameter": parameter, "range": limits, "alpha": 0.1, "only": "voltage>=220"}
    network, found = made(case(tmp_path), ledger, **options)
    table = "buses" if parameter == "load" else "generators"
    column = {"load": "load", "generator_limit": "p_max", "cost": "linear"}[parameter]
    hidden = found.public.support[column]
    real = getattr(getattr(network, table), column)
    assert hidden.any()
    assert ((real != 0) & ~hidden).any()
    released = getattr(getattr(found.data, table), column)
    assert released[~hidden].tolist() == real[~hidden].tolist()
    assert set(released[hidden].tolist()) <= set(found.values.tolist())


COMPANIONS = {
    "capacity": ("branch", [6, 7]),
    "load": ("bus", [3]),
    "generator_limit": ("gen", [3, 4, 6]),
}


@pytest.mark.parametrize("parameter", COMPANIONS)
def test_what_goes_with_a_public_row_stays_and_with_a_private_one_does_not(
    parameter, tmp_path, ledger
):
    limits = {"capacity": (1, 500), "load": (-50, 300), "generator_limit": (-200, 500)}[parameter]
    options = {"parameter": parameter, "range": limits, "only": "voltage>=220"}
    path = case(tmp_path, rates=(90, 80, 120), voltages=(110, 380, 110))
    network, found = made(path, ledger, **options)
    table, columns = COMPANIONS[parameter]
    ours = getattr(tables_of(network.source.data), table)[:, columns]
    released = read_case(found.write(tmp_path / "out") / "network.m").source.data
    theirs = getattr(tables_of(released), table)[:, columns]
    hidden = found.data.source.protected[parameter]
    assert hidden.any()
    assert not hidden.all()
    assert np.array_equal(theirs[~hidden], ours[~hidden])
    if parameter == "capacity":  # as the released one, which may be the real one by chance
        assert (theirs[hidden] == found.data.branches.capacity[hidden, None]).all()
    else:
        assert (theirs[hidden] != ours[hidden]).any(axis=1).all()
    listed = found.statement.body["settings"]["changed_columns"]
    kept = [c for one in listed if "declared public" in one["reason"] for c in one["columns"]]
    names = {"capacity": "RATE_B", "load": "QD", "generator_limit": "QMAX"}
    assert names[parameter] in kept
    assert "PG" not in kept


def test_twins_with_other_private_rows_leave_the_same_public_ones(tmp_path):
    texts = []
    for rate in (90, 33):
        (tmp_path / str(rate)).mkdir()
        path = case(tmp_path / str(rate), rates=(rate, 80, 120), voltages=(380, 110, 110))
        public = plan(read_case(path), **asked(only="name=1-2*")).problem.public
        public.with_values(np.full(public.entries, 50.0)).write(tmp_path / f"{rate}.m")
        texts.append((tmp_path / f"{rate}.m").read_text().replace(str(rate), "", 1))
    assert texts[0] == texts[1]


def test_another_part_of_the_same_data_is_refused(tmp_path, ledger):
    path = case(tmp_path, rates=(90, 80, 120))
    made(path, ledger, only="voltage >= 220")
    made(path, ledger, only="voltage>=220.0")  # the same rule
    for options in ({}, {"only": "voltage>=100"}, {"only": "voltage>=220", "unlimited_above": 900}):
        with pytest.raises(LedgerRefused, match="Another part of capacity"):
            made(path, ledger, **options)
    with pytest.raises(LedgerRefused, match="published in clear"):
        made(path, ledger, parameter="load", range=(-50, 300))


def test_a_part_after_the_whole_is_refused(tmp_path, ledger):
    path = case(tmp_path, rates=(90, 80, 120))
    made(path, ledger)
    for options in ({"only": "voltage>=220"}, {"unlimited_above": 9000}):
        with pytest.raises(LedgerRefused, match="Another part of capacity"):
            made(path, ledger, **options)
    made(path, ledger)


@pytest.mark.parametrize(
    ("only", "match"),
    [
        ("capacity>=50", "is about capacity, which is not known"),
        ("reactance>0.1", "is about reactance, which is not known"),
        ("voltage", "can't be read"),
        ("voltage>=high", "needs a number"),
        ("name>=A", "needs a number"),
        ("name>=3", "compares names"),
        ("", "can't be read"),
        ({"load": "voltage>=220"}, "one for each of the private parameters"),
        ({"capacity": 220}, "is a text"),
        ("voltage>=1000", "no values of capacity"),
    ],
)
def test_rules_that_cannot_be_used_are_refused(only, match, tmp_path):
    network = read_case(case(tmp_path))
    with pytest.raises(InputError, match=match):
        plan(network, **asked(only=only))


def test_a_network_without_voltages_says_so():
    with pytest.raises(InputError, match="Known of them: name, from, to, kind"):
        plan(replace(rts96(), source=None), **asked(only="voltage>=220"))


def test_curves_of_units_whose_limits_are_public_stay(tmp_path):
    parts = tables()
    parts["bus"][:, 9] = [380, 380, 110]
    network = read_case(write_case(tmp_path, parts))
    curved = [len(p) > 2 if p is not None else False for p in network.generators.points]
    assert any(curved)
    name = network.generators.name[curved.index(True)]
    given = {**asked(parameter="generator_limit"), "range": (-200, 500)}
    with pytest.raises(InputError, match="piecewise-linear costs"):
        plan(network, **given)
    public = plan(network, **given, only=f"name!={name}").problem.public
    kept = public.generators.points[curved.index(True)]
    assert np.array_equal(kept, network.generators.points[curved.index(True)])


def curved_case(folder, *, cost=None):
    """A unit with a square, one with three breakpoints, one with a line; startup costs for all."""
    parts = tables()
    parts["gencost"][:, 1:3] = [17.0, 19.0]
    parts["gencost"][1, 9] = 4700  # 80 $/MWh at last
    if cost is not None:
        parts["gencost"][0] = cost
    folder.mkdir()
    return read_case(write_case(folder, parts))


COSTS = {"parameter": "cost", "range": (-100, 200), "alpha": 1, "only": "bus=1"}


@pytest.mark.parametrize("method", ["laplace", "certified"])
def test_public_costs_stay_as_they_were(method, tmp_path, ledger):
    network = curved_case(tmp_path / "source")
    found = grid.release(
        *(network, models_for(network, "cost")), dataset="case", ledger=ledger,
        **asked(**COSTS, method=method),
    )  # fmt: skip
    hidden = found.data.source.protected["cost"]
    assert hidden.tolist() == [True, False, False]
    bundle = found.write(tmp_path / "out")
    ours, theirs = (
        tables_of(one.source.data).gencost for one in (network, read_case(bundle / "network.m"))
    )
    public = np.tile(~hidden, 2)  # the costs of reactive power follow
    assert np.array_equal(ours[public], theirs[public])
    assert theirs[0].tolist() == [2, 0, 0, 3, 0, found.values[0], 0, 0, 0, 0]
    assert theirs[3].tolist() == [2, 0, 0, 3, 0, 0, 0, 0, 0, 0]
    listed = found.statement.body["settings"]["changed_columns"]
    kept = [c for one in listed if "declared public" in one["reason"] for c in one["columns"]]
    assert {"COST", "STARTUP", "SHUTDOWN", "reactive"} <= set(kept)
    compared = evaluate(bundle, network)
    assert compared.parameters[0].entries == 1
    # A release of the same values would have no error: public costs are compared as they are.
    mean = network.linearised(which=hidden)
    assert np.array_equal(mean.generators.points[1], network.generators.points[1])
    assert mean.generators.quadratic[0] == 0


def test_twins_with_another_form_of_a_private_cost_leave_the_same_plan(tmp_path):
    """A private cost may have more breakpoints than any public one."""
    long = [1, 5, 6, 3, 10, 100, 50, 700, 120, 2000]
    texts = []
    for name, cost in (("square", None), ("curve", long)):
        network = curved_case(tmp_path / name, cost=cost)
        given = asked(**{**COSTS, "only": "bus!=3"})
        public = plan(network, models_for(network, "cost"), **given).problem.public
        public.with_values(np.full(public.entries, 50.0)).write(tmp_path / f"{name}.m")
        texts.append((tmp_path / f"{name}.m").read_text().replace(name, ""))
    assert texts[0] == texts[1]


def test_the_price_of_room_counts_public_curves(tmp_path):
    """Room is bought at more than the dearest unit: one with a public curve may be that."""
    network = curved_case(tmp_path / "source")
    models = models_for(network, "capacity,cost")
    given = {**COSTS, "parameter": "capacity,cost", "only": {"cost": "bus=1"}}
    given |= {"range": {"capacity": (1, 500), "cost": (-100, 20)}}
    given["alpha"] = {"capacity": 5, "cost": 1}
    public = plan(network, models, **asked(**given)).problem.public
    assert highest_cost(public, replace(models, cost_factor=None)) == pytest.approx(80)


def test_a_published_total_is_that_of_all_loads(tmp_path):
    given = asked(parameter="load", method="certified", published_total=100, only="voltage>=220")
    with pytest.raises(InputError, match="published total"):
        plan(read_case(case(tmp_path)), **{**given, "range": (0, 300)})


def test_the_command_line_takes_rules_and_placeholders(tmp_path):
    path = case(tmp_path)
    command = ["grid", "release", str(path), "--alpha", "5", "--range", "1:500", "--method"]
    command += ["laplace", "--only", "capacity:voltage>=220", "--unlimited-above", "9000"]
    command += [
        "--dataset",
        "case",
        "--ledger",
        str(tmp_path / "l.sqlite"),
        "-o",
        str(tmp_path / "out"),
        "--json",
    ]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0, found.output
    assert '"capacity": "voltage>=220"' in found.stdout
    wrong = CliRunner().invoke(app, [*command, "--only", "kind=line", "--force"])
    assert wrong.exit_code == 2
    assert "one rule for each parameter" in wrong.output
