"""Audits of grid releases on a triangle of three buses, where every number can be attacked.

The worst neighbours are searched among all entries, in training runs: those whose noisy answers are
furthest apart, which finds the line or load with the largest shadow price. If the released values
are attacked, it is those whose released values an attacker can best tell apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from gridveil import grid
from gridveil.auditing.attacks import Attack, Outcomes, known, laplace_ratio, linear, values
from gridveil.auditing.bundle_bytes import bundle_parts
from gridveil.auditing.checks import Frequency, Pair, Sizes
from gridveil.auditing.file_replays import installed
from gridveil.auditing.scratch_ledgers import EPSILON, LOUD, MADE_UP, new_name, throwaway_ledger
from gridveil.auditing.transcript import Outcome, Values
from gridveil.auditing.transcript_audits import Ratio, Replay, likelihood_pair, worst_neighbours
from gridveil.auditing.triangle_secrets import SECRETS, triangle
from gridveil.auditing.verdicts import Audit
from gridveil.privacy.noise import SecureNoise

Vector = NDArray[np.float64]

MODELS = 3
ROUNDS = 2

# A fast audit tries every pair of neighbours once, or three pairs with the paper's restoration,
# which takes ten times as long as everything else.
_FULL_RATIOS = {"laplace": 200, "certified": 200, "paper": 40}
_OUTPUTS = {
    ("capacity", "certified"): Sizes(200, 2_500),
    ("capacity", "paper"): Sizes(200, 2_500),
    ("load", "certified"): Sizes(200, 2_500),
    ("load", "paper"): Sizes(200, 2_500),
}
_TRAINING = 150
_ANSWERS = Sizes(200, 1_000)
_REPLAYS = Sizes(1, 8)


def ratios(secret: str, method: str) -> Audit:
    """Audit the likelihood ratios of all noisy answers of a release, on all pairs of neighbours."""
    name, run = f"grid-{secret}-{method}-ratio", partial(_published, secret, method, EPSILON)
    pairs = [(partial(run, a), partial(run, b)) for a, b in SECRETS[secret].neighbours()]
    fast = 3 if method == "paper" else len(pairs)
    made = Ratio(name, EPSILON, pairs, Sizes(fast, _FULL_RATIOS[method]))
    return installed(name, SECRETS[secret].needs, lambda: made)


def answers(secret: str) -> Audit:
    """Audit how often each likelihood ratio of the paper's noisy answers occurs.

    There is no restoration between the rounds; it reads noisy data only, which replays check.
    """
    run = partial(_unrestored, secret, LOUD)
    one, other = worst_neighbours(run, SECRETS[secret].neighbours())
    pair = likelihood_pair(_words(one, other), partial(run, one), partial(run, other))
    return Frequency(f"grid-{secret}-paper-answers", LOUD, [pair], [values()], _ANSWERS)


def outputs(secret: str, method: str) -> Audit:
    """Audit the released values with an attacker who knows every entry except one."""
    sample = partial(_samples, secret, method)
    one, other = _most_visible(sample, SECRETS[secret].neighbours())
    pair = Pair(_words(one, other), partial(sample, one), partial(sample, other))
    name = f"grid-{secret}-{method}-output"
    return Frequency(name, LOUD, [pair], _attacks(one, other), _OUTPUTS[secret, method])


def replays(secret: str, method: str) -> Audit:
    """Audit that the whole bundle is the same on very different private data."""
    runs = [partial(_bundle, secret, method, private) for private in SECRETS[secret].far()]
    name = f"grid-{secret}-{method}-replay"
    return installed(name, SECRETS[secret].needs, lambda: Replay(name, runs, _REPLAYS))


def _most_visible(
    sample: Callable[[Values, int], Outcomes], pairs: Sequence[tuple[Values, Values]]
) -> tuple[Values, Values]:
    """Find the neighbours whose released values have the most different distributions."""

    def apart(pair: tuple[Values, Values]) -> float:
        ratio = laplace_ratio(np.array(pair[0]), np.array(pair[1]), 1.0)
        ones, others = (ratio(sample(values, _TRAINING)) for values in pair)
        return float(ks_2samp(ones, others).statistic)

    return max(pairs, key=apart)


def _attacks(one: Values, other: Values) -> list[Attack]:
    """Return two attacks: the ratio of plain Laplace noise, and a classifier on features."""
    ratio = laplace_ratio(np.array(one), np.array(other), 1.0)

    def features(z: Outcomes) -> Vector:
        return np.column_stack([z, z * z, z.sum(1), ratio(z)])

    return [known(ratio), linear(features)]


def _words(one: Values, other: Values) -> str:
    (place,) = np.flatnonzero(np.array(one) != np.array(other))
    return f"entry {place + 1} at {one[place]:g} or {other[place]:g}"


# -- releases --------------------------------------------------------------------------------------


def _published(
    secret: str, method: str, epsilon: Fraction, private: Values, noise: SecureNoise
) -> Outcome:
    return {"values": _release(secret, method, private, noise, epsilon).values.tobytes()}


def _unrestored(secret: str, epsilon: Fraction, private: Values, noise: SecureNoise) -> Outcome:
    planned = _plan(secret, "paper", private, epsilon).without_restoration()
    return {"values": _run(planned, noise).values.tobytes()}


def _bundle(secret: str, method: str, private: Values, noise: SecureNoise) -> Outcome:
    return bundle_parts(_release(secret, method, private, noise))


def _samples(secret: str, method: str, private: Values, count: int) -> Outcomes:
    runs = (_release(secret, method, private, SecureNoise(), LOUD) for _ in range(count))
    return np.array([release.values for release in runs])


def _release(
    secret: str, method: str, private: Values, noise: SecureNoise, epsilon: Fraction = EPSILON
) -> grid.GridRelease:
    return _run(_plan(secret, method, private, epsilon), noise)


def _plan(secret: str, method: str, private: Values, epsilon: Fraction) -> grid.GridPlan:
    network, what = triangle(secret, private), SECRETS[secret]
    costs = None if "cost" in what.parameters else (20.0, 90.0)
    models = grid.sample_population(network, MODELS, costs=costs, seed=3, private=what.parameters)
    return grid.plan(
        network,
        models,
        **what.request,
        epsilon=epsilon,
        method=method,
        rounds=ROUNDS if method == "paper" else None,
    )


def _run(planned: grid.GridPlan, noise: SecureNoise) -> grid.GridRelease:
    account = planned.charge(throwaway_ledger(), dataset=new_name(), distinct=MADE_UP, noise=noise)
    return planned.run(account)


_FIRST = [("capacity", "laplace"), ("capacity", "certified"), ("capacity", "paper")]
_FIRST += [("load", "laplace"), ("load", "certified"), ("load", "paper")]
_OTHERS = [(name, "certified") for name in SECRETS if name not in ("capacity", "load")]

GRID: dict[str, Callable[[], Audit]] = {
    **{f"grid-{s}-{m}-ratio": partial(ratios, s, m) for s, m in [*_FIRST, *_OTHERS]},
    **{f"grid-{s}-{m}-replay": partial(replays, s, m) for s, m in [*_FIRST, *_OTHERS]},
    **{f"grid-{s}-{m}-output": partial(outputs, s, m) for s, m in _OUTPUTS},
    **{f"grid-{s}-paper-answers": partial(answers, s) for s in ("capacity", "load")},
}

SLOW = {name for name in GRID if name.endswith(("-output", "-answers"))}
"""Audits that take minutes even with few samples."""
