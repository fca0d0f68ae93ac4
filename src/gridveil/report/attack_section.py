"""The attack on a release in the owner's report: what it recovers, and what epsilon bounds."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from gridveil.errors import show_exact
from gridveil.privacy.guarantee_words import show_certainty, show_groups, show_steps, show_unit
from gridveil.privacy.statement import Statement
from gridveil.report.certainty_by_size import COLUMNS
from gridveil.report.inference_attack import Inference, of_groups
from gridveil.report.page import Section, Table

_TEXT = (
    "The attack: guess the value of the real data's own list that is nearest to the released one. "
    "No attacker knows that list better, so this is the most that such a guess can reach.",
    "Epsilon's bound: how sure an attacker can become, at most, who knows everything else and "
    "finds two values equally likely. It holds against every attack.",
)
_FIGURES = (
    "different values in the real data",
    "real values that the attack recovers",
    "recovered by guessing the most common value",
    "released values within alpha of the real one",
    "guesses from the released curve within alpha of the real value",
    "epsilon's bound for values alpha apart: sure at most",
    "epsilon's bound for values one spacing apart: sure at most",
)


def inference_section(found: Sequence[Inference], statement: Statement) -> Section:
    """What released values give away, and what the guarantee adds up to."""
    return Section(
        "What the release gives away",
        _TEXT,
        tables=(
            Table(
                "Inference from released values",
                ("figure", *(f"{one.parameter} ({one.entries:,} entries)" for one in found)),
                _rows(found),
            ),
            *_by_size(found),
            Table(
                "What the guarantee adds up to",
                ("change", "epsilon", "from 50% sure to at most"),
                [
                    (words, show_exact(total), show_certainty(sure))
                    for words, total, sure in _groups(statement)
                ],
            ),
        ),
        warnings=[words for one in found for words in one.warnings],
    )


def lines(found: Sequence[Inference], statement: Statement) -> list[str]:
    """The same in a few lines for the screen."""
    said = []
    for one in found:
        guessed = one.guessed_within
        known = "" if guessed is None else f", and {guessed:.0%} of guesses from the released curve"
        said.append(
            f"{one.parameter}: {one.within:.0%} of released values are within alpha of the real "
            f"one{known}; "
            + (
                f"who knows the list of {one.distinct:,} values recovers {one.recovered:.0%} "
                f"(the most common value alone gives {one.common:.0%})."
                if one.listed
                else f"{one.distinct:,} different values, so no short list helps."
            )
        )
        said += [f"WARNING: {words}" for words in one.warnings]
    groups = _groups(statement)
    said.append(
        "Epsilon bounds every attack: "
        + "; ".join(f"{words}: {show_certainty(sure)} sure at most" for words, _, sure in groups)
        + "."
    )
    return said


def _by_size(found: Sequence[Inference]) -> list[Table]:
    """What can be told of a small, a median and a large entry of each parameter."""
    return [
        Table(f"By size: {one.parameter}", COLUMNS, [size.row("MW") for size in one.sizes])
        for one in found
        if one.sizes
    ]


def _rows(found: Sequence[Inference]) -> list[tuple[str, ...]]:
    """A figure a row, a parameter a column; without figures that none of them has."""
    rows = zip(_FIGURES, *(_column(one) for one in found), strict=True)
    return [row for row in rows if set(row[1:]) != {"-"}]


def _column(one: Inference) -> tuple[str, ...]:
    """The figures of one parameter, in the order of their names."""
    return (
        f"{one.distinct:,}",
        _percent(one.recovered),
        _percent(one.common),
        _percent(one.within),
        "-" if one.guessed_within is None else _percent(one.guessed_within),
        show_certainty(one.sure_of_alpha),
        "-" if one.sure_of_spacing is None else show_certainty(one.sure_of_spacing),
    )


def _percent(share: float) -> str:
    return "over 99.99%" if 0.9999 < share < 1 else f"{share:.1%}"


def _groups(statement: Statement) -> list[tuple[str, Fraction, float]]:
    guarantee = statement.body["guarantee"]
    units = {show_unit(one) for one in guarantee["neighbours"]}
    unit = units.pop() if len(units) == 1 else "one entry"
    return of_groups(statement.epsilon, unit, show_groups(guarantee), _spent(statement))


def _spent(statement: Statement) -> tuple[Fraction, str] | None:
    ledger = statement.body["ledger"]
    return None if ledger is None else (Fraction(ledger["spent_so_far"]), show_steps(ledger))
