"""AC models whose dispatch must survive outages: preventive security.

After the outage of a branch every unit's active output stays within `BAND` of where it was, which
leaves room for the change in losses; reactive outputs and voltages are found again within their
limits, and ratings are emergency ratings. Limits of angles count before an outage only, as in DC.

A programme with all outages would be large, and few of them matter. So a model is solved together
with the *critical* outages alone, at first none. The others are looked at one by one at the
dispatch that was found, and those that it does not survive become critical.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.two_ports import to_complex
from gridveil.grid.opf.ac.check import misses
from gridveil.grid.opf.ac.model import AcModel
from gridveil.grid.opf.ac.numbers import AcNumbers, Floats
from gridveil.grid.opf.ac.programme import Answer, Programme, operating_point
from gridveil.grid.opf.outages import Contingencies

Ints = NDArray[np.int64]

BAND = 0.01
"""By how much a unit's active output may differ after an outage, as a share of its size."""
LEAST = 1e-5
"""The shortfall of a model that is not served is at least this (p.u.), if found to be smaller."""
QUICK = 40
"""If the strict form finds no point in this many steps, the elastic one is solved."""
# So many outages become critical at once. Outages mostly fall short for the same few branches.
_AT_ONCE = 4
# How many numbers are remembered of points that survived outages (160 MB).
_REMEMBERED = 20_000_000

Solve = Callable[[AcNumbers, AcModel, int, Floats | None], tuple[bool, Floats]]
"""Solves a model together with a number of outages from a state: whether it is served, and a state
(angles, voltages, active and reactive outputs)."""


