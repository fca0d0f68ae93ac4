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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gridveil.auditing.attacks import Attack, Outcomes, Score
from gridveil.auditing.epsilon_bounds import prove
from gridveil.auditing.verdicts import Verdict

Sampler = Callable[[int], Outcomes]
"""Returns the outcomes of a number of independent runs, one row per run."""

_PILOT_ERROR = 0.1  # the search for the worst pair proves nothing yet, so it may err


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
