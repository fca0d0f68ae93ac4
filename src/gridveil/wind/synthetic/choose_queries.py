"""Choose the queries of the blocks, with their radii and shares of epsilon, from public numbers.

Radii are about the 90% quantile of the norms of real turbines' blocks, as a share of the block's
length, so few blocks are clipped. With many records or a large epsilon there is little noise, and
clipping matters more: then radii grow, up to what no block can exceed. Priors are those of turbines
in general. A query whose answer would drown in noise is not asked: its epsilon goes to the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from gridveil.wind.clock import SECONDS
from gridveil.wind.synthetic.public_farm import SPEEDS, Farm

_LENGTHS = np.log([1.0, 6.0, 144.0, 1008.0])  # lengths of blocks, in periods of ten minutes
_RADII = {
    "rough": (0.3, 0.15, 0.08, 0.06),
    "curve": (2.0, 1.2, 0.75, 0.6),
    "turbines": (2.0, 1.1, 0.65, 0.5),
    "months": (1.5, 0.9, 0.5, 0.4),
    "hours": (2.0, 1.1, 0.7, 0.5),
    "response": (2.0, 0.8, 0.25, 0.15),
    "stops": (1.0, 1.0, 0.3, 0.2),
    "spells": (1.0, 1.0, 0.021, 0.006),
    "spread": (1.2, 0.8, 0.45, 0.35),
    "shape": (2.0, 1.6, 0.8, 0.6),
    "lags": (0.8, 0.8, 0.65, 0.45),
}
_LARGEST = {"rough": 0.25, "curve": 3.0, "turbines": 3.0, "months": 3.0, "hours": 3.0} | {
    "response": 6.0, "stops": 1.0, "spells": 0.5, "spread": 3.0, "shape": 2.0, "lags": 2.0,
}  # fmt: skip
_FEW = 432_000  # ten-minute records times epsilon up to which these radii are used
_SHARES = {
    "rough": 0.08,
    "scale": 0.04,
    "curve": 0.13,
    "turbines": 0.08,
    "months": 0.10,
    "hours": 0.08,
    "response": 0.04,
    "stops": 0.18,
    "spells": 0.04,
    "typical": 0.03,
    "spread": 0.06,
    "shape": 0.05,
    "lags": 0.08,
}
QUESTIONS = {
    "reference": "shape of the power curve",
    "rough": "distance from that shape",
    "scale": "median distance from the curve",
    "curve": "means of residuals by wind speed",
    "turbines": "means of residuals by turbine and wind speed",
    "months": "means of residuals by month",
    "hours": "means of residuals by quarter and part of the day",
    "response": "how residuals follow the wind speeds before and after",
    "stops": "stopped and derated records",
    "spells": "spells of stopped and derated records",
    "typical": "median distance from the means",
    "spread": "sizes of residuals by turbine and wind speed",
    "shape": "distribution of residuals",
    "lags": "products of residuals at several lags",
}
"""The queries, in words."""
_LONG = ("spells", "lags")
_TIMED = ("months", "hours", "response", "spells", "lags")
_ROOT2 = float(np.sqrt(2.0))

KEPT = (1.0, 1.0, 0.85, 0.8)
"""A guess of the share of stopped records that clipping leaves, for blocks of `_LENGTHS`."""
STOPPED = 0.015
"""The prior of the share of records with enough wind at which turbines stand still."""
SPELL = 6.0
"""The prior of the number of records in a spell of stopped records."""
SPELL_SPREAD = 0.35
"""The prior's deviation of the number of spells, as a share of it."""
MONTH_SPREAD, HOUR_SPREAD, TURBINE_SPREAD = 0.35, 0.3, 0.3
"""The priors' deviations of the means of a month, a part of the day or a turbine, in spreads."""

RESPONSE, RESPONSE_SPREAD = 0.08, 0.08
"""The prior of how far power moves to the curve before and after, and its deviation."""


@dataclass(frozen=True)
class Agenda:
    """The queries of a release.

    Parameters
    ----------
    epsilon
        The epsilon of each query, by name; those that are missing are not asked.
    radius
        The radius of each sum, by name.
    turbine_knots
        The number of knots of a turbine's deviation from the common curve.
    months_by_turbine
        Whether months are asked for each turbine.
    stops
        How stops are asked: by wind ``"speed"`` and kind, by ``"turbine"``, or for the ``"farm"``.
    stops_kept
        The share of stopped records that clipping is expected to leave.
    unknown, month_unknown
        How far noise alone moves the mean of all residuals, and that of a month (None if months are
        not asked), in spreads of records.
    """

    epsilon: dict[str, Fraction]
    radius: dict[str, float]
    turbine_knots: int
    months_by_turbine: bool
    stops: Literal["speed", "turbine", "farm"]
    stops_kept: float
    unknown: float
    month_unknown: float | None

    def noise(self, name: str) -> str:
        """Write the scale of the noise on each number of an answer."""
        part = float(self.epsilon[name])
        if name not in self.radius:
            return f"{2 / part:.4g} blocks"
        counted = name == "spells" or (name == "stops" and self.stops != "speed")
        return f"{(1 if counted else 2) * self.radius[name] / part:.4g} records"

    def asks(self, name: str) -> bool:
        """Say whether this query is asked."""
        return name in self.epsilon


