"""Steps, neighbours and guarantees in words, as the statement, pages and plans show them.

Every figure comes from the statement or an adjacency. Nothing here is counted or charged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from gridveil.errors import show_exact
from gridveil.privacy.adjacency import ALTOGETHER, ENTRY, RELATIVE, Adjacency
from gridveil.privacy.record import neighbour_json

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
