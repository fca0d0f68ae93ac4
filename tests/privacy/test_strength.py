"""A guarantee is coloured by what it protects: a step, and a whole value."""

from fractions import Fraction

import pytest
from support.making import FACTS, adjacency, spend_some

from gridveil.privacy.account import open_account
from gridveil.privacy.guarantee_words import NAMES
from gridveil.privacy.ledger import Terms
from gridveil.privacy.schema import schema_problems
from gridveil.privacy.statement import Statement, make_statement


def statement(epsilon, *wholes, spent=None, valid=True, alpha="30"):
    """A statement with parameters whose whole ranges are so many steps of alpha wide."""
    epsilon, spent = Fraction(epsilon), Fraction(spent or epsilon)
    neighbours = [
        {
            "parameter": f"p{place}",
            "alpha": alpha,
            "unit": "MW",
            "range": [0.0, float(steps * Fraction(alpha))],
            "entries": 5,
            "epsilon_over_whole_range": str(epsilon * steps),
        }
        for place, steps in enumerate(wholes)
    ]
    ledger = {
        "charged": str(epsilon),
        "spent_so_far": str(spent),
        "reference_alpha": {"p0": {"alpha": alpha, "unit": "MW"}},
    }
    return Statement(
        {
            "dp_valid": valid,
            "guarantee": {"epsilon": str(epsilon), "neighbours": neighbours},
            "ledger": ledger if valid else None,
        }
    )


@pytest.mark.parametrize(
    ("epsilon", "steps", "level"),
    [
        ("1", 5, "strong"),
        ("1", 7, "medium"),
        ("1/2", 10, "strong"),
        ("1", 11, "medium"),
        ("1.5", 1, "medium"),
        ("10", 10, "medium"),
        ("1", 100, "medium"),
        ("1", 101, "steps"),
        ("1", 33_334, "steps"),
        ("0.01", 33_334, "steps"),
        ("10.5", 1, "weak"),
        ("50", 33_334, "weak"),
    ],
)
def test_the_class_follows_from_the_step_and_the_whole_value(epsilon, steps, level):
    assert statement(epsilon, steps).strength.level == level


def test_the_weakest_parameter_decides():
    found = statement(1, 5, 33_334).strength
    assert found.level == "steps"
    assert "value of p1 is not protected" in found.reason
    assert found.headline == (
        "Protects steps of up to 30 MW of one entry of p0 or 30 MW of one entry of p1: epsilon 1"
    )


def test_it_says_how_far_apart_values_can_be_told_apart():
    reason = statement("3", 5000).strength.reason
    assert "more than 90 MW apart" in reason  # three steps have epsilon 9, four have 12
    assert "15000" not in reason  # which would say no more than that
    assert "anywhere in its public range, epsilon is 27." in statement("3", 9).strength.reason


def test_earlier_releases_count():
    alone, later = (statement(1, 5, spent=spent).strength for spent in (1, 3))
    assert (alone.level, later.level) == ("strong", "medium")
    assert "All releases of this data so far" in later.reason
    assert "epsilon 3 for steps of 30 MW" in later.reason
    assert "epsilon 1" in later.headline  # of this release
    assert statement(1, 7, spent=11).strength.level == "weak"


def released(ledger, epsilon, alpha):
    account = open_account(
        ledger,
        Terms(
            dataset="farm",
            epsilon=epsilon,
            adjacency=[adjacency("power", alpha)],
            purpose="a test",
        ),
    )
    spend_some(account, epsilon)
    return make_statement(account, FACTS)


def so_far(statement):
    recorded = statement.body["ledger"]
    return tuple(
        Fraction(recorded[f"epsilon_so_far_{end}"]) for end in ("for_alpha", "over_whole_range")
    )


def test_an_earlier_release_at_a_smaller_alpha_counts_for_every_step_of_it(ledger):
    released(ledger, 1, 10)
    later = released(ledger, "1/2", 1000)  # the whole range
    assert so_far(later) == (Fraction(201, 2), Fraction(201, 2))
    assert later.strength.level == "weak"
    assert schema_problems({**later.body, "digest": "0" * 64}) == []


def test_earlier_releases_at_a_larger_alpha_count_once(ledger):
    for _ in range(11):
        released(ledger, "1/4", 1000)
    later = released(ledger, "1/4", 125)
    assert so_far(later) == (3, Fraction(19, 4))  # 12 quarters; 11 of them and 8
    found = later.strength
    assert found.level == "medium"
    assert "anywhere in its public range, epsilon is 4.75." in found.reason


def test_a_total_of_a_statement_without_these_figures_is_taken_at_its_worst(ledger):
    released(ledger, 1, 10)
    later = released(ledger, "1/2", 1000)
    recorded = {k: v for k, v in later.body["ledger"].items() if "epsilon_so_far" not in k}
    old = Statement({**later.body, "ledger": recorded})
    assert old.strength == later.strength
    assert old.strength.level == "weak"


def test_without_a_guarantee_there_is_no_strength():
    found = statement(1, 7, valid=False).strength
    assert found.level == "none"
    assert found.headline == "No guarantee: do not publish as private data"


def test_no_class_gives_leave_to_publish():
    for given in (statement(1, 7), statement(2, 7), statement(1, 500), statement(99, 1)):
        found = given.strength
        assert "may be published" not in found.headline + found.reason
        assert found.name == NAMES[found.level]


def test_long_numbers_stay_readable():
    found = statement("1", 7, spent="22222222222222/7777777777777").strength
    assert "epsilon is about 20" in found.reason
    assert statement("1" + "0" * 150, 7, spent="1" + "0" * 199).strength.level == "weak"
