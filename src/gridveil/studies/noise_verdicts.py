"""Audit the noisy answers of the published code and of the mechanisms.

For two neighbours of public data the audit computes how large an epsilon the answers on the two
prove. The noise is seeded here, so a verdict can be repeated; it says nothing about the secure
source, which `gridveil audit` attacks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gridveil.auditing.attacks import Outcomes, linear, values
from gridveil.auditing.checks import Frequency, Pair, Sampler, Sizes, Support
from gridveil.auditing.runner import FALSE_ALARM
from gridveil.auditing.verdicts import Audit, Verdict
from gridveil.errors import NotPrivateWarning
from gridveil.grid.model.population import take
from gridveil.privacy.account import Account, study_account
from gridveil.privacy.exact_numbers import exact
from gridveil.studies import published_noise_wind as published
from gridveil.studies.grid_case import GridWorld, OneCost
from gridveil.studies.published_noise_grid import published_costs
from gridveil.studies.summary_text import table
from gridveil.studies.wind_turbine import Turbine, WindWorld
from gridveil.wind.queries import Query, loss_query, weights_query

Vector = NDArray[np.float64]

_CHEAP = Sizes(20_000, 20_000)
_DEAR = Sizes(2_000, 2_000)
_SAME = 1e-9


@dataclass(frozen=True)
class Judged:
    """A verdict, with the version and the answer that it is about."""

    version: str
    answer: str
    verdict: Verdict


def verdict_table(judged: list[Judged], names: Mapping[str, str]) -> str:
    """Write the verdicts as a table in Markdown."""
    rows = [[names[one.version], one.answer, one.verdict.words] for one in judged]
    return table(["version", "noisy", "the audit's verdict"], rows)


def wind_verdicts(world: WindWorld, alpha: float, epsilon: float) -> list[Judged]:
    """Audit the loss and the weights of the published code and of WPO's mechanisms."""
    power, other = world.turbine.power, published.worst_neighbour(world, alpha)
    words = f"one of {len(power):,} records, moved by {100 * alpha:g}% of capacity"
    third, quarter = Fraction(published.SHARE * epsilon), exact(epsilon, name="epsilon") / 4

    def pair_of(answers: published.Answers) -> Pair:
        one, two = (
            _drawn(answers, world, y, alpha, epsilon, n) for n, y in ((1, power), (2, other))
        )
        return Pair(words, one, two)

    share = exact(alpha, name="alpha")
    width = world.fit.features.width
    asked = {
        "loss": loss_query([world.fit], share),
        "weights": weights_query([world.fit], [np.eye(width)], share),
    }
    error = FALSE_ALARM / 4
    found: list[Audit] = [
        Frequency("loss", third, [pair_of(published.noisy_loss)], [values()], _CHEAP),
        Support(
            "weights",
            pair_of(published.noisy_weights),
            _differences_of(world, power),
            _differences_of(world, other),
            _CHEAP,
        ),
        Frequency(
            "loss", quarter, [_asked(asked["loss"], world, other, quarter)], [values()], _DEAR
        ),
        Frequency(
            "weights", quarter, [_asked(asked["weights"], world, other, quarter)], [linear()], _DEAR
        ),
    ]
    versions = ("published", "published", "wpo", "wpo")
    return [
        Judged(version, audit.name, audit.run(fast=False, error=error))
        for version, audit in zip(versions, found, strict=True)
    ]


def grid_verdicts(world: GridWorld, alpha: float, epsilon: float, rounds: int) -> list[Judged]:
    """Audit the noisy cost of one model, of the published code and of the mechanism.

    The model and the line are those with the largest line price; in the neighbour the line's
    capacity is lower by alpha.
    """
    price = world.case.real.line_price
    assert price is not None
    model, line = np.unravel_index(int(np.argmax(price)), price.shape)
    lower = world.case.network.branches.capacity.copy()
    lower[line] = max(lower[line] - alpha, float(world.public.low.min()))
    costs = world.lipschitz_costs(int(model), lower)
    words = f"line {int(line) + 1}, lower by {alpha:g} MW"
    total = exact(epsilon, name="epsilon")
    part = total / (4 * rounds)
    share = exact(alpha, name="alpha")
    drawn = (
        published_costs(world, share, total, rounds, cost, 5 + k) for k, cost in enumerate(costs)
    )
    asked = (_cost_answers(world, share, part, cost, 7 + k) for k, cost in enumerate(costs))
    error = FALSE_ALARM / 2
    found = [
        Frequency("cost", part, [Pair(words, *drawn)], [values()], _CHEAP),
        Frequency("cost", part, [Pair(words, *asked)], [values()], _DEAR),
    ]
    return [
        Judged(version, audit.name, audit.run(fast=False, error=error))
        for version, audit in zip(("published", "paper"), found, strict=True)
    ]


def _cost_answers(
    world: GridWorld, alpha: Fraction, epsilon: Fraction, cost: float, seed: int
) -> Sampler:
    query = OneCost(world.problem, {"capacity": alpha}, world.case, cost)
    model = take(world.case.population, np.array([0]))

    def sample(count: int) -> Vector:
        account = _account(epsilon * count, seed)
        return np.array([query.cost(account, world.sealed, model, epsilon) for _ in range(count)])

    return sample


def _drawn(
    answers: published.Answers,
    world: WindWorld,
    power: Vector,
    alpha: float,
    epsilon: float,
    seed: int,
) -> Sampler:
    rng = published.draws(seed)
    return lambda count: answers(world, power, alpha, epsilon, rng, count)


def _differences_of(world: WindWorld, power: Vector) -> Callable[[Outcomes], NDArray[np.bool_]]:
    """Mark the noisy weights that are possible: one shared draw does not change differences."""
    gaps = np.diff(world.fit.ridge.weights(power))
    return lambda outcomes: np.abs(np.diff(outcomes, axis=1) - gaps).max(axis=1) < _SAME


def _asked(query: Query, world: WindWorld, other: Vector, epsilon: Fraction) -> Pair:
    """Make the same pair of neighbours, with answers of the mechanism."""
    neighbour = WindWorld(Turbine(world.turbine.speed, other, world.turbine.features))
    one, two = (_answers(query, some, epsilon, seed) for seed, some in ((3, world), (4, neighbour)))
    return Pair("the same neighbours", one, two)


def _answers(query: Query, world: WindWorld, epsilon: Fraction, seed: int) -> Sampler:
    def sample(count: int) -> Vector:
        account = _account(epsilon * count, seed)
        return np.array(
            [query.ask(account, world.records, epsilon).values[0] for _ in range(count)]
        )

    return sample


def _account(epsilon: Fraction, seed: int) -> Account:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return study_account(epsilon, adjacency=[], seed=seed)
