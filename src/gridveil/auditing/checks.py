"""Attack a guarantee: how large an epsilon do the outcomes on two neighbours prove?

Each check takes samplers of outcomes and knows nothing of what they run:

- `Frequency`: the epsilon that frequencies prove (`evidence`), on events that are chosen on one
  half of the samples and tested on the other.
- `Support`: no outcome on one neighbour is impossible on the other. One counterexample is enough,
  and no correct mechanism has one: there are no false alarms.
- `Repeat`: runs on the same data do not all end the same.

What an audit does not find is not proved absent: it attacks, it does not prove privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from fractions import Fraction
from multiprocessing import get_context
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gridveil.auditing.attacks import Attack, Outcomes, Score
from gridveil.auditing.evidence import prove

FALSE_ALARM = 1e-4
"""The probability that a run calls any correct mechanism broken, at most."""

Sampler = Callable[[int], Outcomes]
"""Gives the outcomes of so many independent runs, a row for each."""

Progress = Callable[[int, int], None]

_PILOT_ERROR = 0.1  # the search for the worst pair proves nothing, so it may err


@dataclass(frozen=True)
class Verdict:
    """What an audit found.

    Parameters
    ----------
    name, check
        Which audit, and the kind of its check.
    claimed, proved
        Epsilon: what is promised, and what the outcomes prove it to be at least. None for checks
        that are not about a number.
    confidence
        Of the proof; 1 if chance plays no part in it.
    samples
        How many outcomes were taken on each neighbour.
    finding
        What was seen, in words.
    broken
        Whether the claim is refuted.
    ran
        Whether the check was made. One that was not has found nothing, and has not passed.
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
        """The verdict for a script; JSON has no infinity, so that one is a text."""
        body = {**asdict(self), "words": self.words}
        return {**body, "proved": "inf"} if self.proved == math.inf else body

    def __repr__(self) -> str:
        return f"Verdict({self.name}: {self.words})"


class Audit(Protocol):
    """One claim, and the check of it."""

    @property
    def name(self) -> str:
        """What is audited."""

    def run(self, *, fast: bool, error: float) -> Verdict:
        """Make the check; a correct mechanism is called broken with probability ``error``."""


@dataclass(frozen=True)
class NotRun:
    """An audit that can't be made here.

    Parameters
    ----------
    name, check
        What would be audited, and the kind of its check.
    why
        Why it can't.
    """

    name: str
    check: str
    why: str

    def run(self, *, fast: bool, error: float) -> Verdict:
        """Say so."""
        return Verdict(self.name, self.check, None, None, 1.0, 0, self.why, broken=False, ran=False)


@dataclass(frozen=True)
class Sizes:
    """How many samples an audit takes on each neighbour."""

    fast: int
    full: int

    def at(self, *, fast: bool) -> int:
        """The number for a setting."""
        return self.fast if fast else self.full


@dataclass(frozen=True)
class Pair:
    """Two neighbours: how they differ, and a sampler of outcomes on each."""

    words: str
    one: Sampler
    other: Sampler


def scored(pair: Pair, score: Score) -> Pair:
    """The pair with a score in the place of each outcome, for attacks that know the neighbours."""
    return Pair(pair.words, lambda n: score(pair.one(n)), lambda n: score(pair.other(n)))


@dataclass(frozen=True)
class Frequency:
    """Audit a claimed epsilon by how often outcomes occur.

    Parameters
    ----------
    name
        What is audited.
    claimed
        The epsilon that is promised.
    pairs
        Candidates for the worst two neighbours. The pair on which most is proved with ``pilot``
        samples is audited, on new samples.
    attacks
        Ways of making a score of an outcome; the best is chosen on the first half of the samples.
    sizes, pilot
        How many samples to take.
    """

    name: str
    claimed: Fraction
    pairs: Sequence[Pair]
    attacks: Sequence[Attack]
    sizes: Sizes
    pilot: int = 400

    def run(self, *, fast: bool, error: float) -> Verdict:
        """Find the worst pair and the best events, and test them."""
        samples = self.sizes.at(fast=fast)
        pair = worst_pair(self.pairs, self.attacks, self.pilot)
        proof = prove(pair.one(samples), pair.other(samples), self.attacks, error)
        return Verdict(
            self.name,
            "frequency",
            float(self.claimed),
            proof.epsilon,
            1 - error,
            samples,
            f"{pair.words}; {proof.words}",
            broken=proof.epsilon > self.claimed,
        )


