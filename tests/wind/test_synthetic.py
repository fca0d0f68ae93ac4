"""Synthetic records: blocks of a public clock, what their sums can move by, and what is drawn.

Neighbours differ in all powers of one block. Every question of a release is asked again of such
neighbours, about the curve and the spread of the first: on the grid, answers may move by no more
steps than the mechanism paid for.
"""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from support.making import adjacency
from support.sizes import FULL

from gridveil.errors import InputError
from gridveil.privacy.account import study_account
from gridveil.privacy.sealed import Range, Sealed
from gridveil.wind.curve_prior import Reference
from gridveil.wind.methods.synthetic import draw, learn
from gridveil.wind.synthetic import public_farm
from gridveil.wind.synthetic.ask_queries import Inquiry
from gridveil.wind.synthetic.block_queries import TERM, WEIGHT, BlockSums, opened, weigh
from gridveil.wind.synthetic.choose_queries import make_agenda
from gridveil.wind.synthetic.generate import _censoring, _records
from gridveil.wind.synthetic.knots import isotonic
from gridveil.wind.synthetic.public_farm import SPEEDS, Farm
from gridveil.wind.synthetic.residual_shape import USUAL, quantiles

pytestmark = pytest.mark.filterwarnings("ignore::gridveil.privacy.seeded.NotPrivateWarning")

UNITS = ("record", "hour", "day", "week")
CURVE = Reference(8.4, 3.5, 2.0)


