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
from gridveil.privacy.statement import WEAK, Statement, show_steps

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

    Earlier releases of the same data count: epsilon for a step is the ledger's total so far, and
    epsilon for a whole value grows in the same proportion.

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
    more = Fraction(1)
    if ledger is not None:
        more = max(more, Fraction(ledger["spent_so_far"]) / Fraction(ledger["charged"]))
    step = statement.epsilon * more
    widest = max(neighbours, key=lambda one: Fraction(one["epsilon_over_whole_range"]))
    whole = Fraction(widest["epsilon_over_whole_range"]) * more
    steps = " or ".join(f"{_step(one)} of one entry of {one['parameter']}" for one in neighbours)
    headline = f"Protects steps of up to {steps}: epsilon {show_exact(statement.epsilon)}"
    level = _level(step, whole)
    reason = _reason(level, step, whole, widest)
    if more > 1:
        assert ledger is not None
        reason += (
            f" All releases of this data so far count, which have epsilon "
            f"{show_exact(Fraction(ledger['spent_so_far']))} for steps of {show_steps(ledger)}."
        )
    return Strength(level, headline, reason)


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
    apart = math.floor(WEAK / step) * Fraction(widest["alpha"])
    told = "not protected" if level == "steps" else "known roughly"
    return (
        f"A whole value of {widest['parameter']} is {told}: two that lie more than "
        f"{show_exact(apart)} {widest['unit']} apart have an epsilon above {WEAK} and can be told "
        f"apart. {of}{_short(whole)}."
    )


def _short(value: Fraction) -> str:
    """An exact number, or about how much it is where it has many digits."""
    text = show_exact(value)
    return text if len(text) <= 12 else f"about {value.numerator // value.denominator:,}"


def _step(one: dict[str, Any]) -> str:
    return f"{show_exact(Fraction(one['alpha']))} {one['unit']}"
