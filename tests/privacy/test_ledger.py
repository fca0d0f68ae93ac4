"""The ledger: no overspending, no losing, no rewriting."""

import math
import multiprocessing
import os
import signal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.making import adjacency, charge, race
from support.sizes import FULL, PATIENCE

from gridveil.errors import BudgetRefused, InputError, LedgerError, LedgerRefused, LedgerWarning
from gridveil.privacy.adjacency import Step
from gridveil.privacy.ledger import (
    Declared,
    Entry,
    Ledger,
    Terms,
    Totals,
    database,
    steps_to_reference,
)
from gridveil.privacy.ledger import file as ledger_file
from gridveil.privacy.ledger.entries import Reading, breaks, entry_hash

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def ledger(backend):
    return Ledger(backend.new())


# -- what is spent ---------------------------------------------------------------------------------


def test_charges_add_up_exactly(ledger):
    for _ in range(10):
        charge(ledger, "0.1")
    assert ledger.totals("farm").spent == 1


def test_a_cap_refuses_with_figures_and_changes_nothing(ledger):
    ledger.set_cap("farm", 1, alpha={"power": "0.1"})
    charge(ledger, "0.75")
    before = ledger.entries()
    with pytest.raises(BudgetRefused) as caught:
        charge(ledger, "0.5")
    assert (caught.value.requested, caught.value.remaining) == (Fraction(1, 2), Fraction(1, 4))
    assert caught.value.difference == Fraction(1, 4)
    assert ledger.entries() == before
    charge(ledger, "0.25")
    assert ledger.totals("farm").remaining == 0


def test_a_cap_can_be_raised_lowered_and_removed(ledger):
    charge(ledger, 2)
    ledger.set_cap("farm", 1, alpha={"power": "0.1"})
    assert ledger.totals("farm").remaining == 0
    with pytest.raises(BudgetRefused):
        charge(ledger, "0.001")
    ledger.set_cap("farm", None)
    charge(ledger, 5)
    assert ledger.totals("farm").spent == 7


def test_spellings_of_a_name_share_one_budget(ledger):
    charge(ledger, 1, "North Farm")
    charge(ledger, 1, "  north   FARM ")
    charge(ledger, 1, "north-farm")
    charge(ledger, 1, "North_Farm.")
    assert ledger.totals("north farm").spent == 4
    assert len(ledger.all_totals()) == 1


@pytest.mark.parametrize("name", ["", "  ", "a\x00b", "x" * 201])
def test_names_are_checked(ledger, name):
    with pytest.raises(InputError, match="name of 1 to 200"):
        charge(ledger, 1, name)
    assert ledger.entries() == []


# -- different alphas ------------------------------------------------------------------------------


def test_releases_at_different_alphas_add_up_at_the_reference(ledger):
    assert charge(ledger, 1, alpha=30).charged == 1  # fixes the reference
    assert charge(ledger, 1, alpha=10).charged == 3  # three steps of 10 make one of 30
    assert charge(ledger, 1, alpha=7).charged == 5  # ceil(30/7)
    assert charge(ledger, 1, alpha=60).charged == 1  # protects a step of 30 as well
    assert ledger.totals("farm").spent == 10
    assert ledger.totals("farm").reference == {"power": Step(Fraction(30), "MW")}


def test_the_scaled_charge_is_what_the_cap_counts(ledger):
    ledger.set_cap("farm", 2, alpha=30)
    charge(ledger, 1, alpha=30)
    with pytest.raises(BudgetRefused) as caught:
        charge(ledger, 1, alpha=10)
    assert (caught.value.requested, caught.value.remaining) == (3, 1)


def test_each_parameter_has_its_own_reference(ledger):
    charge(ledger, 1, parameter="capacity", alpha=30)
    charge(ledger, 1, parameter="cost", alpha=1, unit="$/MWh")
    assert ledger.totals("farm").spent == 2


