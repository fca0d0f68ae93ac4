"""Load series: what is asked moves no further than claimed, and the release that comes of it."""

import json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest

import gridveil as gv
from gridveil.auditing.bundle_bytes import bundle_parts
from gridveil.auditing.scratch_ledgers import MADE_UP, new_name, throwaway_ledger
from gridveil.auditing.transcript import Recorder, Replayer
from gridveil.errors import InputError
from gridveil.grid.series import serve_hours
from gridveil.grid.series.budget import planned
from gridveil.grid.series.clock import Clock
from gridveil.grid.series.queries import Frame, all_queries, profiles, reach
from gridveil.grid.series.rebuild import Box, prior_only, rebuild
from gridveil.privacy.adjacency import ALTOGETHER, BLOCKS, ENTRY
from gridveil.privacy.ledger import Ledger
from gridveil.privacy.sealed import Range
from gridveil.release.verification import verify_bundle

START = 1_704_240_000  # 2024-01-03, a Wednesday
ALPHA = Fraction("0.2")


def clock(days=10, slots=24):
    return Clock.of(START + (86_400 // slots) * np.arange(days * slots), "UTC", "the test")


def frame(block, days=10, slots=24, loads=3):
    return Frame(clock(days, slots), loads, Range(0.0, 20.0), ALPHA, block)


def block_of(one, block, rng):
    """Entries of one load that move together: places in time."""
    places = np.arange(one.clock.size)
    if block == ENTRY:
        return places == rng.integers(one.clock.size)
    if block == ALTOGETHER:
        return np.ones(one.clock.size, dtype=bool)
    hour = places // (one.clock.slots // 24)
    of = {"hour": hour, "day": hour // 24, "week": one.clock.week[hour // 24]}[block]
    return of == rng.choice(np.unique(of))


def moves(one, query, block, rng):
    """The L1 move of an answer on whole numbers, and how many coordinates move, for neighbours."""
    x = rng.uniform(0.5, 19.0, (one.clock.size, one.loads))
    y = x.copy()
    some, load = block_of(one, block, rng), rng.integers(one.loads)
    kind = rng.integers(3)
    if kind == 0:
        signs = np.ones(some.sum())
    elif kind == 1:
        signs = rng.choice([-1.0, 1.0], some.sum())
    else:  # the worst that is known: along the profiles, with signs of their own
        rows = profiles(one.clock.slots, 11 if query.name == "totals" else 7)
        rows = rows if query.name == "totals" else rows[1:]
        best = max(
            (np.array(s) @ rows for s in rng.choice([-1, 1], (200, len(rows)))),
            key=lambda row: np.abs(row).sum(),
        )
        signs = np.where(np.tile(best, one.clock.days)[some] >= 0, 1.0, -1.0)
    y[some, load] += float(ALPHA) * signs
    a, b = query.ask(one.counted(x)).ravel(), query.ask(one.counted(y)).ravel()
    return int(np.abs(a - b).sum()), int((a != b).sum())


@pytest.mark.parametrize("slots", [24, 48])
@pytest.mark.parametrize("block", list(BLOCKS))
def test_no_answer_moves_further_than_claimed(block, slots):
    one = frame(block, slots=slots)
    rng = np.random.default_rng(BLOCKS[block] % 97)
    for query in all_queries(one, 11).values():
        found = [moves(one, query, block, rng) for _ in range(60)]
        assert max(far for far, _ in found) <= query.moves
        assert max(count for _, count in found) <= query.moving


@pytest.mark.parametrize("block", list(BLOCKS))
def test_half_of_every_claim_is_too_little(block):
    """The control: the hunt finds neighbours that half of the bound does not cover."""
    one = frame(block)
    rng = np.random.default_rng(1)
    for query in all_queries(one, 11).values():
        if query.name == "peak":
            continue  # that of the test below
        assert max(moves(one, query, block, rng)[0] for _ in range(150)) > query.moves / 2


def test_the_highest_total_moves_by_a_step():
    one = frame("day")
    query = all_queries(one, 11)["peak"]
    x = np.full((one.clock.size, one.loads), 5.0)
    y = x.copy()
    y[:24, 0] += float(ALPHA)
    far = abs(int(query.ask(one.counted(y))[0] - query.ask(one.counted(x))[0]))
    assert query.moves / 2 < far <= query.moves


def test_reach_is_the_largest_move_of_all_signs():
    rng = np.random.default_rng(2)
    for _ in range(10):
        profile = rng.integers(-9, 10, (3, 8))
        most = max(np.abs(profile @ np.array(s)).sum() for s in product((-1, 1), repeat=8))
        assert reach(profile) == most
        inside = profile @ rng.uniform(-1, 1, (8, 50))
        assert np.abs(inside).sum(axis=0).max() <= most


def test_decimals_of_exact_neighbours_are_counted():
    """Floats of decimals may be further apart than alpha: counted steps have room for it."""
    one = Frame(clock(), 1, Range(0.0, 1e6), Fraction("0.1"), ENTRY)
    rng = np.random.default_rng(3)
    low = rng.integers(0, 9_999_990, 20_000)
    a, b = low / 10, (low + 1) / 10
    steps = np.rint(b / float(one.grid)) - np.rint(a / float(one.grid))
    assert steps.max() <= one.steps


@pytest.mark.parametrize(
    ("block", "days"), [(ENTRY, 1), ("hour", 1), ("day", 1), ("week", 7), (ALTOGETHER, 17)]
)
def test_a_block_touches_as_many_days_as_counted(block, days):
    assert frame(block, days=17).clock.days_in(block) == days


# -- shares and rebuilding ------------------------------------------------------------------------


@pytest.mark.parametrize("block", list(BLOCKS))
@pytest.mark.parametrize("epsilon", ["1/10", "1", "8"])
def test_shares_add_up(block, epsilon):
    one = frame(block, days=60, loads=40)
    shares = planned(one, all_queries(one, 11), 1.6, Fraction(epsilon))
    assert sum(shares.values()) == Fraction(epsilon)
    assert "year" in shares
    assert min(shares.values()) > 0


def test_what_drowns_is_not_asked():
    small, large = frame("day", days=60, loads=10), frame("day", days=60, loads=500)
    few = planned(small, all_queries(small, 11), 0.01, Fraction(1))
    many = planned(large, all_queries(large, 11), 50.0, Fraction(1))
    assert set(few) == {"year"}
    assert set(many) == {"year", "shapes", "totals", "peak", "weeks", "days"}


def year(days=56, loads=40, seed=0):
    """Loads of three kinds with days, weeks and seasons: ``(times, loads)``."""
    rng = np.random.default_rng(seed)
    hour, day = np.arange(24), np.arange(days)
    kinds = np.array([1 + 0.4 * np.sin((hour - at) / 24 * 2 * np.pi) for at in (6, 9, 12)])
    level = 1 + 0.2 * np.sin(day / days * 2 * np.pi) + 0.1 * rng.standard_normal(days)
    level *= np.where((day + 2) % 7 >= 5, 0.8, 1.0)
    size = rng.lognormal(0.5, 0.7, loads)
    values = level[:, None, None] * kinds[rng.integers(3, size=loads)].T[None] * size
    values = values * (1 + 0.05 * rng.standard_normal((days, 24, 1)))
    return values.reshape(days * 24, loads)


def rebuilt(x, block, epsilon, seed):
    one = Frame(clock(len(x) // 24), x.shape[1], Range(0.0, 50.0), ALPHA, block)
    queries = all_queries(one, 11)
    rng = np.random.default_rng(seed)
    answers = {}
    for name, part in planned(one, queries, 1.6, Fraction(epsilon)).items():
        query, scale = queries[name], queries[name].scale(part)
        exact = query.ask(one.counted(x)).reshape(query.shape) * float(query.unit)
        answers[name] = exact + rng.laplace(0, scale, query.shape), 2**0.5 * scale
    box = Box(np.zeros(x.shape[1]), np.full(x.shape[1], 50.0))
    return rebuild(one.clock, box, answers, 11).reshape(x.shape), prior_only(one.clock, box, 1.6)


def rmse(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


def test_a_rebuilt_series_is_far_better_than_noise_on_every_entry_and_than_the_prior():
    x = year()
    rng = np.random.default_rng(4)
    noise = np.clip(x + rng.laplace(0, 24 * float(ALPHA), x.shape), 0, 50)
    for seed in range(3):
        found, prior = rebuilt(x, "day", 1, seed)
        assert rmse(found, x) < rmse(noise, x) / 8
        assert rmse(found, x) < rmse(prior.reshape(x.shape), x) / 3
        assert np.abs(found.sum(1) / x.sum(1) - 1).mean() < 0.12


def test_more_epsilon_leads_to_the_series_itself():
    x = year()
    errors = [rmse(rebuilt(x, "day", epsilon, 0)[0], x) for epsilon in (1, 20, 1000)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.08 * x.std()


@pytest.mark.parametrize("block", list(BLOCKS))
def test_a_rebuilt_series_is_finite_and_in_its_box(block):
    for epsilon in ("1/1000", "1"):
        found, _ = rebuilt(year(days=14, loads=5), block, epsilon, 1)
        assert np.isfinite(found).all()
        assert found.min() >= 0
        assert found.max() <= 50


# -- tables ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def network():
    return gv.grid.cases.rts96()


def table(network, days=14, seed=0, scale=0.6):
    names = [n for n, load in zip(network.buses.name, network.buses.load, strict=True) if load]
    x = year(days, len(names), seed)
    x = scale * x / x.mean(axis=0) * network.buses.load[network.buses.load != 0]
    times = pd.date_range("2024-01-03", periods=24 * days, freq="h", tz="UTC")
    frame = pd.DataFrame(x.round(3), columns=names)
    frame.insert(0, "time", times)
    return frame


def test_wide_and_long_tables_hold_the_same(network, tmp_path):
    wide = table(network, days=2)
    long = wide.melt("time", var_name="bus", value_name="mw").sample(frac=1, random_state=0)
    wide.to_parquet(tmp_path / "wide.parquet")
    wide.set_index("time").to_parquet(tmp_path / "index.parquet")
    wide.to_csv(tmp_path / "wide.csv", index=False)
    long.to_csv(tmp_path / "long.csv", index=False)
    read = [gv.grid.read_series(path, network) for path in sorted(tmp_path.iterdir())]
    first = read[0]
    for one in read:
        order = [one.names.index(name) for name in first.names]
        assert one.clock == first.clock
        np.testing.assert_array_equal(one._values[:, order], first._values)
    assert {one.layout.kind for one in read} == {"wide", "long"}
    assert "private" in repr(first)


@pytest.mark.parametrize(
    "columns", [["time", "mw", "node"], ["time", "load", "node"], ["time", "id", "node"]]
)
def test_powers_that_are_taken_for_names_choose_no_refusal_and_are_not_quoted(network, columns):
    long = table(network, days=2).melt("time", var_name="node", value_name="mw")
    long = long[["time", "mw", "node"]].astype({"node": int}).set_axis(columns, axis=1)
    still = long.assign(**{columns[1]: long["node"].rank(method="dense") + 0.25})
    said = []
    for frame in (
        long,
        still,
        still.sort_values(columns[1], ignore_index=True),
        long.replace(long.iloc[7, 1], 7.75),
    ):
        with pytest.raises(InputError) as refused:
            gv.grid.read_series(frame, network)
        said.append(f"{refused.value} {refused.value.remedy}")
    assert len(set(said)) == 1
    assert not any(str(power) in said[0] for power in still[columns[1]])


def test_rows_may_be_in_the_order_of_their_powers(network, tmp_path):
    long = table(network, days=2).melt("time", var_name="bus", value_name="mw")
    long.sort_values("mw").to_parquet(tmp_path / "sorted.parquet")  # with the numbers of rows
    first = gv.grid.read_series(long, network)
    for source in (long.sort_values("mw"), tmp_path / "sorted.parquet"):
        one = gv.grid.read_series(source, network)
        assert (one.names, one.layout, one.clock) == (first.names, first.layout, first.clock)
        np.testing.assert_array_equal(one._values, first._values)


def test_a_column_called_load_has_the_power_beside_one_of_buses(network):
    long = table(network, days=2).melt("time", var_name="bus", value_name="load")
    long = long[["time", "load", "bus"]].astype({"bus": int})
    read = gv.grid.read_series(long, network)
    assert (read.layout.load, read.layout.power) == ("bus", "load")
    assert read.private(np.arange(1)).max() == long[long["bus"] == int(read.names[0])]["load"].max()


def change(frame, how):
    frame = frame.copy()
    if how == "gap":
        return frame.drop(index=30)
    if how == "repeat":
        return pd.concat([frame, frame.tail(1)])
    if how == "part of a day":
        return frame.iloc[:-3]
    if how == "missing":
        frame.iloc[3, 2] = np.nan
    if how == "bus":
        frame = frame.rename(columns={frame.columns[3]: "nowhere"})
    if how == "text":
        frame[frame.columns[3]] = "1.5 MW"
    if how == "no time":
        return frame.drop(columns="time")
    if how == "column left out":
        return frame.drop(columns=frame.columns[4])
    return frame


@pytest.mark.parametrize(
    "how",
    ["gap", "repeat", "part of a day", "missing", "bus", "text", "no time", "column left out"],
)
def test_what_is_no_series_is_refused_before_a_charge(network, how):
    def planned_one(frame):
        read = gv.grid.read_series(frame, network)
        return gv.grid.plan_series(network, read, epsilon=1, alpha=5)

    with pytest.raises(InputError) as refused:
        planned_one(change(table(network, days=2), how))
    assert refused.value.remedy
    assert "1.5 MW" not in str(refused.value)


def refusal(source, network, **how):
    with pytest.raises(InputError) as refused:
        gv.grid.read_series(source, network, **how)
    return str(refused.value)


def test_a_gap_is_told_with_its_time(network):
    """Times are public, and a year has 8,760 rows to look through."""
    plain = table(network, days=2)
    assert "have a gap after 2024-01-04 05:00:00 UTC in" in refusal(plain.drop(index=30), network)
    twice = pd.concat([plain.iloc[:8], plain.iloc[7:]])
    assert "repeat or are not in order after 2024-01-03 07:00:00 UTC" in refusal(twice, network)
    assert "There is only one time in the table" in refusal(plain.head(1), network)


def test_the_first_fault_of_times_is_told_for_what_it_is(network):
    plain = table(network, days=2)
    both = pd.concat([plain.iloc[:5], plain.iloc[6:31], plain.iloc[30:]])
    assert "have a gap after 2024-01-03 04:00:00 UTC" in refusal(both, network)
    half = plain.iloc[[7]].assign(time=plain["time"].iloc[7] + pd.Timedelta(minutes=30))
    more = pd.concat([plain.iloc[:8], half, plain.iloc[8:]])
    assert "have one too many after 2024-01-03 07:00:00 UTC" in refusal(more, network)
    still = pd.concat([plain.head(2), *[plain.iloc[[1]]] * 3])
    assert "repeat or are not in order after 2024-01-03 01:00:00 UTC" in refusal(still, network)


def test_a_table_with_semicolons_is_told_from_one_without_times(network, tmp_path):
    plain = table(network, days=2)
    plain.to_csv(tmp_path / "loads.csv", sep=";", decimal=",", index=False)
    said = refusal(tmp_path / "loads.csv", network)
    assert "has semicolons between its fields" in said
    read = pd.read_csv(tmp_path / "loads.csv", sep=";", decimal=",")  # as the remedy says
    assert gv.grid.read_series(read, network).clock.days == 2


def test_columns_are_listed_if_none_holds_times(network):
    named = table(network, days=2).rename(columns={"time": "Zeit"})
    named["Zeit"] = named["Zeit"].astype(str)
    assert "there are 'Zeit', " in refusal(named, network)


@pytest.mark.parametrize("how", [{}, {"time": "when"}])
def test_a_first_row_is_not_shown_as_headings(network, tmp_path, how):
    """Loads are private, and a file without headings has some where headings are."""
    table(network, days=2).to_csv(tmp_path / "loads.csv", index=False, header=False)
    first = (tmp_path / "loads.csv").read_text().splitlines()[0].split(",")
    said = refusal(tmp_path / "loads.csv", network, **how)
    assert "Its headings are numbers" in said
    assert not any(one in said for one in first)


def test_numbers_are_no_times(network):
    """They would be nanoseconds since 1970, and a private column may be named by mistake."""
    plain = table(network, days=2)
    said = refusal(plain, network, time=plain.columns[2])
    assert "does not hold times" in said


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"protect": "month"}, "protect is 'month'"),
        ({"waves": 4}, "odd number"),
        ({"method": "certified"}, "no method"),
        ({"alpha": 10**6}, "whole range"),
    ],
)
def test_public_arguments_that_can_not_be_used_are_refused(network, asked, words):
    read = gv.grid.read_series(table(network, days=2), network)
    with pytest.raises(InputError) as refused:
        gv.grid.plan_series(network, read, **{"epsilon": 1, "alpha": 5, **asked})
    assert words in f"{refused.value} {refused.value.remedy}"


# -- the release ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(network, tmp_path_factory):
    folder = tmp_path_factory.mktemp("series")
    read = gv.grid.read_series(table(network), network)
    planned_one = gv.grid.plan_series(network, read, epsilon=1, alpha=5, range=(0, 500))
    release = planned_one.run(planned_one.charge(folder / "l.db", dataset="town"))
    return planned_one, release, release.write(folder / "out"), folder / "l.db"


def test_a_bundle_is_sound_and_says_what_it_promises(made):
    planned_one, release, placed, _ = made
    assert all(finding.ok for finding in verify_bundle(placed))
    body = json.loads((placed / "release.json").read_text())
    assert body["dp_valid"]
    assert body["guarantee"]["neighbours"][0]["block"] == "day"
    assert "touches two of them: epsilon 2" in " ".join(release.statement.in_words)
    assert [one["query"] for one in body["mechanisms"]] == [a.query for a in planned_one.asked()]
    assert body["settings"]["protect"] == "day"
    # The columns of the released table are called as the owner's are.
    assert any("names of loads" in one for one in body["published_in_clear"])


def test_a_bundle_holds_released_values_alone(made, network):
    _, release, placed, _ = made
    loads = pd.read_parquet(placed / "loads.parquet")
    real = table(network)
    assert list(loads.columns) == list(real.columns)
    assert (loads["time"] == real["time"]).all()
    np.testing.assert_array_equal(loads.drop(columns="time").to_numpy(), release.values)
    written = gv.grid.read_case(placed / "network.m")
    mean = pd.Series(release.values.mean(axis=0), index=release.names)
    for name, load in zip(written.buses.name, written.buses.load, strict=True):
        assert load == pytest.approx(mean.get(name, 0.0), abs=1e-4)


def test_every_released_hour_can_be_served(made):
    _, release, _, _ = made
    assert not release.served.unserved.any()
    assert np.isfinite(release.solutions.cost).all()


@pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")
def test_hours_that_can_not_be_served_are_moved_by_any_number_of_workers(network, monkeypatch):
    read = gv.grid.read_series(table(network, days=2, scale=1.1), network)
    wanted = {"epsilon": 50, "alpha": 5, "range": (0, 500)}
    plain = gv.grid.release_series(network, read, seed=0, hours="none", **wanted)
    one = gv.grid.release_series(network, read, seed=0, **wanted)
    assert not np.isfinite(plain.solutions.cost).all(), "the control: without it, hours fail"
    assert one.served.moved.any()
    assert any("were moved" in words for words in one.statement.body["limitations"])
    assert np.isfinite(one.solutions.cost).all()
    started = []
    count = serve_hours.processes

    def counted(workers):
        started.append(workers)
        return count(workers)

    monkeypatch.setattr(serve_hours, "processes", counted)
    # Two days are solved before a process has begun: none is, until starting one costs nothing.
    gv.grid.release_series(network, read, seed=0, workers=2, **wanted)
    assert started == []
    monkeypatch.setattr(serve_hours, "_START", -1.0)
    two = gv.grid.release_series(network, read, seed=0, workers=2, **wanted)
    assert started == [2]
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.solutions.cost, two.solutions.cost)
    with ThreadPoolExecutor(2) as pool:
        three = gv.grid.release_series(network, read, seed=0, executor=pool, **wanted)
    np.testing.assert_array_equal(one.values, three.values)
    still = ~one.served.moved
    np.testing.assert_array_equal(one.values[still], plain.values[still])


@pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")
def test_loads_that_are_below_0_at_times_are_served_too(network, tmp_path):
    frame = table(network, days=2, scale=1.1)
    name = frame.columns[1]
    frame[name] -= 1.2 * frame[name].mean()
    read = gv.grid.read_series(frame, network)
    wanted = {"epsilon": 50, "alpha": 5, "range": (-300, 500)}
    plain = gv.grid.release_series(network, read, seed=0, hours="none", **wanted)
    made = gv.grid.release_series(network, read, seed=0, **wanted)
    assert not np.isfinite(plain.solutions.cost).all(), "the control: without it, hours fail"
    assert np.isfinite(made.solutions.cost).all()
    assert not made.served.unserved.any()
    assert made.values[:, 0].min() < 0 <= made.values[:, 1:].min()
    placed = made.write(tmp_path / "out")
    found = gv.grid.evaluate_series(placed, network, read)
    assert repr(found).startswith("<GRIDVEIL OWNER ONLY - NOT FOR PUBLICATION: evaluation of loads")
    assert found.errors.infeasible == 0


@pytest.mark.parametrize(
    ("block", "groups"),
    [
        ("entry", {"one day of one load": 24, "one week of one load": 168, "one load": 336}),
        ("day", {"one week of one load": 7, "one load": 14, "one day of all loads": 51}),
        (ALTOGETHER, {"all loads": 51}),
    ],
)
def test_groups_fit_what_is_protected(network, block, groups):
    read = gv.grid.read_series(table(network), network)
    planned_one = gv.grid.plan_series(network, read, epsilon=1, alpha=5, protect=block)
    assert dict(planned_one.terms.adjacency[0].groups) == groups
    assert "ten such" not in repr(planned_one)


def test_twins_leave_the_same_public_facts(network, tmp_path):
    """Two series that differ in private values alone: the same plans, charges, names and types."""
    seen = []
    for seed in (0, 5):
        read = gv.grid.read_series(table(network, days=2, seed=seed), network)
        planned_one = gv.grid.plan_series(network, read, epsilon=1, alpha=5)
        account = planned_one.charge(tmp_path / f"{seed}.db", dataset="town")
        placed = planned_one.run(account).write(tmp_path / f"out{seed}")
        body = json.loads((placed / "release.json").read_text())
        kept = {k: body[k] for k in ("guarantee", "mechanisms", "public_inputs", "method", "kind")}
        columns = pd.read_parquet(placed / "loads.parquet").dtypes.to_dict()
        files = sorted(p.name for p in placed.iterdir())
        seen.append((repr(planned_one), planned_one.sketch(), kept, columns, files))
    assert seen[0] == seen[1]


GUISES = {
    "float64": lambda x: x,
    "float32": lambda x: x.astype(np.float32),
    "whole": lambda x: x.round().clip(1).astype(np.int64),
    "Int64": lambda x: x.round().clip(1).astype(np.int64).astype("Int64"),
    "Decimal": lambda x: x.map(lambda v: Decimal(repr(v))),
    "text": lambda x: x.map(lambda v: f" +{v:e}"),
    "huge": lambda x: (x.round().clip(1)).map(lambda v: 10**400 * int(v)),
    "infinite": lambda x: x * np.inf,
    "tiny": lambda x: x * 1e-300,
}


def guised(network, how, seed, folder, layout):
    """A table of private values in a guise, as a file or in memory."""
    frame = table(network, days=2, seed=seed)
    loads = frame.columns[1:]
    frame[loads] = frame[loads].astype(object)
    for name in loads:
        frame[name] = GUISES[how](table(network, days=2, seed=seed)[name])
    if layout == "memory":
        return frame
    long = frame.melt("time", var_name="bus", value_name="mw")
    path = folder / f"{how}{seed}.csv"
    (long if layout == "long" else frame).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("layout", ["memory", "wide", "long"])
def test_twins_in_any_guise_leave_the_same_bytes(network, tmp_path, layout):
    """Private numbers of every size and type, beside networks with other loads: one release."""
    recorder = Recorder()
    noise, found = recorder, []
    for seed, how in enumerate(GUISES):
        source = guised(network, how, seed, tmp_path, layout)
        beside = network.with_load(network.buses.load * (1 + seed))
        beside.write(tmp_path / f"{seed}.m")
        beside = gv.grid.read_case(tmp_path / f"{seed}.m")
        read = gv.grid.read_series(source, beside)
        planned_one = gv.grid.plan_series(
            beside, read, epsilon=1, alpha=5, range=(0, 500), hours="none"
        )
        account = planned_one.charge(
            throwaway_ledger(), dataset=new_name(), distinct=MADE_UP, noise=noise
        )
        found.append({**bundle_parts(planned_one.run(account)), "plan": repr(planned_one)})
        noise = Replayer(recorder.transcript)
    for one in found[1:]:
        names = one.keys() | found[0].keys()
        assert [name for name in names if one.get(name) != found[0].get(name)] == []


@pytest.mark.parametrize(
    ("first", "second", "counted"),
    [
        (("day", 5), ("hour", 5), 24),
        (("day", 5), ("day", "2.5"), 2),
        (("day", 5), ("entry", 5), 24),
        (("day", 5), ("week", 5), 1),
        (("hour", 5), ("day", 5), 1),
        (("week", 5), ("day", 5), 7),
        ((ALTOGETHER, 5), ("day", 5), 14),
        ((ALTOGETHER, 5), ("hour", "2.5"), 2 * 24 * 14),
        (("day", 5), (ALTOGETHER, 5), 1),
    ],
)
@pytest.mark.filterwarnings("ignore:alpha of load")
def test_the_ledger_adds_releases_of_different_blocks_up(network, tmp_path, first, second, counted):
    read = gv.grid.read_series(table(network), network)
    ledger = Ledger(tmp_path / "l.db")
    for block, alpha in (first, second):
        wanted = {"epsilon": 1, "alpha": alpha, "protect": block}
        account = gv.grid.plan_series(network, read, **wanted).charge(ledger, dataset="town")
    assert account.charge.charged == counted
    assert ledger.totals("town").spent == 1 + counted


def test_the_report_shows_the_year(made):
    _, _, placed, _ = made
    page = (placed / "report.html").read_text()
    for words in (
        *("Load duration curve", "Mean week", "The peak of every day", "in the week of the"),
        *("Energy of every load", "Cost duration curve", "some line is full"),
    ):
        assert words in page


@pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")
def test_texture_restores_ramps_and_is_marked(network, tmp_path):
    """Its control: without it hours change by less than real ones; what was asked for stays."""
    frame = table(network, days=14)
    rng = np.random.default_rng(3)
    names = frame.columns[1:]
    frame[names] *= 1 + 0.08 * rng.standard_normal((len(frame), len(names)))
    read = gv.grid.read_series(frame, network)
    wanted = {"epsilon": 50, "alpha": 5, "range": (0, 500), "hours": "none"}
    plans = [gv.grid.plan_series(network, read, texture=share, **wanted) for share in (0, 0.1)]
    plain, made_up = (one.run(one.study(0)) for one in plans)
    ramps = [np.diff(x, axis=0).std(axis=0).mean() for x in (plain.values, made_up.values)]
    real = frame[names].diff().std().mean()
    assert ramps[0] < 0.75 * real
    assert abs(ramps[1] - real) < real - ramps[0]
    days = (14, 24, len(names))
    for axis in (1, 2):
        sums = [x.reshape(days).sum(axis=axis) for x in (plain.values, made_up.values)]
        np.testing.assert_allclose(*sums, rtol=1e-3)
    for release, marked in ((plain, False), (made_up, True)):
        said = [words.startswith("Texture: ") for words in release.statement.body["limitations"]]
        assert any(said) == marked
        page = (release.write(tmp_path / str(marked)) / "report.html").read_text()
        assert ("Texture: a model added" in page) == marked
    again = plans[1].run(plans[1].study(0))
    np.testing.assert_array_equal(again.values, made_up.values)


@pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")
def test_a_series_that_could_not_be_rebuilt_does_not_say_that_texture_was_added(
    network, tmp_path, monkeypatch
):
    def fails(*_):
        raise np.linalg.LinAlgError

    monkeypatch.setattr("gridveil.grid.series.rebuild._totals", fails)
    read = gv.grid.read_series(table(network, days=7), network)
    wanted = {"epsilon": 1, "alpha": 5, "range": (0, 500), "hours": "none", "texture": 0.1}
    plan = gv.grid.plan_series(network, read, **wanted)
    release = plan.run(plan.study(0))
    assert (release.values == release.values[0]).all()
    body = release.statement.body
    assert body["settings"]["restoration_failed"] == "LinAlgError"
    assert body["settings"]["texture"] == 0
    page = (release.write(tmp_path / "out") / "report.html").read_text()
    for said in (*body["limitations"], page):
        assert "a model added" not in said
    assert any("every load is released at its mean" in said for said in body["limitations"])
    assert "every load is released at its mean" in page


def test_loads_of_one_size_are_found_and_others_stay():
    """Means by all noisy means together; its control are the noisy means as they are."""
    rng = np.random.default_rng(4)
    one = clock(365)
    many = Box(np.zeros(80), np.full(80, 20.0))
    for real, most in ((np.repeat([0.16, 0.8, 5.0], [56, 14, 10]), 0.7), (np.arange(80) / 9, 1.1)):
        noise = rng.laplace(0.0, 0.006, (10, 80))
        found = [
            rebuild(one, many, {"year": ((real + row) * one.size, 0.006 * one.size * 2**0.5)}, 11)
            for row in noise
        ]
        error = np.mean([np.abs(values.mean(axis=(0, 1)) - real).mean() for values in found])
        assert error < most * np.abs(noise).mean()
