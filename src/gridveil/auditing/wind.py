"""Audits of wind releases: each query against its own epsilon, and whole releases.

Six records and three features are few enough to attack every number of a release. The worst
neighbours are searched among all records, at both ends of their range: a training run shows how far
each one moves the answers. For the loss this finds records that are all 0 except one of low
leverage, which the regression can't follow.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gridveil import wind
from gridveil.auditing.attacks import Attack, Outcomes, known, laplace_ratio, linear, values
from gridveil.auditing.bundle_bytes import bundle_parts
from gridveil.auditing.checks import Frequency, Pair, Sizes
from gridveil.auditing.scratch_ledgers import (
    EPSILON,
    LOUD,
    MADE_UP,
    account_with,
    new_name,
    throwaway_ledger,
)
from gridveil.auditing.transcript import Outcome
from gridveil.auditing.transcript_audits import Ratio, Replay, likelihood_pair, worst_neighbours
from gridveil.auditing.verdicts import Audit
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.noise import SecureNoise
from gridveil.privacy.sealed import Range
from gridveil.wind.queries import Query, loss_query, spread_query, weights_query
from gridveil.wind.records import Records
from gridveil.wind.regression import Fit, fit_records

Vector = NDArray[np.float64]
Power = tuple[float, ...]
Ask = Callable[[tuple[Fit, ...]], Query]

ALPHA = Fraction(1, 2)
SPEED = (3.0, 5.0, 6.0, 8.0, 9.0, 12.0)
FEATURES = wind.RBF(3, 3.0, 12.0)
RIDGE = 1e-3
METHODS = ("laplace", "wpo", "tuned")

_STEP = float(ALPHA)
# Very different private data, on which replays must give the same output.
_FAR = ((0.0,) * len(SPEED), (1.0, 0.0, 0.37, 1.0, 0.9, 0.1))
_QUERIES = Sizes(400, 6_000)
_RATIOS = Sizes(24, 600)
_ANSWERS = Sizes(100, 1_600)
_OUTPUTS = Sizes(100, 3_000)
_REPLAYS = Sizes(2, 30)


# -- queries ---------------------------------------------------------------------------------------


def weights() -> Audit:
    """Audit the weights of the regression: a vector in which every coordinate moves."""
    return _query("wind-weights", lambda fits: weights_query(fits, [np.eye(3)] * len(fits), ALPHA))


def loss() -> Audit:
    """Audit the loss of the regression: a norm."""
    return _query("wind-loss", lambda fits: loss_query(fits, ALPHA))


def spread() -> Audit:
    """Audit the spread about a curve, here the curve 0."""
    radius = Fraction(1, 4)
    return _query("wind-spread", lambda fits: spread_query(fits, [np.zeros(3)], radius, ALPHA))


def _query(name: str, make: Ask) -> Audit:
    def run(power: Power, noise: SecureNoise) -> Outcome:
        records = _records(power, turbines=False)
        account = account_with(noise, _adjacency(), LOUD)
        make(_fits(power)).ask(account, records, LOUD)
        return {}

    one, other = worst_neighbours(run, _neighbours())
    pair = likelihood_pair(_words(one, other), partial(run, one), partial(run, other))
    return Frequency(name, LOUD, [pair], [values()], _QUERIES)


# -- whole releases --------------------------------------------------------------------------------


def answers(method: str) -> Audit:
    """Audit how often each likelihood ratio of a release's noisy answers occurs."""
    one, other = _worst_release(method)
    run = partial(_published, method, False, epsilon=LOUD)
    pair = likelihood_pair(_words(one, other), partial(run, one), partial(run, other))
    return Frequency(f"wind-{method}-answers", LOUD, [pair], [values()], _ANSWERS)


def ratios(method: str, *, turbines: bool = False) -> Audit:
    """Audit the likelihood ratios of all noisy answers of a release, on all pairs of neighbours."""
    run = partial(_published, method, turbines, plan=_FAR[0])
    pairs = [(partial(run, one), partial(run, other)) for one, other in _neighbours(_alpha(method))]
    name = f"wind-{method}-{'turbines' if turbines else 'ratio'}"
    return Ratio(name, EPSILON, pairs, _RATIOS)


def outputs(method: str) -> Audit:
    """Audit the released records with an attacker who knows every record except one."""
    one, other = _worst_release(method)
    pair = Pair(
        _words(one, other),
        lambda n: np.array([_released(method, one) for _ in range(n)]),
        lambda n: np.array([_released(method, other) for _ in range(n)]),
    )
    return Frequency(f"wind-{method}-output", LOUD, [pair], _attacks(one, other), _OUTPUTS)


def twice() -> Audit:
    """Audit two releases of the same records, which together have the sum of their epsilons."""
    one, other = _worst_release("laplace")
    shares = LOUD / 4, LOUD * 3 / 4

    def sample(power: Power, n: int) -> Outcomes:
        both = [[_released("laplace", power, e) for e in shares] for _ in range(n)]
        return np.array(both).reshape(n, -1)

    pair = Pair(_words(one, other), partial(sample, one), partial(sample, other))
    scales = np.repeat([_STEP / float(share) for share in shares], len(SPEED))
    ratio = laplace_ratio(np.tile(one, 2), np.tile(other, 2), scales)
    return Frequency("wind-laplace-twice", LOUD, [pair], [known(ratio), linear()], _OUTPUTS)


def replays(method: str) -> Audit:
    """Audit that the whole bundle is the same on very different private data."""
    return Replay(f"wind-{method}-replay", [partial(_bundle, method, p) for p in _FAR], _REPLAYS)


