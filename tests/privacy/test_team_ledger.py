"""The ledger in PostgreSQL: roles, lost connections, kills, passwords, moves and exports."""

import itertools
import json
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from fractions import Fraction
from pathlib import Path

import pytest
from support import databases
from support.making import adjacency, charge, make_release
from support.proxy import Proxy
from support.sizes import FULL, PATIENCE

from gridveil.errors import BudgetRefused, InputError, LedgerError, LedgerRefused
from gridveil.privacy.account import open_account
from gridveil.privacy.ledger import Address, Ledger, Terms, database, ledger_place, moving
from gridveil.privacy.ledger.database_tables import create
from gridveil.privacy.ledger.export import Export, export_of
from gridveil.privacy.ledger.moving import move

if why := databases.missing():
    pytest.skip(why, allow_module_level=True)

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def backend():
    found = databases.Databases()
    yield found
    found.close()


@pytest.fixture
def place(backend):
    return backend.new()


@pytest.fixture
def ledger(place):
    return Ledger(place)


@pytest.fixture
def analyst(backend, place):
    return Ledger(backend.analyst(place))


def as_analyst(backend, place, statement):
    import psycopg

    with psycopg.connect(backend.analyst(place), autocommit=True) as connection:
        connection.execute(statement)


# -- roles -----------------------------------------------------------------------------------------


def test_an_analyst_charges_and_reads_and_the_entries_say_who(ledger, analyst):
    ledger.set_cap("farm", 3, alpha={"power": "0.1"})
    charge(analyst, 1)
    charge(ledger, 1)
    assert [e.body["user"] for e in analyst.entries("farm")] == [
        databases.OWNER, databases.OWNER, databases.ANALYST, databases.OWNER,
    ]  # fmt: skip
    with pytest.raises(BudgetRefused):
        charge(analyst, 2)
    assert analyst.totals("farm").spent == 2
    assert analyst.problems() == []


def test_an_analyst_sets_no_cap_and_no_reference_and_moves_nothing(ledger, analyst, tmp_path):
    charge(ledger, 1)
    before = ledger.entries()
    with pytest.raises(LedgerRefused, match="only the owner") as caught:
        analyst.set_cap("farm", 100, alpha={"power": "0.1"})
    assert "Ask the ledger's owner" in str(caught.value)
    with pytest.raises(LedgerRefused, match="only the owner"):
        analyst.set_reference("farm", {"power": 3})
    with pytest.raises(LedgerRefused, match="only the owner"):
        move(analyst, tmp_path / "mine.sqlite")
    assert not (tmp_path / "mine.sqlite").exists()
    assert ledger.entries() == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE gridveil.entries SET kind = 'abort'",
        "DELETE FROM gridveil.entries",
        "TRUNCATE gridveil.entries",
        "UPDATE gridveil.ledger SET id = 'mine'",
        "DELETE FROM gridveil.ledger",
        "DROP TABLE gridveil.entries",
        "ALTER TABLE gridveil.entries DISABLE TRIGGER USER",
        "INSERT INTO gridveil.entries VALUES (2, '', 'cap', 'farm', '{\"user\":\"ana\"}', '', '')",
        "INSERT INTO gridveil.entries VALUES (2, '', 'charge', 'farm', "
        "'{\"user\":\"gridveil_owner\"}', '', '')",
        "INSERT INTO gridveil.entries VALUES (9, '', 'charge', 'farm', "
        "'{\"user\":\"ana\"}', '', '')",
    ],
)
def test_nothing_but_a_charge_of_ones_own_can_be_written_by_hand(backend, place, ledger, statement):
    import psycopg

    charge(ledger, 1)
    with pytest.raises(psycopg.Error):
        as_analyst(backend, place, statement)
    assert ledger.problems() == []
    assert ledger.totals("farm").spent == 1


def test_the_owner_changes_nothing_by_a_slip(backend, ledger):
    import psycopg

    charge(ledger, 1)
    for statement in (
        "UPDATE gridveil.entries SET kind = 'x'",
        "DELETE FROM gridveil.entries",
        "TRUNCATE gridveil.entries",
        "UPDATE gridveil.ledger SET format = 1",
    ):
        with pytest.raises(psycopg.Error, match="never changed"):
            backend.server.sql(backend.name(ledger), statement, user=databases.OWNER)


