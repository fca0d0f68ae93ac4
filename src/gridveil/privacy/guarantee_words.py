"""Guarantees in words and in classes, as the statement, pages and plans show them.

Every figure comes from the statement or an adjacency. Nothing here is counted or charged.

**How strong** a guarantee is, in one of a few classes that a page can colour, is decided by two
figures of the statement, both public: epsilon for a step of alpha, and epsilon for a whole value,
anywhere in its public range. A step that is well protected says little if values are spread over
thousands of steps, so neither figure will do alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from gridveil.errors import show_exact
from gridveil.privacy.adjacency import ALTOGETHER, ENTRY, RELATIVE, Adjacency

# Above the first an epsilon promises next to nothing; above the second exp(epsilon) means nothing.
WEAK, _LARGE = 10, math.log(1e6)
# Above this an epsilon of the whole range says nothing.
_NOTHING = 100


def range_unit(unit: str) -> str:
    """The unit of a range, by that of its steps."""
    return "MW" if unit == RELATIVE else unit


def show_step(alpha: Fraction, unit: str) -> str:
    """A step in words: ``30 MW``, ``20% of its value``."""
    if unit == RELATIVE:
        return f"{show_exact(100 * alpha)}% {unit}"
    return f"{show_exact(alpha)} {unit}"


def show_apart(alpha: Fraction, unit: str, steps: Fraction) -> str:
    """How far apart values are that lie so many steps from each other, in words."""
    if unit == RELATIVE:
        return f"a factor of {math.exp(float(steps) * math.log1p(alpha)):,.4g}"
    return f"{float(alpha * steps):,.4g} {unit}"


def show_unit(one: Mapping[str, Any]) -> str:
    """What a guarantee is for, in words, from what the statement has of it."""
    if one.get("block", ENTRY) == ENTRY:
        return f"one entry of {one['parameter']}"
    return f"all entries of {one['parameter']} of one {one['whose']}{_when(one, '')}"


def _when(one: Mapping[str, Any], calendar: str) -> str:
    return "" if one["block"] == ALTOGETHER else f" in one {calendar}{one['block']}"


def show_all(block: str) -> str:
    """All entries of a block, in a few words."""
    return "all entries" if block == ALTOGETHER else f"all entries of a {block}"


def show_neighbour(one: Mapping[str, Any]) -> str:
    """What differs between neighbours, in words, from what the statement has of them."""
    if one.get("block", ENTRY) == ENTRY:
        return f"one of {one['entries']:,} entries of {one['parameter']}"
    return f"all entries of {one['parameter']} of one {one['whose']}{_when(one, 'calendar ')}"


def show_adjacency(one: Adjacency) -> str:
    """Who is a neighbour, in words: ``one of 38 entries of load by 30 MW``."""
    what = show_neighbour(neighbour_json(one, Fraction(1)))
    return f"{what} by {show_far(neighbour_json(one, Fraction(1)))}"


def show_far(one: Mapping[str, Any]) -> str:
    """How far an entry may move, in words, from what the statement has of it."""
    steps = {
        name: show_step(Fraction(step), one["unit"])
        for name, step in one.get("alpha_by_class", {}).items()
    }
    if not steps:
        return show_step(Fraction(one["alpha"]), one["unit"])
    return "its step (" + ", ".join(f"{name}: {step}" for name, step in steps.items()) + ")"


def in_words(body: Mapping[str, Any]) -> tuple[str, str]:
    """The guarantee of a statement, in two plain sentences."""
    if not body["dp_valid"]:
        return (
            "This data carries NO privacy guarantee: its noise was seeded, or a bound was assumed.",
            "Use it for studies on public data only.",
        )
    guarantee = body["guarantee"]
    epsilon = Fraction(guarantee["epsilon"])
    what = " or ".join(
        f"{show_neighbour(one)} by up to {show_far(one)}" for one in guarantee["neighbours"]
    )
    several = len(guarantee["neighbours"]) > 1
    of = {one["parameter"]: f"of {one['parameter']} " for one in guarantee["neighbours"]}
    known = [
        one
        for one in guarantee["neighbours"]
        if Fraction(one["epsilon_over_whole_range"]) <= _NOTHING
    ]
    whole = ", ".join(
        (of[one["parameter"]] if several else "")
        + f"anywhere in [{one['range'][0]:.10g}, {one['range'][1]:.10g}], epsilon is "
        + show_exact(Fraction(one["epsilon_over_whole_range"]))
        for one in known
    )
    # At this distance epsilon is 10: who wants to know which of the two it is, can.
    open_ones = [
        f"values {of[one['parameter']] if several else ''}that are "
        f"{show_apart(Fraction(one['alpha']), one['unit'], WEAK / epsilon)} or more apart can "
        "be told from each other"
        for one in guarantee["neighbours"]
        if one not in known
    ]
    second = [f"For the whole value of an entry, {whole}"] if whole else []
    if open_ones:
        second.append(f"The whole value of an entry is not protected: {' and '.join(open_ones)}")
    most = largest_factor(epsilon)
    most = f"that may be {most}" if epsilon > _LARGE else f"of at most {most}"
    return (
        f"Changing {what} changes the probability of any released outcome by a factor {most} "
        f"(epsilon {show_exact(epsilon)}{': next to no protection' if epsilon > WEAK else ''}).",
        f"{'. '.join(second)}; {_several(guarantee, epsilon, 'epsilon' if open_ones else 'it')}."
        + _windows(guarantee, epsilon),
    )


def _several(guarantee: Mapping[str, Any], epsilon: Fraction, it: str) -> str:
    """Epsilon for what people ask about as a whole; for ten entries if nothing is known of that."""
    groups = show_groups(guarantee)
    if not groups:
        return f"for ten {_plural(guarantee)} at once {it} is {show_exact(10 * epsilon)}"
    several = [one for one in guarantee["neighbours"] if one.get("groups")]
    # Of one parameter the smallest and the largest group; of several the largest of each.
    places = {0, len(groups) - 1}
    if len(several) > 1:
        places = {
            sum(len(one["groups"]) for one in several[: k + 1]) - 1 for k in range(len(several))
        }
    first, *more = (groups[place] for place in sorted(places))
    rest = "".join(f", for {what} {show_exact(total)}" for what, total in more)
    return f"for {first[0]} {it} is {show_exact(first[1])}{rest}"


def show_groups(guarantee: Mapping[str, Any]) -> list[tuple[str, Fraction]]:
    """What people ask about as a whole (a day, a voltage level), in words, and its epsilon."""
    return [
        (
            f"{group['name']} ({_count(group['count'], guarantee)}"
            + (f" of {one['parameter']})" if len(guarantee["neighbours"]) > 1 else ")"),
            Fraction(group["epsilon"]),
        )
        for one in guarantee["neighbours"]
        for group in one.get("groups", ())
    ]


def _count(count: int, guarantee: Mapping[str, Any]) -> str:
    """How many entries or blocks a group has: ``144 entries``, ``7 days``."""
    words = _plural(guarantee).removeprefix("such ")
    return f"{count:,} {words}" if count > 1 else f"1 {words.removesuffix('s')}".replace("ie", "y")


def _plural(guarantee: Mapping[str, Any]) -> str:
    kinds = {
        one["whose"] if one.get("block") == ALTOGETHER else one.get("block", ENTRY)
        for one in guarantee["neighbours"]
    }
    return f"such {kinds.pop()}s" if kinds.isdisjoint({ENTRY}) else "entries"


def _windows(guarantee: Mapping[str, Any], epsilon: Fraction) -> str:
    """A window that begins at any moment touches two calendar blocks of its length."""
    blocks = {one["block"] for one in guarantee["neighbours"] if "block" in one} - {ALTOGETHER}
    return "".join(
        f" A {block} that begins at any other moment touches two of them: epsilon "
        f"{show_exact(2 * epsilon)}."
        for block in sorted(blocks)
    )


def largest_factor(epsilon: Fraction) -> str:
    """The most that the probability of an outcome changes by: ``exp(epsilon)``, rounded up.

    >>> [largest_factor(Fraction(epsilon)) for epsilon in (1, 7, 50)]
    ['2.72', '1,100', 'over a million']
    """
    if epsilon > _LARGE:
        return "over a million"
    value = math.exp(float(epsilon))
    digits = 2 - math.floor(math.log10(value))
    return f"{math.ceil(value * 10**digits) / 10**digits:,.10g}"


def show_steps(ledger: Mapping[str, Any]) -> str:
    """The steps that the total of all releases is about, in words: one size per parameter."""
    reference = ledger["reference_alpha"]
    return " or ".join(
        show_step(Fraction(one["alpha"]), one["unit"])
        + (f" by {show_all(one['block'])}" if "block" in one else "")
        + (f" ({name})" if len(reference) > 1 else "")
        for name, one in reference.items()
    )


def neighbour_json(one: Adjacency, epsilon: Fraction) -> dict[str, Any]:
    """An adjacency as the statement has it, with what epsilon is for more than one step of it."""
    larger: dict[str, Any] = {}
    if one.block != ENTRY:
        larger = {"block": one.block, "whose": one.whose}
    if one.classes:
        larger["alpha_by_class"] = {name: str(step) for name, step in one.classes.items()}
    if one.groups:
        larger["groups"] = [
            {"name": name, "count": count, "epsilon": str(count * epsilon)}
            for name, count in sorted(one.groups.items(), key=lambda group: group[1])
        ]
    return {
        "parameter": one.parameter,
        "alpha": str(one.alpha),
        "unit": one.unit,
        "range": [one.range.low, one.range.high],
        "entries": one.entries,
        "epsilon_over_whole_range": str(epsilon * one.steps_over_range),
        **larger,
    }


# -- how strong ----------------------------------------------------------------------------------


def certainty(epsilon: Fraction) -> float:
    """How sure of one of two values that were equally likely an observer can become."""
    return 1 / (1 + math.exp(-min(float(epsilon), 700.0)))


def show_certainty(sure: float) -> str:
    """A bound on how sure an observer can become, rounded up: it is said to be the most.

    >>> [show_certainty(certainty(Fraction(epsilon))) for epsilon in (1, 7, 50)]
    ['73.2%', '99.91%', 'over 99.99%']
    """
    if sure > 0.9999:
        return "over 99.99%"
    digits = 1 if sure < 0.995 else 2
    return f"{math.ceil(sure * 10 ** (digits + 2)) / 10**digits:.{digits}f}%"


Level = Literal["strong", "medium", "steps", "weak", "none"]

NAMES: dict[Level, str] = {
    "strong": "Strong",
    "medium": "Medium",
    "steps": "Steps only",
    "weak": "Next to none",
    "none": "No guarantee",
}
_STRONG = 1  # epsilon: an even guess becomes 73% sure at most
_HIDDEN = 5  # epsilon for a whole value: above it one end of a range can be told from the other
_ROUGHLY = 10  # parts of a range that can still be told apart when a value counts as half hidden


@dataclass(frozen=True)
class Strength:
    """The class of a guarantee, what it protects in a line, and why it is in that class."""

    level: Level
    headline: str
    reason: str

    @property
    def name(self) -> str:
        """The class as people read it."""
        return NAMES[self.level]


def strength_of(statement: Mapping[str, Any]) -> Strength:
    """How strong the guarantee of a statement is, from what it holds.

    Earlier releases of the same data count: epsilon for a step of this release's alpha and for a
    whole value are those of all releases so far, as the ledger added them up.

    - ``none``: no guarantee holds (``dp_valid`` is false).
    - ``weak``: epsilon for a step is above 10. An even guess between two values a step apart may
      become 99.995% sure.
    - ``steps``: the whole value is not protected. Epsilon reaches 10 within a tenth of the public
      range, so a value is known to a tenth of it or better; only smaller differences are hidden.
    - ``strong``: epsilon for a step is at most 1 (an even guess becomes 73% sure at most), and for
      a whole value at most 5 (99.4% sure at most).
    - ``medium``: everything between.

    The bound of 10 is the one above which the statement itself speaks of next to no protection.
    """
    if not statement["dp_valid"]:
        what = "No guarantee: do not publish as private data"
        return Strength("none", what, in_words(statement)[0])
    guarantee, ledger = statement["guarantee"], statement["ledger"]
    neighbours, epsilon = guarantee["neighbours"], Fraction(guarantee["epsilon"])
    widest = max(neighbours, key=lambda one: Fraction(one["epsilon_over_whole_range"]))
    alone = epsilon, Fraction(widest["epsilon_over_whole_range"])
    step, whole = alone if ledger is None else _so_far(ledger, neighbours, *alone)
    steps = " or ".join(f"{_step(one)} of {show_unit(one)}" for one in neighbours)
    headline = f"Protects steps of up to {steps}: epsilon {show_exact(epsilon)}"
    level = _level(step, whole)
    reason = _reason(level, step, whole, widest)
    if ledger is not None and (step, whole) != alone:
        reason += (
            f" All releases of this data so far count, which have epsilon "
            f"{show_exact(Fraction(ledger['spent_so_far']))} for steps of {show_steps(ledger)}."
        )
    return Strength(level, headline, reason)


def _so_far(
    ledger: dict[str, Any], neighbours: list[dict[str, Any]], step: Fraction, whole: Fraction
) -> tuple[Fraction, Fraction]:
    """Epsilon of all releases so far, for a step and for a whole value; never below this one's."""
    names = "epsilon_so_far_for_alpha", "epsilon_so_far_over_whole_range"
    if all(name in ledger for name in names):
        return max(step, Fraction(ledger[names[0]])), max(whole, Fraction(ledger[names[1]]))
    # An older statement has the total at the reference alone. A step of alpha is so many steps of
    # the reference at most, and so is a range; and it is at least in proportion to this release.
    charged, spent = Fraction(ledger["charged"]), Fraction(ledger["spent_so_far"])
    earlier, more = max(spent - charged, Fraction(0)), max(spent / charged, Fraction(1))
    references = ledger["reference_alpha"].values()
    pairs = [(a, b) for a in neighbours for b in references if a["unit"] == b["unit"]]
    steps = [math.ceil(Fraction(a["alpha"]) / Fraction(b["alpha"])) for a, b in pairs]
    wides = [math.ceil(_width(a) / Fraction(b["alpha"])) for a, b in pairs]
    return (
        max(step * more, step + earlier * max(steps, default=1)),
        max(whole * more, whole + earlier * max(wides, default=1)),
    )


