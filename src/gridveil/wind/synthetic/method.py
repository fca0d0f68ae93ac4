"""The method from end to end: ask what the agenda lists, then draw records."""

from __future__ import annotations

from dataclasses import dataclass

from gridveil.wind.synthetic.agenda import Agenda
from gridveil.wind.synthetic.curves import Reference, choose_knots
from gridveil.wind.synthetic.details import Scatter, Stops, ask_scatter, ask_stops
from gridveil.wind.synthetic.farm import Farm, Vector
from gridveil.wind.synthetic.generate import generate
from gridveil.wind.synthetic.inquiry import Inquiry
from gridveil.wind.synthetic.means import ask_base, ask_means, ask_reference


@dataclass(frozen=True, eq=False)
class Learned:
    """What noisy answers and public priors say of the farm together."""

    reference: Reference
    scatter: Scatter
    stops: Stops
    seed: int


def learn(inquiry: Inquiry) -> Learned:
    """Ask everything that is on the agenda."""
    reference = inquiry.reference = ask_reference(inquiry)
    base = ask_base(inquiry, choose_knots(inquiry.farm), reference)
    means = ask_means(inquiry, base)
    stops = ask_stops(inquiry, base)
    scatter = ask_scatter(inquiry, means)
    return Learned(reference, scatter, stops, inquiry.seed())


def draw(farm: Farm, agenda: Agenda, learned: Learned, into: Vector) -> None:
    """Fill ``into`` with records; it sees public numbers and noisy answers only."""
    generate(
        farm,
        learned.scatter,
        learned.stops,
        months=agenda.asks("months"),
        seed=learned.seed,
        into=into,
    )