def test_a_trigger_that_was_taken_away_is_found(backend, ledger):
    charge(ledger, 1)
    backend.server.sql(backend.name(ledger), "DROP TRIGGER never_change ON gridveil.entries")
    assert "triggers" in ledger.problems()[0]
    with pytest.raises(LedgerError, match="taken away"):
        charge(ledger, 1)


def test_a_stranger_is_told_whom_to_ask(backend, place):
    backend.server.sql("postgres", f"REVOKE {databases.TEAM} FROM {databases.ANALYST}")
    try:
        with pytest.raises(LedgerRefused, match="does not let you"):
            Ledger(backend.analyst(place))
    finally:
        backend.server.sql("postgres", f"GRANT {databases.TEAM} TO {databases.ANALYST}")


# -- opening ---------------------------------------------------------------------------------------


def test_a_database_without_a_ledger_is_not_given_one_by_chance(backend):
    with pytest.raises(InputError, match=r"no ledger in .* yet") as caught:
        Ledger(backend.empty())
    assert "gridveil ledger create" in str(caught.value)


def test_it_is_made_once_and_for_a_role_that_exists(backend, place):
    with pytest.raises(InputError, match=r"a ledger in .* already"):
        create(Address(place))
    empty = backend.empty()
    with pytest.raises(InputError, match="no role 'nobody here'"):
        create(Address(empty), analysts="nobody here")
    create(Address(empty))  # nothing was left of the first try
    assert Ledger(empty).entries() == []


def test_a_newer_ledger_is_left_alone(backend, ledger):
    backend.tamper(ledger, "UPDATE ledger SET format = 99")
    with pytest.raises(LedgerError, match="newer GridVeil"):
        Ledger(ledger.place)
    with pytest.raises(LedgerError, match="newer GridVeil"):
        charge(ledger)


def test_an_older_gridveil_refuses_what_this_one_added_to(backend, ledger, analyst):
    backend.tamper(ledger, "UPDATE ledger SET format = 1")
    analyst.entries()  # reading changes nothing
    charge(analyst, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "FORMAT", 2)
        with pytest.raises(LedgerError, match="newer GridVeil"):
            Ledger(ledger.place)
    assert ledger.totals("farm").spent == 1


def test_a_database_in_another_encoding_is_refused(backend):
    backend.server.sql(
        "postgres", "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
    )
    try:
        with pytest.raises(LedgerError, match="UTF-8"):
            create(Address(backend.server.address("latin")))
    finally:
        backend.server.sql("postgres", "DROP DATABASE latin")


