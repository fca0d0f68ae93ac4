"""Audits by the transcript of a release: its likelihood on a neighbour, and replays on other data.

- **The likelihood ratio of the whole transcript.** An attacker who knows everything except one
  entry runs the release on the other neighbour with the same noisy answers, sees what the true
  answers would have been there, and compares how likely the noise is. No attack on the answers is
  better, and everything published is computed from them. With correct noise, no run at all may
  have a log ratio above epsilon (`Ratio`); how often large ratios occur tests the noise as well.
- **Replay.** What is published is a function of the noisy answers and of public data. So a replay
  of the same answers must publish the same bytes on *any* private data. If it does not, something
  bypassed the mechanisms: a restoration that read private data, a solver that kept some, a filter,
  a copied column, a refusal. This check is exact: it has no false alarms and needs few runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from gridveil.auditing.checks import Pair, Sizes
from gridveil.auditing.transcript import (
    Asked,
    Outcome,
    Recorder,
    Replayer,
    Run,
    Values,
    came_to_its_end,
    differ,
    joined,
    published,
)
from gridveil.auditing.verdicts import Verdict
from gridveil.errors import GridveilError
from gridveil.privacy.noise import SecureNoise

_ROUNDING = 1e-9  # rounding error of a sum of likelihoods


def likelihood_pair(words: str, one: Run, other: Run) -> Pair:
    """Make a pair of neighbours whose outcomes are log likelihood ratios of transcripts."""
    return Pair(
        words,
        lambda n: np.array([log_ratio(one, other) for _ in range(n)]),
        lambda n: np.array([-log_ratio(other, one) for _ in range(n)]),
    )


def log_ratio(here: Run, there: Run) -> float:
    """Run a release here, and compute the log of how much likelier its answers are than there."""
    replayed = _both(here, there)
    if replayed is None:
        return np.inf
    return sum(a.log_likelihood() - b.log_likelihood() for a, b in zip(*replayed, strict=True))


def distance(one: Run, other: Run) -> float:
    """Compute how far apart the true answers of two neighbours are, in scales of their noise.

    This is from one training run: answers that depend on earlier noisy ones change between runs.
    """
    replayed = _both(one, other)
    if replayed is None:
        return np.inf
    apart = 0.0
    for a, b in zip(*replayed, strict=True):
        moves = np.abs(a.values - b.values) / a.scale
        apart += float(moves.sum() if a.kind == "laplace" else moves.max())
    return apart


def worst_neighbours(
    run: Callable[[Values, SecureNoise], Outcome], pairs: Sequence[tuple[Values, Values]]
) -> tuple[Values, Values]:
    """Find the neighbours whose answers are furthest apart in one training run."""
    return max(pairs, key=lambda pair: distance(partial(run, pair[0]), partial(run, pair[1])))


def _both(here: Run, there: Run) -> tuple[list[Asked], list[Asked]] | None:
    recorder = Recorder()
    here(recorder)
    replayer = Replayer(recorder.transcript)
    try:
        there(replayer)
    except GridveilError:  # mechanisms turn a noise source's error into an abort
        if not replayer.departed:
            raise
    if not replayer.faithful:
        return None
    return joined(recorder.transcript), joined(replayer.transcript)


@dataclass(frozen=True)
class Ratio:
    """Audit that no log likelihood ratio is above epsilon, on any of many pairs of neighbours.

    It trusts the noise source, which `Frequency` does not, and finds faults of sensitivities,
    scales and the division of epsilon in a few runs.

    Parameters
    ----------
    name, claimed
        What is audited, and its epsilon.
    pairs
        The release on both neighbours of each pair.
    sizes
        How many runs to make, taking the pairs in turn.
    """

    name: str
    claimed: Fraction
    pairs: Sequence[tuple[Run, Run]]
    sizes: Sizes

    def run(self, *, fast: bool, error: float) -> Verdict:
        """Find the largest ratio."""
        samples = self.sizes.at(fast=fast)
        largest = 0.0
        for k in range(samples):
            one, other = self.pairs[k % len(self.pairs)]
            here, there = (one, other) if k // len(self.pairs) % 2 == 0 else (other, one)
            largest = max(largest, log_ratio(here, there))
        return Verdict(
            self.name,
            "ratio",
            float(self.claimed),
            largest,
            1.0,
            samples,
            f"the largest of {samples:,} likelihood ratios is exp({largest:.4g})",
            broken=largest > self.claimed + _ROUNDING,
        )


@dataclass(frozen=True)
class Replay:
    """Audit that the same noisy answers publish the same bytes on any private data.

    Parameters
    ----------
    name
        What is audited.
    runs
        The release on several private datasets with the same public data, neighbours or not.
    sizes
        How many replays to make.
    words
        The names of the datasets, to say which two differed.
    refused
        Whether all of them must be refused; a refusal is an output too.
    """

    name: str
    runs: Sequence[Run]
    sizes: Sizes
    words: Sequence[str] = ()
    refused: bool = False

    def run(self, *, fast: bool, error: float) -> Verdict:
        """Record a release on each dataset in turn, and replay it on all others."""
        samples = self.sizes.at(fast=fast)
        count = len(self.runs)
        different: dict[str, int] = {}
        example, released = "", False
        for k in range(samples):
            turn, place = divmod(k, count - 1)
            here, there = turn % count, (turn + place + 1) % count
            if place == 0:
                recorder = Recorder()
                first = published(self.runs[here], recorder)
                released |= came_to_its_end(first)
            replayer = Replayer(recorder.transcript)
            again = published(self.runs[there], replayer)
            if not replayer.faithful:
                again = {**again, "questions": b"others"}
            found = [name for name in first.keys() | again.keys() if differ(name, first, again)]
            for name in found:
                different[name] = different.get(name, 0) + 1
            if found and self.words and not example:
                example = f"; first: {self.words[here]}, then {self.words[there]}"
        finding = f"{samples:,} replayed with the same noisy answers, the same bytes"
        if different:
            which = ", ".join(f"{name} ({n:,})" for name, n in sorted(different.items()))
            finding = f"{samples:,} replayed with the same noisy answers, other bytes in {which}"
        elif self.refused:
            finding = f"{samples:,} replayed, the same refusal"
        elif not released:
            finding = f"{samples:,} replayed, and no release came to its end: nothing was compared"
        broken = bool(different) or released == self.refused
        return Verdict(
            self.name, "replay", None, None, 1.0, samples, finding + example, broken=broken
        )
