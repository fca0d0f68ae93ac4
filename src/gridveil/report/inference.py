"""The attack on a release in the owner's report: what it recovers, and what epsilon bounds."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from gridveil.errors import show_exact
from gridveil.privacy.inference import Inference, of_groups
from gridveil.privacy.statement import Statement
from gridveil.report.parts import Section, Table

_TEXT = (
    "The attack: guess the value of the real data's own list that is nearest to the released one. "
    "No attacker knows that list better, so this is the most that such a guess can reach.",
    "Epsilon's bound: how sure an attacker can become, at most, who knows everything else and "
    "finds two values equally likely. It holds against every attack.",
)


def inference_section(found: Sequence[Inference], statement: Statement) -> Section:
    """What released values give away, and what the guarantee adds up to."""
    return Section(
        "What the release gives away",
        (*_TEXT, *(one.warning for one in found if one.warning)),
        tables=(
            Table(
                "Inference from released values",
                (
                    "parameter",
                    "entries",
                    "different values",
                    "recovered by the list",
                    "by the most common value",
                    "within alpha of the release",
                    "within alpha of a guess",
                    "sure of a step of alpha, at most",
                    "sure of one spacing, at most",
                ),
                [_row(one) for one in found],
            ),
            Table(
                "What the guarantee adds up to",
                ("change", "epsilon", "from 50% sure to at most"),
                [
                    (words, show_exact(total), _percent(sure))
                    for words, total, sure in of_groups(statement.epsilon, _spent(statement))
                ],
            ),
        ),
    )


def lines(found: Sequence[Inference], statement: Statement) -> list[str]:
    """The same in a few lines for the screen."""
    said = []
    for one in found:
        known = f", and a guess without it {one.guessed_within:.0%}" if one.guessed_within else ""
        said.append(
            f"{one.parameter}: {one.within:.0%} of released values are within alpha of the real "
            f"one{known}; "
            + (
                f"who knows the list of {one.distinct:,} values recovers {one.recovered:.0%} "
                f"(the most common value alone gives {one.common:.0%})."
                if one.listed
                else f"{one.distinct:,} different values, so that no short list helps."
            )
        )
        if one.warning:
            said.append(f"WARNING: {one.warning}")
    groups = of_groups(statement.epsilon, _spent(statement))
    said.append(
        "Epsilon bounds every attack: "
        + "; ".join(f"{words}: {_percent(sure)} sure at most" for words, _, sure in groups)
        + "."
    )
    return said


def _row(one: Inference) -> tuple[str, ...]:
    return (
        one.parameter,
        f"{one.entries:,}",
        f"{one.distinct:,}",
        _percent(one.recovered),
        _percent(one.common),
        _percent(one.within),
        "-" if one.guessed_within is None else _percent(one.guessed_within),
        _percent(one.sure_of_alpha),
        "-" if one.sure_of_spacing is None else _percent(one.sure_of_spacing),
    )


def _percent(share: float) -> str:
    return "over 99.99%" if 0.9999 < share < 1 else f"{share:.1%}"


def _spent(statement: Statement) -> Fraction | None:
    ledger = statement.body["ledger"]
    return None if ledger is None else Fraction(ledger["spent_so_far"])
