"""What a release pays for, and what the ledger answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gridveil.errors import InputError
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.budget import exact
from gridveil.privacy.ledger.names import checked_key, checked_reason
from gridveil.privacy.ledger.sketch import Sketch
from gridveil.privacy.ledger.steps import Step


@dataclass(frozen=True)
class Terms:
    """What a release charges, and for what: all that its account and the ledger know of it.

    Parameters
    ----------
    dataset
        The owner's name for the data. Updated or overlapping data keeps its name. With None it is
        charged to the one dataset that it looks like, if there is exactly one.
    epsilon
        The guarantee for one entry that moves by ``alpha``: anything that `exact` reads.
    adjacency
        The private parameters with their alphas.
    purpose
        What is released, in a few public words.
    clear
        What the release publishes as it is: parameters of a network, columns of a table.
    private
        What it keeps private, in the same words; the keys of the parameters by default.
    sketch
        A fingerprint of the public part of the data: what looks like the data of another dataset
        is refused.
    distinct
        Why it is not, in the owner's words; the ledger keeps them.
    """

    dataset: str | None
    epsilon: Fraction
    adjacency: Sequence[Adjacency]
    purpose: str
    clear: Sequence[str] = ()
    private: Sequence[str] = ()
    sketch: Sketch | None = None
    distinct: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact(self.epsilon, name="epsilon"))
        keys = [checked_key(one.key) for one in self.adjacency]
        if not keys:
            raise InputError("A charge needs at least one private parameter.")
        if len(set(keys)) < len(keys):
            raise InputError("A charge names every private parameter once.")
        if not self.private:
            object.__setattr__(self, "private", keys)
        if self.distinct is not None:
            object.__setattr__(self, "distinct", checked_reason(self.distinct))


@dataclass(frozen=True)
class Charge:
    """A charge that the ledger accepted; `spent` is about steps of the `reference`.

    The last two are about all charges of the dataset too: their epsilon for a step of this
    release's own alpha, and for a whole value, anywhere in the range that this release gives.
    """

    ledger: str
    entry: int
    hash: str
    dataset: str
    epsilon: Fraction
    charged: Fraction
    spent: Fraction
    earlier_aborts: int
    reference: Mapping[str, Step]
    cap: Fraction | None
    epsilon_for_alpha: Fraction
    epsilon_over_range: Fraction
