"""Record the noisy answers of a release (a transcript), and replay them on other data.

A recorder and a replayer are noise sources, which audits pass to the plan of a release
(``plan.charge(..., noise=...)``). That is for audits, which run on made-up data; nothing else
imports this module. `transcript_audits` has the attacks that use transcripts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import GridveilError
from gridveil.privacy.noise import Integers, SecureNoise, listening

Vector = NDArray[np.float64]
Outcome = Mapping[str, bytes]
Run = Callable[[SecureNoise], Outcome]
"""A function that releases one dataset with a noise source; returns what it publishes, by name."""

Values = tuple[float, ...]
"""The private values of a dataset."""

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
