"""The audit of what a ledger adds up."""

from dataclasses import replace
from fractions import Fraction

import pytest

from gridveil.auditing.checks import Sizes
from gridveil.auditing.ledger import Composition, Spending, _open_ledger, composed

SIZES = Sizes(20, 20)


def spending(epsilon, alpha):
    return Spending(Fraction(epsilon), Fraction(alpha), "data")


def test_charges_compose_at_the_first_alpha():
    assert composed([spending(1, 30), spending(1, 5)]) == 7
    assert composed([spending(1, 5), spending(1, 30)]) == 2
    assert composed([spending(1, 30), spending("1/2", 20)]) == 2


def test_the_real_ledger_says_the_same():
    pay = _open_ledger()
    assert pay(spending(1, 30)) == 1
    assert pay(spending(1, 5)) == 7
    raised = replace(spending(1, 60), raised=Fraction(60))
    assert pay(raised) == composed([spending(1, 30), spending(1, 5), raised]) == 15


@pytest.mark.parametrize("recomputes", [True, False])
def test_a_raise_that_forgets_past_charges_is_caught(recomputes):
    def opened():
        paid, said = [], [Fraction(0)]

        def pay(one):
            before = composed(paid) if paid else 0
            paid.append(one)
            fresh = composed(paid) - (before if one.raised is None else 0)
            step = one.epsilon if one.raised is not None else fresh
            said[0] += step
            return composed(paid) if recomputes else said[0]

        return pay

    found = Composition("raises", opened, ["data"], SIZES, raises=True).run(fast=True, error=1e-6)
    assert found.broken != recomputes


@pytest.mark.parametrize(("share", "broken"), [(1, False), (2, False), ("99/100", True)])
def test_a_ledger_may_say_more_and_never_less(share, broken):
    def opened():
        paid = []

        def pay(one):
            paid.append(one)
            return composed(paid) * Fraction(share)

        return pay

    found = Composition("totals", opened, ["data"], SIZES).run(fast=True, error=1e-6)
    assert found.broken == broken
    assert (found.proved > found.claimed) == broken


def test_what_is_refused_is_not_spent():
    def opened():
        paid = []

        def pay(one):
            if one.name == "other":
                return None
            paid.append(one)
            return composed(paid)

        return pay

    found = Composition("totals", opened, ["data", "other"], SIZES).run(fast=True, error=1e-6)
    assert not found.broken
    nothing = Composition("totals", opened, ["other"], SIZES).run(fast=True, error=1e-6)
    assert not nothing.ran
    assert nothing.words == "not run: every charge was refused"
