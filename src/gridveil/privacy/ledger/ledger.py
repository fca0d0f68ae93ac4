"""The ledger itself: charges, caps and notes are written here, and read back.

A release is charged before it draws noise; a charge without a release stays spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from sqlite3 import Connection
from typing import Any
from warnings import warn

from gridveil.errors import (
    BudgetRefused,
    InputError,
    LedgerError,
    LedgerRefused,
    LedgerWarning,
)
from gridveil.privacy.budget import Exact, exact
from gridveil.privacy.ledger.entries import VERSION, Entry
from gridveil.privacy.ledger.file import LedgerFile
from gridveil.privacy.ledger.identity import identify
from gridveil.privacy.ledger.names import checked_name, name_key
from gridveil.privacy.ledger.old import Reading
from gridveil.privacy.ledger.path import ledger_path
from gridveil.privacy.ledger.references import Alphas, Declared, read_alphas
from gridveil.privacy.ledger.steps import Step
from gridveil.privacy.ledger.terms import Charge, Terms
from gridveil.privacy.ledger.told import doubts
from gridveil.privacy.ledger.totals import (
    Totals,
    refuse_exposed,
    refuse_other_parts,
    steps_to_reference,
)


class Ledger:
    """The ledger in one file. Opening makes it where it does not exist.

    Parameters
    ----------
    path
        The file; see `ledger_path` for the default.
    """

    def __init__(self, path: Path | str | None = None) -> None:
        self._file = LedgerFile(ledger_path(path))
        self.path = self._file.path
        self.id = self._file.id

    # -- writing ------------------------------------------------------------------------------

    def charge(self, terms: Terms) -> Charge:
        """Charge a release, or change nothing and raise `LedgerRefused`."""
        adjacency, hidden, clear = terms.adjacency, terms.private, terms.clear
        with self._file.transaction() as (connection, entries):
            everyone = self._everyone(entries)
            name, warnings = identify(terms.dataset, terms.sketch, everyone, terms.distinct)
            totals = everyone.get(name_key(name), Totals(name))
            refuse_exposed(totals, hidden, clear)
            refuse_other_parts(totals, hidden, clear)
            factor = max(steps_to_reference(totals, one) for one in adjacency)
            charged = terms.epsilon * factor
            warnings += doubts(totals, adjacency)
            _refuse_above_cap(totals, totals.facing(adjacency), charged, factor)
            for words in warnings:
                warn(words, LedgerWarning, stacklevel=2)
            body: dict[str, Any] = {
                "epsilon": str(terms.epsilon),
                "charged": str(charged),
                "version": VERSION,
                "adjacency": {one.key: Step.of(one).to_json() for one in adjacency},
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
            entry = self._file.append(connection, "charge", totals.dataset, body)
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
            {one.key: totals.reference[one.key] for one in adjacency},
            totals.cap,
            totals.epsilon_for({one.key: Step.of(one) for one in adjacency}),
            totals.epsilon_for({one.key: Step.of(one, one.width) for one in adjacency}),
        )

    def record_release(self, charge: Charge, statement_sha256: str) -> None:
        """Note that a charge became a bundle, by the digest of its published statement."""
        self._note("release", charge, {"charge": charge.entry, "statement": statement_sha256})

    def record_abort(self, charge: Charge) -> None:
        """Note that a computation on private data failed after this charge."""
        self._note("abort", charge, {"charge": charge.entry})

    def set_cap(self, dataset: str, cap: Exact | None, *, alpha: Alphas | None = None) -> None:
        """Set the most that a dataset may ever spend, or take the cap away with None.

        Parameters
        ----------
        dataset, cap
            The dataset, and its cap.
        alpha
            The reference alpha that the cap is about, as in `set_reference`. It may be left out if
            one was declared before.
        """
        amount = None if cap is None else str(exact(cap, name="the cap"))
        wanted = None if alpha is None else read_alphas(alpha)
        with self._file.transaction() as (connection, entries):
            totals = self._totals(dataset, entries)
            if wanted is not None:
                self._declare(connection, totals, wanted)
            elif amount is not None and not totals.declared:
                raise InputError(
                    f"A cap of {totals.dataset!r} needs the alpha that it is about: epsilon 1 for "
                    "steps of 30 MW is not epsilon 1 for steps of 0.03 MW.",
                    remedy="Declare it with --alpha (alpha=): 30, capacity=30,load=10 or 15%.",
                )
            body = {"version": VERSION, "cap": amount}
            self._file.append(connection, "cap", totals.dataset, body)

    def set_reference(self, dataset: str, alpha: Alphas) -> None:
        """Declare or raise the reference alpha: the step that a dataset's epsilons add up for.

        Charges that were made before count at a raised reference too. It is never lowered once
        something was charged.

        Parameters
        ----------
        dataset
            The owner's name for the data.
        alpha
            One for every parameter in MW (``30``) or in shares of capacity (``"15%"``), or one for
            each parameter: ``{"capacity": 30, "cost": 1}``.
        """
        wanted = read_alphas(alpha)
        with self._file.transaction() as (connection, entries):
            self._declare(connection, self._totals(dataset, entries), wanted)

    def _declare(
        self, connection: Connection, totals: Totals, wanted: Mapping[str, Declared]
    ) -> None:
        totals.check_declared(wanted)
        alphas = {key: {"alpha": str(one.alpha), "unit": one.unit} for key, one in wanted.items()}
        body = {"version": VERSION, "alpha": alphas}
        self._file.append(connection, "reference", totals.dataset, body)

    # -- reading ------------------------------------------------------------------------------

    def totals(self, dataset: str) -> Totals:
        """What a dataset has spent, its cap, its reference alphas and what is public of it."""
        return self._totals(dataset, self.entries())

    def all_totals(self) -> list[Totals]:
        """The totals of every dataset, in the order of their first entries."""
        return list(self._everyone(self.entries()).values())

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """All entries, or those of one dataset, oldest first.

        Raises
        ------
        LedgerError
            If the chain does not hold: what a damaged ledger adds up to is not to be trusted.
        """
        found = self._file.entries()
        return found if dataset is None else _of(dataset, found)

    def problems(self) -> list[str]:
        """Everything that is wrong with the file and its chain; empty where all is well."""
        return self._file.problems()

    def bundle_problems(
        self, recorded: dict[str, Any], statement_sha256: str | None = None
    ) -> list[str]:
        """What is wrong between a bundle and this ledger.

        Parameters
        ----------
        recorded
            What the bundle's statement says of the ledger.
        statement_sha256
            The digest of the statement's file, to be compared with the one that was released.
        """
        if recorded.get("ledger") != self.id:
            return ["the bundle was charged to another ledger"]
        number = recorded.get("entry")
        found = self._file.hash_of(number)
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

    def _released(self, charge: object) -> list[object]:
        """The digests of the statements that were released for a charge."""
        return [
            entry.body.get("statement")
            for entry in self.entries()
            if entry.kind == "release" and entry.body.get("charge") == charge
        ]

    def __repr__(self) -> str:
        try:
            state = f"{len(self.all_totals())} datasets"
        except LedgerError:
            state = "damaged"
        return f"Ledger({str(self.path)!r}, {state})"

    def _note(self, kind: str, charge: Charge, body: dict[str, Any]) -> None:
        with self._file.transaction() as (connection, _):
            self._file.append(connection, kind, charge.dataset, body)

    def _everyone(self, entries: Sequence[Entry]) -> dict[str, Totals]:
        """The totals of every dataset by the key of its name."""
        found: dict[str, tuple[Totals, Reading]] = {}
        for entry in entries:
            key = name_key(entry.dataset)
            totals, reading = found.setdefault(key, (Totals(entry.dataset), Reading()))
            totals.dataset = entry.dataset
            self._add(totals, entry, reading)
        return {key: totals for key, (totals, _) in found.items()}

    def _totals(self, dataset: str, entries: Sequence[Entry]) -> Totals:
        name = checked_name(dataset)
        return self._everyone(_of(dataset, entries)).get(name_key(name), Totals(name))

    def _add(self, totals: Totals, entry: Entry, reading: Reading) -> None:
        try:
            if (said := reading.said(entry)) is not None:
                totals.add(said)
        except (ArithmeticError, AttributeError, LookupError, LedgerRefused, TypeError, ValueError):
            raise self._file.damaged(f"entry {entry.number} can't be understood") from None


def _refuse_above_cap(totals: Totals, facing: Totals, charged: Fraction, factor: int) -> None:
    remaining = facing.remaining
    if remaining is not None and charged > remaining:
        name = f"dataset {totals.dataset!r}"
        if facing.spent > totals.spent:
            name += " (what was spent counts more at the larger capacities of this release)"
        raise BudgetRefused(charged, remaining, of=name, times=factor, overspent=facing.overspent)


def _of(dataset: str, entries: Sequence[Entry]) -> list[Entry]:
    key = name_key(dataset)
    return [entry for entry in entries if name_key(entry.dataset) == key]
