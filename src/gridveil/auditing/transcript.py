"""Record the noisy answers of a release (a transcript), and replay them on other data.

Two attacks use transcripts:

- **The likelihood ratio of the whole transcript.** An attacker who knows everything except one
  entry runs the release on the other neighbour with the same noisy answers, sees what the true
  answers would have been there, and compares how likely the noise is. No attack on the answers is
  better, and everything published is computed from them. With correct noise, no run at all may
  have a log ratio above epsilon (`Ratio`); how often large ratios occur tests the noise as well.
- **Replay.** What is published is a function of the noisy answers and of public data. So a replay
  of the same answers must publish the same bytes on *any* private data. If it does not, something
  bypassed the mechanisms: a restoration that read private data, a solver that kept some, a filter,
  a copied column, a refusal. This check is exact: it has no false alarms and needs few runs.

Both pass their own noise source to the plan of a release (``plan.charge(..., noise=...)``). That is
for audits, which run on made-up data; nothing else imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from gridveil.auditing.audits import Pair, Sizes, Verdict
from gridveil.errors import GridveilError
from gridveil.privacy.noise import Integers, SecureNoise, listening

Vector = NDArray[np.float64]
Outcome = Mapping[str, bytes]
Run = Callable[[SecureNoise], Outcome]
"""A function that releases one dataset with a noise source; returns what it publishes, by name."""

Values = tuple[float, ...]
"""The private values of a dataset."""

_ROUNDING = 1e-9  # rounding error of a sum of likelihoods
_NODES, _SHARES = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True, eq=False)
class Asked:
    """One use of noise: the true answer in grid steps, the scale, and the noisy answer."""

    kind: str
    values: Integers
    scale: float
    answer: Integers | int

    def log_likelihood(self) -> float:
        """Compute the log likelihood of the noisy answer, up to a constant of the scale."""
        if self.kind == "laplace":
            return -float(np.abs(self.answer - self.values).sum()) / self.scale
        with np.errstate(divide="ignore"):
            return float(np.log(choice_probability(self.values, self.scale, int(self.answer))))


@listening
class Recorder(SecureNoise):
    """The secure noise source, which records what it did."""

    def __init__(self) -> None:
        self.transcript: list[Asked] = []

    def laplace(self, values: Integers, scale: float) -> Integers:
        """Add noise, and record it."""
        answer = super().laplace(values, scale)
        self.transcript.append(Asked("laplace", values.copy(), scale, answer.copy()))
        return answer

    def noisy_max(self, scores: Integers, scale: float) -> int:
        """Choose an index, and record it."""
        answer = super().noisy_max(scores, scale)
        self.transcript.append(Asked("noisy max", scores.copy(), scale, answer))
        return answer


class Departure(GridveilError):
    """A replayed release asked another question than the recorded one: it used private data."""


@listening
class Replayer(SecureNoise):
    """Returns the answers of a transcript again, whatever the data, and records the true ones.

    Long vectors may be cut into other blocks than before: noise is drawn entry by entry.
    """

    def __init__(self, past: Sequence[Asked]) -> None:
        self._past = joined(past)
        self._given = 0  # how many numbers of the first one were returned
        self.transcript: list[Asked] = []
        self.departed = False

    def laplace(self, values: Integers, scale: float) -> Integers:
        """Return the noisy answers of the transcript."""
        past = self._next("laplace", scale)
        found = np.ravel(past.answer)[self._given : self._given + values.size]
        if found.size < values.size:
            self._depart()
        self._given += values.size
        if self._given == np.size(past.answer):
            self._past, self._given = self._past[1:], 0
        answer = np.array(found, dtype=np.int64).reshape(values.shape)
        self.transcript.append(Asked("laplace", values.copy(), scale, answer.copy()))
        return answer

    def noisy_max(self, scores: Integers, scale: float) -> int:
        """Return the choice of the transcript."""
        past = self._next("noisy max", scale)
        if past.values.shape != scores.shape:
            self._depart()
        self._past = self._past[1:]
        self.transcript.append(Asked("noisy max", scores.copy(), scale, past.answer))
        return int(past.answer)

    @property
    def faithful(self) -> bool:
        """Whether exactly the questions of the transcript were asked again."""
        return not self.departed and not self._past

    def _next(self, kind: str, scale: float) -> Asked:
        for past in self._past[:1]:
            if (past.kind, past.scale) == (kind, scale):
                return past
        self._depart()

    def _depart(self) -> NoReturn:
        self.departed = True
        raise Departure("The release asked for something else.")


def joined(transcript: Sequence[Asked]) -> list[Asked]:
    """Join consecutive Laplace answers of a transcript that have the same scale."""
    found: list[Asked] = []
    for one in transcript:
        last = found[-1] if found else None
        if last is not None and last.kind == one.kind == "laplace" and last.scale == one.scale:
            values = np.append(last.values, one.values)
            found[-1] = Asked(one.kind, values, one.scale, np.append(last.answer, one.answer))
        else:
            found.append(one)
    return found


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


def came_to_its_end(outcome: Outcome) -> bool:
    """Say whether this was a complete release: not a refusal, and not a failed command."""
    return "refusal" not in outcome and outcome.get("exit code", b"0") == b"0"


def differ(name: str, first: Outcome, again: Outcome) -> bool:
    """Say whether a part differs between two outcomes, or is missing from one."""
    return first.get(name) != again.get(name)


def published(run: Run, noise: SecureNoise) -> Outcome:
    """Run a release, and return what it publishes; a refusal is an output like any other."""
    try:
        return run(noise)
    except GridveilError as refusal:
        return {"refusal": f"{type(refusal).__name__}: {refusal}".encode()}


def choice_probability(scores: Integers, scale: float, chosen: int) -> float:
    """Compute the probability that noisy max with exponential noise chooses an index.

    ``P = int_0^1 prod_j (1 - t exp((s_j - s_i)/scale))+ dt`` over the others ``j``, with
    ``t = exp(-x)`` for the noise ``x`` of the chosen one. Up to the point where it vanishes, this
    is a polynomial in ``t``: the quadrature is exact for up to 128 scores.
    """
    gaps = (np.delete(scores, chosen) - scores[chosen]) / scale
    end = float(np.exp(-max(0.0, float(gaps.max(initial=0.0)))))
    t = end * (_NODES + 1) / 2
    beaten = -np.expm1(gaps[:, None] + np.log(t))  # the exponent is below 0 up to the end
    return float(beaten.prod(0) @ _SHARES * end / 2)
