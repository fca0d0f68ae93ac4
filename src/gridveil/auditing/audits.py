"""Attack a guarantee: how large an epsilon do the outcomes on two neighbours prove?

Each check takes samplers of outcomes, whatever these run:

- `Frequency`: the epsilon that frequencies prove (see `epsilon_bounds`), on events that are
  chosen on one half of the samples and tested on the other.
- `Support`: no outcome on one neighbour is impossible on the other. One counterexample is enough,
  and no correct mechanism has one: there are no false alarms.
- `Repeat`: no two runs on the same data have the same outcome.

An audit attacks; it does not prove privacy. A fault that it does not find may still exist.
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
from gridveil.auditing.epsilon_bounds import prove

FALSE_ALARM = 1e-4
"""The largest probability that a run of audits calls any correct mechanism broken."""

Sampler = Callable[[int], Outcomes]
"""Returns the outcomes of a number of independent runs, one row per run."""

Progress = Callable[[int, int], None]

_PILOT_ERROR = 0.1  # the search for the worst pair proves nothing yet, so it may err


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


@dataclass(frozen=True)
class Sizes:
    """How many samples an audit draws on each neighbour, in a fast and in a full run."""

    fast: int
    full: int

    def at(self, *, fast: bool) -> int:
        """Return the number for a fast or a full run."""
        return self.fast if fast else self.full


@dataclass(frozen=True)
class Pair:
    """Two neighbours: how they differ, and a sampler of outcomes on each."""

    words: str
    one: Sampler
    other: Sampler


def scored(pair: Pair, score: Score) -> Pair:
    """Replace each outcome of a pair by its score, for attacks that know the neighbours."""
    return Pair(pair.words, lambda n: score(pair.one(n)), lambda n: score(pair.other(n)))


@dataclass(frozen=True)
class Frequency:
    """Audit a claimed epsilon by how often outcomes occur.

    Parameters
    ----------
    name
        What is audited.
    claimed
        The promised epsilon.
    pairs
        Candidates for the worst two neighbours. The pair on which most is proved with ``pilot``
        samples is audited, on new samples.
    attacks
        Attacks that compute a score; the best is chosen on the first half of the samples.
    sizes, pilot
        How many samples to draw.
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
        Mark the outcomes that can occur on each; a correct mechanism has the same public grid for
        both.
    sizes
        How many samples to draw.
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
    """Audit that runs on the same data have different outcomes: no fixed seed, no shared stream.

    Parameters
    ----------
    name
        What is audited.
    sample
        Draws outcomes on the same data, with so many numbers that two are never equal by chance.
    sizes
        How many samples to draw.
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
    """Find the pair on which the attacks prove most with a few samples, which are not reused."""
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
    """Run audits, with errors so small that all together stay below `FALSE_ALARM`.

    Parameters
    ----------
    makers
        Functions that make an audit, by name; worker processes must be able to import them.
    fast
        Draw fewer samples, which finds gross errors only.
    workers
        How many processes.
    progress
        Called with the number of audits done and the number of all audits.
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
        # Whole releases are last in the list and take longest, so they start first.
        order = reversed(list(makers.items()))
        futures = {pool.submit(_run, make, fast, error): name for name, make in order}
        for future in as_completed(futures):
            found[futures[future]] = future.result()
            say(len(found), len(makers))
    return [found[name] for name in makers]


def show_confidence(confidence: float) -> str:
    """Write a confidence near 1 with all its nines and one more digit: 99.9997%."""
    digits = max(0, math.ceil(-math.log10(max(1 - confidence, 1e-15)) - 1e-6) - 2)
    return f"{100 * confidence:.{digits}f}%"


def _run(make: Callable[[], Audit], fast: bool, error: float) -> Verdict:
    return make().run(fast=fast, error=error)