def test_of_parameters_charged_together_the_largest_factor_counts(ledger):
    charge(ledger, 1, parameter="capacity", alpha=30)
    charge(ledger, 1, parameter="load", alpha=10)
    both = [adjacency("capacity", 10, "MW"), adjacency("load", 5, "MW")]
    made = ledger.charge(Terms("farm", epsilon=1, adjacency=both, purpose="a test"))
    assert (made.charged, made.spent) == (3, 5)


def test_a_parameter_is_charged_once_in_a_charge(ledger):
    twice = [adjacency("load", 10), adjacency("load", 5)]
    with pytest.raises(InputError, match="once"):
        ledger.charge(Terms("farm", epsilon=1, adjacency=twice, purpose="a test"))
    assert ledger.entries() == []


def shares(ledger, alpha, measure="kW", **capacities):
    wholes = {name: Fraction(whole) for name, whole in capacities.items()}
    of = adjacency("power", alpha, "of capacity", wholes=wholes, measure=measure)
    return ledger.charge(Terms("farm", epsilon=1, adjacency=[of], purpose="a test")).charged


def test_shares_of_another_capacity_are_compared_as_amounts(ledger):
    assert shares(ledger, "0.15", one=2750) == 1  # 412.5 kW
    assert shares(ledger, "0.15", one=2750) == 1
    assert shares(ledger, "0.15", one=1000) == 3  # 150 kW
    assert shares(ledger, "0.3", one=1000) == 2
    with pytest.warns(LedgerWarning, match="what was spent, 7, counts 12"):  # 2 + 2 + 5 + 3
        assert shares(ledger, "0.15", one=5000) == 1


def test_each_turbine_has_its_own_reference(ledger):
    assert shares(ledger, "0.1", small=1000, large=4000) == 1
    assert shares(ledger, "0.1", small=1000, large=4000) == 1
    assert shares(ledger, "0.1", small=1000) == 1
    assert shares(ledger, "0.1", small=1000, large=2000) == 2
    # It may be the large one under another name.
    assert shares(ledger, "0.1", new=1000) == 4
    assert shares(ledger, "0.1", new=4000) == 1


def test_a_capacity_put_right_upwards_counts_for_the_charges_before(ledger):
    ledger.set_reference("farm", "15%")
    shares(ledger, "0.15", one="2.75")
    with pytest.raises(LedgerWarning, match="what was spent, 1, counts 1000"):
        shares(ledger, "0.15", one=2750)  # warnings are errors here: nothing may be charged yet
    with (
        pytest.warns(LedgerWarning, match="what was spent, 1, counts 1000"),
        pytest.warns(LedgerWarning, match="epsilon counts 1,000 times"),
    ):
        assert shares(ledger, "0.00015", one=2750) == 1000
    totals = ledger.totals("farm")
    assert totals.spent == 2000
    assert totals.reference["power"].wholes == {"one": 2750}


def test_a_larger_turbine_counts_at_its_own_capacity(ledger):
    assert shares(ledger, "0.1", small=100) == 1
    with pytest.warns(LedgerWarning, match="epsilon counts 30 times"):
        assert shares(ledger, "1/300", small=100, big=3000) == 30
    assert ledger.totals("farm").spent == 31
    # A small one under another name may be the big one.
    with pytest.warns(LedgerWarning, match="epsilon counts 30 times"):
        assert shares(ledger, "0.1", other=100) == 30


def test_a_turbine_that_grows_under_another_name_raises_what_was_charged(ledger):
    """The one that is gone may be the new one: its charge counts for steps of its new capacity."""
    assert shares(ledger, "0.1", one=1000, other=500) == 1
    with pytest.warns(LedgerWarning, match=r"may be one that is gone.*spent, 1, counts 2"):
        assert shares(ledger, "0.1", one=1000, third=800) == 2  # the third may have been the one
    assert ledger.totals("farm").spent == 4  # the other may be the third: two steps of 50 for 80
    with pytest.warns(LedgerWarning, match="what was spent, 4, counts 10"):
        assert shares(ledger, "0.1", one=1000, fourth=3000) == 1
    assert ledger.totals("farm").reference["power"].wholes["other"] == 3000
    before = ledger.totals("farm").spent
    assert shares(ledger, "0.1", one=1000, other=3000, third=3000, fourth=3000, fifth=3000) == 1
    assert ledger.totals("farm").spent == before + 1  # nobody is gone: the fifth is another one