def heard(what):
    """Whether the server follows a new setting: it takes a moment to hear of it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.02)
    return False


def test_a_server_that_may_lose_what_it_confirmed_is_refused(backend, ledger):
    charge(ledger, 1)
    server = backend.server
    server.sql("postgres", "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    try:
        assert heard(lambda: ledger.problems() != [])
        assert "fsync is off" in ledger.problems()[0]
        with pytest.raises(LedgerError, match="fsync is off"):
            charge(ledger, 1)
    finally:
        server.sql("postgres", "ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf()")
        assert heard(lambda: ledger.problems() == [])
    assert charge(ledger, 1).spent == 2


def test_without_the_package_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"gridveil\[team\]"):
        Ledger("postgresql://ana@nowhere/gridveil")


def test_names_in_any_script_are_kept(ledger):
    charge(ledger, 1, "Nørre Økse Sø 北")
    assert ledger.totals("nørre økse sø 北").spent == 1
    assert ledger.problems() == []


def test_a_writer_who_waits_too_long_is_told(backend, ledger, monkeypatch):
    import psycopg

    waits = "lock_timeout = '60s'"
    assert waits in database._WRITING
    hasty = database._WRITING.replace(waits, "lock_timeout = '50ms'")
    with (
        psycopg.connect(backend.server.address(backend.name(ledger))) as held,
        monkeypatch.context() as patch,
    ):
        held.execute("SELECT * FROM gridveil.ledger FOR UPDATE")
        patch.setattr(database, "_WRITING", hasty)
        with pytest.raises(LedgerError, match="another writer keeps it locked"):
            charge(ledger)
    charge(ledger)
    assert ledger.totals("farm").spent == 1


def test_a_charge_is_committed_synchronously_whatever_the_server_does(backend, place, monkeypatch):
    name = backend.name(Ledger(place))
    backend.server.sql(name, f"ALTER DATABASE {name} SET synchronous_commit = off")
    seen, real = [], database.Database._rows

    def look(self, connection):
        seen.extend(connection.execute("SHOW synchronous_commit").fetchone())
        return real(self, connection)

    monkeypatch.setattr(database.Database, "_rows", look)
    charge(Ledger(place), 1)
    backend.server.sql(name, f"ALTER DATABASE {name} RESET synchronous_commit")
    assert seen == ["on"]


# -- connections that are lost ---------------------------------------------------------------------


@pytest.fixture
def through(backend, place, monkeypatch):
    """A ledger behind a network that is cut, and how often it was."""
    monkeypatch.setattr(database, "_PAUSE", 0.01)
    made = []

    def open_through(cut, **how):
        folder = Path(tempfile.mkdtemp(prefix="gv-net-", dir="/tmp"))
        made.append((folder, Proxy(folder, backend.server.folder, cut, **how)))
        (name,) = [one for address, one in backend._used.items() if address == place]
        return Ledger(backend.server.address(name, socket=folder)), made[-1][1]

    yield open_through
    for folder, proxy in made:
        proxy.close()
        (folder / f".s.PGSQL.{databases.PORT}").unlink()
        folder.rmdir()


@pytest.mark.parametrize("cut", ["before", "after"])
@pytest.mark.parametrize("times", [1, 3])
def test_a_lost_answer_charges_once(through, ledger, cut, times):
    """COMMIT is lost on its way, or its answer: the charge is there once, and confirmed."""
    ledger.set_cap("farm", 5, alpha={"power": "0.1"})
    far, proxy = through(cut, times=times)
    made = charge(far, 1)
    # An answer that was lost is looked for, and there is no second COMMIT to lose.
    assert proxy.cuts == (times if cut == "before" else 1)
    entries = [entry for entry in ledger.entries("farm") if entry.kind == "charge"]
    assert [(entry.number, entry.hash) for entry in entries] == [(made.entry, made.hash)]
    assert ledger.totals("farm").spent == 1
    assert ledger.problems() == []


def test_the_control_without_an_id_a_lost_answer_charges_twice(through, ledger, monkeypatch):
    """The proxy does lose answers: a writer who does not look for its entry writes it again."""
    real = database.Database._try

    def forgetful(self, connection, work, ids, sent):
        ids.clear()
        return real(self, connection, work, ids, sent)

    monkeypatch.setattr(database.Database, "_try", forgetful)
    far, _ = through("after")
    charge(far, 1)
    assert ledger.totals("farm").spent == 2


@pytest.mark.parametrize(
    ("cut", "words", "spent"),
    [("before", "may have been charged", 0), ("after", "may have been charged", 1)],
)
def test_a_partition_in_the_middle_of_a_charge_is_said(
    through, ledger, monkeypatch, cut, words, spent
):
    """Whether COMMIT arrived can't be known from here; no account is opened in either case."""
    monkeypatch.setattr(database, "_PATIENCE", 0.3)
    far, _ = through(cut, back=False)
    terms = Terms("farm", epsilon=1, adjacency=[adjacency()], purpose="a test")
    with pytest.raises(LedgerError, match=words) as caught:
        open_account(far, terms)
    assert "Nothing was released and no noise was drawn" in str(caught.value)
    assert "gridveil ledger show" in str(caught.value)
    assert ledger.totals("farm").spent == spent
    assert ledger.problems() == []


