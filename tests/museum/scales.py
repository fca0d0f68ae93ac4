"""Controls whose noise has the wrong scale."""

from fractions import Fraction
from functools import cache, partial

import numpy as np
import pyarrow as pa

from gridveil import wind
from gridveil.auditing.attacks import atoms, values
from gridveil.auditing.checks import Frequency
from gridveil.grid.series.clock import Clock
from gridveil.grid.series.queries import Frame, all_queries
from gridveil.privacy.mechanisms import laplace
from gridveil.privacy.sealed import Range, seal
from gridveil.privacy.sensitivity import Sensitivity
from gridveil.wind.regression import fit_records
from gridveil.wind.synthetic.block_queries import BlockSums
from gridveil.wind.synthetic.public_farm import Farm
from museum.control import Control, generator, pair, same, seeded_account
from museum.grids import DEAREST, PRICE, costs_of_neighbours

LIMITS = Range(0.0, 1e6)


def noisy_number(scale):
    """A sampler of a number with Laplace noise of this scale."""
    rng = generator()
    return lambda value, n: value + rng.laplace(0.0, scale, n)


def frequency(name, claimed, neighbours, attacks, samples):
    return Frequency(name, Fraction(claimed), [neighbours], attacks, same(samples))


# -- Laplace at 80% --------------------------------------------------------------------------------


def told(share):
    """The real mechanism, told that an entry moves by this share of what it does."""
    alpha = Fraction(1)
    bound = Sensitivity(alpha * Fraction(share), "a control")

    def sample(value, n):
        sealed = seal(np.full(n, value), name="power", unit="MW", range=LIMITS)
        account = seeded_account(seed=int(value))
        return laplace(account, sealed, name="q", sensitivity=bound, epsilon=2).value

    neighbours = pair("20 or 21", sample, 20.0, 21.0)
    return frequency("laplace", 2, neighbours, [values()], 40_000)


# -- rounding that is not paid for -----------------------------------------------------------------


def rounded(paid):
    """Whole steps, where an entry moves by 1.4: two steps at worst."""
    rng = generator()

    def sample(value, n):
        success = -np.expm1(-1.0 / (paid / 2.0))
        plus, minus = rng.geometric(success, (2, n))
        return np.rint(value) + plus - minus

    neighbours = pair("20.2 or 21.6", sample, 20.2, 21.6)
    return frequency("rounding", 2, neighbours, [values()], 4_000)


# -- TCO, ELO: steps 2 and 3 of the published code -------------------------------------------------

T = 3
C_MAX = 100.0
ALPHA = 5.0


def cost_of_step_3(scale):
    """The cost of a model on two networks that differ in the line with the highest price."""
    one, other, moved = costs_of_neighbours()
    sample = noisy_number(scale(moved))
    neighbours = pair("the line with the highest shadow price", sample, one, other)
    return frequency("cost of a model", Fraction(1, 4 * T), neighbours, [values()], 20_000)


def cost_at_price(price):
    """The cost of a model with noise for lines whose shadow price is at most this."""
    one, other, _ = costs_of_neighbours()
    sample = noisy_number(price * ALPHA)
    neighbours = pair("the line with the highest shadow price", sample, one, other)
    return frequency("cost of a model", 1, neighbours, [values()], 20_000)


def wrong_step_3(bound, epsilon=1):
    return bound / epsilon / (4 * T)


def right_step_3(bound, epsilon=1):
    return bound / (epsilon / (4 * T))


def worst_model(scale):
    """Noisy max over costs in $/h that move against each other."""
    rng = generator()
    step = ALPHA * C_MAX

    def sample(scores, n):
        return np.argmax(scores + rng.exponential(scale, (n, len(scores))), axis=1)

    scores = np.array([0.0, 2 * step, -step])
    moved = scores + step * np.array([1.0, -1.0, -1.0])
    neighbours = pair("the worst model two steps ahead", sample, scores, moved)
    return frequency("worst model", 1, neighbours, [atoms()], 4_000)


# -- noisy max -------------------------------------------------------------------------------------


def half_of_noisy_max(scale):
    return worst_model(scale * ALPHA * C_MAX)


# -- WPO: the squared loss -------------------------------------------------------------------------


