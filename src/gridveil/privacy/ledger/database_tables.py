"""The tables of a ledger in PostgreSQL, who may do what with them, and how they are made.

Everything is made in one transaction: the database has a whole ledger, or none. Entries are only
ever added, by grants and by triggers. The triggers hold for the owner too, who can take them away;
`problems` finds that.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from gridveil.errors import InputError, LedgerError
from gridveil.privacy.ledger.database_connection import connected, driver, insert
from gridveil.privacy.ledger.entries import FORMAT, Entry
from gridveil.privacy.ledger.place import Address

TRIGGERS = ("check_entry", "never_change", "never_truncate", "never_change_ledger")
"""The triggers that keep entries as they are."""

_TABLES = """
CREATE SCHEMA gridveil;
CREATE TABLE gridveil.ledger (
    one boolean PRIMARY KEY DEFAULT true CHECK (one), id text NOT NULL, format integer NOT NULL);
CREATE TABLE gridveil.entries (
    number bigint PRIMARY KEY, time text NOT NULL, kind text NOT NULL, dataset text NOT NULL,
    body text NOT NULL, previous text NOT NULL, hash text NOT NULL);
CREATE UNIQUE INDEX written_once ON gridveil.entries ((body::json ->> 'salt'));
"""

# An entry follows the last one, has its writer's name, and is of a kind that its writer may add.
_RULES = """
CREATE FUNCTION gridveil.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'ledger entries are never changed or deleted'
        USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE FUNCTION gridveil.check_entry() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
DECLARE
    last record;
    owner oid := (SELECT relowner FROM pg_class WHERE oid = TG_RELID);
BEGIN
    IF NEW.kind NOT IN ('charge', 'release', 'abort')
            AND NOT pg_has_role(session_user, owner, 'MEMBER') THEN
        RAISE EXCEPTION 'only the owner of the ledger may add an entry of the kind %', NEW.kind
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.body::json ->> 'user' IS DISTINCT FROM session_user::text THEN
        RAISE EXCEPTION 'an entry has the name of who writes it'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT number, hash INTO last FROM gridveil.entries ORDER BY number DESC LIMIT 1;
    IF NEW.number <> coalesce(last.number, 0) + 1
            OR NEW.previous <> coalesce(last.hash, NEW.previous) THEN
        RAISE EXCEPTION 'an entry follows the last one';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION gridveil.check_ledger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.id = OLD.id AND NEW.format > OLD.format THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a ledger is never changed or deleted'
        USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER check_entry BEFORE INSERT ON gridveil.entries
    FOR EACH ROW EXECUTE FUNCTION gridveil.check_entry();
CREATE TRIGGER never_change BEFORE UPDATE OR DELETE ON gridveil.entries
    FOR EACH ROW EXECUTE FUNCTION gridveil.refuse();
CREATE TRIGGER never_truncate BEFORE TRUNCATE ON gridveil.entries
    FOR EACH STATEMENT EXECUTE FUNCTION gridveil.refuse();
CREATE TRIGGER never_change_ledger BEFORE UPDATE OR DELETE ON gridveil.ledger
    FOR EACH ROW EXECUTE FUNCTION gridveil.check_ledger();
"""

# Locking a row needs the right to update it; the trigger refuses all but a newer format.
_GRANTS = """
GRANT USAGE ON SCHEMA gridveil TO {role};
GRANT SELECT, INSERT ON gridveil.entries TO {role};
GRANT SELECT, UPDATE ON gridveil.ledger TO {role};
"""


def create(
    address: Address,
    *,
    analysts: str | None = None,
    ledger: str | None = None,
    entries: Sequence[Entry] = (),
    keep: bool = True,
) -> None:
    """Make a ledger in a database that has none.

    Parameters
    ----------
    address
        The database, as the role that will own the ledger.
    analysts
        A role whose members may charge and read.
    ledger, entries
        The number and entries of a ledger that moves here; a new one by default.
    keep
        False to find out whether it can be made, and leave nothing behind.
    """
    errors = driver().errors
    sql = driver().sql
    with connected(address) as connection:
        encoding = connection.execute("SHOW server_encoding").fetchone()
        if encoding != ("UTF8",):
            raise LedgerError(
                f"The database {address} does not keep text as UTF-8.",
                remedy="Make one that does: createdb --encoding UTF8 --template template0 NAME.",
            )
        connection.execute("BEGIN")
        try:
            connection.execute(_TABLES)
        except errors.DuplicateSchema:
            raise InputError(
                f"There is a ledger in {address} already.",
                remedy="Use it as it is, or make another in a database of its own.",
            ) from None
        connection.execute(
            "INSERT INTO gridveil.ledger (id, format) VALUES (%s, %s)",
            (ledger or str(uuid.uuid4()), FORMAT),
        )
        insert(connection, entries)
        connection.execute(_RULES)
        if analysts is not None:
            try:
                connection.execute(sql.SQL(_GRANTS).format(role=sql.Identifier(analysts)))
            except errors.UndefinedObject:
                raise InputError(
                    f"The database has no role {analysts!r}.",
                    remedy=f'Make it first: CREATE ROLE "{analysts}".',
                ) from None
        connection.execute("COMMIT" if keep else "ROLLBACK")