def test_a_partition_before_the_commit_leaves_nothing_charged(through, ledger, monkeypatch):
    monkeypatch.setattr(database, "_PATIENCE", 0.3)
    far, proxy = through(None)
    real = database.Database._rows

    def cut_off(self, connection):
        proxy.cuts, proxy._back = 1, False
        connection.pgconn.finish()
        return real(self, connection)

    monkeypatch.setattr(database.Database, "_rows", cut_off)
    with pytest.raises(LedgerError, match=r"Nothing was charged"):
        charge(far, 1)
    monkeypatch.undo()
    assert ledger.entries() == []


def test_a_server_that_is_not_there_is_said_at_once():
    with pytest.raises(LedgerError, match="can't be opened") as caught:
        Ledger("postgresql://ana:s3cret@%2Fno%2Fsuch%2Ffolder/gridveil")
    assert "Nothing was charged" in str(caught.value)
    assert "s3cret" not in str(caught.value)


# -- a server that is killed -----------------------------------------------------------------------


def _charge_on(place, dataset, told):
    ledger = Ledger(place)
    while True:
        told.send(charge(ledger, 1, dataset).hash)


def _all_of(pipe, found):
    while pipe.poll():
        try:
            found.append(pipe.recv())
        except EOFError:
            return


def test_a_killed_server_loses_and_doubles_nothing(monkeypatch):
    """Clients wait for it, and go on: what they were told is there, once."""
    monkeypatch.setattr(database, "_PATIENCE", PATIENCE)  # of clients, for it to start
    own = databases.Server()
    try:
        backend = databases.Databases(own)
        place = backend.new()
        told = {"farm a": [], "farm b": []}
        pipes, workers = {}, []
        for name in told:
            pipes[name], there = FORK.Pipe(duplex=False)
            workers.append(FORK.Process(target=_charge_on, args=(place, name, there)))
            workers[-1].start()
            there.close()
        for _ in range(20 if FULL else 2):
            for name, pipe in pipes.items():
                assert pipe.poll(PATIENCE), "no charge for minutes"
                _all_of(pipe, told[name])
            own.kill()
            own.start()
        for name, pipe in pipes.items():
            assert pipe.poll(PATIENCE), "no charge after the last kill"
            _all_of(pipe, told[name])
        for worker in workers:
            os.kill(worker.pid, signal.SIGKILL)
            worker.join()
        for name, pipe in pipes.items():
            _all_of(pipe, told[name])
        ledger = Ledger(place)
        assert ledger.problems() == []
        for name, hashes in told.items():
            written = [entry.hash for entry in ledger.entries(name)]
            assert written[: len(hashes)] == hashes
            assert len(written) - len(hashes) in (0, 1)  # one was on its way
    finally:
        own.stop()


def _release_on(place, folder, told):
    ledger = Ledger(place)
    for number in itertools.count():
        told.send(number)
        make_release(ledger).write(folder / str(number))


def test_a_killed_release_leaves_no_bundle_without_its_charge(place, ledger, tmp_path):
    """Killed at any moment, some releases later each time: what was written was paid for."""
    charges = bundles = 0
    for kill in range(40 if FULL else 3):
        folder = tmp_path / str(kill)
        folder.mkdir()
        here, there = FORK.Pipe(duplex=False)
        worker = FORK.Process(target=_release_on, args=(place, folder, there))
        worker.start()
        there.close()
        while here.recv() < 1 + kill % 3:
            pass
        time.sleep(0.01 * (kill % 17))
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        written = [one for one in folder.iterdir() if one.name.isdecimal()]
        for one in written:
            stated = json.loads((one / "release.json").read_text())
            assert ledger.bundle_problems(stated["ledger"]) == []
        bundles += len(written)
        charges = ledger.totals("numbers").charges
        assert bundles <= charges <= bundles + kill + 1  # one was on its way, for each kill
    assert bundles > 0
    assert ledger.problems() == []


# -- passwords -------------------------------------------------------------------------------------

