"""Ask the queries of one release, and record the noisy answers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from operator import itemgetter

import numpy as np

from gridveil.privacy.account import Account
from gridveil.privacy.mechanisms import Blocks
from gridveil.wind.curve_prior import REFERENCE_PRIOR, REFERENCES
from gridveil.wind.synthetic.block_queries import (
    TERM,
    BlockSums,
    Choice,
    Power,
    opened,
    weigh,
)
from gridveil.wind.synthetic.choose_queries import Agenda
from gridveil.wind.synthetic.public_farm import Chunk, Farm, Vector, Whole

Progress = Callable[[str], None]


class Inquiry:
    """Asks the queries of an agenda, and keeps a digest of the noisy answers."""

    def __init__(
        self, account: Account, power: Power, farm: Farm, agenda: Agenda, progress: Progress
    ) -> None:
        self._account = account
        self._power = power
        self._progress = progress
        self._answers = hashlib.sha256()
        self.farm = farm
        self.agenda = agenda
        self.reference = max(zip(REFERENCE_PRIOR, REFERENCES, strict=True), key=itemgetter(0))[1]
        """The reference curve that was chosen; the most common one until then."""

    def ask(self, name: str, sums: BlockSums) -> tuple[Vector, float]:
        """Ask a query; return the noisy sums, one row per cell, and their noise's variance."""
        self._progress(sums.name)
        epsilon = self.agenda.epsilon[name]
        values, scale = sums.ask(self._account, self._power, self.farm, epsilon)
        self._answers.update(values.tobytes())
        return values, 2 * scale * scale

    def choose(self, name: str, choice: Choice) -> int:
        """Return the place of the candidate that noisy max chose."""
        self._progress(choice.name)
        chosen = choice.ask(self._account, self._power, self.farm, self.agenda.epsilon[name])
        self._answers.update(chosen.to_bytes(4, "little"))
        return chosen

    def choose_median(
        self,
        name: str,
        words: str,
        sizes: Callable[[Chunk, Vector], Vector],
        turning: Vector,
        levels: Vector,
        usual: tuple[float, float],
    ) -> float:
        """Choose a level near the median of the sizes of all records at which turbines turn.

        A level's score is minus the distance of the weight of the records below it from half of all
        weight. A record is below or not, its weight is public, and the weights of a block add up to
        at most 1: so the weight below a level moves by at most 1, and so does its distance from the
        public half.
        """
        farm = self.farm
        weights = weigh(farm, lambda chunk: turning[chunk.level], 0.7)
        total = sum(int(one.sum()) for one in weights)

        def scores(parts: Sequence[Blocks]) -> Whole:
            below = np.zeros(len(levels) + 1, dtype=np.int64)
            for (chunk, power), weight in zip(opened(farm, parts), weights, strict=True):
                at = np.searchsorted(levels, sizes(chunk, power))
                below += np.bincount(at, weight, minlength=len(below)).astype(np.int64)
            return -np.abs(2 * np.cumsum(below)[:-1] - total) * (TERM // 2)

        prior = -0.5 * (np.log(levels / usual[0]) / usual[1]) ** 2
        return float(levels[self.choose(name, Choice(words, prior, scores))])

    def seed(self) -> int:
        """Make a seed from the noisy answers: records drawn with it are post-processing."""
        return int.from_bytes(self._answers.digest(), "little")