def test_a_cap_is_held_against_the_total_at_the_larger_capacity(ledger):
    ledger.set_cap("farm", 5, alpha="10%")
    shares(ledger, "0.1", one=1000)
    before = ledger.entries()
    with pytest.raises(BudgetRefused, match="counts more at the larger capacities") as caught:
        shares(ledger, "0.1", one=5000)  # the first counts 5 then
    assert (caught.value.requested, caught.value.remaining) == (1, 0)
    assert ledger.entries() == before
    assert ledger.totals("farm").spent == 1
    with pytest.warns(LedgerWarning, match="what was spent, 1, counts 4"):
        shares(ledger, "0.1", one=4000)
    assert ledger.totals("farm").remaining == 0


def test_a_change_of_the_measure_is_refused(ledger):
    shares(ledger, "0.15", one=2750)
    with pytest.raises(LedgerRefused, match="was in kW before, and is in MW"):
        shares(ledger, "0.15", measure="MW", one=2.75)
    assert ledger.totals("farm").spent == 1


@pytest.mark.parametrize(
    "one", [{"alpha": "0"}, {"wholes": {"a": "0"}}, {"wholes": {"a": "-1"}}, {"wholes": [1]}]
)
def test_a_reference_that_makes_no_sense_is_damage(ledger, one):
    body = {"epsilon": "1", "charged": "1", "clear": [], "private": [], "purpose": "a test"}
    body["adjacency"] = {"power": {"alpha": "1", "unit": "of capacity", **one}}
    ledger.write(lambda book: book.append("charge", "farm", body))
    with pytest.raises(LedgerError, match="can't be understood"):
        ledger.totals("farm")


def test_a_published_hash_can_not_be_checked_by_a_guess(ledger):
    made = charge(ledger, 1)
    (entry,) = ledger.entries()
    guess = {name: value for name, value in entry.body.items() if name != "salt"}
    known = (entry.number, entry.time, entry.kind, entry.dataset)
    assert entry_hash(*known, entry.body, entry.previous) == made.hash
    assert entry_hash(*known, guess, entry.previous) != made.hash
    charge(ledger, 1)
    salts = [entry.body["salt"] for entry in ledger.entries()]
    assert len(set(salts)) == 2
    assert {len(salt) for salt in salts} == {32}


def test_a_change_of_unit_is_refused(ledger):
    charge(ledger, 1, alpha=30, unit="MW")
    with pytest.raises(LedgerRefused, match="Give alpha in MW"):
        charge(ledger, 1, alpha=30, unit="of capacity")


# -- private and public ----------------------------------------------------------------------------


def test_what_was_published_in_clear_is_never_private_later(ledger):
    charge(ledger, parameter="capacity", clear=["load"])
    with pytest.raises(
        LedgerRefused, match="load of 'farm' was published in clear by ledger entry 1"
    ):
        charge(ledger, parameter="load")
    assert len(ledger.entries()) == 1


def test_what_is_private_is_never_published_in_clear(ledger):
    charge(ledger, parameter="capacity")
    with pytest.raises(LedgerRefused, match="would undo"):
        charge(ledger, parameter="load", clear=["capacity"])
    with pytest.raises(LedgerRefused, match="would undo"):
        charge(ledger, parameter="load", clear=["load"])


# -- two at once, kills ----------------------------------------------------------------------------


