"""DC power flow on one network: islands, susceptances, one sparse factorisation, PTDF rows.

With the incidence matrix `A` and the susceptances `b`, the angles solve `A' diag(b) A theta =
injection` with one angle of every island held at zero, and the flows are `diag(b) A theta`. Flows
are linear in the injections, `flow = F injection`; a row of `F` (the PTDF) is one more solve with
the same factors, because the matrix is symmetric. So `F` is never formed on a big network.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import SuperLU, splu

from gridveil.errors import InputError
from gridveil.grid.model.network import Network
from gridveil.grid.opf.outages import Contingencies, Outages

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Convention = Literal["series", "matpower"]

# Up to this many entries the whole PTDF is kept: a small dense product beats a sparse solve.
DENSE_ENTRIES = 250_000
# How many entries of PTDF rows are kept for the next model (64 MB).
CACHED_ENTRIES = 8_000_000
# Relative residual of a solve from which the factors count as unusable.
WORST_RESIDUAL = 1e-7


class Flows:
    """Flows of one network as a function of its injections.

    Parameters
    ----------
    network
        The network; capacities, loads and limits are not read.
    convention
        "series": `b = x / (r^2 + x^2)`, taps and shifts ignored, as in PowerModels' DC model.
        "matpower": `b = 1 / (x tap)`, and a phase shift as a fixed pair of injections.
    contingencies
        Outages whose flows are computed too: they follow the flows of the branches.

    Attributes
    ----------
    live
        Which branches carry flow.
    island
        The island of every bus, -1 if it is out of service.
    shift_injection, shift_flow
        MW drawn at the buses, and flow forced on the branches, by phase shifters.
    outages
        The flows after outages, or None.
    dense
        The whole PTDF on a small network, else None.
    low_angle, high_angle
        Limits of the flow (MW) that are equivalent to the limits of the angle difference.
    """

    def __init__(
        self,
        network: Network,
        convention: Convention = "series",
        contingencies: Contingencies | None = None,
    ) -> None:
        buses, branches = network.buses, network.branches
        self.buses = len(buses)
        self.from_bus, self.to_bus = branches.from_bus, branches.to_bus
        ends = buses.in_service[self.from_bus] & buses.in_service[self.to_bus]
        self.b = np.where(branches.in_service & ends, _susceptance(network, convention), 0.0)
        self.live: Bools = self.b != 0
        self.islands, self.island = _islands(self, buses.in_service)
        self.dense: Floats | None = None
        self._known: dict[int, Floats] = {}
        self._incidence = _incidence(self)
        self._place_shifts(network, convention)
        self._place_angles(network)
        self._factorise(_references(self, buses.reference))
        self.outages: Outages | None = None
        if contingencies is not None:
            self.outages = Outages(self, contingencies)

    @property
    def height(self) -> int:
        """How many flows have a limit: those of the branches, and those after outages."""
        return len(self.b) + (0 if self.outages is None else len(self.outages))

    def of(self, injection: Floats) -> Floats:
        """Compute the flows (MW) of injections, one row per model, without phase shifters."""
        if self.dense is not None:
            return self.after(np.asarray(injection @ self.dense.T))
        angle = np.zeros(injection.shape)
        angle[..., self._kept] = self._solve(injection[..., self._kept].T).T
        return self.after(self.b * (angle[..., self.from_bus] - angle[..., self.to_bus]))

    def after(self, flow: Floats) -> Floats:
        """Append the flows after outages to the flows on the branches."""
        if self.outages is None:
            return flow
        return np.concatenate([flow, self.outages.flow(flow)], axis=-1)

    def limits(self, normal: Floats, after: float | None = None) -> Floats:
        """Append the limits after outages (emergency ratings, or `after`) to those of branches."""
        if self.outages is None:
            return normal
        rated = self.outages.emergency * normal[..., self.outages.watched]
        more = rated if after is None else np.full(rated.shape, after)
        return np.concatenate([normal, more], axis=-1)

    def back(self, values: Floats) -> Floats:
        """Compute `F' values`: from values on the branches to values at the buses."""
        if self.outages is not None:
            here, after = values[..., : len(self.b)], values[..., len(self.b) :]
            values = here + self.outages.back(after)
        if self.dense is not None:
            return np.asarray(values @ self.dense)
        weighed = np.moveaxis(values * self.b, -1, 0)
        found = np.zeros(values.shape[:-1] + (self.buses,))
        found[..., self._kept] = self._solve((self._incidence.T @ weighed)[self._kept]).T
        return found

    def rows(self, flows: Ints) -> Floats:
        """Compute rows of the PTDF: the flow that 1 MW at each bus puts on these branches.

        Flows after outages have rows too; their numbers follow those of the branches.
        """
        if self.outages is None:
            return self._known_rows(flows)
        more = np.maximum(flows - len(self.b), 0)
        late = flows >= len(self.b)
        found = self._known_rows(np.where(late, self.outages.watched[more], flows))
        lost = self._known_rows(self.outages.lost[more[late]])
        found[late] += self.outages.factor[more[late], None] * lost
        return found

    def _known_rows(self, branches: Ints) -> Floats:
        if self.dense is not None:
            return np.asarray(self.dense[branches])
        # Threads may share this object: each keeps using the dictionary that it started with.
        memory = self._known
        found = {k: memory[k] for k in branches.tolist() if k in memory}
        new = np.array([k for k in branches.tolist() if k not in found], dtype=np.int64)
        fresh = dict(zip(new.tolist(), self._rows(new), strict=True))
        if (len(memory) + len(fresh)) * self.buses > CACHED_ENTRIES:
            self._known = fresh
        else:
            memory.update(fresh)
        found |= fresh
        return np.array([found[k] for k in branches.tolist()]).reshape(-1, self.buses)

    def grounded(self) -> tuple[Ints, csc_array]:
        """Return the buses whose angle is free, and the matrix from their angles to injections."""
        return self._kept, csc_array(_laplacian(self)[self._kept][:, self._kept])

    def _rows(self, branches: Ints) -> Floats:
        # One by one: the last bits of rows that are solved together depend on which these are, and
        # workers, who need other rows than the process that sent them, would have other answers.
        found = np.zeros((len(branches), self.buses))
        ends = self._incidence[branches][:, self._kept].toarray()
        for row, branch, end in zip(found, branches, ends, strict=True):
            row[self._kept] = self.b[branch] * self._solve(end)
        return found

    def _place_shifts(self, network: Network, convention: Convention) -> None:
        # flow = b (theta_f - theta_t - shift): the last term is a fixed flow, and what it
        # takes from one end and brings to the other is a fixed pair of injections.
        angle = np.deg2rad(network.branches.shift) if convention == "matpower" else 0.0
        self.shift_flow = -self.b * network.base_mva * angle
        self.shift_injection = np.bincount(
            self.from_bus, self.shift_flow, self.buses
        ) - np.bincount(self.to_bus, self.shift_flow, self.buses)

    def _place_angles(self, network: Network) -> None:
        slope = self.b * network.base_mva
        with np.errstate(invalid="ignore"):
            first = slope * np.deg2rad(network.branches.angle_min) + self.shift_flow
            second = slope * np.deg2rad(network.branches.angle_max) + self.shift_flow
        self.low_angle = np.where(self.live, np.minimum(first, second), -np.inf)
        self.high_angle = np.where(self.live, np.maximum(first, second), np.inf)

    def _factorise(self, references: Ints) -> None:
        held = self.island < 0
        held[references] = True
        self._kept = np.flatnonzero(~held)
        self._factors = _factors(self.grounded()[1]) if len(self._kept) else None
        if self.buses * len(self.b) <= DENSE_ENTRIES:
            ends = self._incidence[:, self._kept].toarray()
            self.dense = np.zeros((len(self.b), self.buses))
            self.dense[:, self._kept] = self.b[:, None] * self._solve(ends.T).T

    def _solve(self, right: Floats) -> Floats:
        if self._factors is None:
            return np.zeros(right.shape)
        return np.asarray(self._factors.solve(np.ascontiguousarray(right)))


def _susceptance(network: Network, convention: Convention) -> Floats:
    branches = network.branches
    r, x = branches.resistance, branches.reactance
    size = r**2 + x**2 if convention == "series" else x * branches.tap
    bad = np.flatnonzero(branches.in_service & (size == 0))
    if len(bad):
        raise InputError(
            f"Branch {branches.name[bad[0]]} has no impedance, so its flow is not defined.",
            remedy="Give it a reactance, or merge its two buses.",
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(x / size if convention == "series" else 1.0 / size)


def _islands(flows: Flows, in_service: Bools) -> tuple[int, Ints]:
    live = flows.live
    links = coo_array(
        (np.ones(int(live.sum())), (flows.from_bus[live], flows.to_bus[live])),
        shape=(flows.buses, flows.buses),
    )
    _, label = connected_components(links, directed=False)
    island = np.full(flows.buses, -1, dtype=np.int64)
    used, place = np.unique(label[in_service], return_inverse=True)
    island[in_service] = place
    return len(used), island


def _references(flows: Flows, reference: Bools) -> Ints:
    """Pick one bus of every island: its reference, or else its first bus."""
    order = np.argsort(~reference, kind="stable")
    order = order[flows.island[order] >= 0]
    _, first = np.unique(flows.island[order], return_index=True)
    return np.asarray(order[first], dtype=np.int64)


def _incidence(flows: Flows) -> csr_array:
    lines = np.arange(len(flows.b))
    values = np.concatenate([np.ones(len(lines)), -np.ones(len(lines))])
    places = (np.concatenate([lines, lines]), np.concatenate([flows.from_bus, flows.to_bus]))
    return csr_array(coo_array((values, places), shape=(len(lines), flows.buses)))


def _laplacian(flows: Flows) -> csc_array:
    live, b = flows.live, flows.b[flows.live]
    f, t = flows.from_bus[live], flows.to_bus[live]
    values = np.concatenate([b, b, -b, -b])
    places = (np.concatenate([f, t, f, t]), np.concatenate([f, t, t, f]))
    return csc_array(coo_array((values, places), shape=(flows.buses, flows.buses)))


def _factors(matrix: csc_array) -> SuperLU:
    # The matrix is symmetric, so pivots on the diagonal keep it sparsest; series capacitors
    # (negative reactance) can make them small, and then it is factorised with row exchanges.
    probe = np.cos(np.arange(matrix.shape[0], dtype=float))
    ways = (
        {
            "permc_spec": "MMD_AT_PLUS_A",
            "diag_pivot_thresh": 0.0,
            "options": {"SymmetricMode": True},
        },
        {"permc_spec": "COLAMD"},
    )
    for way in ways:
        try:
            factors = splu(matrix, **way)
        except RuntimeError:
            continue
        answer = factors.solve(probe)
        residual = np.abs(matrix @ answer - probe).max()
        if residual <= WORST_RESIDUAL * (1.0 + 1e-9 * np.abs(answer).max() * abs(matrix).max()):
            return factors
    raise InputError(
        "The susceptances of this network cancel out, so that its flows are not defined.",
        remedy="Look for branches in parallel or in series whose reactances add up to zero.",
    )