def _width(one: dict[str, Any]) -> Fraction:
    low, high = map(Fraction, one["range"])
    return high - low


def _level(step: Fraction, whole: Fraction) -> Level:
    if step > WEAK:
        return "weak"
    if whole > _ROUGHLY * WEAK:
        return "steps"
    return "strong" if step <= _STRONG and whole <= _HIDDEN else "medium"


def _reason(level: Level, step: Fraction, whole: Fraction, widest: dict[str, Any]) -> str:
    if level == "weak":
        return f"Epsilon for a step is above {WEAK}, which is next to no protection."
    of = f"For a whole value of {widest['parameter']}, anywhere in its public range, epsilon is "
    if whole <= WEAK:
        plain = f"{of}{_short(whole)}."
        return plain if step <= _STRONG else f"Epsilon for a step is above {_STRONG}. {plain}"
    alpha, unit, steps = Fraction(widest["alpha"]), widest["unit"], WEAK // step
    apart = f"{show_exact(steps * alpha)} {unit}"
    if unit == RELATIVE:
        apart = show_apart(alpha, unit, Fraction(steps))
    told = "not protected" if level == "steps" else "known roughly"
    said = (
        f"A whole value of {widest['parameter']} is {told}: two that lie more than "
        f"{apart} apart have an epsilon above {WEAK} and can be told apart."
    )
    # A large number for a wide range says no more than that.
    return said if level == "steps" else f"{said} {of}{_short(whole)}."


def _short(value: Fraction) -> str:
    """An exact number, or about how much it is if it has many digits."""
    text = show_exact(value)
    return text if len(text) <= 12 else f"about {value.numerator // value.denominator:,}"


def _step(one: dict[str, Any]) -> str:
    return show_step(Fraction(one["alpha"]), one["unit"]).replace("its value", "the value")
