"""What every release has: a plan, an account that pays, a statement, and the way onto the disk.

Data walks one way: a `Plan` is made from public data and opens nothing; `Plan.charge` pays for it;
`Plan.run` asks the private data, restores the answers and ends in a `Release`. Nothing else does.
Each of them calls back into `wind.release` or `grid.release`, whose plans fill in the steps that
differ.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

from gridveil.errors import InputError, LedgerError, PlanWarning, show_exact
from gridveil.privacy.account import Account, open_account, study_account
from gridveil.privacy.guarantee_words import (
    WEAK,
    certainty,
    neighbour_json,
    show_adjacency,
    show_certainty,
)
from gridveil.privacy.ledger import Ledger, Sketch, Terms, ledger_place, unnamed
from gridveil.privacy.noise import NoiseSource
from gridveil.privacy.statement import Statement
from gridveil.release.bundle import ANSWERS_FILE, Writer, write_answers, write_bundle
from gridveil.report.page import Section, Snippet, report_page, table_snippets

REPORT_FILE = "report.html"

Progress = Callable[[str], None]
"""Called with a few words as each step of a release begins."""


def silent(words: str) -> None:
    """Say nothing of a release's progress."""


class Release:
    """One private dataset after its mechanisms and restoration.

    Parameters
    ----------
    statement
        What was guaranteed.
    account
        What paid for it.
    files
        The data files of the bundle: name, and how each is written. The noisy answers go with
        them.

    Attributes
    ----------
    assumed
        What the plan took for granted: see `Plan.assumed`.
    """

    def __init__(
        self,
        statement: Statement,
        account: Account,
        files: Mapping[str, Writer],
    ) -> None:
        self.statement = statement
        self.account = account
        self.files = {**files, ANSWERS_FILE: self._write_answers}
        self.assumed: Mapping[str, str] = {}

    def quality(self) -> tuple[str, ...]:
        """How good the data is, in sentences made from public and released data only."""
        known = (words for name, words in self.assumed.items() if name.startswith("accuracy"))
        return tuple(f"{words[:1].upper()}{words[1:]}." for words in known)

    def _write_answers(self, path: Path) -> None:
        write_answers(path, self.account.answers)

    def sections(self) -> tuple[Section, ...]:
        """What the report shows besides the guarantee, from released and public data only."""
        return ()

    def loading(self) -> tuple[Snippet, ...]:
        """Code that loads the released files, for the report."""
        return table_snippets([name for name in self.files if name != ANSWERS_FILE])

    def write(self, folder: Path | str, *, force: bool = False) -> Path:
        """Write the bundle in one step and return its folder.

        Raises
        ------
        InputError
            If ``folder`` is taken or can't be written; the release is still in memory.
        """
        names = tuple(self.files)
        page = report_page(self.statement, names, self.sections(), self.loading(), self.quality())
        files = {**self.files, REPORT_FILE: lambda path: _write_text(path, page)}
        placed, complete = write_bundle(folder, files, self.statement, force=force)
        self._note(hashlib.sha256(complete.to_json().encode()).hexdigest())
        return placed

    def _note(self, digest: str) -> None:
        """Tell the ledger. The bundle is in its place already: a failure here must not hide it."""
        if self.account.ledger is None or self.account.charge is None:
            return
        try:
            self.account.ledger.record_release(self.account.charge, digest)
        except LedgerError as problem:
            warnings.warn(
                f"The bundle was written, but the ledger could not note it: {problem.what}",
                RuntimeWarning,
                stacklevel=3,
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {', '.join(self.files)}\n{self.statement!r}"


@dataclass(frozen=True)
class Asked:
    """A question that a plan will ask of the private data; everything about it is public.

    Parameters
    ----------
    query
        What is asked.
    scale
        How wide the noise on each number of the answer is, with its unit.
    epsilon
        What one answer costs.
    times
        How often it is asked.
    """

    query: str
    scale: str
    epsilon: Fraction
    times: int = 1

    def in_words(self, total: Fraction) -> str:
        """The question, its noise, and its part of all epsilon."""
        often = f", {self.times} times" if self.times > 1 else ""
        share = float(100 * self.times * self.epsilon / total)
        return (
            f"{self.query}{often}: noise of scale {self.scale}, epsilon "
            f"{show_exact(self.times * self.epsilon)} ({share:.3g}%)"
        )


R = TypeVar("R", bound=Release)


class Plan(ABC, Generic[R]):
    """A release that was checked and prepared from public data. It opens and charges nothing.

    The same plan can be run again: each run needs an account of its own.

    Attributes
    ----------
    terms
        What the ledger is told.
    request
        What a command was told to make this plan, for the statement; public, and empty in Python.
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.request: Mapping[str, Any] = {}
        self._accounts: list[Account] = []  # opened for this plan, and not run yet
        self._lock = Lock()

    def charge(
        self,
        ledger: Ledger | Path | str | None = None,
        *,
        dataset: str | None = None,
        distinct: str | None = None,
        noise: NoiseSource | None = None,
    ) -> Account:
        """Charge the release to a ledger: from here on its epsilon is spent.

        Whatever is `unusual` about it is said first, as a `PlanWarning` each.

        Parameters
        ----------
        ledger
            A ledger, its file or the address of its database; the user's own by default.
        dataset
            The ledger's name for the data; it may be left out once the ledger knows the data.
        distinct
            Why this is not the data of another dataset that it looks like; the ledger keeps it.
        noise
            For audits, which listen to a release: a source that draws secure noise and notes it.
        """
        self._before_charge()
        for words in self.unusual:
            warnings.warn(f"Unusual: {words}", PlanWarning, stacklevel=2)
        name = self.terms.dataset if dataset is None else dataset
        if not isinstance(ledger, Ledger):
            place = ledger_place(ledger)
            if name is None and isinstance(place, Path) and not os.path.exists(place):
                raise unnamed()  # before a ledger is made for nothing
            ledger = Ledger(ledger)
        terms = replace(self.terms, dataset=name, sketch=self.sketch(), distinct=distinct)
        account = open_account(ledger, terms, noise=noise)
        self._accounts.append(account)
        return account

    def _before_charge(self) -> None:
        """Raise `InputError` now for what would fail after the charge."""

    @abstractmethod
    def asked(self) -> Sequence[Asked]:
        """What the private data will be asked, in order; known before anything is charged."""

    @property
    def assumed(self) -> Mapping[str, str]:
        """What the release takes for granted about the data, by a short name each.

        Public facts alone: units, the order of rows, what is left out or clipped, and how accurate
        the release should be. The owner reads them before anything is charged.
        """
        return {}

    @property
    def unusual(self) -> tuple[str, ...]:
        """What looks like a slip, a sentence each with its remedy; most often nothing.

        Public data alone decides it: plans of neighbours have the same. The command line asks
        before it charges for such a plan.
        """
        if self.terms.epsilon <= WEAK:
            return ()
        sure = show_certainty(certainty(self.terms.epsilon))
        return (
            f"Epsilon {show_exact(self.terms.epsilon)} is next to no protection: an even guess "
            f"between two neighbours may become {sure} sure. Use 1, or a few at most.",
        )

    @property
    def in_words(self) -> tuple[str, ...]:
        """The guarantee as the statement will put it."""
        total = self.terms.epsilon
        neighbours = [neighbour_json(one, total) for one in self.terms.adjacency]
        guarantee = {"epsilon": str(total), "neighbours": neighbours}
        return Statement({"dp_valid": True, "guarantee": guarantee}).in_words

    def to_json(self) -> dict[str, Any]:
        """What `print` shows of a plan, for a script."""
        terms = self.terms
        return {
            "purpose": terms.purpose,
            "asked": [
                {
                    "query": one.query,
                    "scale": one.scale,
                    "epsilon": str(one.epsilon),
                    "times": one.times,
                }
                for one in self.asked()
            ],
            "epsilon": str(terms.epsilon),
            "neighbours": [neighbour_json(one, terms.epsilon) for one in terms.adjacency],
            "published_in_clear": list(terms.clear),
            "private": list(terms.private),
            "in_words": list(self.in_words),
            "assumed": dict(self.assumed),
            "unusual": list(self.unusual),
        }

    @abstractmethod
    def sketch(self) -> Sketch:
        """A fingerprint of the public part of the data; no private value changes it."""

    def study(self, seed: int) -> Account:
        """An account for a study on public data: seeded noise, no ledger, no guarantee."""
        account = study_account(self.terms.epsilon, adjacency=self.terms.adjacency, seed=seed)
        self._accounts.append(account)
        return account

    def run(self, account: Account, progress: Progress = silent) -> R:
        """Ask the private data, restore the answers, and put the release together.

        Parameters
        ----------
        account
            From this plan's `charge` or `study`, unused so far.
        progress
            Called with a few words as each step begins.

        Raises
        ------
        InputError
            If the account was opened for something else, or was used before.
        ReleaseAborted
            If a computation on the private data failed; the charge stays.
        """
        with self._lock:  # a charge pays for one run, whoever else tries
            mine = [one for one in self._accounts if one is account]
            if not mine or account.budget.spent:
                raise InputError(
                    "The account was opened for another release, or was used before.",
                    remedy="Open one with plan.charge(...) for each run.",
                )
            self._accounts[:] = [one for one in self._accounts if one is not account]
        made = self._run(account, progress)
        made.assumed = self.assumed
        if self.request:
            made.statement = made.statement.with_request(self.request)
        return made

    def release(
        self,
        ledger: Ledger | Path | str | None = None,
        *,
        dataset: str | None = None,
        distinct: str | None = None,
        seed: int | None = None,
        progress: Progress = silent,
    ) -> R:
        """Charge the plan, as `charge` does, and run it; with a seed, `study` it instead."""
        if seed is None:
            return self.run(self.charge(ledger, dataset=dataset, distinct=distinct), progress)
        return self.run(self.study(seed), progress)

    @abstractmethod
    def _run(self, account: Account, progress: Progress) -> R:
        """Run the method on the sealed data."""

    def __repr__(self) -> str:
        terms = self.terms
        moves = " or ".join(show_adjacency(one) for one in terms.adjacency)
        lines = [
            f"Plan: {terms.purpose}",
            *(["Takes for granted:"] if self.assumed else []),
            *(f"  {name}: {words}" for name, words in self.assumed.items()),
            "Asks of the private data:",
            *(f"  {one.in_words(terms.epsilon)}" for one in self.asked()),
            f"Charges: epsilon {show_exact(terms.epsilon)} for {moves}; more if the ledger counts "
            "this dataset in larger steps",
            f"Publishes in clear: {', '.join(terms.clear) or 'nothing'}",
            "Guarantees:",
            *(f"  {sentence}" for sentence in self.in_words),
            *(["Unusual:"] if self.unusual else []),
            *(f"  {sentence}" for sentence in self.unusual),
        ]
        return "\n".join(lines)


def _write_text(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "backslashreplace"))