def test_eight_processes_can_not_overspend(backend, monkeypatch):
    monkeypatch.setattr(ledger_file, "_PATIENCE", PATIENCE)  # how long one waits for all others
    monkeypatch.setattr(database, "_PATIENCE", PATIENCE)
    # Every try takes a connection, so a database gets the fewest but in the full setting.
    fewer = (20, 40) if backend.kind == "sqlite" else (10, 20)
    times, cap = (50, 100) if FULL else fewer
    place = backend.new()
    Ledger(place).set_cap("raced", cap, alpha={"power": "0.1"})
    results = FORK.Queue()
    workers = [FORK.Process(target=race, args=(place, results, times)) for _ in range(8)]
    for worker in workers:
        worker.start()
    accepted = sum(results.get(timeout=PATIENCE) for _ in workers)
    for worker in workers:
        worker.join()
    ledger = Ledger(place)
    assert accepted == cap
    assert ledger.totals("raced").spent == cap
    assert ledger.totals("raced").charges == cap
    assert ledger.problems() == []


def _charge_forever(path, told) -> None:
    ledger = Ledger(path)
    while True:
        told.send(charge(ledger, 1, "killed").entry)


def test_a_charge_that_was_confirmed_survives_a_kill(backend):
    path = backend.new()
    confirmed = 0
    few = 20 if backend.kind == "sqlite" else 5
    for _ in range(200 if FULL else few):
        here, there = FORK.Pipe(duplex=False)
        worker = FORK.Process(target=_charge_forever, args=(path, there))
        worker.start()
        there.close()
        confirmed = here.recv()
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        while here.poll():
            try:
                confirmed = here.recv()
            except EOFError:
                break
        ledger = Ledger(path)
        assert confirmed <= ledger.totals("killed").spent <= confirmed + 1
        assert ledger.problems() == []


# -- the chain -------------------------------------------------------------------------------------


@pytest.fixture
def written(ledger):
    charges = [charge(ledger, 1) for _ in range(4)]
    ledger.set_cap("farm", 9, alpha={"power": "0.1"})
    return ledger, charges


def recorded(one):
    return {"ledger": one.ledger, "entry": one.entry, "hash": one.hash}


def test_an_untouched_ledger_is_whole(written):
    ledger, charges = written
    assert ledger.problems() == []
    assert all(ledger.bundle_problems(recorded(one)) == [] for one in charges)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET body = replace(body, '\"1\"', '\"0\"') WHERE number = 2",
        "UPDATE entries SET dataset = 'other' WHERE number = 3",
        "UPDATE entries SET time = '2020-01-01T00:00:00+00:00' WHERE number = 1",
        "UPDATE entries SET kind = 'abort' WHERE number = 2",
        "DELETE FROM entries WHERE number = 2",
        "DELETE FROM entries WHERE number = 1",
        "UPDATE entries SET number = number + 10 WHERE number = 6",
        "UPDATE ledger SET id = 'another'",
    ],
)
def test_a_changed_row_is_found(backend, written, change):
    ledger, _ = written
    backend.tamper(ledger, change)
    assert Ledger(ledger.place).problems() != []


def test_a_cut_tail_is_found_by_the_bundle(backend, written):
    ledger, charges = written
    backend.tamper(ledger, "DELETE FROM entries WHERE number > 2")
    assert ledger.problems() == []  # what is left is a whole chain: hence the bundle's record
    assert ledger.bundle_problems(recorded(charges[1])) == []
    assert "tail was cut off" in ledger.bundle_problems(recorded(charges[3]))[0]


def test_a_restored_backup_is_found_by_the_bundle(backend, ledger):
    charge(ledger, 1)
    backup = backend.backup(ledger)
    late = charge(ledger, 1)
    backend.restore(ledger, backup)
    assert "older copy" in ledger.bundle_problems(recorded(late))[0]
    charge(ledger, 1, "farm")  # life goes on from the backup: the entry's number is taken again
    assert ledger.problems() == []
    # The clock has a resolution of a second, so tell the two apart by their purpose.
    other = ledger.charge(Terms("farm", epsilon=2, adjacency=[adjacency()], purpose="other"))
    assert ledger.bundle_problems({**recorded(other), "hash": late.hash}) != []


