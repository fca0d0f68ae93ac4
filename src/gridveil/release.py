"""What every release has: a statement, an account that paid for it, and the way onto the disk."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from pathlib import Path

from gridveil.bundle import Writer, write_bundle
from gridveil.errors import LedgerError
from gridveil.privacy.account import Account
from gridveil.privacy.statement import Statement
from gridveil.report.page import Section, Snippet, report_page, table_snippets

REPORT_FILE = "report.html"


class Release:
    """One private dataset after its mechanisms and restoration.

    Parameters
    ----------
    statement
        What was guaranteed.
    account
        What paid for it.
    files
        The data files of the bundle: name, and how each is written.
    """

    def __init__(
        self,
        statement: Statement,
        account: Account,
        files: Mapping[str, Writer],
    ) -> None:
        self.statement = statement
        self.account = account
        self.files = dict(files)

    def sections(self) -> tuple[Section, ...]:
        """What the report shows besides the guarantee, from released and public data only."""
        return ()

    def loading(self) -> tuple[Snippet, ...]:
        """Code that loads the released files, for the report."""
        return table_snippets(tuple(self.files))

    def write(self, folder: Path | str, *, force: bool = False) -> Path:
        """Write the bundle in one step and give back its folder.

        Raises
        ------
        InputError
            Where ``folder`` is taken or can't be written; the release is still in memory.
        """
        page = report_page(self.statement, tuple(self.files), self.sections(), self.loading())
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


def _write_text(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "backslashreplace"))
