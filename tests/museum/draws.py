"""Controls that draw too little noise, or the wrong kind."""

from fractions import Fraction
from functools import partial

import numpy as np

from gridveil.auditing.attacks import atoms, laplace_ratio, linear, values
from gridveil.auditing.checks import Frequency, Repeat, Support
from gridveil.privacy.mechanisms import laplace
from gridveil.privacy.noise import SecureNoise
from gridveil.privacy.sealed import Range, seal
from gridveil.privacy.sensitivity import Sensitivity
from museum.control import Control, generator, pair, same, seeded_account, seeded_noise

# -- one draw for all weights ----------------------------------------------------------------------

WEIGHTS = np.array([0.2, 0.5, 0.9])
COLUMN = np.array([0.3, -0.2, 0.1])  # what alpha moves the weights by


def weights(draws):
    """Noisy weights from so many independent draws."""
    rng = generator()
    scale = np.abs(COLUMN).sum()

    def sample(beta, n):
        return beta + rng.laplace(0.0, scale, (n, draws))

    neighbours = pair("weights of two neighbours", sample, WEIGHTS, WEIGHTS + COLUMN)
    ratio = laplace_ratio(WEIGHTS, WEIGHTS + COLUMN, scale)
    attacks = [linear(), linear(lambda z: ratio(z)[:, None])]
    return Frequency("weights", Fraction(1), [neighbours], attacks, same(800))


# -- seeds -----------------------------------------------------------------------------------------


def fixed_seed(source):
    """Ten values, noise from a source that is made anew for every release."""

    def sample(n):
        return np.array([source(k).laplace(np.zeros(10, np.int64), 1000.0) for k in range(n)])

    return Repeat("ten values", sample, same(20))


def reused_seed(seeds, *, joint=True):
    """The same entry released twice, with epsilon 1 and 2, from seeds of their own or the same."""
    scales = 1000.0, 500.0

    def sample(value, n):
        both = []
        for k in range(n):
            sources = [seeded_noise(seed) for seed in seeds(k + n * value)]
            both.append(
                [s.laplace(np.array([value]), b)[0] for s, b in zip(sources, scales, strict=True)]
            )
        return np.array(both) if joint else np.array(both)[:, :1]

    neighbours = pair("an entry at 0 or 1000 steps", sample, 0, 1000)
    claimed = Fraction(3 if joint else 1)
    return Frequency("two releases", claimed, [neighbours], [linear()], same(1_200))


# -- noisy max and its value -----------------------------------------------------------------------


def noisy_max_and(value):
    """The index of the largest noisy score; with its noisy value, or one that is paid for."""
    rng = generator()

    def sample(scores, n):
        noisy = scores + rng.exponential(2.0, (n, len(scores)))
        best = noisy.max(1) if value else np.argmax(noisy, axis=1)
        return best.astype(float)

    scores = np.array([10.0, 10.0])
    neighbours = pair("all scores up by one", sample, scores, scores + 1)
    return Frequency("noisy max", Fraction(1), [neighbours], [values(), atoms()], same(4_000))


# -- low bits --------------------------------------------------------------------------------------


def float_laplace():
    """Floating-point Laplace noise on 0 or 1.

    ``1 + n`` is a whole multiple of 2^-53 for every double ``n``: both are, where ``|n|`` is at
    least 1/2, and the sum is at least 1/2 where it is not. A sum below 1/2 with finer bits is
    impossible on 1, and usual on 0.
    """
    rng = generator()

    def sample(value, n):
        return value + rng.laplace(0.0, 1.0, n)

    def of_one(z):
        return z * 2.0**53 == np.rint(z * 2.0**53)

    neighbours = pair("0 or 1", sample, 0.0, 1.0)
    return Support("float noise", neighbours, lambda z: np.full(len(z), True), of_one, same(50))


def grid_laplace():
    """The real mechanism, on 0 or 1."""
    bound = Sensitivity(Fraction(1), "a control")
    grid = float(bound.default_grid())

    def sample(value, n):
        sealed = seal(np.full(n, value), name="power", unit="MW", range=Range(0.0, 1.0))
        return laplace(seeded_account(), sealed, name="q", sensitivity=bound, epsilon=1).value

    def on_grid(z):
        return z / grid == np.rint(z / grid)

    return Support("grid noise", pair("0 or 1", sample, 0.0, 1.0), on_grid, on_grid, same(50))


DRAWS = (
    Control(
        "WPO, one draw for all weights",
        "one noise value is added to every weight: their differences are exact",
        partial(weights, 1),
        partial(weights, 3),
    ),
    Control(
        "Fixed seeds",
        "every release draws from the same seed",
        partial(fixed_seed, lambda k: seeded_noise(0)),
        partial(fixed_seed, lambda k: SecureNoise()),
    ),
    Control(
        "A seed reused",
        "two releases from one seed: each alone passes, a combination has no noise",
        partial(reused_seed, lambda k: (k, k)),
        partial(reused_seed, lambda k: (2 * k, 2 * k + 1)),
    ),
    Control(
        "The noisy maximum's value for free",
        "noisy max pays for the index alone; its noisy score is published too",
        partial(noisy_max_and, True),
        partial(noisy_max_and, False),
    ),
    Control(
        "Float Laplace's low bits",
        "floating-point noise: some outputs are possible on one neighbour alone",
        float_laplace,
        grid_laplace,
    ),
)