@cache
def losses():
    """Losses of records that are 0 but for one of low leverage, and the norm's bound."""
    speed, none = np.linspace(2.5, 12.5, 100), np.zeros(100)
    table = pa.table({"speed": speed, "power": none})
    records = wind.read_records(table, speed="speed", power="power", capacity=1.0)
    ridge = fit_records(records, wind.RBF(5), 1e-3)[0].ridge
    place = max(range(100), key=lambda i: ridge.loss(np.eye(100)[i]))
    one, other = (ridge.loss(power * np.eye(100)[place]) for power in (0.9, 1.0))
    return one, other, ridge.delta_loss(0.1)


def loss(power):
    one, other, bound = losses()
    sample = noisy_number(bound)
    neighbours = pair("the record that moves the loss most", sample, one**power, other**power)
    return frequency("loss", 1, neighbours, [values()], 4_000)


# -- synthetic records: sums over blocks -----------------------------------------------------------


@cache
def block_sums():
    """A question about blocks, on two farms that differ in a day: at zero, or at full power."""
    farm = Farm([np.full(144, 8.0)], [600 * np.arange(144)], "day")
    question = BlockSums(
        "residuals", 20.0, 1, lambda chunk, power: np.array([[(power - 0.5).sum()]])
    )
    answers = [question.compute(farm, [lambda y=y: iter([np.full(144, y)])]) for y in (0.0, 1.0)]
    return question, *(float(answer[0]) for answer in answers)


def blocks(radii):
    """The sum with noise for a move by so many radii."""
    question, one, other = block_sums()
    sample = noisy_number(radii * question.radius)
    neighbours = pair("a day at zero or at full power", sample, one, other)
    return frequency("sums over blocks", 1, neighbours, [values()], 4_000)


# -- load series: waves of a day's total -----------------------------------------------------------


def waves(hours):
    """Waves of a total with noise for a day of so many hours, where all 24 move."""
    frame = Frame(Clock(0, 24, 1, "UTC"), 1, Range(0.0, 20.0), Fraction(1), "day")
    query = all_queries(frame, 1)["totals"]
    one, other = (
        float(query.ask(frame.counted(np.full((24, 1), value)))[0, 0] * query.unit)
        for value in (5.0, 6.0)
    )
    sample = noisy_number(hours / 24 * float(query.sensitivity.value))
    neighbours = pair("a load's day at 5 or 6 MW", sample, one, other)
    return frequency("waves of a total", 1, neighbours, [values()], 4_000)


SCALES = (
    Control(
        "A load's day paid as an hour of it",
        "24 hours of a load move, and the noise is for one that does",
        partial(waves, 1),
        partial(waves, 24),
    ),
    Control(
        "Laplace at 80% of its scale",
        "the mechanism is told that an entry moves by 0.8 alpha",
        partial(told, "4/5"),
        partial(told, "1"),
    ),
    Control(
        "Rounding left out of the sensitivity",
        "1.4 grid steps are paid as one; rounding makes them two",
        partial(rounded, 1),
        partial(rounded, 2),
    ),
    Control(
        "TCO and ELO, step 3",
        "alpha c_max/eps/(4T) in place of alpha c_max/(eps/(4T)): noise 16 T^2 too small",
        partial(cost_of_step_3, wrong_step_3),
        partial(cost_of_step_3, right_step_3),
    ),
    Control(
        "TCO, Assumption 2",
        "a MW of capacity is taken to be worth the highest cost at most; a line is worth more",
        partial(cost_at_price, DEAREST),
        partial(cost_at_price, PRICE),
    ),
    Control(
        "ELO, step 2",
        "c_max is missing from the scale",
        partial(worst_model, 2 * ALPHA),
        partial(worst_model, 2 * ALPHA * C_MAX),
    ),
    Control(
        "Noisy max at half its scale",
        "D/eps for scores that can move against each other, which need 2D/eps",
        partial(half_of_noisy_max, 1),
        partial(half_of_noisy_max, 2),
    ),
    Control(
        "WPO, squared loss",
        "noise for the norm's bound on the squared loss, which moves further",
        partial(loss, 2),
        partial(loss, 1),
    ),
    Control(
        "Sums over blocks, one radius",
        "noise for a vector that is taken away; one that is replaced moves by two radii",
        partial(blocks, 1),
        partial(blocks, 2),
    ),
)
