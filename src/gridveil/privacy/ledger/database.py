"""The ledger in PostgreSQL: one budget for everyone who may reach the database.

A writer locks the one row of the table ``ledger`` (``SELECT ... FOR UPDATE``) before it reads what
was spent, and holds it until its entry is committed, synchronously. So two can't find the same
budget enough.

**Lost answers.** A connection may break after COMMIT was sent and before its answer came: then
nobody here knows whether it was done. The writer connects again and takes the lock, which waits for
the end of whatever is left of its earlier try. Under the lock the entry is there, by its random
number, and nothing is written again; or it is not, and never will be, and it is written now. If the
database can't be reached any more, the error says which of the two states is left: surely not
charged, or perhaps charged. Noise is drawn in neither.

**Roles.** Whoever made the tables owns them. `database_tables` has what others may do, and the
triggers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from gridveil.errors import LedgerError
from gridveil.privacy.ledger.database_connection import Lost, NotOpened, connected, insert
from gridveil.privacy.ledger.database_tables import TRIGGERS
from gridveil.privacy.ledger.entries import FORMAT, Book, Row, Store, T
from gridveil.privacy.ledger.place import Address

if TYPE_CHECKING:
    from psycopg import Connection

_PATIENCE = 30.0  # seconds to try to reach a database that was lost
_PAUSE = 0.5  # seconds between two tries
_LOCK = 60  # seconds to wait for another writer, and that a silent writer keeps others waiting
_WRITING = f"""
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL synchronous_commit = on;
SET LOCAL lock_timeout = '{_LOCK}s';
SET LOCAL idle_in_transaction_session_timeout = '{_LOCK}s';
"""
_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Sorted here and not there: an index is not covered by the chain.
_ROWS = "SELECT number, time, kind, dataset, body, previous, hash FROM gridveil.entries"
_STATE = """
SELECT current_setting('fsync'), session_user::text,
    ARRAY(SELECT t.tgname::text FROM pg_catalog.pg_trigger AS t
     JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
     JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
     WHERE n.nspname = 'gridveil' AND t.tgenabled IN ('O', 'A'))
"""


class Database(Store):
    """The ledger in a database. Opening it never makes one: see `tables.create`."""

    remedy = (
        "Nothing was released. Restore the newest backup of the database and check it against "
        "your bundles: gridveil ledger verify --bundle."
    )

    def __init__(self, address: Address) -> None:
        self.place: Address = address
        try:
            with connected(self.place) as connection:
                connection.execute(_READING)
                self.id = self._read_id(connection, lock=False)
        except Lost as problem:
            self._unreachable(problem)

    def write(self, work: Callable[[Book], T]) -> T:
        """Do some work on the book, alone; keep what it appended, unless it raised an error."""
        ids: list[str] = []
        sent: list[T] = []  # what the work gave, if COMMIT was sent for it and no answer came
        end: float | None = None
        while True:
            try:
                with connected(self.place) as connection:
                    return self._try(connection, work, ids, sent)
            except (Lost, NotOpened) as problem:
                end = time.monotonic() + _PATIENCE if end is None else end
                if time.monotonic() > end:
                    self._unsettled() if sent else self._unreachable(problem)
                time.sleep(_PAUSE)

    def _try(
        self, connection: Connection, work: Callable[[Book], T], ids: list[str], sent: list[T]
    ) -> T:
        connection.execute(_WRITING)
        if self._read_id(connection, lock=True) != self.id:
            raise LedgerError(
                f"There is another ledger in {self.place} than a moment ago.",
                remedy="Nothing was charged. Ask its administrator, then try again.",
            )
        rows, wrong, user = self._rows(connection)
        entries = self._sound(rows, wrong)
        if sent and any(entry.body.get("salt") in ids for entry in entries):
            return sent[0]
        sent.clear()  # it was not written, and never will be: its transaction is over
        book = Book(
            self.id, entries, lambda entry: insert(connection, [entry]), ids, {"user": user}
        )
        result = work(book)
        sent.append(result)
        if connection.execute("COMMIT").statusmessage != "COMMIT":
            raise self.damaged("the database undid a charge that it did not refuse")
        return result

    def _look(self) -> tuple[list[Row], list[str]]:
        try:
            with connected(self.place) as connection:
                connection.execute(_READING)
                found = self._read_id(connection, lock=False)
                rows, wrong, _ = self._rows(connection)
        except Lost as problem:
            self._unreachable(problem)
        # Whoever looks for damage compares with the number that it has now.
        return rows, wrong if found == self.id else [*wrong, "its number was changed"]

    def _rows(self, connection: Connection) -> tuple[list[Row], list[str], str]:
        fsync, user, triggers = connection.execute(_STATE).fetchone() or ("", "", [])
        wrong = []
        if fsync != "on":
            wrong.append("its server may lose what it confirmed (fsync is off)")
        if not set(TRIGGERS) <= set(triggers):
            wrong.append("the triggers that keep its entries as they are have been taken away")
        rows: list[Row] = [*sorted(connection.execute(_ROWS).fetchall())]
        return rows, wrong, str(user)

    def _read_id(self, connection: Connection, *, lock: bool) -> str:
        found = connection.execute(
            "SELECT id, format FROM gridveil.ledger" + (" FOR UPDATE" if lock else "")
        ).fetchone()
        if found is None:
            raise self.damaged("its number is gone")
        if found[1] > FORMAT:
            raise self.newer(found[1])
        if lock and found[1] < FORMAT:  # an older GridVeil would misread what is added
            connection.execute("UPDATE gridveil.ledger SET format = %s", (FORMAT,))
        return str(found[0])

    def _unreachable(self, problem: Exception) -> NoReturn:
        if isinstance(problem, NotOpened):
            raise problem
        raise LedgerError(
            f"The ledger {self.place} can't be reached any more: the connection was lost.",
            remedy="Nothing was charged and nothing was released. Try again when the database is "
            "back.",
        )

    def _unsettled(self) -> NoReturn:
        raise LedgerError(
            f"The connection to the ledger {self.place} was lost while an entry was written, and "
            "whether it was is not known: it may have been charged.",
            remedy="Nothing was released and no noise was drawn. When the database is back, "
            "gridveil ledger show DATASET lists the charge if it was made; it then stays spent. "
            "Run the release again either way.",
        )