SECRET = "hunter2-%25-canary"  # in an address: hunter2-%-canary
PLAIN = "hunter2-%-canary"


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://ana:{SECRET}@db.example:5432/gridveil",
        f"postgres://ana:{SECRET}@db.example/gridveil?sslmode=require",
        f"postgresql://ana@db.example/gridveil?password={SECRET}",
        f"postgresql://db.example/gridveil?user=ana&sslpassword={SECRET}",
        f"postgresql://ana:{SECRET}@[::1/gridveil",
        f"postgresql://ana:{SECRET}@a:1,b:2/gridveil",
        "postgresql://ana:1/hunter2canary@db/gridveil",
        "postgresql://ana:1#hunter2canary@db/gridveil",
        "postgresql://ana:1?hunter2canary@db/gridveil",
        "postgresql://ana:@hunter2@canary@db/gridveil",
        "postgresql://ana:hunter2canary",
    ],
)
def test_an_address_shows_no_password(text):
    address = ledger_place(text)
    shown = [str(address), repr(address), f"{address}", f"{address!r:>99}"]
    shown.append(pickle.dumps(address).decode("latin1"))
    for one in shown:
        assert "hunter2" not in one
        assert "canary" not in one
    assert address.has_password
    assert address.secret() == text


def test_an_address_shows_the_rest():
    address = Address("postgresql://ana:x@db.example:5433/power?sslmode=verify-full")
    assert str(address) == "postgresql://ana@db.example:5433/power?sslmode=verify-full"
    assert not Address(str(address)).has_password


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://ana:{SECRET}@127.0.0.1:1/gridveil",
        f"postgresql://ana:{PLAIN}x%zz@127.0.0.1:1/gridveil",  # libpq quotes what it can't read
        f"postgresql://ana:{SECRET}@127.0.0.1:{PLAIN}/gridveil",
        f"postgresql://ana@127.0.0.1:1/gridveil?password={SECRET}&nonsense=1",
    ],
)
def test_no_error_shows_a_password(text):
    with pytest.raises(LedgerError) as caught:
        Ledger(text)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value)[-1:])


def test_a_wrong_password_is_not_shown(backend, place):
    wrong = backend.analyst(place).replace(backend.server.password, SECRET)
    with pytest.raises(LedgerError, match="password authentication failed") as caught:
        Ledger(wrong)
    assert "hunter2" not in str(caught.value)


def test_no_bundle_and_no_entry_holds_the_password(backend, place, analyst, tmp_path):
    made = make_release(analyst).write(tmp_path / "out")
    secret = backend.server.password
    assert secret in analyst.place.secret()
    for path in made.rglob("*"):
        assert secret.encode() not in path.read_bytes()
    assert secret not in json.dumps(export_of(analyst))
    assert secret not in repr(analyst)
    assert analyst.bundle_problems(json.loads((made / "release.json").read_text())["ledger"]) == []


# -- moving and exporting --------------------------------------------------------------------------


def same(one, other):
    return [e for e in one.entries() if e.kind != "moved"] == [
        e for e in other.entries() if e.kind != "moved"
    ]


def test_a_ledger_moves_into_a_database_and_back(backend, tmp_path):
    file = Ledger(tmp_path / "a.sqlite")
    file.set_cap("farm", 5, alpha={"power": "0.1"})
    early = charge(file, 1)
    team = move(file, backend.empty(), analysts=databases.TEAM)
    assert team.id == file.id
    assert same(file, team)
    assert team.totals("farm").remaining == 4
    assert (file.problems(), team.problems()) == ([], [])
    late = charge(Ledger(backend.analyst(team.place.secret())), 1)
    back = move(team, tmp_path / "b.sqlite")
    assert same(team, back)
    for one in (early, late):
        recorded = {"ledger": one.ledger, "entry": one.entry, "hash": one.hash}
        assert back.bundle_problems(recorded) == []
    assert charge(back, 1).spent == 3


def test_what_moved_is_closed(backend, tmp_path):
    file = Ledger(tmp_path / "a.sqlite")
    made = charge(file, 1)
    team = move(file, backend.empty())
    for work in (
        lambda: charge(file, 1),
        lambda: file.set_cap("farm", 9, alpha=30),
        lambda: file.record_abort(made),
        lambda: file.totals("farm"),
        lambda: move(file, tmp_path / "c.sqlite"),
    ):
        with pytest.raises(LedgerError, match="is kept in postgresql://") as caught:
            work()
        assert backend.server.password not in str(caught.value)
    assert team.totals("farm").spent == 1
    assert not (tmp_path / "c.sqlite").exists()