def simulated(turbines=2, days=30, seed=0, step=600, residual=0.06):
    """Wind speeds, times and power: a curve, residuals with a memory, stops and gaps."""
    draws = np.random.default_rng(seed)
    speeds, times, powers = [], [], []
    for _ in range(turbines):
        size = days * 86_400 // step
        wind = np.cumsum(draws.normal(0, 0.25, size))
        speed = np.clip(8 + 4 * np.sin(wind / 6) + draws.normal(0, 0.5, size), 0, 24)
        noise = np.convolve(draws.normal(0, 1, size + 11), np.ones(12) / np.sqrt(12), "valid")
        curve = CURVE(speed)
        power = np.clip(curve + residual * np.sqrt(curve * (1 - curve)) * 2 * noise, 0, 1)
        for start in draws.integers(0, size, max(days // 3, 1)):
            power[start : start + int(draws.integers(1, 40))] = 0.0
        kept = draws.random(size) > 0.02
        speeds.append(speed[kept])
        times.append((1_704_067_200 + step * np.arange(size))[kept])
        powers.append(power[kept])
    return speeds, times, powers


def sealed(powers, piece=1000):
    def blocks(power):
        return lambda: (power[at : at + piece] for at in range(0, len(power), piece))

    rows = sum(len(power) for power in powers)
    parts = tuple(blocks(np.asarray(power)) for power in powers)
    return Sealed(parts, name="p", shape=(rows,), unit="of capacity", range=Range(0.0, 1.0))


def parts_of(powers):
    return tuple((lambda power=power: iter([power])) for power in powers)


class Recording(Inquiry):
    """Remembers its questions."""

    def __init__(self, *given):
        super().__init__(*given)
        self.sums, self.choices = [], []

    def ask(self, name, sums):
        self.sums.append(sums)
        return super().ask(name, sums)

    def choose(self, name, choice):
        self.choices.append(choice)
        return super().choose(name, choice)


def inquire(farm, powers, epsilon=1, seed=0, kind=Recording):
    total = Fraction(epsilon)
    account = study_account(total, adjacency=[adjacency()], seed=seed)
    agenda = make_agenda(farm, total)
    return kind(account, sealed(powers), farm, agenda, lambda words: None)


def released(farm, powers, epsilon=1, seed=0):
    inquiry = inquire(farm, powers, epsilon, seed)
    out = np.empty(farm.rows)
    draw(farm, inquiry.agenda, learn(inquiry), out)
    return out


def replaced(farm, powers, speeds, draws):
    """A neighbour: all powers of one block are something else, often the worst there is."""
    at = int(draws.integers(farm.size))
    turbine = farm.turbines[at]
    rows = np.flatnonzero(turbine.block == draws.integers(len(turbine.month)))
    curve, size = CURVE(speeds[at][rows]), len(rows)
    sides = [
        np.zeros(size),
        np.ones(size),
        curve,
        np.clip(curve + 0.1, 0, 1),
        np.clip(curve - 0.1, 0, 1),
        np.where(np.arange(size) % 2, np.clip(curve + 0.08, 0, 1), np.clip(curve - 0.08, 0, 1)),
        np.where(np.arange(size) % 2, 0.0, curve),
        draws.random(size),
    ]
    first, second = draws.permutation(len(sides))[:2]
    pair = []
    for side in (sides[first], sides[second]):
        other = [power.copy() for power in powers]
        other[at][rows] = side
        pair.append(parts_of(other))
    return pair


@cache
def moves(unit, count, seed=1):
    """For each question: how far each pair of neighbours moved it, as shares of its bound."""
    speeds, times, powers = simulated(days=42 if unit == "week" else 10)
    farm = Farm(speeds, times, unit)
    inquiry = inquire(farm, powers, epsilon=1000)
    learn(inquiry)
    draws = np.random.default_rng(seed)
    sums = {one.name: [] for one in inquiry.sums}
    choices = {one.name: [] for one in inquiry.choices}
    for _ in range(count):
        here, there = replaced(farm, powers, speeds, draws)
        for one in inquiry.sums:
            away = (one.compute(farm, here) - one.compute(farm, there)) / float(one.grid)
            assert np.array_equal(away, np.rint(away))
            sums[one.name].append(np.abs(away).sum() / one.sensitivity.steps(one.grid))
        for one in inquiry.choices:
            away = np.abs(one.scores(here) - one.scores(there)).max()
            choices[one.name].append(away / (WEIGHT * TERM))
    return sums, choices


@pytest.mark.parametrize("unit", UNITS)
def test_no_neighbour_moves_a_question_beyond_its_bound(unit):
    sums, choices = moves(unit, 400 if FULL else 40)
    assert len(choices) == 3
    assert len(sums) >= 6
    for name, shares in {**sums, **choices}.items():
        assert max(shares) <= 1, name


def test_half_the_bound_is_not_enough():
    """The control: a vector that is replaced moves by up to twice the radius, and some do."""
    sums, choices = moves("day", 40)
    assert max(max(shares) for shares in sums.values()) > 0.55
    assert max(max(shares) for shares in choices.values()) > 0.55


def test_clipped_vectors_reach_the_radius_and_stay_in_it():
    speeds, times, powers = simulated()
    farm = Farm(speeds, times, "day")
    ones = BlockSums("x", 10.0, 3, lambda chunk, power: np.full((chunk.blocks, 3), 1e6))
    chunk = next(farm.chunks(0))
    norms = np.abs(ones.steps(chunk, powers[0][chunk.rows])).sum(axis=1) * float(ones.grid)
    assert norms.max() <= 10.0 + 3 * float(ones.grid) / 2
    assert norms.min() > 9.99


@pytest.mark.parametrize("unit", UNITS)
def test_blocks_are_those_of_the_calendar_and_nest(unit):
    speeds, times, _ = simulated(days=40)
    farm = Farm(speeds, times, unit)
    for turbine, moments in zip(farm.turbines, times, strict=True):
        if unit != "record":
            calendar = moments.astype("datetime64[s]")
            if unit == "week":  # numpy's weeks begin on Thursday
                calendar = (calendar + np.timedelta64(3, "D")).astype("datetime64[W]")
            else:
                calendar = calendar.astype({"hour": "datetime64[h]", "day": "datetime64[D]"}[unit])
            _, expected = np.unique(calendar, return_inverse=True)
            assert np.array_equal(turbine.block, expected)
        # Every block is inside one long block.
        inside = {}
        for block, long in zip(turbine.block.tolist(), turbine.long.tolist(), strict=True):
            assert inside.setdefault(block, long) == long


def test_chunks_hold_whole_blocks_and_sums_do_not_depend_on_them(monkeypatch):
    speeds, times, powers = simulated(days=40)
    answers = []
    for size in (60_000, 500):
        monkeypatch.setattr(public_farm, "_CHUNK", size)
        farm = Farm(speeds, times, "day")
        assert sum(len(chunk) for chunk in farm.every_chunk()) == farm.rows
        inquiry = inquire(farm, powers)
        learn(inquiry)
        answers.append(inquiry.seed())
    assert answers[0] == answers[1]


def test_weights_of_a_block_add_up_to_at_most_one():
    speeds, times, powers = simulated()
    farm = Farm(speeds, times, "hour")
    weights = weigh(farm, lambda chunk: SPEEDS[chunk.level], 0.8)
    for (chunk, _), weight in zip(opened(farm, parts_of(powers)), weights, strict=True):
        assert np.bincount(chunk.block, weight).max() <= WEIGHT


def test_lags_stay_inside_a_block():
    speeds, times, _ = simulated(days=5)
    farm = Farm(speeds, times, "day")
    for chunk in farm.every_chunk():
        for lag in (1, 6, 18):
            after, found = chunk.later(lag)
            assert found.any()
            assert (chunk.slot[after[found]] == chunk.slot[found] + lag).all()
            assert (chunk.long[after[found]] == chunk.long[found]).all()
            slots = {(s, b) for s, b in zip(chunk.slot, chunk.long, strict=True)}
            missed = zip(chunk.slot[~found] + lag, chunk.long[~found], strict=True)
            assert not slots & set(missed)


def test_the_whole_epsilon_is_spent_and_no_more():
    for turbines, epsilon in ((1, Fraction(1, 3)), (3, Fraction(2))):
        speeds, times, powers = simulated(turbines)
        for unit in UNITS:
            farm = Farm(speeds, times, unit)
            agenda = make_agenda(farm, epsilon)
            assert sum(agenda.epsilon.values()) == epsilon
            assert min(agenda.epsilon.values()) > 0
    inquiry = inquire(farm, powers)
    learn(inquiry)
    assert inquiry._account.budget.remaining == 0


def test_what_would_drown_is_not_asked():
    speeds, times, _ = simulated(days=14)
    farm = Farm(speeds, times, "day")
    few, many = make_agenda(farm, Fraction(1, 2)), make_agenda(farm, Fraction(1000))
    assert "months" not in few.epsilon
    assert "stops" not in few.epsilon
    assert {"months", "stops", "spells", "hours", "response"} <= set(many.epsilon)


def test_radii_grow_where_there_is_little_noise():
    speeds, times, _ = simulated(days=30)
    farm = Farm(speeds, times, "day")
    one, usual, wide, widest = (
        make_agenda(farm, Fraction(epsilon)) for epsilon in (1, 50, 500, 10**6)
    )
    assert one.radius == usual.radius  # 60 days: 3,000 times epsilon are few
    for name, radius in usual.radius.items():
        assert radius < wide.radius[name] <= widest.radius[name], name
    assert widest.radius["stops"] == farm.length  # a block that stands still counts in full
    assert one.stops_kept < wide.stops_kept < widest.stops_kept == 1


@pytest.mark.parametrize(("gusts", "low", "high"), [(0.0, -0.05, 0.05), (1.0, 0.2, 1.0)])
def test_gusts_that_the_rotor_does_not_follow_are_recognised(gusts, low, high):
    """Without them, the control, power follows the wind speed at its own moment."""
    draws = np.random.default_rng(3)
    size = 60 * 144
    wind = 8 + 3 * np.sin(np.cumsum(draws.normal(0, 0.15, size)) / 3)
    power = np.clip(CURVE(wind) + 0.02 * draws.standard_normal(size), 0, 1)
    seen = np.clip(wind + gusts * draws.standard_normal(size), 0, None)
    farm = Farm([seen], [600 * np.arange(size)], "day")
    inquiry = inquire(farm, [power], epsilon=1000)
    assert inquiry.agenda.asks("response")
    assert low < learn(inquiry).scatter.means.response < high


def test_wind_speeds_before_and_after_are_those_of_the_neighbouring_slots():
    speeds, times, _ = simulated(turbines=1, days=5)
    farm = Farm(speeds, times, "day")
    for chunk in farm.every_chunk():
        levels = dict(zip(chunk.slot.tolist(), chunk.level.tolist(), strict=True))
        for step, found in ((-1, chunk.before), (1, chunk.after)):
            wanted = [levels.get(int(s) + step, levels[int(s)]) for s in chunk.slot]
            assert found.tolist() == wanted
    untimed = Farm(speeds, None, "record")
    assert all((chunk.before == chunk.level).all() for chunk in untimed.every_chunk())


def test_rows_that_are_alike_count_alike():
    """Else a source that is sorted by power would move two records where its owner changed one."""
    speeds, times, powers = simulated(turbines=1, days=10)
    speeds, times = [np.repeat(speeds[0], 3)], [np.repeat(times[0], 3)]
    powers = [np.clip(np.repeat(powers[0], 3) + np.tile([-0.1, 0.0, 0.1], len(powers[0])), 0, 1)]
    farm = Farm(speeds, times, "record")
    inquiry = inquire(farm, powers, epsilon=1000)
    learn(inquiry)
    assert inquiry.agenda.asks("response")
    other = parts_of([powers[0].reshape(-1, 3)[:, ::-1].ravel()])
    moved = parts_of([np.roll(powers[0], 3)])  # the control: to rows at another wind speed
    told = 0
    for one in (one for one in inquiry.sums if not one.long):
        here = one.compute(farm, parts_of(powers))
        assert np.array_equal(one.compute(farm, other), here), one.name
        told += not np.array_equal(one.compute(farm, moved), here)
    assert told > 3


def test_records_are_drawn_from_noisy_answers_alone():
    """Without power: the draw is given the farm and what was learned, and repeats itself."""
    speeds, times, powers = simulated()
    farm = Farm(speeds, times, "day")
    inquiry = inquire(farm, powers)
    learned = learn(inquiry)
    first, second = np.empty(farm.rows), np.empty(farm.rows)
    draw(farm, inquiry.agenda, learned, first)
    draw(farm, inquiry.agenda, learned, second)
    assert np.array_equal(first, second)
    assert first.min() >= 0
    assert first.max() <= 1
    assert not np.array_equal(first, released(farm, powers, seed=1))


def binned(speeds, power):
    at = (np.concatenate(speeds) * 2).astype(int)
    counts = np.bincount(at)
    return np.bincount(at, power) / np.maximum(counts, 1), counts


def curve_error(speeds, real, power):
    mine, counts = binned(speeds, power)
    return float(np.sqrt(counts @ (mine - binned(speeds, real)[0]) ** 2 / counts.sum()))


@pytest.mark.parametrize("unit", ["record", "day"])
def test_answers_beat_the_prior_alone(unit):
    speeds, times, powers = simulated(days=300)
    real = np.concatenate(powers)
    farm = Farm(speeds, times, unit)
    asked = [curve_error(speeds, real, released(farm, powers, 4, s)) for s in range(3)]
    prior = [curve_error(speeds, real, released(farm, powers, "1e-6", s)) for s in range(3)]
    assert np.mean(asked) < 0.012
    assert np.mean(asked) < 0.4 * np.mean(prior)


def test_residuals_keep_their_memory():
    speeds, times, powers = simulated(turbines=1, days=300)
    real = powers[0]
    farm = Farm(speeds, times, "day")

    def memory(power):
        mean, _ = binned(speeds, power)
        residual = power - mean[(speeds[0] * 2).astype(int)]
        return np.corrcoef(residual[:-1], residual[1:])[0, 1]

    drawn = released(farm, powers, 10)
    assert abs(memory(drawn) - memory(real)) < 0.15
    # The control: the same records in another order.
    shuffled = drawn[np.random.default_rng(0).permutation(len(drawn))]
    assert abs(memory(shuffled) - memory(real)) > 0.3


def test_records_without_times_are_blocks_of_their_own():
    speeds, _, powers = simulated(turbines=1, days=200, residual=0.1)
    farm = Farm(speeds, None, "record")
    assert farm.blocks == farm.rows
    error = curve_error(speeds, powers[0], released(farm, powers, 1))
    assert error < 0.01
    with pytest.raises(InputError, match="time"):
        Farm(speeds, None, "day")


def test_speeds_must_be_metres_a_second():
    with pytest.raises(InputError, match="m/s"):
        Farm([np.linspace(0, 1, 100)], None)
    with pytest.raises(InputError, match="in order"):
        Farm([np.full(3, 5.0)], [np.array([0, 600, 300])], "day")


def test_isotonic_regression_pools_neighbours():
    assert isotonic(np.array([1.0, 3.0, 2.0]), np.ones(3)).tolist() == [1.0, 2.5, 2.5]
    assert isotonic(np.array([3.0, 1.0]), np.array([3.0, 1.0])).tolist() == [2.5, 2.5]


def test_clipping_at_zero_keeps_the_mean():
    """Drawn residuals are clipped at 0 and 1; means before are chosen so that they come out."""
    speeds, times, powers = simulated(turbines=1)
    farm = Farm(speeds, times, "day")
    scatter = learn(inquire(farm, powers, 1000)).scatter
    base = scatter.means.base
    chunk = next(farm.chunks(0))
    shape = quantiles(USUAL)
    wanted = np.clip(
        base.curve[chunk.level] + base.spread[chunk.level] * scatter.means.of(chunk), 0, 1
    )
    draws = np.random.default_rng(0)
    total = np.zeros(len(chunk))
    for _ in range(200):
        total += _records(chunk, scatter, _censoring(shape), draws.choice(shape, len(chunk)))
    low = (wanted < 0.05) & ~base.running[chunk.level]
    assert abs((total / 200 - wanted)[low].mean()) < 0.002