class Security:
    """A list of outages of one network, and those that turned out to be critical.

    Parameters
    ----------
    numbers
        The network.
    given
        The outages.
    """

    def __init__(self, numbers: AcNumbers, given: Contingencies) -> None:
        self.numbers = numbers
        self.emergency = given.emergency
        self.critical: tuple[int, ...] = ()
        """Places in the list of the outages that models are solved with."""
        self._lost = np.searchsorted(numbers.branches, np.array(given.lines, dtype=np.int64))
        self._open = replace(numbers, bounded=numbers.bounded[:0])
        self._looks: dict[bool, Programme] = {}
        self._stacks: dict[int, AcNumbers] = {}
        self._points: dict[int, dict[int, Floats]] = {}
        self._room = _REMEMBERED // (2 * (len(numbers.buses) + len(numbers.at)))

    def __len__(self) -> int:
        return len(self._lost)

    def stack(self, outages: int) -> AcNumbers:
        """Return the numbers of the network as it is and, side by side, after so many outages."""
        if outages not in self._stacks:
            self._stacks[outages] = _stacked(self.numbers, outages)
        return self._stacks[outages]

    def together(self, model: AcModel, critical: tuple[int, ...]) -> AcModel:
        """Return a model as it is and after some outages, for the numbers of their `stack`."""
        times = 1 + len(critical)
        tiled = {one.name: np.tile(getattr(model, one.name), times) for one in fields(AcModel)}
        rating, live = (tiled[name].reshape(times, -1) for name in ("rating", "live"))
        rating[1:] *= self.emergency
        live[np.arange(1, times), self._lost[list(critical)]] = 0.0
        for name in ("quadratic", "linear", "constant", "factor"):
            tiled[name][len(model.low) :] = 0.0
        band = np.tile(_band(model), len(critical))
        return AcModel(**{**tiled, "rating": rating.ravel(), "live": live.ravel(), "band": band})

    def after(self, model: AcModel, state: Floats, outage: int) -> AcModel:
        """Return a model after one outage, with the units about where a state has them."""
        units, live = len(model.low), model.live.copy()
        live[self._lost[outage]] = 0.0
        active = np.clip(state[-2 * units : -units], model.low.real, model.high.real)
        low = np.maximum(model.low.real, active - _band(model))
        high = np.minimum(model.high.real, active + _band(model))
        return replace(
            model,
            low=to_complex(low, model.low.imag),
            high=to_complex(high, model.high.imag),
            rating=self.emergency * model.rating,
            live=live,
        )

    def secure(
        self,
        model: AcModel,
        solve: Solve,
        start: Floats | None = None,
        known: int | None = None,
    ) -> bool:
        """Find a dispatch that survives all outages, making outages critical until one does.

        Parameters
        ----------
        model
            The model before any outage.
        solve
            Solves it together with the critical outages. Its last answer is the one that counts.
        start
            A state of this model or another one, together with the outages critical then.
        known
            A number for the model, if points that survived outages should be kept for `survives`.

        Returns
        -------
        bool
            Whether there is one; False if the critical outages can't be survived together.
        """
        while True:
            critical = self.critical
            stack, together = self.stack(len(critical)), self.together(model, critical)
            if start is not None:
                parts = self.split(start)
                start = self.join(parts + parts[:1] * (1 + len(critical) - len(parts)))
            served, state = solve(stack, together, len(critical), start)
            if not served:
                return False
            parts = self.split(state)
            for outage, part in zip(critical, parts[1:], strict=True):
                self._keep(known, outage, part)
            others = [k for k in range(len(self)) if k not in critical]
            short = self.look(model, parts[0], others, known=known, enough=_AT_ONCE)
            more = [k for k, value in zip(others, short, strict=False) if value != 0]
            if not more:
                return True
            self.critical, start = (*critical, *more), state

    def look(
        self,
        model: AcModel,
        state: Floats,
        some: Iterable[int] | None = None,
        *,
        known: int | None = None,
        enough: int | None = None,
    ) -> list[float]:
        """Compute the shortfall after outages (p.u.) with the units where a state has them.

        0 if the outage is survived, NaN if no solver ended. It looks at some outages or at all, and
        stops after `enough` that are not survived.
        """
        found: list[float] = []
        for outage in range(len(self)) if some is None else some:
            if enough is not None and sum(value != 0 for value in found) >= enough:
                break
            found.append(self._after(self.after(model, state, outage), state, outage, known))
        return found

    def survives(self, model: AcModel, state: Floats, known: int) -> bool:
        """Say whether a dispatch survives all outages, starting from the points that were kept."""
        return not any(self.look(model, state, known=known, enough=1))

    def split(self, state: Floats) -> list[Floats]:
        """Split a state of a stack into states of the network before and after outages."""
        n, g = len(self.numbers.buses), len(self.numbers.at)
        times = len(state) // (2 * (n + g))
        ends = np.cumsum([0, *(times * one for one in (n, n, g, g))])
        groups = [state[a:b].reshape(times, -1) for a, b in pairwise(ends)]
        return [np.concatenate(one) for one in zip(*groups, strict=True)]

    def join(self, parts: list[Floats]) -> Floats:
        """Join states of the network before and after outages into one of their stack."""
        n, g = len(self.numbers.buses), len(self.numbers.at)
        ends = np.cumsum([0, n, n, g, g])
        pairs = pairwise(ends)
        return np.concatenate([part[a:b] for a, b in pairs for part in parts])

    def fold(self, answer: Answer) -> Answer:
        """Add up the multipliers of a stack's answer: those of the model's own numbers."""
        n, g, m = (len(one) for one in (self.numbers.buses, self.numbers.at, self.numbers.start))
        rating = answer.rating_price.reshape(-1, m)
        return replace(
            answer,
            load_price=answer.load_price.reshape(-1, n).sum(0),
            rating_price=rating[0] + self.emergency * rating[1:].sum(0),
            low_price=answer.low_price.reshape(-1, g).sum(0),
            high_price=answer.high_price.reshape(-1, g).sum(0),
        )

    def _after(self, model: AcModel, state: Floats, outage: int, known: int | None) -> float:
        kept = None if known is None else self._points.get(known, {}).get(outage)
        if kept is not None and misses(self._open, model, operating_point(self._open, kept)).serves:
            return 0.0
        free = {name: 0.0 * getattr(model, name) for name in ("quadratic", "linear", "factor")}
        cheap = replace(model, **free)
        answer = self._programme(elastic=False).solve(cheap, state)
        if not misses(self._open, model, answer.point).serves:
            answer = self._programme(elastic=True).solve(cheap, state)
            if not misses(self._open, model, answer.point).serves:
                return max(answer.value, LEAST) if answer.finished else np.nan
        self._keep(known, outage, answer.state)
        return 0.0

    def _keep(self, known: int | None, outage: int, state: Floats) -> None:
        if known is None:
            return
        points = self._points.setdefault(known, {})
        if outage in points or self._room > 0:
            self._room -= outage not in points
            points[outage] = state

    def _programme(self, *, elastic: bool) -> Programme:
        if elastic not in self._looks:
            steps = None if elastic else QUICK
            self._looks[elastic] = Programme(self._open, elastic=elastic, steps=steps)
        return self._looks[elastic]


def _band(model: AcModel) -> Floats:
    return np.asarray(BAND * np.maximum(np.abs(model.low.real), np.abs(model.high.real)))


def _stacked(numbers: AcNumbers, outages: int) -> AcNumbers:
    """Put copies of a network side by side; angles are bounded in the first alone."""
    steps = {
        "start": len(numbers.buses),
        "end": len(numbers.buses),
        "at": len(numbers.buses),
        "limited": len(numbers.branches),
    }
    tiled = {}
    for one in fields(AcNumbers):
        values = getattr(numbers, one.name)
        if isinstance(values, np.ndarray) and one.name != "bounded":
            away = np.arange(1 + outages)[:, None] * steps.get(one.name, 0)
            tiled[one.name] = (values + away.astype(values.dtype)).ravel()
    return replace(numbers, **tiled)
