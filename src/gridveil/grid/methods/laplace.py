"""The plain method: noise on every entry, then clipping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from gridveil.grid.methods.base import Method, Outcome, Prepared, Task, clipped, prepared_for
from gridveil.grid.methods.entries_query import EntriesQuery, NoisyEntries
from gridveil.grid.model.release_problem import ReleaseProblem


@dataclass(frozen=True)
class Laplace(Method):
    """Noise on every entry, and nothing else: it has no options."""

    method: ClassVar[str] = "laplace"

    def prepare(
        self, problem: ReleaseProblem, alphas: Mapping[str, Fraction], epsilon: Fraction
    ) -> Prepared:
        """Spend all epsilon on the entries."""
        entries = EntriesQuery(problem, alphas)
        return prepared_for(problem, alphas, entries, {"entries": epsilon})

    def steps(self, task: Task, prepared: Prepared, noisy: NoisyEntries) -> Outcome:
        """Clip the noisy entries to their range."""
        return Outcome(clipped(noisy.amounts, task.problem, prepared))
