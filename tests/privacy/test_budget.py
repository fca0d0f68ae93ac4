"""Exact epsilon: what adds up, what is refused, and what a refusal says."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridveil.errors import BudgetRefused, InputError, show_exact
from gridveil.privacy.account import Budget
from gridveil.privacy.exact_numbers import exact


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        ("15%", Fraction(3, 20)),
        (" 2.5 % ", Fraction(1, 40)),
        (Decimal("0.3"), Fraction(3, 10)),
        (Fraction(2, 7), Fraction(2, 7)),
        ("1e-3", Fraction(1, 1000)),
        (1e-9, Fraction(1, 10**9)),
    ],
)
def test_reads_what_a_person_writes(written, meant):
    assert exact(written, name="epsilon") == meant


@pytest.mark.parametrize(
    "bad",
    [
        0,
        -1,
        "",
        "abc",
        "1/0",
        float("nan"),
        float("inf"),
        True,
        None,
        "1e999",
        "9" * 99,
        "0x1",
        "--1",
    ],
)
def test_refuses_what_is_no_positive_number(bad):
    with pytest.raises(InputError, match="epsilon must be a positive number"):
        exact(bad, name="epsilon")


@pytest.mark.parametrize("share", ["5%", " 30 % ", "1/3%"])
def test_an_amount_is_no_share(share):
    with pytest.raises(InputError, match="alpha must be a positive number of MW") as caught:
        exact(share, name="alpha", unit="MW")
    assert "%" not in caught.value.remedy
    assert exact("30", name="alpha", unit="MW") == 30


def test_tenths_add_up():
    budget = Budget(1)
    for _ in range(10):
        budget.spend(0.1)
    assert budget.remaining == 0


def test_a_refusal_explains_and_changes_nothing():
    budget = Budget("1/2")
    budget.spend("1/4")
    with pytest.raises(BudgetRefused) as caught:
        budget.spend("1/3")
    assert caught.value.requested == Fraction(1, 3)
    assert caught.value.remaining == Fraction(1, 4)
    assert caught.value.difference == Fraction(1, 12)
    assert "requested 1/3, remaining 0.25, short by 1/12" in str(caught.value)
    assert budget.remaining == Fraction(1, 4)


@given(st.lists(st.fractions(min_value=Fraction(1, 10**6), max_value=10), min_size=1, max_size=20))
def test_never_overspends(amounts):
    budget = Budget(5)
    spent = Fraction(0)
    for amount in amounts:
        try:
            budget.spend(amount)
            spent += amount
        except BudgetRefused:
            assert spent + amount > 5
    assert budget.spent == spent <= 5


@given(st.fractions(min_value=0, max_denominator=10**9))
def test_shown_numbers_are_exact(value):
    assert Fraction(show_exact(value)) == value
