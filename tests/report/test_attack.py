"""The attack that the owner's report shows, and the bounds beside it."""

from fractions import Fraction

import numpy as np
import pytest

from gridveil.grid import cases
from gridveil.privacy.guarantee_words import certainty, show_certainty
from gridveil.report.certainty_by_size import misfit, sizes
from gridveil.report.inference_attack import infer, of_groups

RATINGS = np.repeat([105.0, 240.0, 300.0], [30, 10, 60])


def attack(alpha, noise, real=RATINGS):
    rng = np.random.default_rng(3)
    released = real + rng.laplace(0, noise, len(real))
    return infer("capacity", "MW", real, released, alpha=Fraction(alpha), epsilon=Fraction(1))


def test_a_short_list_gives_entries_away_where_alpha_is_below_its_spacing():
    found = attack(5, 5.0)
    assert found.listed
    assert found.recovered > 0.98
    assert found.common == pytest.approx(0.6)
    assert "Choose alpha at or above" in found.warning


def test_no_warning_where_alpha_covers_the_spacing():
    found = attack(150, 150.0)
    assert found.warning is None
    assert found.recovered < 0.8


def test_values_that_have_nothing_in_common_are_no_list():
    real = np.random.default_rng(0).uniform(50, 500, 100)
    found = attack(5, 5.0, real)
    assert not found.listed
    assert found.warning is None


@pytest.mark.parametrize("count", [2, 5, 10])
def test_a_few_entries_are_a_short_list_of_their_own(count):
    found = attack(5, 1.0, 100.0 * np.arange(1, count + 1))
    assert found.listed
    assert f"capacity has {count} different values" in found.warning


def test_a_spacing_of_alpha_is_not_above_it():
    """0.8 - 0.7 is a little more than 0.1 in floats."""
    real = np.repeat([0.7, 0.8], 10)
    assert np.median(np.diff(np.unique(real))) > 0.1
    found = infer("power", "of capacity", real, real, alpha=Fraction(1, 10), epsilon=Fraction(1))
    assert found.warning is None
    assert found.sure_of_spacing == found.sure_of_alpha
    closer = infer(
        "power", "of capacity", real, real, alpha=Fraction(99, 1000), epsilon=Fraction(1)
    )
    assert "0.1 of capacity apart, which is more than alpha (0.099)" in closer.warning


def test_one_value_has_no_spacing():
    found = attack(5, 5.0, np.full(9, 100.0))
    assert found.spacing is None
    assert found.sure_of_spacing is None
    assert found.recovered == 1


def test_the_bound_is_what_epsilon_allows_and_holds_for_the_best_test():
    """Laplace noise reaches the bound for two values that are alpha apart."""
    assert certainty(Fraction(1)) == pytest.approx(np.e / (1 + np.e))
    rng = np.random.default_rng(1)
    noise = rng.laplace(0, 1.0, 400_000)
    # Sure of 0 against 1 when far to the left: the odds there are e.
    left = (noise < -1).mean() / ((noise < -1).mean() + (noise + 1 < -1).mean())
    assert left == pytest.approx(certainty(Fraction(1)), abs=0.005)


def test_a_shown_bound_is_never_below_the_bound():
    for thousandths in range(0, 9_200, 7):
        sure = certainty(Fraction(thousandths, 1000))
        shown = float(show_certainty(sure).rstrip("%")) / 100
        assert sure <= shown + 1e-15
        assert shown - sure < 0.001


def test_entries_and_releases_add_up():
    rows = of_groups(Fraction(1, 2), "one entry", [], (Fraction(3), "5 MW"))
    assert [total for _, total, _ in rows] == [Fraction(1, 2), 1, Fraction(5, 2), 5, 3]
    assert rows[-1][0] == "one entry by 5 MW, all releases of this data so far"
    assert of_groups(Fraction(1), "one entry", [], None)[-1][0] == "10 times one entry, at once"
    day = ("one day of one turbine", Fraction(72))
    assert [words for words, _, _ in of_groups(Fraction(1, 2), "one entry", [day], None)] == [
        "one entry",
        "one day of one turbine",
    ]


def test_a_guess_from_other_data_is_counted():
    real = np.array([0.1, 0.5, 0.9])
    found = infer(
        "power",
        "of capacity",
        real,
        real + 0.3,
        alpha=Fraction(1, 10),
        epsilon=Fraction(1),
        guess=real + np.array([0.0, 0.05, 0.5]),
    )
    assert found.within == 0
    assert found.guessed_within == pytest.approx(2 / 3)


def test_the_ratings_of_rts96_are_recovered_where_alpha_is_small():
    """At epsilon 1, from plain noise: 85% at alpha 30, 99.9% at alpha 5 (means of 50 runs)."""
    real = cases.rts96(variant="paper").branches.capacity
    rng = np.random.default_rng(0)
    for alpha, expected in ((5, 0.999), (30, 0.85)):
        runs = [
            infer(
                "capacity",
                "MW",
                real,
                real + rng.laplace(0, alpha, len(real)),
                alpha=Fraction(alpha),
                epsilon=Fraction(1),
            )
            for _ in range(50)
        ]
        assert np.mean([one.recovered for one in runs]) == pytest.approx(expected, abs=0.01)
        assert all(one.warning for one in runs)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(3)])
def test_what_a_step_leaves_to_tell_by_size(epsilon):
    values = np.geomspace(20, 4000, 101)
    amount = sizes(values, [Fraction(30)] * 101, epsilon, relative=False)
    share = sizes(values, [Fraction(1, 5)] * 101, epsilon, relative=True)
    assert [one.value for one in amount] == pytest.approx([values[5], values[50], values[95]])
    # A tenth of them is 1, 1 and 11 steps of 30 MW, and at 20% one step each.
    assert [one.sure for one in amount] == [certainty(epsilon * steps) for steps in (1, 1, 11)]
    assert [one.sure for one in share] == [certainty(epsilon)] * 3
    assert amount[0].noise == pytest.approx(30 / values[5] / float(epsilon))
    assert share[0].noise == share[2].noise == pytest.approx(np.log(1.2) / float(epsilon))
    assert "one step in MW does not fit" in (misfit(amount, "capacity", "MW") or "")
    assert misfit(share, "capacity", "of its value") is None
    alike = sizes(np.linspace(300, 400, 9), [Fraction(30)] * 9, epsilon, relative=False)
    assert misfit(alike, "capacity", "MW") is None


def test_what_is_released_within_a_tenth_is_counted_by_size():
    real = np.array([10.0] * 25 + [100.0] * 50 + [1000.0] * 25)
    shown = real + np.where(np.arange(100) % 2, 5.0, 0.0)
    found = infer("capacity", "MW", real, shown, alpha=30, epsilon=1, by_size=True)
    assert [one.known for one in found.sizes] == [pytest.approx(13 / 25), 1.0, 1.0]
    assert [one.noise for one in found.sizes] == [3.0, 0.3, 0.03]
    assert any("does not fit" in words for words in found.warnings)
    assert infer("capacity", "MW", real, shown, alpha=30, epsilon=1).sizes == ()


def test_nothing_to_tell_of_entries_that_are_0():
    assert sizes(np.zeros(3), [Fraction(1)] * 3, Fraction(1), relative=False) == ()
    assert misfit((), "load", "MW") is None
