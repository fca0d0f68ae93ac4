"""What a charge counts, against a count of every entry that moves, by the definition alone."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from gridveil.errors import InputError
from gridveil.privacy.adjacency import (
    ALTOGETHER,
    BLOCKS,
    ENTRY,
    RELATIVE,
    Adjacency,
    Step,
    blocks_in,
)
from gridveil.privacy.sealed import Range

START = 1_704_067_200 + 86_400 * 300  # a Sunday in October
SECONDS = {"hour": 3600, "day": 86_400}
ALPHAS = [Fraction(1, 2), Fraction(2), Fraction(3), Fraction(20, 3)]


def written(times, clock):
    """The times as a clock shows them: the local one is set back in the middle of the first day."""
    if clock == "UTC":
        return times
    return times + 7200 - 3600 * (times >= START + 43_200)


def labels(times, clock, block):
    """Which block every entry is in."""
    shown = written(times, clock)
    if block == ALTOGETHER:
        return np.zeros(len(times))
    if block == ENTRY:
        return np.arange(len(times))
    return (shown // 86_400 + 3) // 7 if block == "week" else shown // SECONDS[block]


def members(times, clock):
    found = {ALTOGETHER: len(times)}
    for block in ("hour", "day", "week"):
        sizes = np.unique(labels(times, clock, block), return_counts=True)[1]
        found |= {block: int(sizes.max()), f"{block}s": len(sizes)}
    return found


def alphas_needed(far, alpha, unit):
    """One alpha after the other until the way is done."""
    count, reached = 0, Fraction(1) if unit == RELATIVE else Fraction(0)
    goal = 1 + far if unit == RELATIVE else far
    while reached < goal:
        reached = reached * (1 + alpha) if unit == RELATIVE else reached + alpha
        count += 1
    return count


class Made:
    """A release of random resolution, block, alpha and capacities, on one of two clocks."""

    def __init__(self, rng, unit, hours, timed):
        minutes = int(rng.choice([20, 60]))
        self.times = START + 60 * np.arange(0, 60 * hours, minutes)
        self.clock = str(rng.choice(["UTC", "as written"]))
        names = rng.permutation(["A", "B", "C"])[: rng.integers(1, 4)]
        whole = {str(name): Fraction(int(rng.integers(1, 9))) for name in names}
        self.step = Step(
            ALPHAS[rng.integers(len(ALPHAS))],
            unit,
            whole if unit == "of capacity" else {},
            block=str(rng.choice(list(BLOCKS))) if timed else ENTRY,
            members=members(self.times, self.clock) if timed else {},
            clock=self.clock if timed else "",
            entries=len(self.times),
        )

    def loss(self, moves, clock):
        """The most steps of this release that a block of ``moves`` takes, over all its elements."""
        step, far = self.step, [moves.alpha]
        if step.wholes:  # an element that is new may be any of those before
            largest = max(moves.wholes.values())
            far = [far[0] * moves.wholes.get(k, largest) / w for k, w in step.wholes.items()]
        each = max(alphas_needed(one, step.alpha, step.unit) for one in far)
        wholes, parts = (labels(self.times, *of) for of in ((clock, moves.block),
                                                           (self.clock, step.block)))  # fmt: skip
        most = max(len(np.unique(parts[wholes == one])) for one in np.unique(wholes))
        return each * most


def pairs(timed, unit=None, count=400):
    rng = np.random.default_rng(5)
    for _ in range(count):
        hours = int(rng.integers(2, 24 * 16))
        which = unit or str(rng.choice(["MW", "of capacity", RELATIVE]))
        yield Made(rng, which, hours, timed=True), Made(rng, which, hours, timed=timed)


def test_a_charge_counts_no_less_than_the_steps_of_all_entries_that_move():
    exact = 0
    for reference, made in pairs(timed=True):
        counted = reference.step.steps(made.step)
        assert counted >= made.loss(reference.step, reference.clock)
        if reference.clock == made.clock:
            exact += counted == made.loss(reference.step, reference.clock)
    assert exact > 100  # with one clock it is the number itself, if blocks are full


def test_one_clock_for_two_counts_too_little():
    """The control: blocks by two clocks, taken for nested ones."""
    wrong = [
        replace(one.step, clock="").steps(other.step) < other.loss(one.step, one.clock)
        for one, other in pairs(timed=True, unit="MW")
    ]
    assert any(wrong)


def test_records_without_times_count_as_full_days_of_the_same_period():
    finer = 0
    for moves, made in pairs(timed=False):
        counted = moves.step.steps(made.step)
        assert counted >= made.loss(moves.step, moves.clock)
        # The control: with the later release's own entries, finer records count too little.
        bare = replace(made.step, entries=0)
        finer += moves.step.steps(bare) < made.loss(moves.step, moves.clock)
    assert finer > 10


def test_a_reference_that_is_widened_never_counts_less():
    for reference, made in pairs(timed=True, unit="of capacity"):
        grown = reference.step.widened(made.step)
        assert grown.steps(made.step) >= reference.step.steps(made.step)
        assert grown.wholes.keys() == reference.step.wholes.keys() | made.step.wholes.keys()
        assert grown.widened(made.step) == grown


def test_the_most_entries_of_one_element_are_what_a_step_knows():
    """Ten-minute records of one turbine, then hourly ones of ten: a day of the first had 144."""
    known = {"hour": 1, "day": 24, "week": 168}
    bare = Adjacency.of("power", alpha=1, unit="MW", range=Range(0, 9), entries=1440)
    ten = Adjacency.of(
        "power", alpha=1, unit="MW", range=Range(0, 9), entries=2400, each=240,
        block="day", members=known, clock="UTC",
    )  # fmt: skip
    assert Step.of(ten).steps(Step.of(bare)) == 144
    assert Step.of(replace(ten, each=0)).steps(Step.of(bare)) == 24  # the control: of all turbines


def test_a_block_that_nobody_counted_is_refused():
    with pytest.raises(InputError, match="How many entries a day holds"):
        Adjacency.of("power", alpha=1, unit="MW", range=Range(0, 9), entries=9, block="day")
    with pytest.raises(KeyError):
        blocks_in(ALTOGETHER, "day", {"day": 24})
