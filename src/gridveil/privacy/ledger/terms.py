"""What a release pays for, and what the ledger answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gridveil.errors import InputError
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.exact import exact
from gridveil.privacy.ledger.identity import checked_reason
from gridveil.privacy.ledger.names import checked_key
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
    epsilon, adjacency
        The guarantee, and for which neighbours: the private parameters with their alphas.
    purpose
        What is released, in a few public words.
    clear, private
        What the release publishes as it is, and what it keeps private, in the same words:
        parameters of a network, columns of a table. Private are the parameters' keys by default.
    sketch, distinct
        A fingerprint of the public part of the data: what looks like another dataset is refused,
        unless the owner says why it is not.
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

    The last two are all charges' epsilon for a step of this release's own alpha, and for a whole
    value, anywhere in the range that this release gives.
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
