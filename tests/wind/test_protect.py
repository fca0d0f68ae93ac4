"""The unit of protection: records, hours, days and weeks, from times to the ledger's arithmetic."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gridveil as gv
from gridveil.cli.commands import app
from gridveil.errors import InputError, LedgerRefused
from gridveil.privacy.adjacency import ALTOGETHER, BLOCKS, ENTRY, Step, blocks_in
from gridveil.privacy.ledger import Ledger
from gridveil.wind.clock import SECONDS, calendar, largest_group, oddities
from gridveil.wind.queries import records_sensitivity

pytestmark = pytest.mark.filterwarnings("ignore::gridveil.privacy.seeded.NotPrivateWarning")


def table(days=20, turbines=("A", "B"), zone=None, step="10min", seed=0):
    draws = np.random.default_rng(seed)
    times = pd.date_range("2024-01-01", periods=days * 144, freq=step, tz=zone)
    parts = []
    for name in turbines:
        speed = np.clip(
            8 + 3 * np.sin(np.arange(len(times)) / 90) + draws.normal(0, 1, len(times)), 0, 24
        )
        power = np.clip((speed / 11) ** 3 + draws.normal(0, 0.05, len(times)), 0, 1) * 2000
        parts.append(pd.DataFrame({"who": name, "when": times, "v": speed, "p": power}))
    return pd.concat(parts, ignore_index=True)


def records(frame=None, time="when", **more):
    frame = table() if frame is None else frame
    sizes = dict.fromkeys(frame["who"].unique(), 2000.0)
    return gv.wind.read_records(
        frame, speed="v", power="p", capacity=sizes, turbine="who", time=time, name="farm", **more
    )


# -- times ----------------------------------------------------------------------------------------


def test_times_with_a_zone_are_read_by_utc():
    frame = table(days=2)
    zoned = frame.assign(when=frame["when"].dt.tz_localize("Europe/Paris"))
    plain, utc = records(frame), records(zoned)
    assert (plain.clock, utc.clock) == ("as written", "UTC")
    assert (plain.groups[0].times() - utc.groups[0].times() == 3600).all()
    text = zoned.assign(when=zoned["when"].map(lambda t: t.isoformat()))
    assert np.array_equal(records(text).groups[0].times(), utc.groups[0].times())
    assert records(text).clock == "UTC"


def test_words_that_are_no_dates_are_refused_not_sorted():
    frame = table(days=2)
    with pytest.raises(InputError, match="--time-format"):
        records(frame.assign(when=frame["when"].dt.strftime("week %W")))


def test_numbers_are_not_times():
    frame = table(days=2)
    with pytest.raises(InputError, match="dates and times"):
        records(frame.assign(when=np.arange(len(frame))))


def test_a_unit_needs_times():
    frame = table(days=2)
    known = records(frame, time=None, key="when")
    with pytest.raises(InputError, match="--time"):
        gv.wind.plan(known, epsilon=1, protect="day", method="synthetic")
    with pytest.raises(InputError, match="hour"):
        gv.wind.plan(records(frame), epsilon=1, protect="month", method="synthetic")
    with pytest.raises(InputError, match="by the key"):
        records(frame, key="v")


def test_clocks_set_back_and_uneven_steps_are_named():
    frame = table(days=3)
    again = pd.concat([frame, frame[100:106]], ignore_index=True)
    planned = gv.wind.plan(records(again), epsilon=1, protect="day", method="synthetic")
    assert any("6 records have the time of another" in one for one in planned.unusual)
    moved = frame["when"].to_numpy().copy()
    moved[50] += np.timedelta64(7, "s")
    planned = gv.wind.plan(records(frame.assign(when=moved)), epsilon=1, method="synthetic")
    assert any("2 records do not follow" in one for one in planned.unusual)
    slow = np.arange(10) * 3600
    words = oddities([np.arange(50) * 600, slow], ["A", "B"])
    assert any("those of B 3,600" in one for one in words)


def test_the_largest_group_counts_every_record_of_a_block():
    times = [1_704_067_200 + 600 * np.arange(1500), 1_704_067_200 + 300 * np.arange(290)]
    assert [largest_group(times, unit) for unit in SECONDS] == [1, 12, 288, 1008]
    for unit in ("hour", "day", "week"):
        _, counts = np.unique(calendar(times[0], unit), return_counts=True)
        assert largest_group(times[:1], unit) == counts.max()


# -- methods --------------------------------------------------------------------------------------


def test_synthetic_protects_a_day_and_says_so():
    made = gv.wind.release(records(), epsilon=1, protect="day", method="synthetic", seed=1)
    guarantee = made.statement.body["guarantee"]
    assert guarantee["neighbours"][0]["block"] == "day"
    assert "all entries of power of one turbine in one calendar day" in guarantee["adjacency"]
    assert sum(Fraction(one["epsilon"]) for one in made.statement.body["mechanisms"]) == 1
    assert made.data["p"].between(0, 2000).all()
    assert list(made.data["when"]) == list(table()["when"])
    with pytest.raises(InputError, match="100%"):
        gv.wind.plan(records(), epsilon=1, alpha="15%", protect="day", method="synthetic")


def test_a_window_at_any_moment_costs_twice(tmp_path):
    planned = gv.wind.plan(records(), epsilon=1, protect="day", method="synthetic")
    made = planned.run(planned.charge(tmp_path / "l.db"))
    assert made.statement.dp_valid
    assert "touches two of them: epsilon 2." in made.statement.in_words[1]
    assert gv.wind.plan(records(), epsilon=1, alpha="15%").terms.adjacency[0].block == ENTRY


def test_methods_with_noise_on_records_pay_for_the_whole_group():
    known = records()
    alone = gv.wind.plan(known, epsilon=1, alpha="1%", method="laplace")
    whole = gv.wind.plan(known, epsilon=1, alpha="100%", protect="day", method="wpo")
    assert any("144 records of a day" in one for one in whole.unusual)
    assert (alone.guarantee.group, whole.guarantee.group) == (1, 144)
    made = whole.run(whole.study(1))
    by_name = {one["query"]: one["sensitivity"] for one in made.statement.body["mechanisms"]}
    assert by_name["every record"]["value"] == 144
    single = gv.wind.plan(known, epsilon=1, alpha="100%", method="wpo")
    ratio = whole.prepared.weights.sensitivity.value / single.prepared.weights.sensitivity.value
    assert ratio == 144


def test_a_group_of_records_never_moves_the_records_beyond_its_bound():
    draws = np.random.default_rng(0)
    alpha = Fraction(3, 10)
    for group in (1, 6, 144):
        bound = records_sensitivity(alpha, group)
        grid = bound.default_grid()
        for _ in range(40):
            one = draws.random(group) * 0.7
            other = one + draws.choice([0.0, 0.3], group)
            steps = np.abs(np.rint(one / float(grid)) - np.rint(other / float(grid))).sum()
            assert steps <= bound.steps(grid)
        worst = np.rint(np.full(group, 0.3) / float(grid)).sum()
        assert worst > records_sensitivity(alpha, max(group // 2, 1)).steps(grid) or group == 1


def test_auto_says_what_it_chose_and_why():
    known = records()
    day = gv.wind.plan(known, epsilon=1, protect="day", method="auto")
    record = gv.wind.plan(known, epsilon=1, alpha="15%", method="auto")
    assert (day.method.method, record.method.method) == ("synthetic", "tuned")
    assert day.assumed["method"] == (
        "synthetic, since noise on every record for a whole day would drown the curve"
    )
    assert record.assumed["method"].startswith("tuned, since there are ")
    whole = gv.wind.plan(known, epsilon=1, alpha=1)
    assert "--method auto" in whole.assumed["method"]
    assert "method" not in gv.wind.plan(known, epsilon=1, alpha="15%").assumed
    made = day.run(day.study(0))
    assert "drown" in made.statement.body["settings"]["method_chosen_because"]
    with pytest.raises(InputError, match="alpha is missing"):
        gv.wind.plan(known, epsilon=1)


# -- the ledger's arithmetic ----------------------------------------------------------------------


def in_blocks(moments, kind):
    if kind == ALTOGETHER:
        return np.zeros(len(moments))
    return moments if kind == ENTRY else calendar(moments, kind)


def moved(frame_times, whole, part):
    """By brute force: the most blocks of one kind that hold the entries of one of another."""
    wholes, parts = in_blocks(frame_times, whole), in_blocks(frame_times, part)
    return max(len(np.unique(parts[wholes == one])) for one in np.unique(wholes))


def test_blocks_nest_as_the_ledger_counts():
    times = 1_704_000_000 + 600 * np.arange(5000)
    units = ("hour", "day", "week")
    members = {unit: largest_group([times], unit) for unit in units}
    members |= {f"{unit}s": len(np.unique(calendar(times, unit))) for unit in units}
    members[ALTOGETHER] = len(times)
    for whole in BLOCKS:
        for part in BLOCKS:
            assert moved(times, whole, part) == blocks_in(whole, part, members)


def test_two_clocks_never_hold_more_blocks_than_counted():
    utc = pd.date_range("2024-01-01", "2024-12-31", freq="15min", tz="UTC")
    seconds = utc.tz_localize(None).to_numpy().astype("datetime64[s]").astype(np.int64)
    for zone in ("Europe/Paris", "Asia/Kathmandu", "Australia/Lord_Howe"):
        there = utc.tz_convert(zone).tz_localize(None)
        local = there.to_numpy().astype("datetime64[s]").astype(np.int64)
        for whole in ("hour", "day", "week"):
            for part in ("hour", "day", "week"):
                for one, other in ((seconds, local), (local, seconds)):
                    pairs = pd.DataFrame({"w": calendar(one, whole), "p": calendar(other, part)})
                    most = pairs.groupby("w")["p"].nunique().max()
                    assert most <= blocks_in(whole, part, {}, clocks=2)


@pytest.mark.parametrize(
    ("first", "second", "counted"),
    [
        (("record", "15%"), ("day", "100%"), 1),
        (("day", "100%"), ("record", "100%"), 144),
        (("day", "100%"), ("record", "50%"), 288),
        (("day", "100%"), ("hour", "100%"), 24),
        (("week", "100%"), ("day", "100%"), 7),
        (("hour", "100%"), ("week", "100%"), 1),
    ],
)
@pytest.mark.filterwarnings("ignore:alpha of power")
def test_what_one_unit_counts_for_another(tmp_path, first, second, counted):
    known, ledger = records(), Ledger(tmp_path / "l.db")
    for unit, alpha in (first, second):
        planned = gv.wind.plan(known, epsilon=1, alpha=alpha, protect=unit, method="laplace")
        account = planned.charge(ledger)
    assert account.charge.charged == counted
    assert ledger.totals("farm").spent == 1 + counted


def test_records_without_times_can_not_be_counted_for_a_day(tmp_path):
    ledger = Ledger(tmp_path / "l.db")
    gv.wind.plan(records(), epsilon=1, protect="day", method="synthetic").charge(ledger)
    bare = gv.wind.plan(records(time=None, key="when"), epsilon=1, alpha="100%")
    with pytest.raises(LedgerRefused, match="--time"):
        bare.charge(ledger)


def test_finer_records_without_times_count_as_many_times_more_for_a_day(tmp_path):
    """Of ten minutes first, without their times; then by the hour: a day of the first had 144."""
    bare, known = Step(Fraction(1), "kW", entries=1440), {"hour": 1, "day": 24, "week": 168}
    day = Step(Fraction(1), "kW", block="day", members=known, clock="UTC", entries=240)
    assert day.steps(bare) == 144
    assert day.steps(Step.from_json(bare.to_json())) == 144
    assert day.steps(replace(bare, entries=240)) == day.steps(replace(bare, entries=0)) == 24


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.filterwarnings("ignore:alpha of power")
def test_a_statement_about_days_says_if_an_earlier_release_had_no_times(tmp_path, timed):
    ledger, call = tmp_path / "l.db", {"epsilon": 1, "alpha": "100%", "method": "laplace"}
    first = records() if timed else records(time=None, key="when")
    gv.wind.plan(first, **call).charge(Ledger(ledger))
    made = gv.wind.release(records(), protect="day", ledger=ledger, dataset="farm", **call)
    said = [line for line in made.statement.body["limitations"] if "did not name its times" in line]
    assert len(said) == (not timed)


def test_a_step_survives_the_ledger():
    step = Step(Fraction(1, 2), "of capacity", {"A": Fraction(3)}, "kW", "day", {"day": 144}, "UTC")
    assert Step.from_json(step.to_json()) == step
    with pytest.raises(ValueError, match=r"^$"):
        Step.from_json({**step.to_json(), "block": "month"})


def test_the_command_line_says_in_plain_words_what_the_plan_doubts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    times = pd.date_range("2024-03-01", periods=288, freq="10min")
    speed = np.linspace(3, 12, 288)
    power = np.clip(2000 * ((speed - 3) / 9) ** 2, 0, 2000)
    pd.DataFrame({"time": times, "v": speed, "p": power}).to_csv("s.csv", index=False)
    given = "--speed v --power p --capacity 2000 --time time --protect day --dataset d -o out"
    command = ["wind", "release", "s.csv", *given.split(), "--ledger", "l.sqlite", "--dry-run"]
    doubtful = CliRunner().invoke(app, [*command, "--alpha", "15%"])
    assert doubtful.exit_code == 0, doubtful.output
    assert "Unusual:\n  Noise on every record" in doubtful.stdout
    assert doubtful.stderr == ""
    missing = CliRunner().invoke(app, command)
    assert missing.exit_code == 2
    assert "auto or synthetic" in " ".join(missing.stderr.split())
    assert not (tmp_path / "l.sqlite").exists()


@pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")
@pytest.mark.parametrize("method", ["tuned", "synthetic"])
def test_turbines_of_different_steps_and_single_records_are_released_together(method):
    """Each keeps its own times and curve; a warning names the odd ones."""
    rng = np.random.default_rng(15)
    parts = []
    for name, count, step in (("A", 3000, "10min"), ("B", 500, "h"), ("C", 1, "h")):
        speed = np.clip(rng.normal(8, 3, count), 0, 20)
        power = np.clip((speed / 12) ** 3 + rng.normal(0, 0.05, count), 0, 1)
        times = pd.date_range("2024-01-01", periods=count, freq=step)
        parts.append(pd.DataFrame({"t": times, "w": name, "v": speed, "p": power}))
    table = pd.concat(parts)
    records = gv.wind.read_records(
        table, speed="v", power="p", capacity=1, unit="pu", time="t", turbine="w"
    )
    planned = gv.wind.plan(
        records, epsilon=1, alpha="15%" if method == "tuned" else "100%", method=method
    )
    assert any("600 seconds apart, but those of B 3,600" in words for words in planned.unusual)
    released = planned.run(planned.study(0)).data
    pd.testing.assert_frame_equal(
        released[["t", "w", "v"]], table[["t", "w", "v"]].reset_index(drop=True), check_dtype=False
    )
    for _, own in released.groupby("w"):
        assert own["p"].between(0, 1).all()
        if len(own) > 1:
            assert np.sqrt(np.mean((own["p"] - np.clip((own["v"] / 12) ** 3, 0, 1)) ** 2)) < 0.2
