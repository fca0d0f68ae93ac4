"""What an audit finds: a verdict on one claim, in words and as JSON, or why it can't be run.

The kinds of check that come to a verdict are in `checks`, and `runner` runs many audits.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Verdict:
    """The result of an audit.

    Parameters
    ----------
    name, check
        The audit, and the kind of its check.
    claimed, proved
        The promised epsilon, and the epsilon that the outcomes prove at least. None for checks that
        are not about a number.
    confidence
        The confidence of the proof; 1 if it does not depend on chance.
    samples
        How many outcomes were drawn on each neighbour.
    finding
        What was found, in words.
    broken
        Whether the claim is refuted.
    ran
        Whether the check was run. A check that was not run has not passed.
    """

    name: str
    check: str
    claimed: float | None
    proved: float | None
    confidence: float
    samples: int
    finding: str
    broken: bool
    ran: bool = True

    @property
    def words(self) -> str:
        """The verdict in one sentence."""
        if not self.ran:
            return f"not run: {self.finding}"
        end = "BROKEN" if self.broken else "consistent"
        if self.claimed is None or self.proved is None:
            return f"{self.finding}: {end}"
        if self.confidence == 1.0:
            return f"claimed {self.claimed:g}; reached {self.proved:.2f}: {end}"
        return (
            f"claimed {self.claimed:g}; proved at least {self.proved:.2f} at "
            f"{show_confidence(self.confidence)} confidence: {end}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the verdict for a script; infinity, which JSON does not have, is a text."""
        body = {**asdict(self), "words": self.words}
        return {**body, "proved": "inf"} if self.proved == math.inf else body

    def __repr__(self) -> str:
        return f"Verdict({self.name}: {self.words})"


class Audit(Protocol):
    """One claim, and its check."""

    @property
    def name(self) -> str:
        """What is audited."""

    def run(self, *, fast: bool, error: float) -> Verdict:
        """Run the check; it calls a correct mechanism broken with probability at most ``error``."""


@dataclass(frozen=True)
class NotRun:
    """An audit that can't be run here.

    Parameters
    ----------
    name, check
        What would be audited, and the kind of its check.
    why
        Why it can't be run.
    """

    name: str
    check: str
    why: str

    def run(self, *, fast: bool, error: float) -> Verdict:
        """Return a verdict that says why the audit was not run."""
        return Verdict(self.name, self.check, None, None, 1.0, 0, self.why, broken=False, ran=False)


def show_confidence(confidence: float) -> str:
    """Write a confidence near 1 with all its nines and one more digit: 99.9997%."""
    digits = max(0, math.ceil(-math.log10(max(1 - confidence, 1e-15)) - 1e-6) - 2)
    return f"{100 * confidence:.{digits}f}%"