@pytest.mark.parametrize("step", ["_make", "_done"])
def test_a_move_that_was_cut_short_leaves_one_ledger_at_most(step, backend, tmp_path, monkeypatch):
    """Before the new one is made and after it: the old one is closed, and the same finishes it."""
    file, target = Ledger(tmp_path / "a.sqlite"), backend.empty()
    charge(file, 1)

    def cut(*_):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(moving, step, cut)
        with pytest.raises(OSError, match="no space"):
            move(file, target)
    for again in (lambda: charge(file, 1), lambda: move(file, tmp_path / "c.sqlite")):
        with pytest.raises(LedgerError, match="is kept in"):
            again()
    assert same(move(file, target), file)
    assert charge(Ledger(target), 1).spent == 2
    assert (file.problems(), Ledger(target).problems()) == ([], [])


def test_a_lost_ledger_does_not_come_back_from_where_it_moved_away(backend, tmp_path):
    file = Ledger(tmp_path / "a.sqlite")
    team = move(file, backend.empty())
    charge(team, 1)
    move(team, tmp_path / "b.sqlite")
    (tmp_path / "b.sqlite").unlink()
    with pytest.raises(LedgerError, match="is kept in"):
        move(team, tmp_path / "b.sqlite")


def test_what_a_database_refuses_closes_nothing(backend, tmp_path):
    file = Ledger(tmp_path / "a.sqlite")
    charge(file, 1)
    with pytest.raises(InputError, match="no role 'nobody'"):
        move(file, backend.empty(), analysts="nobody")
    assert charge(file, 1).spent == 2


def test_a_move_never_replaces_another_ledger(backend, place, tmp_path):
    file = Ledger(tmp_path / "a.sqlite")
    charge(file, 1)
    other = Ledger(tmp_path / "b.sqlite")
    for target in (place, other.path):
        with pytest.raises(InputError, match="another ledger"):
            move(file, target)
    assert charge(file, 1).spent == 2  # it is not closed


def test_an_export_is_checked_without_the_ledger(ledger, analyst, tmp_path):
    ledger.set_cap("farm", 5, alpha={"power": "0.1"})
    made = charge(analyst, 1)
    path = tmp_path / "export.json"
    path.write_text(json.dumps(export_of(analyst)))
    export = Export(path)
    away = Ledger(export)
    assert (away.problems(), export.wrong_totals()) == ([], [])
    assert away.totals("farm").remaining == 4
    recorded = {"ledger": made.ledger, "entry": made.entry, "hash": made.hash}
    assert away.bundle_problems(recorded) == []
    with pytest.raises(LedgerError, match="is an export"):
        charge(away, 1)


def _lower(body):
    body["entries"][2]["body"]["epsilon"] = "1/1000"


def _cut(body):
    del body["entries"][1]


def _total(body):
    body["totals"][0]["spent"] = "0"


def _other(body):
    body["ledger"] = "another"


@pytest.mark.parametrize("change", [_lower, _cut, _total, _other])
def test_a_changed_export_is_found(ledger, tmp_path, change):
    ledger.set_cap("farm", 5, alpha={"power": "0.1"})
    charge(ledger, 1)
    body = export_of(ledger)
    change(body)
    path = tmp_path / "export.json"
    path.write_text(json.dumps(body))
    export = Export(path)
    assert (Ledger(export).problems() or export.wrong_totals()) != []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "gridveil ledger export"}', "\x00"])
def test_what_is_no_export_is_refused(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match="not an exported ledger"):
        Export(tmp_path / "x.json")


def test_the_sum_is_the_same_in_a_file_and_in_a_database(backend, tmp_path):
    """The same charges, at different alphas, count the same wherever they are kept."""
    both = Ledger(tmp_path / "a.sqlite"), Ledger(backend.new())
    for one in both:
        one.set_reference("farm", {"power": 30})
        for alpha in (30, 7, 10, 60):
            charge(one, "1/3", alpha=alpha)
    first, second = (one.totals("farm") for one in both)
    assert first == second
    assert first.spent == Fraction(1, 3) * (1 + 5 + 3 + 1)