def make_agenda(farm: Farm, epsilon: Fraction) -> Agenda:
    """Choose the queries from public numbers."""
    wider = max(np.sqrt(_records(farm) * float(epsilon) / _FEW), 1.0)
    radius = {name: _radius(farm, name, wider) for name in _RADII}
    first = float(np.clip(150 / farm.blocks, 0.03, 0.15))
    shares = dict(_SHARES)
    shares["typical"] *= float(np.clip(3000 / farm.blocks, 1, 3))
    shares["scale"] *= float(np.clip(3000 / farm.blocks, 1, 2))
    if not farm.timed:
        shares = {name: share for name, share in shares.items() if name not in _TIMED}
    if farm.size == 1:
        shares.pop("turbines")

    def noise(name: str) -> float:
        """Compute the standard deviation of this query's noise, if it is asked."""
        share = (1 - first) * shares[name] / sum(shares.values())
        moves = 1 if name in ("spells", "stops") else 2
        return _ROOT2 * moves * radius[name] / (float(epsilon) * share)

    turning = float(farm.counts[:, SPEEDS >= 3.5].sum())
    windy = float(farm.counts[:, SPEEDS >= 5.5].sum())
    for name, prior, count in (
        ("hours", HOUR_SPREAD, 0.75 * turning / 32),
        ("months", MONTH_SPREAD, 0.5 * turning / farm.months),
        ("response", RESPONSE_SPREAD, 0.5 * turning),
        ("turbines", TURBINE_SPREAD, 0.75 * turning / farm.size / 3),
        ("stops", STOPPED, windy),
        ("spells", SPELL_SPREAD, max(STOPPED * windy / SPELL, 1.0)),
    ):
        if name in shares and noise(name) / max(count, 1.0) > 1.5 * prior:
            shares.pop(name)
    if "stops" not in shares:
        shares.pop("spells", None)
    by_turbine = (
        "months" in shares
        and 1 < farm.size <= 1500 // farm.months
        and noise("months") / (0.6 * turning / farm.size / farm.months) < 0.25
    )
    month = 0.6 * turning / farm.months / (farm.size**0.5 if by_turbine else 1)
    return Agenda(
        epsilon=_exact(shares, first, epsilon),
        radius=radius,
        turbine_knots=_turbine_knots(noise("turbines"), turning / farm.size)
        if "turbines" in shares
        else 0,
        months_by_turbine=by_turbine,
        stops=_stops(noise("stops") / wider / windy, farm.size) if "stops" in shares else "farm",
        stops_kept=_kept(farm, wider),
        unknown=noise("curve") / max(turning, 1.0),
        month_unknown=noise("months") / max(month, 1.0) if "months" in shares else None,
    )


def _records(farm: Farm) -> float:
    """Count the farm's records, or with times the periods of ten minutes that they cover."""
    return farm.rows * (farm.step / 600 if farm.timed else 1.0)


def _radius(farm: Farm, name: str, wider: float) -> float:
    if not farm.timed:
        return _wide(_RADII[name][0], name, wider)
    seconds = SECONDS[farm.unit]
    seconds = max(seconds, SECONDS["day"]) if name in _LONG else seconds
    length = farm.long_length if name in _LONG else farm.length
    return _wide(_at_length(farm, _RADII[name], seconds), name, wider) * length


def _wide(share: float, name: str, wider: float) -> float:
    """Widen a radius, as a share of the block's length, up to its largest value."""
    return float(min(share * wider, max(_LARGEST[name], share)))


def _kept(farm: Farm, wider: float) -> float:
    """Estimate the share of stopped records that clipping leaves: 1 if nothing is clipped."""
    kept, usual = _at_length(farm, KEPT), _at_length(farm, _RADII["stops"])
    cut = (1 - min(usual * wider, 1.0)) / max(1 - usual, 1e-9)
    return 1 - (1 - kept) * cut


def _at_length(farm: Farm, table: tuple[float, ...], seconds: int | None = None) -> float:
    """Interpolate a table over lengths of blocks at this farm's length."""
    length = SECONDS[farm.unit] if seconds is None else seconds
    return float(np.interp(np.log(max(length / 600, 1.0)), _LENGTHS, table))


def _stops(error: float, turbines: int) -> Literal["speed", "turbine", "farm"]:
    """Choose how finely stops are asked, from the error of the farm's share at the usual radius."""
    if 2 * error / 0.15 < 0.0005:
        return "speed"
    return "turbine" if error * turbines < 0.15 * STOPPED else "farm"


def _turbine_knots(noise: float, turning: float) -> int:
    return next((n for n in (20, 7, 4) if noise / (turning / n) < 0.25), 3)


def _exact(shares: dict[str, float], first: float, epsilon: Fraction) -> dict[str, Fraction]:
    """Make exact parts of epsilon that add up to it; that of the reference is about ``first``."""
    whole = sum(shares.values())
    parts = {
        n: Fraction(round(10_000 * (1 - first) * s / whole), 10_000) for n, s in shares.items()
    }
    return {
        "reference": epsilon * (1 - sum(parts.values())),
        **{n: epsilon * p for n, p in parts.items()},
    }
