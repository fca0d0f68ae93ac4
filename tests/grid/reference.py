"""Random small networks, and an independent DC-OPF on angles to check the engine against."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
from scipy.sparse import csr_array

from gridveil.grid.model.network import Branches, Buses, Generators, Network


def random_network(seed, *, buses=6, extra=4, tight=1.0, curved=False, pieces=False, islands=1):
    """Draw a network with most of what real ones have: see the comments."""
    rng = np.random.default_rng(seed)
    part = np.arange(buses) * islands // buses
    ends = []
    for b in range(1, buses):
        same = np.flatnonzero(part[:b] == part[b])
        if len(same):
            ends.append((rng.choice(same), b))
    for _ in range(extra):
        a = rng.integers(buses)
        b = rng.choice(np.flatnonzero(part == part[a]))
        if a != b:
            ends.append((a, b))
    ends.append(ends[0])  # a parallel line
    ends.append(ends[0])  # and one that is out of service
    ends = np.array(ends)
    lines, units = len(ends), buses + 2  # several units on some buses
    load = rng.uniform(20, 80, buses)
    load[-1] = -5.0
    p_max = rng.uniform(60, 160, units)
    p_min = np.where(rng.random(units) < 0.3, 5.0, 0.0)
    p_min[-1] = -20.0  # a dispatchable load
    unit_on = np.ones(units, bool)
    unit_on[0] = False
    line_on = np.ones(lines, bool)
    line_on[-1] = False
    capacity = tight * rng.uniform(25, 90, lines)
    capacity[1] = np.inf
    linear = rng.uniform(5, 60, units)
    points = [None] * units
    if pieces:
        for k in range(0, units, 2):
            x = np.sort(rng.uniform(p_min[k], p_max[k], 4))
            slopes = np.sort(rng.uniform(5, 60, 3))
            points[k] = np.column_stack([x, 100 + np.r_[0, np.cumsum(slopes * np.diff(x))]])
    own = np.array([p is None for p in points])
    quadratic = np.where(rng.random(units) < 0.6, rng.uniform(0.01, 0.3, units), 0.0) * curved
    return Network(
        name=f"random {seed}",
        base_mva=100.0,
        buses=Buses(
            name=tuple(f"b{k}" for k in range(buses)),
            load=load,
            shunt=np.where(np.arange(buses) == 1, 3.0, 0.0),
            reference=np.arange(buses) == buses // 2,
            in_service=np.ones(buses, bool),
        ),
        generators=Generators(
            name=tuple(f"g{k}" for k in range(units)),
            bus=np.r_[np.arange(buses), rng.integers(0, buses, 2)],
            p_min=p_min,
            p_max=p_max,
            in_service=unit_on,
            quadratic=quadratic * own,
            linear=linear * own,
            constant=rng.uniform(0, 50, units) * own,
            points=tuple(points),
        ),
        branches=Branches(
            name=tuple(f"l{k}" for k in range(lines)),
            from_bus=ends[:, 0].astype(np.int64),
            to_bus=ends[:, 1].astype(np.int64),
            resistance=rng.uniform(0, 0.05, lines),
            reactance=rng.uniform(0.05, 0.3, lines),
            tap=np.where(rng.random(lines) < 0.3, rng.uniform(0.9, 1.1, lines), 1.0),
            shift=np.where(rng.random(lines) < 0.3, rng.uniform(-3, 3, lines), 0.0),
            capacity=capacity,
            angle_min=np.full(lines, -np.inf),
            angle_max=np.where(np.arange(lines) == 2, 6.0, np.inf),
            in_service=line_on,
        ),
    )


def angle_model(network, *, model="strict", price=None, convention="series"):
    """Build the DC-OPF on angles in CVXPY; returns the problem, and what it is made of."""
    kinds = (model,) if isinstance(model, str) else model
    buses, units, lines = network.buses, network.generators, network.branches
    on = np.flatnonzero(units.in_service & buses.in_service[units.bus])
    ends = buses.in_service[lines.from_bus] & buses.in_service[lines.to_bus]
    live = np.flatnonzero(lines.in_service & ends)
    r, x = lines.resistance[live], lines.reactance[live]
    b = x / (r**2 + x**2) if convention == "series" else 1 / (x * lines.tap[live])
    shift = np.deg2rad(lines.shift[live]) if convention == "matpower" else np.zeros(len(live))
    p, theta = cp.Variable(len(on)), cp.Variable(len(buses))
    flow = cp.Variable(len(live))
    rated = np.flatnonzero(np.isfinite(lines.capacity[live]))
    capacity = cp.Parameter(len(rated), value=lines.capacity[live][rated])
    load = cp.Parameter(len(buses), value=buses.load)
    low, high = (cp.Parameter(len(on), value=v[on]) for v in (units.p_min, units.p_max))
    linear = cp.Parameter(len(on), value=units.linear[on])
    difference = theta[lines.from_bus[live]] - theta[lines.to_bus[live]]
    out = np.zeros((len(buses), len(live)))
    out[lines.from_bus[live], np.arange(len(live))] += 1
    out[lines.to_bus[live], np.arange(len(live))] -= 1
    at = np.zeros((len(buses), len(on)))
    at[units.bus[on], np.arange(len(on))] = 1
    served = buses.in_service
    net = csr_array(at) @ p - load - buses.shunt - csr_array(out) @ flow
    cost = linear @ p + units.constant[on].sum() + units.quadratic[on] @ cp.square(p)
    for k, unit in enumerate(on):
        if units.points[unit] is not None:
            points = units.points[unit]
            slope = np.diff(points[:, 1]) / np.diff(points[:, 0])
            start = points[:-1, 1] - slope * points[:-1, 0]
            cost += cp.max(cp.multiply(slope, p[k]) + start)
    slack = cp.Constant(np.zeros(len(live)))
    if "relaxed" in kinds:
        slack = cp.Variable(len(live), nonneg=True)
        cost += price * cp.sum(slack)
    if "shed" in kinds:
        shed = cp.Variable(len(buses))
        net = net + shed
        cost += price * cp.norm1(shed)
    rules = [
        flow == network.base_mva * cp.multiply(b, difference - shift),
        net[np.flatnonzero(served)] == 0,
        (flow - slack)[rated] <= capacity,
        (-flow - slack)[rated] <= capacity,
    ]
    if "limits" in kinds:
        cost += price * cp.sum(cp.pos(p - high) + cp.pos(low - p))
    else:
        rules += [p >= low, p <= high]
    for side, sign in ((lines.angle_max, 1), (lines.angle_min, -1)):
        some = np.flatnonzero(np.isfinite(side[live]))
        if len(some):
            room = cp.multiply(slack[some], 1 / (network.base_mva * b[some]))
            rules.append(sign * difference[some] - room <= sign * np.deg2rad(side[live][some]))
    problem = cp.Problem(cp.Minimize(cost), rules)
    return problem, {"capacity": capacity, "load": load, "p": p, "high": high, "linear": linear}


def reference_cost(network, **how):
    """Solve one model independently; inf where it is infeasible."""
    problem, _ = angle_model(network, **how)
    problem.solve(solver=cp.CLARABEL if network.generators.quadratic.any() else cp.HIGHS)
    return float(problem.value) if problem.status == "optimal" else np.inf


def with_generators(network, **changes):
    return replace(network, generators=replace(network.generators, **changes))


def with_branches(network, **changes):
    return replace(network, branches=replace(network.branches, **changes))
