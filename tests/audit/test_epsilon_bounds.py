"""What is proved holds: bounds that cover, and halves that keep a choice from proving itself.

Error rates: each statistical test passes correct code with probability over 1 - 1e-6.
"""

import numpy as np
import pytest
from scipy import stats

from gridveil.auditing.attacks import Attack, atoms, laplace_ratio, linear, values
from gridveil.auditing.epsilon_bounds import epsilon_bound, lower_bound, prove, upper_bound


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (10, 10), (512, 1000)])
@pytest.mark.parametrize("error", [0.2, 1e-6])
def test_bounds_are_those_of_clopper_and_pearson(hits, trials, error):
    low, high = lower_bound(hits, trials, error), upper_bound(hits, trials, error)
    if hits:
        assert stats.binom.sf(hits - 1, trials, low) == pytest.approx(error, rel=1e-6)
    else:
        assert low == 0
    if hits < trials:
        assert stats.binom.cdf(hits, trials, high) == pytest.approx(error, rel=1e-6)
    else:
        assert high == 1


def test_an_event_that_is_never_seen_on_the_neighbour_proves_something_finite():
    # Half of 1,000 against none: log(p/q) with q from none of 1,000 at error 1e-6.
    proved = epsilon_bound(500, 0, (1000, 1000), 1e-6)
    none = -np.log(1e-6) / 1000
    assert np.log(0.4 / none) < proved < np.log(0.5 / (0.9 * none))
    assert epsilon_bound(0, 500, (1000, 1000), 1e-6) == 0


def responses(rng, keep, n):
    """Randomised response: the truth (0 or 1) with probability ``keep``, else the other."""
    return (rng.random(n) < keep).astype(float), (rng.random(n) >= keep).astype(float)


def test_false_alarms_are_as_rare_as_allowed():
    # Of 200 proofs at error 0.2, more than 80 too large ones have a probability under 1e-9.
    rng = np.random.default_rng(1)
    keep = np.e / (1 + np.e)  # epsilon is exactly 1
    wrong = sum(
        prove(*responses(rng, keep, 400), [values(), atoms()], 0.2).epsilon > 1 for _ in range(200)
    )
    assert wrong <= 80


def test_an_attack_that_learns_its_outcomes_by_heart_proves_nothing():
    # The control of splitting: on outcomes that it has seen, this attack is always right.
    rng = np.random.default_rng(2)

    def learn(ones, others):
        seen = set(ones.tolist())
        return lambda z: np.array([float(value in seen) for value in z])

    by_heart = Attack("by heart", learn)
    ones, others = rng.random(2000), rng.random(2000)
    score = by_heart.learn(ones, others)
    assert epsilon_bound(score(ones).sum(), score(others).sum(), (2000, 2000), 1e-6) > 4
    assert prove(ones, others, [by_heart], 1e-6).epsilon == 0


def test_laplace_noise_is_proved_to_be_near_its_epsilon():
    rng = np.random.default_rng(3)
    ones, others = rng.laplace(0, 1, 100_000), rng.laplace(1, 1, 100_000)
    assert 0.85 < prove(ones, others, [values()], 1e-6).epsilon < 1
    assert 0.85 < prove(others, ones, [values()], 1e-6).epsilon < 1


def test_either_direction_is_enough():
    # An outcome that only the second neighbour has, at times: nothing to see the other way.
    rng = np.random.default_rng(4)
    ones = np.zeros(10_000)
    others = (rng.random(10_000) < 0.1).astype(float)
    proof = prove(ones, others, [values()], 1e-6)
    assert proof.epsilon > 3
    assert "at least 1" in proof.words
    assert prove(others, ones, [values()], 1e-6).epsilon == proof.epsilon


def test_the_best_attack_is_used():
    rng = np.random.default_rng(5)
    ones = rng.laplace(0, 1, (4000, 2))
    others = ones[::-1] + np.array([0.0, 1.0])
    useless = Attack("useless", lambda a, b: lambda z: np.zeros(len(z)))
    ratio = Attack("ratio", lambda a, b: laplace_ratio(np.zeros(2), np.array([0.0, 1.0]), 1.0))
    proof = prove(ones, others, [useless, ratio, useless], 1e-6)
    assert proof.epsilon > 0.5
    assert proof.words.startswith("ratio")


# -- attacks ---------------------------------------------------------------------------------------


def test_a_direction_without_noise_is_found_however_small():
    rng = np.random.default_rng(6)
    shared = rng.laplace(0, 1e3, (2000, 1))
    ones = shared + np.array([0.0, 0.0, 1e-3])
    others = shared[::-1] + np.array([0.0, 0.0, 2e-3])
    assert prove(ones, others, [linear()], 1e-6).epsilon > 3


def test_features_reach_the_classifier():
    rng = np.random.default_rng(7)
    numbers = 2 * rng.integers(0, 10**6, (2, 1000))
    ones, others = numbers[0], numbers[1] + 1
    assert prove(ones, others, [linear()], 1e-6).epsilon == 0
    assert prove(ones, others, [linear(lambda z: z[:, None] % 2.0)], 1e-6).epsilon > 3


def test_classes_that_are_told_apart_without_fail_stay_finite():
    ones, others = np.zeros((100, 2)), np.ones((100, 2))
    score = linear().learn(ones, others)
    assert np.isfinite(score(ones)).all()
    assert score(ones).min() > score(others).max()


def test_the_ratio_of_laplace_noise_is_clipped_by_itself():
    score = laplace_ratio(np.array([0.0, 0.0]), np.array([1.0, -1.0]), 0.5)
    assert score(np.array([[-9.0, 9.0], [9.0, -9.0], [0.5, -0.5]])).tolist() == [4, -4, 0]


def test_outcomes_that_were_never_seen_count_as_even():
    score = atoms().learn(np.array([1, 1, 2]), np.array([2, 2, 2]))
    assert score(np.array([1]))[0] > 0 > score(np.array([2]))[0]
    assert score(np.array([3]))[0] == 0
