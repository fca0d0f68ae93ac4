"""The AC optimal power flow of one network as a nonlinear programme, built once for all models.

Voltages are polar. Loads, ratings and costs are parameters of the programme, and limits are bounds,
so that one solver function serves a whole population. Two forms:

- *strict*: the least cost that meets all limits;
- *elastic*: the least total of overload (MVA) and of power that is missing or too much at buses (MW
  and Mvar), whatever it costs. Voltages, outputs and angles keep their limits: missing Mvar are
  those that would hold the voltages. Any voltages within their limits are a feasible point, so it
  always has a solution.

Rows of ratings are squares of powers, ``p^2 + q^2 <= (rating + overload)^2``. Branches can be lost:
whether they are live is a parameter too.

**Outages.** The numbers may hold a network several times over (see `secured`): as it is and after
outages. Then units stay within a band of their outputs before the outage, and only the outputs
before it cost anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import lsqr

from gridveil.errors import InputError
from gridveil.grid.model.costs import cost_at
from gridveil.grid.model.two_ports import Complex, to_complex
from gridveil.grid.opf.ac.model import AcModel, AcPoint
from gridveil.grid.opf.ac.numbers import AcNumbers, Floats

_SETTINGS: dict[str, Any] = {
    "print_time": False,
    "ipopt.print_level": 0,
    "ipopt.sb": "yes",
    "ipopt.linear_solver": "mumps",
    "ipopt.tol": 1e-8,
    "ipopt.constr_viol_tol": 1e-8,
    "ipopt.acceptable_iter": 0,
    "ipopt.max_iter": 150,
}
"""IPOPT's settings, without a time limit: an answer must not depend on how busy a machine is."""

_FINISHED = ("Solve_Succeeded", "Solved_To_Acceptable_Level")
_NUDGE = 1e-2
_GROUP = 30.0
"""The angle between vector groups of transformers, degrees; smaller shifts are for control."""


def casadi() -> Any:
    """Import CasADi, which builds and solves the programme, when it is first needed."""
    try:
        import casadi as found
    except ImportError:
        raise InputError(
            "AC power flow needs a package that is not installed (casadi).",
            remedy="Install it: pip install gridveil[ac].",
        ) from None
    return found


@dataclass(frozen=True, eq=False)
class Answer:
    """What IPOPT found: a point, its objective ($/h, or p.u. of shortfall) and multipliers.

    Parameters
    ----------
    state
        Angles, voltage magnitudes, active and reactive outputs: a start for the next model.
    load_price, rating_price
        By how much the objective rises with one more p.u. of load (complex: active and reactive) at
        every bus, and falls with one more p.u. of rating on every branch in service.
    low_price, high_price
        By how much it rises with a higher lower limit of each source's output, and falls with a
        higher upper limit (complex: active and reactive).
    """

    finished: bool
    value: float
    point: AcPoint
    state: Floats
    load_price: Complex
    rating_price: Floats
    low_price: Complex
    high_price: Complex