def test_a_rewritten_chain_is_found_by_the_bundle(backend):
    real, forged = Ledger(backend.new()), Ledger(backend.new())
    one = charge(real, 1)
    backend.tamper(forged, f"UPDATE ledger SET id = '{real.id}'")
    forged = Ledger(forged.place)
    charge(forged, "1/2")
    assert forged.problems() == []
    assert "not the one" in forged.bundle_problems(recorded(one))[0]


def test_another_ledger_is_said_to_be_another(backend, ledger):
    other = Ledger(backend.new())
    assert "another ledger" in other.bundle_problems(recorded(charge(ledger)))[0]


def test_breaks_names_a_gap(written):
    ledger, _ = written
    entries = ledger.entries()
    found = list(breaks(ledger.id, [entries[0], *entries[2:]]))
    assert "entry 2 is missing" in found[0]


# -- declared references ---------------------------------------------------------------------------


def test_a_typing_error_does_not_fix_what_a_cap_means(ledger):
    """0.03 MW for 30 MW, before anything was declared: the reference is raised, and charges."""
    charge(ledger, "0.001", alpha="0.03")
    ledger.set_cap("farm", 2, alpha=30)
    totals = ledger.totals("farm")
    assert (totals.spent, totals.remaining) == (1, 1)
    assert charge(ledger, 1, alpha=30).charged == 1
    with pytest.raises(BudgetRefused):
        charge(ledger, "0.001", alpha="0.03")


def test_a_declared_reference_counts_from_the_first_charge(ledger):
    ledger.set_reference("farm", {"power": 30})
    assert charge(ledger, 1, alpha=10).charged == 3
    assert charge(ledger, 1, alpha=60).charged == 1
    assert ledger.totals("farm").reference == {"power": Step(Fraction(30), "MW")}


def test_one_alpha_is_for_every_parameter_in_its_unit(ledger):
    ledger.set_cap("farm", 100, alpha=30)
    assert charge(ledger, 1, parameter="load", alpha=10).charged == 3
    assert charge(ledger, 1, parameter="capacity", alpha=15).charged == 2
    with pytest.warns(LedgerWarning, match="no reference alpha of cost was declared"):
        assert charge(ledger, 1, parameter="cost", alpha=1, unit="$/MWh").charged == 1
    ledger.set_reference("farm", {"load": 60})
    assert ledger.totals("farm").counted == {3: 6, 4: 2, 5: 1}
    ledger.set_reference("farm", {"cost": 5})
    assert ledger.totals("farm").spent == 6 + 2 + 5
    ledger.set_reference("farm", 90)
    assert ledger.totals("farm").spent == 9 + 6 + 5


def test_what_is_said_of_one_parameter_counts_until_more_is_said_of_all(ledger):
    ledger.set_reference("farm", 30)
    ledger.set_reference("farm", {"load": 10})
    assert charge(ledger, 1, parameter="load", alpha=10).charged == 1
    ledger.set_reference("other", {"load": 10})
    ledger.set_reference("other", 30)
    assert charge(ledger, 1, "other", parameter="load", alpha=10).charged == 3


def test_shares_are_declared_in_percent_and_count_as_amounts(ledger):
    ledger.set_reference("farm", "30%")
    assert shares(ledger, "0.15", one=2750) == 2
    assert shares(ledger, "0.3", one=2750) == 1
    assert shares(ledger, "0.3", one=1000) == 3
    # A capacity that was mistyped in the first charge is made good by a larger share.
    ledger.set_reference("farm", {"power": "300%"})
    assert ledger.totals("farm").counted == {2: 20, 3: 10, 4: 28}


def test_raising_a_reference_may_pass_the_cap_and_nothing_is_released_then(ledger):
    charge(ledger, 1, alpha=10)
    ledger.set_cap("farm", 2, alpha=30)
    totals = ledger.totals("farm")
    assert (totals.spent, totals.remaining, totals.overspent) == (3, 0, 1)
    with pytest.raises(BudgetRefused):
        charge(ledger, "0.001", alpha=30)


