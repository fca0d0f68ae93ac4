"""Connections to PostgreSQL, and what the database says as errors of ours, without a password."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gridveil.errors import InputError, LedgerError, LedgerRefused
from gridveil.privacy.ledger.entries import Entry, canonical
from gridveil.privacy.ledger.place import Address

if TYPE_CHECKING:
    import psycopg
    from psycopg import Connection


_DEFAULTS = {
    "connect_timeout": "10",
    "application_name": "gridveil",
    # A network that went away is noticed within half a minute.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}


class Lost(Exception):
    """The connection is gone; what the server made of the last statement is not known."""


class NotOpened(LedgerError):
    """No connection could be made."""


def driver() -> Any:
    """The package that speaks to PostgreSQL, or `LedgerError` if it is not installed."""
    try:
        import psycopg
    except ImportError:
        raise LedgerError(
            "A ledger in PostgreSQL needs a package that is not installed (psycopg).",
            remedy='Install it: pip install "gridveil[team]".',
        ) from None
    return psycopg


@contextmanager
def connected(place: Address) -> Iterator[Connection]:
    """A connection that is closed at the end, with what was not committed undone.

    Raises
    ------
    LedgerError, LedgerRefused
        For what the database says. Its words are shown without the address that was used.
    Lost
        If the connection broke on the way.
    """
    psycopg = driver()
    if not place.readable:
        raise _unreadable(place)
    try:
        parameters = {**_DEFAULTS, **psycopg.conninfo.conninfo_to_dict(place.secret())}
    except psycopg.Error:
        raise _unreadable(place) from None
    try:
        connection = psycopg.connect(
            **{**parameters, "client_encoding": "utf8"}, autocommit=True, prepare_threshold=None
        )
    except psycopg.Error as problem:
        raise _not_opened(place, problem, parameters) from None
    try:
        yield connection
    except psycopg.Error as problem:
        # Without a state it is not the server that speaks; 57P01 to 57P03: it ends or begins.
        silent = problem.sqlstate is None and isinstance(problem, psycopg.OperationalError)
        if connection.closed or silent or (problem.sqlstate or "").startswith("57P0"):
            raise Lost from None
        raise _said(place, problem) from None
    finally:
        connection.close()


def insert(connection: Connection, entries: Sequence[Entry]) -> None:
    """Write entries, as they are."""
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO gridveil.entries (number, time, kind, dataset, body, previous, hash) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s)",
            [
                (e.number, e.time, e.kind, e.dataset, canonical(e.body), e.previous, e.hash)
                for e in entries
            ],
        )


def _unreadable(place: Address) -> LedgerError:
    return LedgerError(
        f"The ledger's address {place} can't be read.",
        remedy="Write it as postgresql://USER@HOST/DATABASE; signs such as / or % in it as %2F or "
        "%25.",
    )


def _not_opened(place: Address, problem: psycopg.Error, parameters: dict[str, Any]) -> NotOpened:
    why = " ".join(str(problem).split())
    for name in ("password", "sslpassword"):
        if secret := parameters.get(name):
            why = why.replace(str(secret), "...")
    return NotOpened(
        f"The ledger {place} can't be opened: {why}.",
        remedy="Nothing was charged. Check that the database runs and that you may use it; a "
        "password belongs into ~/.pgpass or PGPASSWORD.",
    )


def _said(place: Address, problem: psycopg.Error) -> Exception:
    """What the database said about a statement, as an error of ours. Nothing was charged."""
    errors = driver().errors
    said = problem.diag.message_primary or "the database refused it"
    if isinstance(problem, (errors.UndefinedTable, errors.InvalidSchemaName)):
        return InputError(
            f"There is no ledger in {place} yet.",
            remedy="Its owner makes it: gridveil ledger create --ledger ADDRESS.",
        )
    if isinstance(problem, errors.InsufficientPrivilege):
        return LedgerRefused(
            f"The ledger {place} does not let you do that: {said}.",
            remedy="Nothing was changed. Ask the ledger's owner: caps and references are set by "
            "its role, and analysts need to be members of theirs.",
        )
    if isinstance(problem, errors.LockNotAvailable):
        return LedgerError(
            f"The ledger {place} can't be used: another writer keeps it locked.",
            remedy="Nothing was charged and nothing was released. Try again in a minute.",
        )
    if isinstance(problem, errors.ReadOnlySqlTransaction):
        return LedgerError(
            f"The ledger {place} is on a server that can't be written (a standby?).",
            remedy="Nothing was charged. Give the address of the primary server.",
        )
    return LedgerError(
        f"The ledger {place} can't be used ({said}).",
        remedy="Nothing was charged and nothing was released.",
    )
