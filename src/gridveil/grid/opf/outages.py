"""Branch limits after the loss of one branch, as more rows that are linear in the flows before.

If branch `k` is lost and the units keep their output, its flow moves to the others. Let
`h = F (e_from - e_to)` of branch `k` be the flows that 1 MW sent between its ends causes. Then

    flow_l after = flow_l + D_lk flow_k,    D_lk = h_l / (1 - h_k)

(line outage distribution factors). So "no branch is over its emergency rating after any of these
outages, with one dispatch for all of them" (preventive security) adds limits on the same columns:
one for each pair of a branch and an outage, with the emergency rating in place of the normal one.
Engine, certificates and cuts treat them like the other limits.

An outage that splits the network has no such factors (`h_k = 1`): no dispatch survives it without
shedding load. It is left out and reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from gridveil.errors import InputError, reason
from gridveil.grid.model.network import Network

if TYPE_CHECKING:
    from gridveil.grid.opf.flows import Flows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Factors below this are rounding errors: 10,000 MW change such a flow by 1e-8 MW.
_NEGLIGIBLE = 1e-12
# Flows after an outage are undefined if a smaller share than this of 1 MW sent between the ends of
# the lost branch can take another way.
_APART = 1e-9
ALL = "all"
MOST_PAIRS = 1_000_000
"""The largest number of pairs of a branch and an outage; they fit easily into memory."""


@dataclass(frozen=True)
class Contingencies:
    """Outages of single branches that a dispatch must survive; public.

    Parameters
    ----------
    lines
        Places of the branches in the network's table.
    emergency
        The rating after an outage, as a multiple of the normal one; at least 1.
    left_out
        Places of branches that were asked for but whose loss splits the network.
    """

    lines: tuple[int, ...]
    emergency: float = 1.0
    left_out: tuple[int, ...] = ()


def contingencies(
    network: Network, wanted: str | Sequence[str | int] = ALL, emergency: float = 1.0
) -> Contingencies:
    """Choose outages of a network: all, or those of branches given by name or number (from 1).

    Only topology and reactances are read. Outages that split the network are left out.

    Raises
    ------
    InputError
        If a branch is not known or out of service, or if there are too many pairs.
    """
    from gridveil.grid.opf.flows import Flows

    flows = Flows(network)
    places = np.flatnonzero(flows.live) if wanted == ALL else _places(network, flows, wanted)
    apart = _apart(flows, places)
    kept = places[~apart]
    if len(kept) * len(network.branches) > MOST_PAIRS:
        raise InputError(
            f"{len(kept):,} outages of a network with {len(network.branches):,} branches are too "
            "many.",
            remedy=f"List the worst {MOST_PAIRS // len(network.branches):,} at most.",
        )
    return Contingencies(tuple(kept.tolist()), float(emergency), tuple(places[apart].tolist()))


def read_contingencies(text: str) -> str | tuple[str, ...]:
    """Read the argument of a command: ``all``, or a file with one branch name in each line."""
    if text.strip() == ALL:
        return ALL
    try:
        lines = Path(text).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        why = reason(problem) if isinstance(problem, OSError) else "not text in UTF-8"
        raise InputError(
            f"The contingencies in {text} can't be read: {why}.",
            remedy="Write all, or name a text file with the name of one branch in each line.",
        ) from None
    return tuple(line.strip() for line in lines if line.strip())


def check_contingencies(name: str, given: Any) -> str | tuple[str | int, ...]:
    """Check an option's value: ``all``, or names or numbers of branches."""
    if given == ALL:
        return ALL
    some = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else ()
    if not some or not all(isinstance(one, str | int) for one in some):
        raise InputError(
            f"The {name} must be 'all', or names of branches.",
            remedy=f'For example {name}=["101-102", "103-109"].',
        )
    return some


class Outages:
    """The flows after outages, one entry for each outage and remaining branch.

    Attributes
    ----------
    watched, lost
        The branch whose flow an entry is, and the branch that was lost.
    emergency
        The rating after an outage, as a multiple of the normal one.
    """

    def __init__(self, flows: Flows, given: Contingencies) -> None:
        lines = np.array(given.lines, dtype=np.int64)
        rows = flows.rows(lines)
        moved = rows[:, flows.from_bus] - rows[:, flows.to_bus]
        # F is symmetric up to the susceptances: the rows of the lost branches give the columns.
        spread = np.zeros(moved.shape)
        spread[:, flows.live] = moved[:, flows.live] / flows.b[lines, None] * flows.b[flows.live]
        own = spread[np.arange(len(lines)), lines]
        factor = spread / (1.0 - own)[:, None]
        there = np.broadcast_to(flows.live, factor.shape).copy()
        there[np.arange(len(lines)), lines] = False
        # Emergency ratings are at least the normal ones: a flow that an outage does not change
        # needs no limit of its own.
        there &= np.abs(factor) > _NEGLIGIBLE
        place, self.watched = np.nonzero(there)
        self.lost = lines[place]
        self.emergency = given.emergency
        self.factor: Floats = factor[there]
        each, shape = np.arange(len(self.watched)), (len(self.watched), len(flows.b))
        stays = csr_array((np.ones(len(each)), (each, self.watched)), shape=shape)
        self._back = stays + csr_array((self.factor, (each, self.lost)), shape=shape)
        self._ratings = given.emergency * stays

    def __len__(self) -> int:
        return len(self.watched)

    def flow(self, before: Floats) -> Floats:
        """Compute the flows after every outage from those before it (last axis: branches)."""
        return np.asarray(before[..., self.watched] + self.factor * before[..., self.lost])

    def back(self, values: Floats) -> Floats:
        """Apply the transpose of `flow`: from values on these flows to values on the branches."""
        return np.asarray(values @ self._back)

    def to_ratings(self, prices: Floats) -> Floats:
        """Convert prices of emergency ratings to prices of the branches' normal ratings."""
        return np.asarray(prices @ self._ratings)


def _places(network: Network, flows: Flows, wanted: Sequence[str | int]) -> Ints:
    known = {name: place for place, name in enumerate(network.branches.name)}
    places = []
    for one in wanted:
        place = one - 1 if isinstance(one, int) else known.get(one, -1)
        if not 0 <= place < len(network.branches):
            raise InputError(
                f"There is no branch {one!r} whose outage could be looked at.",
                remedy=f"Branches are called {', '.join(network.branches.name[:3])}, and so on.",
            )
        if not flows.live[place]:
            raise InputError(
                f"Branch {network.branches.name[place]} is out of service already.",
                remedy="Leave it out of the contingencies.",
            )
        places.append(place)
    return np.unique(np.array(places, dtype=np.int64))


def _apart(flows: Flows, places: Ints) -> NDArray[np.bool_]:
    """Mark the outages that split the network or leave flows undefined."""
    found = np.zeros(len(places), dtype=bool)
    rows = flows.rows(places)
    each = np.arange(len(places))
    own = rows[each, flows.from_bus[places]] - rows[each, flows.to_bus[places]]
    for at in np.flatnonzero(np.abs(1.0 - own) < 1e-3):
        left = flows.live.copy()
        left[places[at]] = False
        ends = flows.from_bus[left], flows.to_bus[left]
        links = coo_array((np.ones(len(ends[0])), ends), shape=(flows.buses, flows.buses))
        label = connected_components(links, directed=False)[1]
        place = places[at]
        found[at] = label[flows.from_bus[place]] != label[flows.to_bus[place]]
        found[at] |= bool(abs(1.0 - own[at]) < _APART)
    return found