def test_a_reference_is_lowered_only_before_it_counted(ledger):
    ledger.set_reference("farm", {"power": 300})
    ledger.set_reference("farm", {"power": 30})
    charge(ledger, 1, alpha=30)
    for lower in (29, {"power": "29.9"}):
        with pytest.raises(InputError, match="would lower it"):
            ledger.set_reference("farm", lower)
        with pytest.raises(InputError, match="would lower it"):
            ledger.set_cap("farm", 5, alpha=lower)
    ledger.set_reference("farm", {"power": 30})
    assert ledger.totals("farm").cap is None
    assert ledger.totals("farm").spent == 1


def test_a_cap_needs_its_alpha(ledger):
    with pytest.raises(InputError, match="needs the alpha that it is about: epsilon 1 for steps"):
        ledger.set_cap("farm", 2)
    charge(ledger, 1)
    with pytest.raises(InputError, match=r"by its first charges it is power 0\.1 MW") as caught:
        ledger.set_cap("farm", 2)
    assert caught.value.remedy.endswith("--alpha power=0.1.")
    ledger.set_reference("farm", {"power": "0.1"})
    ledger.set_cap("farm", 2)
    ledger.set_cap("farm", 3)
    assert ledger.totals("farm").cap == 3


@pytest.mark.parametrize("alpha", ["0.5", 1, 0, -3, "many", {}, {"The load": 3}, {"load": 0}])
def test_a_reference_that_is_none_is_refused(ledger, alpha):
    with pytest.raises(InputError) as caught:
        ledger.set_reference("farm", alpha)
    assert caught.value.remedy
    assert ledger.entries() == []


@pytest.mark.parametrize(
    ("wrong", "right", "unit"),
    [(400, "0.3", "of capacity"), ("30%", 0.3, "MW")],  # kW for a share, a share for MW
)
def test_a_declared_unit_that_does_not_fit_is_refused_and_can_be_corrected(
    ledger, wrong, right, unit
):
    ledger.set_reference("farm", {"power": wrong})
    with pytest.raises(LedgerRefused, match="counts alpha in another unit"):
        charge(ledger, 1, alpha="0.15", unit=unit)
    assert ledger.totals("farm").charges == 0
    ledger.set_reference("farm", {"power": right})
    assert charge(ledger, 1, alpha="0.15", unit=unit).charged == 2


@pytest.mark.parametrize(("alpha", "warned"), [("3", True), ("0.03", True), ("3.1", False)])
def test_an_alpha_far_below_the_reference_is_warned_of_before_the_charge(ledger, alpha, warned):
    ledger.set_reference("farm", 30)
    if not warned:
        charge(ledger, 1, alpha=alpha)
        return
    with pytest.raises(LedgerWarning, match="epsilon counts"):
        charge(ledger, 1, alpha=alpha)  # warnings are errors here: nothing may be charged yet
    assert ledger.totals("farm").charges == 0
    with pytest.warns(LedgerWarning, match="the reference of 'farm' is 30 MW"):
        charge(ledger, 1, alpha=alpha)