@dataclass(frozen=True)
class Support:
    """Audit that no outcome on one neighbour is impossible on the other.

    Parameters
    ----------
    name
        What is audited.
    pair
        The neighbours.
    possible_on_one, possible_on_other
        Which outcomes can occur there: the same public grid for both, in a correct mechanism.
    sizes
        How many samples to take.
    """

    name: str
    pair: Pair
    possible_on_one: Callable[[Outcomes], NDArray[np.bool_]]
    possible_on_other: Callable[[Outcomes], NDArray[np.bool_]]
    sizes: Sizes

    def run(self, *, fast: bool, error: float) -> Verdict:
        """Look for outcomes that only one neighbour can have."""
        samples = self.sizes.at(fast=fast)
        alone = int((~self.possible_on_other(self.pair.one(samples))).sum())
        alone += int((~self.possible_on_one(self.pair.other(samples))).sum())
        finding = f"{alone:,} of {2 * samples:,} outputs are impossible on the neighbour"
        if not alone:
            finding = f"all {2 * samples:,} outputs are possible on both neighbours"
        return Verdict(self.name, "support", None, None, 1.0, samples, finding, broken=alone > 0)


@dataclass(frozen=True)
class Repeat:
    """Audit that runs on the same data end differently: no fixed seed, no shared stream.

    Parameters
    ----------
    name
        What is audited.
    sample
        Outcomes on the same data, each wide enough that two alike are out of the question.
    sizes
        How many samples to take.
    """

    name: str
    sample: Sampler
    sizes: Sizes

    def run(self, *, fast: bool, error: float) -> Verdict:
        """Look for outcomes that occur twice."""
        samples = self.sizes.at(fast=fast)
        outcomes = np.asarray(self.sample(samples)).reshape(samples, -1)
        again = samples - len(np.unique(outcomes, axis=0))
        finding = f"{again:,} of {samples:,} runs repeat an earlier output"
        if not again:
            finding = f"no two of {samples:,} runs on the same data gave the same output"
        return Verdict(self.name, "repeat", None, None, 1.0, samples, finding, broken=again > 0)


def worst_pair(pairs: Sequence[Pair], attacks: Sequence[Attack], samples: int) -> Pair:
    """The pair on which the attacks prove most with a few samples, which are not used again."""
    if len(pairs) == 1:
        return pairs[0]
    return max(
        pairs,
        key=lambda pair: (
            prove(pair.one(samples), pair.other(samples), attacks, _PILOT_ERROR).epsilon
        ),
    )


def run_audits(
    makers: Mapping[str, Callable[[], Audit]],
    *,
    fast: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> list[Verdict]:
    """Run audits, the error of each so that all together stay under `FALSE_ALARM`.

    Parameters
    ----------
    makers
        By name: functions that make an audit, importable by worker processes.
    fast
        Fewer samples: finds gross errors only.
    workers
        How many processes.
    progress
        Called with the numbers of audits done and of all.
    """
    error = FALSE_ALARM / max(len(makers), 1)
    say = progress or (lambda done, total: None)
    say(0, len(makers))
    found: dict[str, Verdict] = {}
    if workers == 1:
        for name, make in makers.items():
            found[name] = _run(make, fast, error)
            say(len(found), len(makers))
        return list(found.values())
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        # Whole releases come last in a list and take longest: they start first.
        order = reversed(list(makers.items()))
        futures = {pool.submit(_run, make, fast, error): name for name, make in order}
        for future in as_completed(futures):
            found[futures[future]] = future.result()
            say(len(found), len(makers))
    return [found[name] for name in makers]


def show_confidence(confidence: float) -> str:
    """A confidence near 1 with as many nines as it has, and a digit: 99.9997%."""
    digits = max(0, math.ceil(-math.log10(max(1 - confidence, 1e-15)) - 1e-6) - 2)
    return f"{100 * confidence:.{digits}f}%"


def _run(make: Callable[[], Audit], fast: bool, error: float) -> Verdict:
    return make().run(fast=fast, error=error)