def _attacks(one: Power, other: Power) -> list[Attack]:
    """Return two attacks: the ratio of plain Laplace noise, and a classifier on features."""
    ratio = laplace_ratio(np.array(one), np.array(other), 1.0)
    return [known(ratio), linear(partial(_features, ratio=ratio))]


def _features(z: Outcomes, ratio: Callable[[Outcomes], Vector]) -> Vector:
    ridge = _fits((0.0,) * len(SPEED))[0].ridge
    losses = [ridge.loss(row) for row in z]
    return np.column_stack([z, z <= 0, z >= 1, losses, ratio(z)]).astype(np.float64)


def _published(
    method: str,
    turbines: bool,
    power: Power,
    noise: SecureNoise,
    *,
    epsilon: Fraction = EPSILON,
    plan: Power | None = None,
) -> Outcome:
    made = _release(method, power, noise, turbines=turbines, epsilon=epsilon, plan=plan)
    return {"records": b"".join(block.tobytes() for block in made.blocks())}


def _bundle(method: str, power: Power, noise: SecureNoise) -> Outcome:
    return bundle_parts(_release(method, power, noise))


def _released(method: str, power: Power, epsilon: Fraction = LOUD) -> Vector:
    made = _release(method, power, SecureNoise(), epsilon=epsilon)
    return np.concatenate(list(made.blocks()))


def _release(
    method: str,
    power: Power,
    noise: SecureNoise,
    *,
    turbines: bool = False,
    epsilon: Fraction = EPSILON,
    plan: Power | None = None,
) -> wind.WindRelease:
    planned = _plan(method, power if plan is None else plan, turbines, epsilon)
    if plan is not None:
        planned = _plan_like(planned, power, turbines)
    account = planned.charge(throwaway_ledger(), dataset=new_name(), distinct=MADE_UP, noise=noise)
    return planned.run(account)


@cache
def _plan(method: str, power: Power, turbines: bool, epsilon: Fraction) -> wind.WindPlan:
    """Plan a release of these records once, since planning takes far longer than the release.

    Each neighbour has its own plan, so a plan that used private data would still be found.
    """
    return wind.plan(
        _records(power, turbines=turbines),
        epsilon=epsilon,
        alpha=_alpha(method),
        method=method,
        features=FEATURES,
        ridge=RIDGE,
    )


def _plan_like(known: wind.WindPlan, power: Power, turbines: bool) -> wind.WindPlan:
    """Make the plan of other records with the same public part."""
    records = _records(power, turbines=turbines)
    (adjacency,) = known.terms.adjacency
    fits = fit_records(records, FEATURES, RIDGE)
    return wind.WindPlan(
        records,
        known.method,
        adjacency,
        known.guarantee,
        FEATURES,
        fits,
        known.prepared,
        known.why,
    )


# -- neighbours ------------------------------------------------------------------------------------


def _worst_release(method: str) -> tuple[Power, Power]:
    """Find the neighbours whose answers differ most; one plan is good enough for training."""
    run = partial(_published, method, False, plan=_FAR[0])
    return worst_neighbours(run, _neighbours(_alpha(method)))


def _alpha(method: str) -> Fraction:
    """Return alpha: the method synthetic protects the whole range, the others a part of it."""
    return Fraction(1) if method == "synthetic" else ALPHA


def _neighbours(alpha: Fraction = ALPHA) -> list[tuple[Power, Power]]:
    pairs = []
    step = float(alpha)
    for low in {0.0, 1.0 - step}:
        for place in range(len(SPEED)):
            one = np.full(len(SPEED), low)
            other = one.copy()
            other[place] += step
            pairs.append((tuple(one.tolist()), tuple(other.tolist())))
    return pairs


def _words(one: Power, other: Power) -> str:
    (place,) = np.flatnonzero(np.array(one) != np.array(other))
    return f"the record at {SPEED[place]:g} m/s at {one[place]:g} or {other[place]:g}"


@cache
def _records(power: Power, *, turbines: bool) -> Records:
    columns: dict[str, Any] = {"speed": SPEED, "power": power}
    if turbines:
        columns["turbine"] = ["A", "B"] * (len(SPEED) // 2)
    return wind.read_records(
        pa.table(columns),
        speed="speed",
        power="power",
        capacity={"A": 1.0, "B": 1.0} if turbines else 1.0,
        unit="pu",
        turbine="turbine" if turbines else None,
    )


@cache
def _fits(power: Power) -> tuple[Fit, ...]:
    return fit_records(_records(power, turbines=False), FEATURES, RIDGE)


def _adjacency() -> Adjacency:
    return Adjacency.of(
        "power", alpha=ALPHA, unit="of capacity", range=Range(0.0, 1.0), entries=len(SPEED)
    )


WIND: dict[str, Callable[[], Audit]] = {
    "wind-weights": weights,
    "wind-loss": loss,
    "wind-spread": spread,
    **{f"wind-{method}-ratio": partial(ratios, method) for method in METHODS},
    "wind-wpo-turbines": partial(ratios, "wpo", turbines=True),
    **{f"wind-{method}-answers": partial(answers, method) for method in METHODS},
    **{f"wind-{method}-output": partial(outputs, method) for method in METHODS},
    "wind-laplace-twice": twice,
    **{f"wind-{method}-replay": partial(replays, method) for method in METHODS},
    "wind-synthetic-ratio": partial(ratios, "synthetic"),
    "wind-synthetic-replay": partial(replays, "synthetic"),
}

SLOW = {"wind-wpo-answers", "wind-tuned-answers", "wind-tuned-output"}
"""Audits that take long even with few samples; ratios and replays cover the same releases."""
