"""What plans take for granted and what is unusual about them: public facts alone decide it."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import gridveil as gv
from gridveil.grid.model.parameters import PARAMETERS

ROWS = 60
TIMES = pd.date_range("2024-01-01", periods=ROWS, freq="10min")


def table(power=0.5, **columns):
    speed = np.linspace(3, 12, ROWS)
    return pd.DataFrame({"ws": speed, "kw": 2000 * power * np.ones(ROWS), **columns})


def wind_plan(frame, *, capacity=2000, unit="kW", alpha="15%", epsilon=1, **named):
    columns = {"speed": "ws", "power": "kw", **named}
    records = gv.wind.read_records(frame, capacity=capacity, unit=unit, **columns)
    return gv.wind.plan(records, epsilon=epsilon, alpha=alpha, method="laplace")


def grid_plan(network=None, *, parameter="capacity", alpha=30, range=None, epsilon=1):
    network = gv.grid.cases.rts96() if network is None else network
    models = gv.grid.sample_population(network, 3, costs=0.1, private=parameter)
    return gv.grid.plan(
        network, models, parameter=parameter, alpha=alpha, epsilon=epsilon, range=range
    )


def test_plain_plans_have_nothing_unusual():
    times = pd.date_range("2024-01-01", periods=ROWS, freq="10min")
    assert wind_plan(table()).unusual == ()
    assert wind_plan(table(when=times), time="when").unusual == ()
    megawatts = table().rename(columns={"kw": "Power [MW]"})
    assert wind_plan(megawatts, capacity=2.0, unit="MW", power="Power [MW]").unusual == ()
    assert wind_plan(table(), capacity=1.0, unit="pu").unusual == ()
    for name, alpha in (("capacity", 5), ("capacity", "20%"), ("load", 15), ("cost", 1)):
        assert grid_plan(parameter=name, alpha=alpha).unusual == ()
    assert grid_plan(parameter="generator_limit", alpha=15).unusual == ()


@pytest.mark.parametrize(
    ("frame", "given", "words"),
    [
        (table(t=range(ROWS)), {}, "Columns that were not named: 't'"),
        (table(time=range(ROWS), a=1), {}, "'time', 'a'"),  # what looks like a time comes first
        (table(t=range(ROWS), wtg="A"), {"key": "t"}, "add --turbine wtg"),
        (table(), {"capacity": 2.0}, "A capacity of 2 kW is small"),
        (table(p=1.0), {"key": "ws", "power": "p", "capacity": 2e9, "unit": "W"}, None),
        (table(), {"capacity": 2e12, "unit": "W"}, "is large"),
        (table(), {"capacity": 2.0, "unit": "MW"}, "names kW, and values and --capacity are taken"),
        (table(power_mw=1.0), {"key": "ws", "power": "power_mw"}, "and --unit MW"),
        (table(**{"E (kWh)": 1.0}), {"key": "ws", "power": "E (kWh)"}, "names kWh, an energy"),
        (table(plow_mwx=1.0), {"key": "ws", "power": "plow_mwx"}, None),
        (table(P_percent=1.0), {"key": "ws", "power": "P_percent"}, "--capacity 100, and --unit %"),
        (table(**{"P [%]": 1.0}), {"key": "ws", "power": "P [%]"}, "names % of capacity"),
        (table(power_pu=1.0), {"key": "ws", "power": "power_pu"}, "--capacity 1, and --unit pu"),
        (table(pump=1.0), {"key": "ws", "power": "pump"}, None),
        (table(), {"unit": "%"}, "a capacity of 100, and 2,000 was given"),
        (table(), {"unit": "p.u."}, "a capacity of 1, and 2,000 was given"),
        (table(), {"unit": "percent", "capacity": 100.0}, None),
        (table(), {"unit": "kVArs"}, "'kVArs' is not known to be a unit of power"),
        (table(ws_kmh=np.linspace(3, 12, ROWS)), {"key": "ws", "speed": "ws_kmh"}, "names kmh"),
        (table(v=np.linspace(9, 45, ROWS)), {"key": "ws", "speed": "v"}, "Wind speeds are 27"),
        (table(when=TIMES), {"time": "when"}, None),
        (table(when=[*TIMES[:1], *TIMES[:-1]]), {"time": "when"}, "2024-10-27 02:30+01:00"),
        (table(when=[*TIMES[:30], *TIMES[:30]]), {"time": "when"}, "files without one need it"),
        (table(turbine="A"), {"turbine": "turbine", "capacity": 90_000}, "is large"),
        (table(), {"alpha": "0.5%"}, "alpha is 0.5% of capacity"),
        (table(), {"epsilon": 11}, "may become over 99.99% sure"),
        (table(t=[f"row {i:03}" for i in range(ROWS)]), {"key": "t"}, None),
    ],
)
def test_what_is_unusual_about_records(frame, given, words):
    found = wind_plan(frame, **given).unusual
    assert found == () if words is None else any(words in one for one in found)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"alpha": 300}, "drowns most values of capacity"),
        ({"alpha": 30, "epsilon": "0.05"}, "drowns most values of capacity"),
        ({"alpha": 0.5}, "such small steps hide next to nothing"),
        ({"alpha": "0.5%"}, "alpha is 0.5% of each value"),
        ({"alpha": "20%", "epsilon": "0.1"}, "a factor of about"),
        ({"parameter": "load", "alpha": 400}, "by the generation and their number"),
        ({"parameter": "generator_limit", "alpha": 200}, "by the load and their number"),
        ({"parameter": "cost", "alpha": 90, "range": (0, 100)}, "drowns most values of cost"),
    ],
)
def test_what_is_unusual_about_networks(given, words):
    assert any(words in one for one in grid_plan(**given).unusual)


def test_units_without_a_limit_tell_nothing_of_loads():
    network = gv.grid.cases.rts96()
    every = np.full(len(network.generators), 9999.0)
    units = replace(network.generators, p_min=np.zeros(len(every)), p_max=every)
    network = replace(network, generators=units)
    assert grid_plan(network, parameter="load", alpha=5).unusual == ()


@pytest.mark.parametrize(
    ("parameter", "alpha", "limits", "rate"),
    [
        ("cost", 1, None, 0.25),
        ("load", 5, None, 0.01),  # units that must run, behind lines that carry next to nothing
        ("capacity", 1, (0.1, 2), 1),
        ("capacity,load", 1, {"capacity": (0.1, 2), "load": (-500, 500)}, 1),
    ],
)
def test_models_that_public_limits_do_not_serve_are_named(parameter, alpha, limits, rate):
    """Whether lines carry what must be carried, wherever in their ranges private values are."""
    network = gv.grid.cases.rts96()
    lines = network.branches
    tight = replace(network, branches=replace(lines, capacity=lines.capacity * rate))
    words = "3 of 3 models can't be served, whatever the private values are"
    found = grid_plan(tight, parameter=parameter, alpha=alpha, range=limits).unusual
    assert any(words in one for one in found)
    # The control: lines as they are.
    wide = None if limits is None else {"capacity": (1, 5000), "load": (-500, 500)}
    given = {name: wide[name] for name in parameter.split(",")} if wide else None
    found = grid_plan(network, parameter=parameter, alpha=alpha, range=given).unusual
    assert not any("can't be served" in one for one in found)


def test_no_power_decides_what_is_unusual():
    for given in ({}, {"alpha": "0.5%"}, {"capacity": 2.0}):
        for more in ({}, {"t": range(ROWS)}):
            plans = [wind_plan(table(power, **more), **given) for power in (0.0, 0.4, 1.0)]
            assert len({one.unusual for one in plans}) == 1
            assert len({str(one.assumed) for one in plans}) == 1
    # The control: a public speed does.
    faster = table()
    faster["ws"] *= 8
    assert wind_plan(faster).unusual != wind_plan(table()).unusual


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("alpha", [0.01, 30])
def test_no_private_value_decides_what_is_unusual(name, alpha):
    network = gv.grid.cases.rts96()
    kind = PARAMETERS[name]
    names = [name] if kind.beside is None else [kind.beside, name]
    part = getattr(network, kind.table)
    plans = []
    for factor in (1.0, 1.7):
        moved = {column: getattr(part, column) * factor for column in kind.columns}
        other = replace(network, **{kind.table: replace(part, **moved)})
        plans.append(grid_plan(other, parameter=names, alpha=dict.fromkeys(names, alpha)))
    assert plans[0].unusual == plans[1].unusual
    assert plans[0].assumed == plans[1].assumed
    # The control: another alpha does.
    other = grid_plan(network, parameter=names, alpha=dict.fromkeys(names, 2 * alpha))
    assert other.assumed != plans[0].assumed


def series_plan(scale=1.0, **given):
    network = gv.grid.cases.rts96()
    used = np.flatnonzero(network.buses.load)
    times = pd.date_range("2024-01-01", periods=48, freq="h", name="time")
    shape = scale * (0.6 + 0.1 * np.sin(np.arange(48) / 4))
    names = [network.buses.name[bus] for bus in used]
    loads = pd.DataFrame(np.outer(shape, network.buses.load[used]), times, names)
    read = gv.grid.read_series(loads, network)
    return gv.grid.plan_series(
        network, read, **{"alpha": 5, "epsilon": 1, "range": (0, 500), **given}
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, None),
        ({"texture": 0.1}, None),
        ({"epsilon": "0.01"}, "drowns the mean of a load"),
        ({"alpha": "0.1"}, "such small steps hide next to nothing"),
        ({"texture": 0.8}, "Texture of 0.8"),
        ({"epsilon": 20}, "next to no protection"),
    ],
)
def test_what_is_unusual_about_series(given, words):
    found = series_plan(**given).unusual
    assert found == () if words is None else any(words in one for one in found)


def test_what_a_series_takes_for_granted_depends_on_public_facts_alone():
    plain, twin, other = series_plan(), series_plan(scale=1.3), series_plan(alpha=4)
    assert plain.assumed == twin.assumed
    assert plain.assumed != other.assumed, "the control"
    said = plain.assumed
    assert said["times"] == "2 whole days of 24 values from 2024-01-01 (as written)"
    assert "all values of one load in one calendar day, each by 5 MW" in said["private load"]
    assert "the mean of a load is off by about" in said["accuracy of load"]


@pytest.mark.parametrize(
    ("again", "words"), [("AB", "(2 of each)"), ("B", "(most of them B: 2)"), ("", None)]
)
def test_turbines_with_repeated_times_are_named_if_they_differ(again, words):
    rows = []
    for name in "AB":
        times = list(TIMES)
        times[:2] = [times[2], times[2]] if name in again else times[:2]
        rows.append(table(when=times, w=name))
    found = wind_plan(pd.concat(rows), time="when", turbine="w").unusual
    assert found == () if words is None else any(words in one for one in found)


def test_a_plan_says_the_least_and_the_most_noise_of_a_parameter():
    """A median hides that whole classes have four times as much."""
    said = grid_plan(alpha={"230kV": 20, "others": 5}).assumed["accuracy of capacity"]
    assert re.search(r"off by about 5\.00\d to 20\.0\d MW before restoration", said), said
    shares = grid_plan(alpha={"230kV": "20%", "others": "5%"}).assumed["accuracy of capacity"]
    assert shares == "a single value of capacity is off by about 5.01 to 20% before restoration"
    assert " to " not in grid_plan().assumed["accuracy of capacity"]


def test_a_plan_and_its_guarantee_name_the_same_range():
    """Signs are public: a load of 10 MW counts as the nearer end of [0, 500], never as below 0."""
    plan = grid_plan(parameter="load", alpha=10, range=(-500, 500))
    assert "values outside [0, 500] count as the nearer end" in plan.assumed["private load"]
    assert "[0, 500]" in " ".join(plan.in_words)
