"""Ledgers that earlier versions wrote, and the keys that charges are found by.

``ledgers/before-versions.sqlite`` was written before keys had a version: a network's loads under
a key that holds prose (capped, released and aborted), and one wind farm under two spellings.
"""

import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest
from support.making import adjacency

from gridveil.errors import InputError, LedgerError
from gridveil.privacy.adjacency import Adjacency, Step
from gridveil.privacy.ledger import Ledger, Terms
from gridveil.privacy.ledger.moving import move
from gridveil.privacy.sealed import Range

OLD = Path(__file__).parent / "ledgers" / "before-versions.sqlite"
PROSE = "load (total published; two move, one up and one down)"


@pytest.fixture
def ledger(backend):
    return Ledger(backend.new())


@pytest.fixture
def old_file(tmp_path):
    path = tmp_path / "old.sqlite"
    shutil.copy(OLD, path)
    return Ledger(path)


@pytest.fixture
def old(backend, old_file):
    """The old ledger as it is, or moved into a database."""
    return old_file if backend.kind == "sqlite" else move(old_file, backend.empty())


def load(words, alpha):
    limits = Range(0.0, 1000.0)
    return Adjacency.of(
        words, alpha=Fraction(alpha), unit="MW", range=limits, entries=10, key="load"
    )


def charge(ledger, one, dataset="south grid"):
    return ledger.charge(
        Terms(
            dataset,
            epsilon=1,
            adjacency=[one],
            clear=["total load"],
            private=["load"],
            purpose="test",
        )
    )


def test_an_old_ledger_opens_with_the_totals_that_it_had(old):
    assert old.problems() == []
    totals = old.totals("south grid")
    assert (totals.spent, totals.cap, totals.charges, totals.aborts) == (Fraction(5, 2), 20, 2, 1)
    assert totals.unreleased == {4}
    assert totals.reference == {"load": Step(Fraction(30), "MW")}
    assert set(totals.clear) == {"capacity", "cost", "generator_limit", "total load"}


@pytest.mark.parametrize("words", [PROSE, "load", "load (other words, as later versions may have)"])
def test_a_smaller_alpha_after_an_old_charge_counts_six_times(old, words):
    made = charge(old, load(words, 5))
    assert (made.charged, made.spent) == (6, Fraction(17, 2))
    assert made.reference == {"load": Step(Fraction(30), "MW")}
    assert Ledger(old.place).problems() == []
    assert old.totals("south grid").spent == Fraction(17, 2)


def test_no_word_for_people_decides_what_is_charged(ledger):
    assert charge(ledger, load("load", 30)).charged == 1
    assert charge(ledger, load("the loads", 5)).charged == 6
    assert charge(ledger, load(PROSE, 5)).charged == 6


def test_charges_hold_plain_keys_and_their_version(ledger):
    charge(ledger, load(PROSE, 30))
    (entry,) = ledger.entries()
    assert (list(entry.body["adjacency"]), entry.body["version"]) == (["load"], 2)


@pytest.mark.parametrize("key", ["load (all)", "two words", "Load", "a" * 65, "lo\u0430d"])
def test_a_key_is_no_sentence(ledger, key):
    with pytest.raises(InputError, match="can't be a key"):
        charge(ledger, adjacency(key))
    assert ledger.entries() == []


def test_an_older_gridveil_refuses_what_this_one_added_to(old_file):
    def version():
        connection = sqlite3.connect(old_file.path)
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        connection.close()
        return found

    old_file.totals("south grid")
    assert version() == 1  # reading changes nothing
    charge(old_file, load("load", 30))
    # Format 2 would take a charge for a whole day for one for a single entry.
    assert version() == 3


@pytest.mark.parametrize("version", [0, 3, "2", True, None])
def test_an_unknown_version_is_not_guessed_at(ledger, version):
    charge(ledger, load("load", 30))
    body = {**ledger.entries()[0].body, "version": version}
    ledger.write(lambda book: book.append("charge", "south grid", body))
    with pytest.raises(LedgerError, match="can't be understood"):
        ledger.totals("south grid")


def test_one_farm_under_two_old_spellings_is_one_dataset(old):
    """Both spendings add up at the larger of both references, under the lower of both caps."""
    totals = old.totals("North Farm")
    assert totals.reference["power"].alpha == Fraction(3, 20)
    assert totals.counted == {6: 3, 9: 1}  # 5% three times, 15% once
    assert (totals.spent, totals.cap, totals.overspent) == (4, 3, 1)
    assert len(old.all_totals()) == 2
    old.set_cap("north farm", 8, alpha="15%")
    assert old.totals("north_farm").remaining == 4