STEPS = st.fractions(min_value=Fraction(1, 50), max_value=50, max_denominator=60)
KEYS = ("capacity", "load")


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("charge"), st.dictionaries(st.sampled_from(KEYS), STEPS, min_size=1)),
            st.tuples(st.just("raise"), st.dictionaries(st.sampled_from(KEYS), STEPS, min_size=1)),
            st.tuples(st.just("all"), STEPS),
        ),
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)
def test_totals_are_never_below_the_composition_at_the_reference(events, rng):
    """The worst loss of an entry that moves by the reference, by the definition alone.

    A release with Laplace noise of scale alpha/epsilon on every entry loses exactly
    epsilon * distance / alpha, and one that draws anew for every whole alpha loses epsilon for
    each alpha begun: the most that its guarantee allows. Adding up must not fall below either.
    """
    totals, charges, number, before = Totals("farm"), [], 0, Fraction(0)
    for kind, what in events:
        number += 1
        if kind == "charge":
            epsilon = Fraction(rng.randint(1, 8), 4)
            counted = max(
                epsilon * steps_to_reference(totals, adjacency(key, alpha, "MW"))
                for key, alpha in what.items()
            )
            charges.append((epsilon, what))
            body = {
                "version": 2, "epsilon": str(epsilon), "charged": str(counted), "clear": [],
                "private": [], "purpose": "a test",
                "adjacency": {k: {"alpha": str(a), "unit": "MW"} for k, a in what.items()},
            }  # fmt: skip
        else:
            alphas = what if kind == "raise" else {"*": what}
            unit = "" if kind == "raise" else "MW"
            wanted = {key: Declared(alpha, unit) for key, alpha in alphas.items()}
            try:
                totals.check_declared(wanted)
            except InputError:
                continue
            body = {
                "version": 2,
                "alpha": {k: {"alpha": str(a), "unit": unit} for k, a in alphas.items()},
            }
        name = "charge" if kind == "charge" else "reference"
        totals.add(Reading().said(Entry(number, "", name, "farm", body, "", "")))
        for key in KEYS:
            if key not in totals.reference:
                continue
            distance = totals.reference[key].alpha
            for loss in (_smooth, _whole):
                worst = sum(e * loss(distance, a[key]) for e, a in charges if key in a)
                assert worst <= totals.spent
        assert totals.spent >= before  # nothing that is added lowers what was spent
        before = totals.spent


@given(
    st.lists(
        st.tuples(
            st.fractions(min_value=Fraction(1, 50), max_value=1, max_denominator=60),
            st.dictionaries(st.sampled_from("abc"), st.integers(1, 60), min_size=1),
            st.integers(1, 8),
            st.booleans(),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_totals_of_shares_are_never_below_the_composition_for_any_element(events):
    """For each element that moves by the reference's share of its largest capacity so far."""
    totals, charges = Totals("farm"), []
    for number, (alpha, capacities, quarters, doubled) in enumerate(events):
        wholes = {name: Fraction(whole) for name, whole in capacities.items()}
        one = adjacency("power", alpha, "of capacity", wholes=wholes, measure="kW")
        epsilon = Fraction(quarters, 4)
        counted = epsilon * steps_to_reference(totals, one)
        expected = totals.facing([one]).spent + counted  # what a cap is held against
        texts = {name: str(whole) for name, whole in wholes.items()}
        of = {"alpha": str(alpha), "unit": "of capacity", "wholes": texts, "measure": "kW"}
        body = {
            "version": 2, "epsilon": str(epsilon), "charged": str(counted), "clear": [],
            "private": [], "purpose": "a test", "adjacency": {"power": of},
        }  # fmt: skip
        totals.add(Reading().said(Entry(2 * number + 1, "", "charge", "farm", body, "", "")))
        charges.append((epsilon, alpha, wholes))
        assert totals.spent == expected
        if doubled:
            more = {"alpha": str(2 * totals.reference["power"].alpha), "unit": "of capacity"}
            body = {"version": 2, "alpha": {"power": more}}
            totals.add(Reading().said(Entry(2 * number + 2, "", "reference", "farm", body, "", "")))
        for name in {name for _, _, wholes in charges for name in wholes}:
            largest = max(wholes.get(name, 0) for _, _, wholes in charges)
            distance = totals.reference["power"].alpha * largest
            worst = sum(e * math.ceil(distance / (a * w[name])) for e, a, w in charges if name in w)
            assert worst <= totals.spent


def _smooth(distance, alpha):
    return distance / alpha


def _whole(distance, alpha):
    begun = 0
    while distance > 0:
        distance, begun = distance - alpha, begun + 1
    return begun
