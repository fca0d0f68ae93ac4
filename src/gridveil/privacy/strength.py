"""How strong a guarantee is, in one of a few classes that a page can colour.

Two figures of the statement decide, both public: epsilon for a step of alpha, and epsilon for a
whole value, anywhere in its public range. A step that is well protected says little where values
are spread over thousands of steps, so neither figure will do alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from gridveil.errors import show_exact
from gridveil.privacy.adjacency import RELATIVE
from gridveil.privacy.statement import Statement
from gridveil.privacy.words import WEAK, show_apart, show_step, show_steps, show_unit

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


def strength_of(statement: Statement) -> Strength:
    """How strong the guarantee of a statement is.

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
    if not statement.dp_valid:
        what = "No guarantee: do not publish as private data"
        return Strength("none", what, statement.in_words[0])
    neighbours, ledger = statement.body["guarantee"]["neighbours"], statement.body["ledger"]
    widest = max(neighbours, key=lambda one: Fraction(one["epsilon_over_whole_range"]))
    alone = statement.epsilon, Fraction(widest["epsilon_over_whole_range"])
    step, whole = alone if ledger is None else _so_far(ledger, neighbours, *alone)
    steps = " or ".join(f"{_step(one)} of {show_unit(one)}" for one in neighbours)
    headline = f"Protects steps of up to {steps}: epsilon {show_exact(statement.epsilon)}"
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
    # the reference at most, and so is a range; nor is it less than in proportion to this release.
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
    """An exact number, or about how much it is where it has many digits."""
    text = show_exact(value)
    return text if len(text) <= 12 else f"about {value.numerator // value.denominator:,}"


def _step(one: dict[str, Any]) -> str:
    return show_step(Fraction(one["alpha"]), one["unit"]).replace("its value", "the value")