class Programme:
    """One network's AC optimal power flow, strict or elastic; IPOPT takes at most `steps` steps.

    `outages` is how many more times the numbers hold the network.
    """

    def __init__(
        self, numbers: AcNumbers, *, elastic: bool, steps: int | None = None, outages: int = 0
    ) -> None:
        ca = casadi()
        self.numbers = numbers
        self._elastic = elastic
        n, g, m = len(numbers.buses), len(numbers.at), len(numbers.limited)
        own = g // (1 + outages)
        units = numbers.network.generators
        first = numbers.units[: len(numbers.units) // (1 + outages)]
        points = (units.points[place] for place in first)
        curves = {k: curve for k, curve in enumerate(points) if curve is not None}
        self._curves = {} if elastic else curves
        self._curved = list(self._curves)
        angle, size = ca.SX.sym("angle", n), ca.SX.sym("size", n)
        p, q = ca.SX.sym("p", g), ca.SX.sym("q", g)
        height = ca.SX.sym("height", len(self._curved))
        pd, qd, rating = ca.SX.sym("pd", n), ca.SX.sym("qd", n), ca.SX.sym("rating", m)
        square, slope = ca.SX.sym("square", g), ca.SX.sym("slope", g)
        factor, live = ca.SX.sym("factor", len(self._curved)), ca.SX.sym("live", len(numbers.start))
        variables = [angle, size, p, q, height]
        given = [pd, qd, rating, square, slope, factor, live]
        over, lack = ca.SX.zeros(m), [ca.SX.zeros(n)] * 4
        if elastic:
            over = ca.SX.sym("over", m)
            lack = [ca.SX.sym(f"lack{k}", n) for k in range(4)]
            variables += [over, *lack]
            aim = ca.sum1(over) + sum(ca.sum1(one) for one in lack)
        else:
            aim = ca.sum1(square * p**2 + slope * p) + ca.dot(factor, height)
        *ends, apart = _flows(ca, numbers, angle, size)
        p1, q1, p2, q2 = (live * end for end in ends)
        at_start, at_end, at = (
            _incidence(ca, places, n) for places in (numbers.start, numbers.end, numbers.at)
        )
        ground, swing = ca.DM(numbers.shunt.real.copy()), ca.DM(numbers.shunt.imag.copy())
        balance_p = at @ p - pd + lack[0] - lack[1] - ground * size**2 - at_start @ p1 - at_end @ p2
        balance_q = at @ q - qd + lack[2] - lack[3] + swing * size**2 - at_start @ q1 - at_end @ q2
        some = numbers.limited.tolist()
        limit = (rating + over) ** 2
        rows = [
            balance_p,
            balance_q,
            p1[some] ** 2 + q1[some] ** 2 - limit,
            p2[some] ** 2 + q2[some] ** 2 - limit,
            apart[numbers.bounded.tolist()],
        ]
        for place, (k, curve) in enumerate(self._curves.items()):
            steep = np.diff(curve[:, 1]) / np.diff(curve[:, 0])
            start = curve[:-1, 1] - steep * curve[:-1, 0]
            rows.append(ca.DM(steep * numbers.base) * p[k] + ca.DM(start) - height[place])
        rows += [p[own * k : own * (k + 1)] - p[:own] for k in range(1, 1 + outages)]
        problem = {
            "x": ca.vertcat(*variables),
            "p": ca.vertcat(*given),
            "f": aim,
            "g": ca.vertcat(*rows),
        }
        fewer = {} if steps is None else {"ipopt.max_iter": steps}
        self._solver = ca.nlpsol("opf", "ipopt", problem, {**_SETTINGS, **fewer})
        self._ends = _row_ends(numbers, sum(len(one) - 1 for one in self._curves.values()))
        self._slacks = m + 4 * n if elastic else 0
        self._turned = _turned(numbers)

    def solve(self, model: AcModel, start: Floats | None = None) -> Answer:
        """Solve one model, starting from the state of another one if given."""
        numbers = self.numbers
        n, g, m = len(numbers.buses), len(numbers.at), len(numbers.limited)
        low, high = self._bounds(model)
        state = self._start(low, high, start)
        given = np.concatenate(
            [
                *(model.load.real, model.load.imag, model.rating[numbers.limited]),
                *(model.quadratic, model.linear, model.factor[self._curved], model.live),
            ]
        )
        lowest, highest = self._ends
        found = self._solver(
            x0=state,
            p=given,
            lbx=low,
            ubx=high,
            lbg=np.concatenate([lowest, -model.band]),
            ubg=np.concatenate([highest, model.band]),
        )
        status = self._solver.stats()["return_status"]
        x, value = _array(found["x"]), float(found["f"])
        # CasADi's multipliers are those of the Lagrangian "objective + multiplier (x - bound)".
        by_given, by_bound = -_array(found["lam_p"]), -_array(found["lam_x"])
        if not self._elastic:
            value += float(model.constant.sum())
        saved = np.zeros(len(numbers.branches))
        saved[numbers.limited] = -by_given[2 * n : 2 * n + m]
        outputs = to_complex(*by_bound[2 * n : 2 * (n + g)].reshape(2, g))
        return Answer(
            status in _FINISHED,
            value,
            operating_point(numbers, x[: 2 * (n + g)]),
            x[: 2 * (n + g)],
            to_complex(*by_given[: 2 * n].reshape(2, n)),
            saved,
            _part(outputs, 1.0),
            _part(outputs, -1.0),
        )

    def _bounds(self, model: AcModel) -> tuple[Floats, Floats]:
        numbers, buses = self.numbers, self.numbers.network.buses
        volts = model.voltage_low, model.voltage_high
        still = np.where(buses.reference[numbers.buses], 0.0, np.inf)
        # Limits that cross can't both be met; the check will report that.
        low = np.minimum(model.low.real, model.high.real), model.low.imag
        high = np.maximum(model.low.real, model.high.real), model.high.imag
        free, none = np.full(len(self._curved), np.inf), np.zeros(self._slacks)
        return (
            np.concatenate([-still, volts[0], *low, -free, none]),
            np.concatenate([still, volts[1], *high, free, none + np.inf]),
        )

    def _start(self, low: Floats, high: Floats, start: Floats | None) -> Floats:
        """Choose the start; by default equal voltages and outputs midway between their limits.

        Voltages are equal but for the turn of transformers with another vector group.
        """
        n, g = len(self.numbers.buses), len(self.numbers.at)
        with np.errstate(invalid="ignore"):
            state = np.where(np.isfinite(low + high), (low + high) / 2, np.clip(0.0, low, high))
        state[:n] = self._turned
        state[n : 2 * n] = np.clip(1.0, low[n : 2 * n], high[n : 2 * n])
        if start is not None:
            state[: 2 * (n + g)] = start
        outputs = state[2 * n : 2 * n + g] * self.numbers.base
        heights = [cost_at(curve, outputs[k]) for k, curve in self._curves.items()]
        return np.concatenate([state[: 2 * (n + g)], heights, np.full(self._slacks, _NUDGE)])


def operating_point(numbers: AcNumbers, state: Floats) -> AcPoint:
    """Return the voltages and outputs of a state (see `Answer`)."""
    n, g = len(numbers.buses), len(numbers.at)
    voltage = to_complex(state[n : 2 * n] * np.cos(state[:n]), state[n : 2 * n] * np.sin(state[:n]))
    return AcPoint(voltage, to_complex(*state[2 * n :].reshape(2, g)))


def _turned(numbers: AcNumbers) -> Floats:
    """Return angles that follow the vector groups of transformers, 0 at reference buses.

    Across a transformer of 150 degrees a start with equal angles is too far from any solution.
    """
    lines, buses = numbers.network.branches, numbers.network.buses
    angle = np.zeros(len(numbers.buses))
    shift = lines.shift[numbers.branches]
    groups = np.radians(_GROUP * np.round(shift / _GROUP))
    if not groups.any():
        return angle
    count, free = len(groups), ~buses.reference[numbers.buses]
    ends = np.concatenate([numbers.start, numbers.end])
    signs = np.repeat([1.0, -1.0], count)
    across = csr_array((signs, (np.tile(np.arange(count), 2), ends)), (count, len(angle)))
    some = csc_array(across[:, free])
    angle[free] = lsqr(some, groups, atol=1e-6, btol=1e-6)[0]
    return angle


def _flows(ca: Any, numbers: AcNumbers, angle: Any, size: Any) -> tuple[Any, ...]:
    """Write the power into branches at either end, and the angle between the ends, as formulas."""
    start, end = numbers.start.tolist(), numbers.end.tolist()
    first, second = size[start], size[end]
    apart = angle[start] - angle[end]
    cos, sin, both = ca.cos(apart), ca.sin(apart), first * second

    def real(values: Any) -> Any:
        return ca.DM(values.real.copy())

    def imag(values: Any) -> Any:
        return ca.DM(values.imag.copy())

    own, across = numbers.own_start, numbers.across_start
    p1 = real(own) * first**2 + both * (real(across) * cos + imag(across) * sin)
    q1 = -imag(own) * first**2 + both * (real(across) * sin - imag(across) * cos)
    own, across = numbers.own_end, numbers.across_end
    p2 = real(own) * second**2 + both * (real(across) * cos - imag(across) * sin)
    q2 = -imag(own) * second**2 + both * (-real(across) * sin - imag(across) * cos)
    return p1, q1, p2, q2, apart


def _incidence(ca: Any, places: Any, buses: int) -> Any:
    count = len(places)
    ones = ca.DM.ones(count)
    return ca.DM.triplet(places.tolist(), list(range(count)), ones, buses, count)


def _row_ends(numbers: AcNumbers, pieces: int) -> tuple[Floats, Floats]:
    lines, some = numbers.network.branches, numbers.branches[numbers.bounded]
    even, limits = np.zeros(2 * len(numbers.buses)), np.zeros(2 * len(numbers.limited))
    low = [even, limits - np.inf, np.radians(lines.angle_min[some]), np.full(pieces, -np.inf)]
    high = [even, limits, np.radians(lines.angle_max[some]), np.zeros(pieces)]
    return np.concatenate(low), np.concatenate(high)


def _part(prices: Any, side: float) -> Any:
    """Keep the prices of the lower limits (side 1) or of the upper ones (side -1)."""
    return to_complex(np.maximum(side * prices.real, 0.0), np.maximum(side * prices.imag, 0.0))


def _array(values: Any) -> Floats:
    return np.asarray(values, dtype=np.float64).ravel()
