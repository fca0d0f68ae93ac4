"""The peer of the grid benchmarks: one DC-OPF on angles in CVXPY, with parameters, built once.

Everything is per unit, so that HiGHS sees numbers of about one.
"""

import cvxpy as cp
import numpy as np
from scipy.sparse import coo_array, csr_array


class Peer:
    """A parametrised problem: loads, upper limits and linear costs change from model to model."""

    def __init__(self, network):
        self.network = network
        buses, units, lines = network.buses, network.generators, network.branches
        self.units = np.flatnonzero(units.in_service & buses.in_service[units.bus])
        ends = buses.in_service[lines.from_bus] & buses.in_service[lines.to_bus]
        live = np.flatnonzero(lines.in_service & ends)
        f, t = lines.from_bus[live], lines.to_bus[live]
        r, x = lines.resistance[live], lines.reactance[live]
        slope = x / (r**2 + x**2)
        rows = np.arange(len(live))
        places = (np.r_[rows, rows], np.r_[f, t])
        shape = (len(live), len(buses))
        ones = np.ones(len(live))
        across = csr_array(coo_array((np.r_[ones, -ones], places), shape=shape))
        carry = csr_array(coo_array((np.r_[slope, -slope], places), shape=shape))
        count = len(self.units)
        at = csr_array(
            coo_array(
                (np.ones(count), (units.bus[self.units], np.arange(count))),
                shape=(len(buses), count),
            )
        )
        self.p, theta = cp.Variable(count), cp.Variable(len(buses))
        self.load, self.high = cp.Parameter(len(buses)), cp.Parameter(count)
        self.cost = cp.Parameter(count)
        self.served = buses.in_service
        angle = np.minimum(
            np.abs(slope) * np.deg2rad(np.minimum(lines.angle_max[live], 360.0)),
            lines.capacity[live] / network.base_mva,
        )
        limited = np.flatnonzero(np.isfinite(angle))
        flow = carry @ theta
        rules = [
            at @ self.p - (across.T @ carry) @ theta == self.load,
            self.p >= units.p_min[self.units] / network.base_mva,
            self.p <= self.high,
            theta[np.flatnonzero(buses.reference)] == 0,
            flow[limited] <= angle[limited],
            flow[limited] >= -angle[limited],
        ]
        self.problem = cp.Problem(cp.Minimize(self.cost @ self.p), rules)

    def solve(self, population, k):
        """Set model `k` and solve it with HiGHS; its cost."""
        buses, units = self.network.buses, self.network.generators
        load = buses.load * population.load[k] + buses.shunt
        base = self.network.base_mva
        self.load.value = np.where(self.served, load, 0.0) / base
        self.high.value = (units.p_max * population.p_max[k])[self.units] / base
        self.cost.value = population.cost[k, self.units]
        self.problem.solve(solver=cp.HIGHS)
        return base * self.problem.value if self.problem.status == "optimal" else np.inf
