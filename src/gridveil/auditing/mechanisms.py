"""Audits of the mechanisms themselves, each against its own epsilon.

**Many samples from one call.** Laplace noise is drawn independently for every coordinate, and the
calibration depends on the sensitivity only, not on the length of the answer. So one call on a
sealed vector with ``n`` copies of a small dataset gives ``n`` samples of the mechanism on that
dataset: the audited claim is that of one copy, whose entry moves, at the epsilon of the call. A
test checks that the scale is the same for one copy and for many.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gridveil.auditing.attacks import Outcomes, atoms, laplace_ratio, values
from gridveil.auditing.checks import Frequency, Pair, Repeat, Sizes, Support, scored
from gridveil.auditing.scratch_ledgers import account_with
from gridveil.auditing.verdicts import Audit
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.mechanisms import laplace, laplace_blocks, laplace_scalar, noisy_max
from gridveil.privacy.noise import SecureNoise
from gridveil.privacy.sealed import Range, Sealed, seal
from gridveil.privacy.sensitivity import Sensitivity

Vector = NDArray[np.float64]

EPSILON = Fraction(2)
RANGE = Range(0.0, 100.0)
# Not a whole number of grid steps, so that rounding can move neighbours one step further apart.
ALPHA = Fraction(7, 5)
COARSE = Fraction(1)
_MANY = Sizes(20_000, 400_000)
_SINGLE = Sizes(1_000, 20_000)
_WIDE = 8


def laplace_identity() -> Audit:
    """Audit the data itself, at the default grid."""
    return _identity("laplace-identity", None)


def laplace_coarse() -> Audit:
    """Audit the data itself on a grid so coarse that rounding nearly doubles the distance."""
    return _identity("laplace-coarse-grid", COARSE)


def laplace_vector() -> Audit:
    """Audit five coordinates that all move by a fifth of alpha, on a coarse grid."""
    moving, grid = 5, Fraction(1, 4)
    bound = Sensitivity(ALPHA, "an audit", moving=moving)

    def sample(answer: Vector, n: int) -> Outcomes:
        account = account_with(SecureNoise(), _adjacency())
        sealed = _sealed(np.tile(answer, n))
        found = laplace(
            account, sealed, name="copies", sensitivity=bound, epsilon=EPSILON, grid=grid
        )
        return found.value.reshape(n, moving)

    pairs = []
    for offset in np.linspace(0, 1, 8, endpoint=False) * float(grid):
        one = np.full(moving, 10 + offset)
        other = one + float(ALPHA) / moving
        known = [np.rint(answer / float(grid)) * float(grid) for answer in (one, other)]
        score = laplace_ratio(known[0], known[1], 1.0)
        pair = _pair(f"coordinates {offset / float(grid):g} grid steps up", sample, one, other)
        pairs.append(scored(pair, score))
    return Frequency("laplace-vector", EPSILON, pairs, [values()], Sizes(6_000, 100_000), 1_000)


def laplace_by_blocks() -> Audit:
    """Audit a column that is processed in blocks."""

    def sample(value: float, n: int) -> Outcomes:
        account = account_with(SecureNoise(), _adjacency())
        parts = np.array_split(np.full(n, value), 3)
        sealed = Sealed(lambda: iter(parts), name="power", shape=(n,), unit="MW", range=RANGE)
        found = laplace_blocks(account, sealed, name="copies", sensitivity=_one(), epsilon=EPSILON)
        return np.concatenate(list(found.value))

    pair = _pair("the value at 20", sample, 20.0, 20.0 + float(ALPHA))
    return Frequency("laplace-blocks", EPSILON, [pair], [values()], _MANY)


def laplace_of_a_number() -> Audit:
    """Audit one number computed from several entries; the mechanism is called for every sample."""

    def sample(entry: float, n: int) -> Outcomes:
        account = account_with(SecureNoise(), _adjacency())
        sealed = _sealed([entry, 30.0, 40.0])
        return np.array(
            [
                laplace_scalar(
                    account,
                    sealed,
                    query=np.sum,
                    name="sum",
                    sensitivity=_one(),
                    epsilon=EPSILON,
                    range=Range(0.0, 300.0),
                    unit="MW",
                ).value
                for _ in range(n)
            ]
        )

    pair = _pair("one of three entries", sample, 20.0, 20.0 + float(ALPHA))
    return Frequency("laplace-scalar", EPSILON, [pair], [values()], _SINGLE)


def laplace_on_its_grid() -> Audit:
    """Audit that every output is a whole number of public grid steps."""
    grid = float(_one().default_grid())

    def possible(z: Outcomes) -> NDArray[np.bool_]:
        return np.asarray(z / grid == np.rint(z / grid))

    pair = _pair("the value at 20", _sampler(None), 20.0, 20.0 + float(ALPHA))
    return Support("laplace-support", pair, possible, possible, _MANY)


def noise_repeats() -> Audit:
    """Audit that noise differs from run to run: eight values agree by chance below 1e-20."""

    def sample(n: int) -> Outcomes:
        draw = _sampler(None)
        return np.array([draw(20.0, _WIDE) for _ in range(n)])

    return Repeat("laplace-repeat", sample, Sizes(200, 5_000))


def noisy_max_any() -> Audit:
    """Audit scores that move against each other: one up, the others down."""
    return _noisy_max("noisy-max", monotone=False, others_move=-1.0)


def noisy_max_monotone() -> Audit:
    """Audit scores that all move the same way: one up, the others stay."""
    return _noisy_max("noisy-max-monotone", monotone=True, others_move=0.0)


def _noisy_max(name: str, *, monotone: bool, others_move: float) -> Audit:
    step = float(ALPHA)

    def sample(scores: Vector, n: int) -> Outcomes:
        account = account_with(SecureNoise(), _adjacency())
        sealed = _sealed(scores)
        return np.array(
            [
                noisy_max(
                    account,
                    sealed,
                    query=_itself,
                    name="scores",
                    sensitivity=_one(),
                    epsilon=EPSILON,
                    size=len(scores),
                    range=RANGE,
                    unit="MW",
                    monotone=monotone,
                ).value
                for _ in range(n)
            ]
        )

    pairs = []
    for lead in (0.0, 1.0, 2.0, 3.0):  # how far the first score is behind, in steps
        scores = np.array([50 - lead * step, 50.0, 10.0, 10.0])
        moved = scores + step * np.array([1.0, others_move, others_move, others_move])
        pairs.append(_pair(f"the moving score {lead:g} alpha behind", sample, scores, moved))
    return Frequency(name, EPSILON, pairs, [atoms()], _SINGLE, 100)


def _identity(name: str, grid: Fraction | None) -> Audit:
    step = float(grid or _one().default_grid())
    pairs = []
    for offset in np.linspace(0, 1, 8, endpoint=False) * step:
        one = 20 + float(offset)
        words = f"a value {offset / step:g} grid steps above a whole one"
        pairs.append(_pair(words, _sampler(grid), one, one + float(ALPHA)))
    return Frequency(name, EPSILON, pairs, [values()], _MANY, 2_000)


def _sampler(grid: Fraction | None) -> Callable[[float, int], Outcomes]:
    def sample(value: float, n: int) -> Outcomes:
        account = account_with(SecureNoise(), _adjacency())
        return laplace(
            account,
            _sealed(np.full(n, value)),
            name="copies",
            sensitivity=_one(),
            epsilon=EPSILON,
            grid=grid,
        ).value

    return sample


def _pair(words: str, sample: Callable[..., Outcomes], one: object, other: object) -> Pair:
    return Pair(words, lambda n: sample(one, n), lambda n: sample(other, n))


def _one() -> Sensitivity:
    return Sensitivity(ALPHA, "an audit")


def _adjacency() -> Adjacency:
    return Adjacency.of("power", alpha=ALPHA, unit="MW", range=RANGE, entries=1)


def _sealed(contents: object) -> Sealed[Vector]:
    return seal(np.asarray(contents), name="power", unit="MW", range=RANGE)


def _itself(opened: Vector) -> Vector:
    return opened


MECHANISMS: dict[str, Callable[[], Audit]] = {
    "laplace-identity": laplace_identity,
    "laplace-coarse-grid": laplace_coarse,
    "laplace-vector": laplace_vector,
    "laplace-blocks": laplace_by_blocks,
    "laplace-scalar": laplace_of_a_number,
    "laplace-support": laplace_on_its_grid,
    "laplace-repeat": noise_repeats,
    "noisy-max": noisy_max_any,
    "noisy-max-monotone": noisy_max_monotone,
}
