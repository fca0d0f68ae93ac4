"""Synthetic: ask for a few sums over whole blocks of records, then draw new records.

The unit of protection is a block: one calendar hour, day or week of one turbine, or a record.
`gridveil.wind.synthetic` has the queries, and proves how far they move.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from gridveil.errors import GridveilError, InputError, show_exact
from gridveil.release.plan import Asked
from gridveil.wind.curve_prior import Reference
from gridveil.wind.methods.base import (
    FEW,
    Guarantee,
    Method,
    Outcome,
    Prepared,
    Released,
    Task,
    slices,
)
from gridveil.wind.regression import Fit
from gridveil.wind.synthetic.ask_queries import Inquiry
from gridveil.wind.synthetic.choose_queries import QUESTIONS, Agenda, make_agenda
from gridveil.wind.synthetic.generate import generate
from gridveil.wind.synthetic.knots import choose_knots
from gridveil.wind.synthetic.learn_means import ask_base, ask_means, ask_reference
from gridveil.wind.synthetic.learn_scatter import Scatter, Stops, ask_scatter, ask_stops
from gridveil.wind.synthetic.public_farm import Farm, Vector

# Warn if noise moves the mean by more than this, in units of the records' spread. On days of a farm
# the error of the energy was 3.6% at 0.11, and 29% at 0.3.
_FEW_BLOCKS = 0.15
_SPREAD = 0.05  # of capacity: how far ten-minute records usually are from their curve


@dataclass(frozen=True, eq=False, kw_only=True)
class Questions(Prepared):
    """The public facts of the farm, and the queries that will be asked."""

    shares: tuple[Fraction, Fraction, Fraction] = (Fraction(0), Fraction(0), Fraction(0))
    farm: Farm
    agenda: Agenda
    epsilon: Fraction

    def settings(self) -> dict[str, Any]:
        """See `Prepared.settings`."""
        parts = self.agenda.epsilon.items()
        return {
            "step_seconds": self.farm.step or None,
            "blocks": self.farm.blocks,
            "epsilon_shares": {name: show_exact(part / self.epsilon) for name, part in parts},
        }

    def accuracy(self, fits: Sequence[Fit], guarantee: Guarantee) -> str:
        """See `Prepared.accuracy`."""
        # The mean of all records is a sum over the knots, each with noise of its own.
        mean = _SPREAD * self.agenda.unknown * math.sqrt(len(choose_knots(self.farm)))
        month = ""
        if self.agenda.month_unknown is not None:
            month = f", and that of a month by about {_SPREAD * self.agenda.month_unknown:.1%}"
        elif self.farm.timed:
            month = " (there was too much noise to ask for months: they follow the wind speeds)"
        return (
            f"noise moves the mean power by at most about {mean:.1%} of capacity{month}, if "
            f"records are {_SPREAD:.0%} of capacity off their power curve; the wider they scatter, "
            "the more. Single turbines, and wind speeds with few records, are known less well"
        )

    def doubts(self, fits: Sequence[Fit], guarantee: Guarantee) -> list[str]:
        """See `Prepared.doubts`."""
        rows, unit = int(self.farm.counts.sum()), guarantee.unit
        if self.agenda.unknown < _FEW_BLOCKS or rows < FEW:
            return []
        enough = math.ceil(self.farm.blocks * self.agenda.unknown / _FEW_BLOCKS)
        counted = "records" if unit == "record" else f"{unit}s of one turbine"
        return [
            f"There are {self.farm.blocks:,} {counted}, too few for the method synthetic: noise on "
            f"sums over them moves the mean of all records by about {self.agenda.unknown:.0%} of "
            f"their spread about the curve, and the shape of the curve is uncertain. From about "
            f"{enough:,} on it makes sense. What would work: more records or turbines, more "
            "epsilon, or a smaller unit."
        ]

    def asked(self, fits: Sequence[Fit], guarantee: Guarantee) -> Sequence[Asked]:
        """See `Prepared.asked`."""
        return [
            Asked(QUESTIONS[name], self.agenda.noise(name), part)
            for name, part in self.agenda.epsilon.items()
        ]

    def check(self, guarantee: Guarantee) -> None:
        """Check nothing: the agenda is made so that every query can be asked."""


@dataclass(frozen=True, kw_only=True)
class Synthetic(Method):
    """Draw records from noisy sums over blocks: curve, months, scatter, stops, order in time.

    Parameters
    ----------
    ridge
        The ridge parameter of the regression that the report shows; 0 to 1e6.
    """

    method: ClassVar[str] = "synthetic"

    def prepare(self, fits: Sequence[Fit], guarantee: Guarantee) -> Questions:
        """See `Method.prepare`."""
        if guarantee.alpha != 1:
            raise InputError(
                "The method synthetic protects all powers of a unit anywhere in [0, capacity]: "
                f"alpha {show_exact(guarantee.alpha)} would not need less noise.",
                remedy="Leave alpha out, or give 100%.",
            )
        times = [fit.group.times() for fit in fits]
        known = [one for one in times if one is not None]
        speeds = [
            np.concatenate([block["speed"] for block in fit.group.columns()()]) for fit in fits
        ]
        farm = Farm(speeds, known or None, guarantee.unit)
        agenda = make_agenda(farm, guarantee.epsilon)
        return Questions(farm=farm, agenda=agenda, epsilon=guarantee.epsilon)

    def steps(self, task: Task, prepared: Prepared) -> Outcome:
        """See `Method.steps`."""
        assert isinstance(prepared, Questions)
        farm, agenda = prepared.farm, prepared.agenda
        inquiry = Inquiry(task.account, task.records.by_turbine, farm, agenda, task.progress)
        chosen: dict[str, Any] = {}
        try:
            learned = learn(inquiry)
            task.progress("drawing records")
            draw(farm, agenda, learned, task.room)
        except GridveilError:
            raise
        except (ArithmeticError, ValueError):
            # Numerical trouble with noisy answers: release the chosen reference curve, which is
            # already paid for.
            _on_curve(task, inquiry.reference)
            chosen = {"restored": False}
        turbines = [Released(slices(task.own(fit)), None) for fit in task.fits]
        reference = inquiry.reference
        return Outcome(
            turbines,
            {
                "reference_curve": {
                    "half_power_speed": round(float(reference.half_speed), 3),
                    "growth": reference.growth,
                    "sharpness": reference.sharpness,
                },
                **chosen,
            },
        )


def _on_curve(task: Task, reference: Reference) -> None:
    """Release records on the reference curve at their wind speeds, if everything else fails."""
    for fit in task.fits:
        out, start = task.own(fit), 0
        for block in fit.group.columns()():
            power = np.clip(reference(block["speed"]), 0.0, 1.0)
            out[start : start + len(power)] = power
            start += len(power)


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned about the farm from noisy answers and public priors."""

    reference: Reference
    scatter: Scatter
    stops: Stops
    seed: int


def learn(inquiry: Inquiry) -> Learned:
    """Ask all queries of the agenda, and learn the farm's distributions from the answers."""
    reference = inquiry.reference = ask_reference(inquiry)
    base = ask_base(inquiry, choose_knots(inquiry.farm), reference)
    means = ask_means(inquiry, base)
    stops = ask_stops(inquiry, base)
    scatter = ask_scatter(inquiry, means)
    return Learned(reference, scatter, stops, inquiry.seed())


def draw(farm: Farm, agenda: Agenda, learned: Learned, into: Vector) -> None:
    """Fill ``into`` with drawn records; this reads public numbers and noisy answers only."""
    generate(
        farm,
        learned.scatter,
        learned.stops,
        months=agenda.asks("months"),
        seed=learned.seed,
        into=into,
    )
