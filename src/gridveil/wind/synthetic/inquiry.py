"""One release's questions as they are asked, and the answers that it drew."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from operator import itemgetter

import numpy as np

from gridveil.privacy.account import Account
from gridveil.privacy.mechanisms import Blocks
from gridveil.wind.synthetic.agenda import Agenda
from gridveil.wind.synthetic.blocks import (
    TERM,
    BlockSums,
    Choice,
    Power,
    opened,
    weigh,
)
from gridveil.wind.synthetic.curves import REFERENCE_PRIOR, REFERENCES
from gridveil.wind.synthetic.farm import Chunk, Farm, Vector, Whole

Progress = Callable[[str], None]


class Inquiry:
    """Asks the questions of an agenda, and remembers the noisy answers."""

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
        """The curve that was chosen; the most usual one until then."""

    def ask(self, name: str, sums: BlockSums) -> tuple[Vector, float]:
        """Noisy sums, a row for each cell, and the variance of each one's noise."""
        self._progress(sums.name)
        epsilon = self.agenda.epsilon[name]
        values, scale = sums.ask(self._account, self._power, self.farm, epsilon)
        self._answers.update(values.tobytes())
        return values, 2 * scale * scale

    def choose(self, name: str, choice: Choice) -> int:
        """The place of the candidate that noisy max chose."""
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
        """A level near the median of the sizes of all records at which turbines turn.

        A level's score is how far the weight of the records below it is from one half of all. A
        record is below or not, its weight is public, and a block's add up to at most 1: so the
        weight below a level moves by at most 1, and its distance from a public half too.
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
        """A seed made of the noisy answers: records drawn by it are post-processing of them."""
        return int.from_bytes(self._answers.digest(), "little")
