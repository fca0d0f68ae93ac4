"""The ledger itself: charges, caps and notes are written here, and read back.

A release is charged before it draws noise; a charge without a release stays spent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from warnings import warn

from gridveil.errors import (
    BudgetRefused,
    InputError,
    LedgerError,
    LedgerRefused,
    LedgerWarning,
    show_exact,
)
from gridveil.privacy.adjacency import Adjacency, Step
from gridveil.privacy.exact_numbers import Exact, exact
from gridveil.privacy.ledger.database import Database
from gridveil.privacy.ledger.entries import (
    VERSION,
    Book,
    Entry,
    Reading,
    Store,
    T,
    refuse_moved,
)
from gridveil.privacy.ledger.file import LedgerFile
from gridveil.privacy.ledger.identity import (
    Sketch,
    checked_name,
    checked_reason,
    identify,
    name_key,
)
from gridveil.privacy.ledger.place import Address, ledger_place
from gridveil.privacy.ledger.reference_alphas import Alphas, Declared, checked_key, read_alphas
from gridveil.privacy.ledger.totals import Totals, doubts, refuse_exposed, steps_to_reference


@dataclass(frozen=True)
class Terms:
    """What a release charges, and for what: all that its account and the ledger know of it.

    Parameters
    ----------
    dataset
        The owner's name for the data. Updated or overlapping data keeps its name. With None it is
        charged to the one dataset that it looks like, if there is exactly one.
    epsilon, adjacency
        The guarantee, and for which neighbours: the private parameters with their alphas.
    purpose
        What is released, in a few public words.
    clear, private
        What the release publishes as it is, and what it keeps private, in the same words:
        parameters of a network, columns of a table. Private are the parameters' keys by default.
    sketch, distinct
        A fingerprint of the public part of the data: what looks like another dataset is refused,
        unless the owner says why it is not.
    """

    dataset: str | None
    epsilon: Fraction
    adjacency: Sequence[Adjacency]
    purpose: str
    clear: Sequence[str] = ()
    private: Sequence[str] = ()
    sketch: Sketch | None = None
    distinct: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact(self.epsilon, name="epsilon"))
        keys = [checked_key(one.key) for one in self.adjacency]
        if not keys:
            raise InputError("A charge needs at least one private parameter.")
        if len(set(keys)) < len(keys):
            raise InputError("A charge names every private parameter once.")
        if not self.private:
            object.__setattr__(self, "private", keys)
        if self.distinct is not None:
            object.__setattr__(self, "distinct", checked_reason(self.distinct))


@dataclass(frozen=True)
class Charge:
    """A charge that the ledger accepted; `spent` is about steps of the `reference`.

    The next two are all charges' epsilon for a step of this release's own alpha, and for a whole
    value, anywhere in the range that this release gives. `assumed` says whether they take for
    granted that charges without times cover the same period.
    """

    ledger: str
    entry: int
    hash: str
    dataset: str
    epsilon: Fraction
    charged: Fraction
    spent: Fraction
    earlier_aborts: int
    reference: Mapping[str, Step]
    cap: Fraction | None
    epsilon_for_alpha: Fraction
    epsilon_over_range: Fraction
    assumed: bool


class Ledger:
    """The ledger in a file, which is made if it does not exist, or in a database.

    ``place`` is the file, or the address of a database (`ledger_place` has the default), or a store
    that was opened already.
    """

    def __init__(self, place: Path | Address | Store | str | None = None) -> None:
        if not isinstance(place, Store):
            found = ledger_place(place)
            place = Database(found) if isinstance(found, Address) else LedgerFile(found)
        self._store, self.id = place, place.id

    @property
    def place(self) -> Path | Address:
        """The file, or the address of the database without its password."""
        return self._store.place

    @property
    def path(self) -> Path:
        """The file of a ledger that is in one."""
        if isinstance(self.place, Address):
            raise LedgerError(f"The ledger {self.place} is in a database, not in a file.")
        return self.place

    # -- writing ------------------------------------------------------------------------------

    def write(self, work: Callable[[Book], T], *, closed: bool = False) -> T:
        """Do some work on the book, alone: all of what it appends is kept, or nothing.

        A ledger that moved away refuses, unless ``closed`` says that the work knows of it.
        """

        def checked(book: Book) -> T:
            if not closed:
                refuse_moved(book.entries)
            return work(book)

        return self._store.write(checked)

    def charge(self, terms: Terms) -> Charge:
        """Charge a release, or change nothing and raise `LedgerRefused`."""
        return self.write(lambda book: self._charge(book, terms))

    def _charge(self, book: Book, terms: Terms) -> Charge:
        adjacency, hidden, clear = terms.adjacency, terms.private, terms.clear
        everyone = self._everyone(book.entries)
        name, warnings = identify(terms.dataset, terms.sketch, everyone, terms.distinct)
        totals = everyone.get(name_key(name), Totals(name))
        refuse_exposed(totals, hidden, clear)
        factor = max(steps_to_reference(totals, one) for one in adjacency)
        charged = terms.epsilon * factor
        warnings += doubts(totals, adjacency)
        _refuse_above_cap(totals, totals.facing(adjacency), charged, factor)
        for words in warnings:
            warn(words, LedgerWarning, stacklevel=2)
        own = {one.key: Step.of(one) for one in adjacency}
        body: dict[str, Any] = {
            "epsilon": str(terms.epsilon),
            "charged": str(charged),
            "version": VERSION,
            "adjacency": {key: step.to_json() for key, step in own.items()},
            "clear": sorted(clear),
            "private": sorted(hidden),
            "purpose": terms.purpose,
        }
        if terms.sketch is not None:
            body["sketch"] = terms.sketch.to_json()
        if terms.distinct is not None:
            like = {key for key, one in everyone.items() if one.looks_like(terms.sketch)}
            others = sorted(like - {name_key(totals.dataset)})
            body["distinct"] = {"from": others, "reason": terms.distinct}
        entry = book.append("charge", totals.dataset, body)
        self._add(totals, entry, Reading())
        return Charge(
            self.id,
            entry.number,
            entry.hash,
            totals.dataset,
            terms.epsilon,
            charged,
            totals.spent,
            totals.aborts,
            {key: totals.reference[key] for key in own},
            totals.cap,
            totals.epsilon_for(own),
            totals.epsilon_for({o.key: replace(own[o.key], alpha=o.width) for o in adjacency}),
            totals.without_times(own),
        )

    def record_release(self, charge: Charge, statement_sha256: str) -> None:
        """Note that a charge became a bundle, by the digest of its published statement."""
        self._note("release", charge, {"charge": charge.entry, "statement": statement_sha256})

    def record_abort(self, charge: Charge) -> None:
        """Note that a computation on private data failed after this charge."""
        self._note("abort", charge, {"charge": charge.entry})

    def set_cap(self, dataset: str, cap: Exact | None, *, alpha: Alphas | None = None) -> None:
        """Set the most that a dataset may ever spend, or take the cap away with None.

        ``alpha`` is the reference that it is about; it may be left out if one was declared before.
        """
        amount = None if cap is None else str(exact(cap, name="the cap"))
        wanted = None if alpha is None else read_alphas(alpha)

        def work(book: Book) -> None:
            totals = self._totals(dataset, book.entries)
            if wanted is not None:
                _declare(book, totals, wanted)
            elif amount is not None and not totals.declared:
                raise _undeclared(totals)
            book.append("cap", totals.dataset, {"version": VERSION, "cap": amount})

        self.write(work)

    def set_reference(self, dataset: str, alpha: Alphas) -> None:
        """Declare or raise the reference alpha: the step that a dataset's epsilons add up for.

        One for every parameter in MW (``30``) or in shares of capacity (``"15%"``), or one for each
        parameter: ``{"capacity": 30, "cost": 1}``. It is never lowered once something was charged.
        """
        wanted = read_alphas(alpha)
        self.write(lambda book: _declare(book, self._totals(dataset, book.entries), wanted))

    # -- reading ------------------------------------------------------------------------------

    def totals(self, dataset: str) -> Totals:
        """What a dataset has spent, its cap, its reference alphas and what is public of it."""
        return self._totals(dataset, self.entries())

    def all_totals(self) -> list[Totals]:
        """The totals of every dataset, in the order of their first entries."""
        return list(self._everyone(self.entries()).values())

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """All entries, or those of one dataset, oldest first; `LedgerError` if any is damaged."""
        found = self._store.entries()
        return found if dataset is None else _of(name_key(dataset), found)

    def problems(self) -> list[str]:
        """Everything that is wrong with its chain and where it is kept."""
        return self._store.problems()

    def bundle_problems(
        self, recorded: dict[str, Any], statement_sha256: str | None = None
    ) -> list[str]:
        """What is wrong between this ledger and a bundle, by what its statement says of it.

        It finds a tail that was cut off, or an older copy. The digest is that of the statement's
        file, to be compared with the one that was released.
        """
        if recorded.get("ledger") != self.id:
            return ["the bundle was charged to another ledger"]
        number = recorded.get("entry")
        found = self._store.hash_of(number)
        if found is None:
            return [
                f"entry {number}, which the bundle was charged to, is not in the ledger: its "
                "tail was cut off or an older copy was put back"
            ]
        if found != recorded.get("hash"):
            return [f"entry {number} is not the one that the bundle was charged to"]
        released = [] if self.problems() else self._released(number)
        if statement_sha256 is not None and released and statement_sha256 not in released:
            return ["its statement is not the one that was released"]
        return []

    def __repr__(self) -> str:
        try:
            count = len(self.all_totals())
            state = f"{count:,} {'dataset' if count == 1 else 'datasets'}"
        except LedgerError:
            state = "damaged"
        return f"Ledger({str(self.place)!r}, {state})"

    def _released(self, charge: object) -> list[object]:
        """The digests of the statements that were released for a charge."""
        return [
            entry.body.get("statement")
            for entry in self.entries()
            if entry.kind == "release" and entry.body.get("charge") == charge
        ]

    def _note(self, kind: str, charge: Charge, body: dict[str, Any]) -> None:
        self.write(lambda book: book.append(kind, charge.dataset, body))

    def _everyone(self, entries: Sequence[Entry]) -> dict[str, Totals]:
        """The totals of every dataset by the key of its name."""
        refuse_moved(entries)
        found: dict[str, tuple[Totals, Reading]] = {}
        for entry in entries:
            key = name_key(entry.dataset)
            totals, reading = found.setdefault(key, (Totals(entry.dataset), Reading()))
            totals.dataset = entry.dataset
            self._add(totals, entry, reading)
        return {key: totals for key, (totals, _) in found.items()}

    def _totals(self, dataset: str, entries: Sequence[Entry]) -> Totals:
        name, key = checked_name(dataset), name_key(dataset)
        refuse_moved(entries)
        return self._everyone(_of(key, entries)).get(key, Totals(name))

    def _add(self, totals: Totals, entry: Entry, reading: Reading) -> None:
        try:
            if (said := reading.said(entry)) is not None:
                totals.add(said)
        except (ArithmeticError, AttributeError, LookupError, LedgerRefused, TypeError, ValueError):
            raise self._store.damaged(f"entry {entry.number} can't be understood") from None


def _undeclared(totals: Totals) -> InputError:
    """Why a cap can't be set yet, and the reference that its charges have so far, if there are."""
    if not totals.reference:
        return InputError(
            f"A cap of {totals.dataset!r} needs the alpha that it is about: epsilon 1 for steps of "
            "30 MW is not epsilon 1 for steps of 0.03 MW.",
            remedy="Declare it with --alpha (alpha=): 30, capacity=30,load=10 or 15%.",
        )
    have = ", ".join(f"{key} {step}" for key, step in totals.reference.items())
    same = ",".join(f"{key}={_typed(step)}" for key, step in totals.reference.items())
    return InputError(
        f"A cap of {totals.dataset!r} needs the alpha that it is about. None was declared: by its "
        f"first charges it is {have}.",
        remedy=f"Declare that, or a larger one, with the cap: --alpha {same}.",
    )


def _typed(step: Step) -> str:
    """An alpha as a user types it; shares above 1 are taken in percent alone."""
    share = step.unit.startswith("of ")
    return f"{show_exact(100 * step.alpha)}%" if share else show_exact(step.alpha)


def _declare(book: Book, totals: Totals, wanted: Mapping[str, Declared]) -> None:
    totals.check_declared(wanted)
    alphas = {key: {"alpha": str(one.alpha), "unit": one.unit} for key, one in wanted.items()}
    book.append("reference", totals.dataset, {"version": VERSION, "alpha": alphas})


def _refuse_above_cap(totals: Totals, facing: Totals, charged: Fraction, factor: int) -> None:
    remaining = facing.remaining
    if remaining is not None and charged > remaining:
        name = f"dataset {totals.dataset!r}"
        if facing.spent > totals.spent:
            name += " (what was spent counts more at the larger capacities of this release)"
        raise BudgetRefused(charged, remaining, of=name, times=factor, overspent=facing.overspent)


def _of(key: str, entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if name_key(entry.dataset) == key]
