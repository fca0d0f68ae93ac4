"""A PostgreSQL server of the tests' own, and ledgers in files and databases behind one interface.

The server is Debian's (``tests/support/install-postgres`` installs it). It runs in a temporary
folder and under an unprivileged user, because it refuses root. Nobody but the tests can reach it.
"""

import atexit
import itertools
import os
import pwd
import secrets
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from contextlib import closing
from functools import cache
from pathlib import Path

from gridveil.privacy.ledger import Ledger
from support.sizes import PATIENCE

PORT = 5432  # in the name of the socket; nothing listens on the network
ADMIN, OWNER, ANALYST, TEAM = "postgres", "gridveil_owner", "ana", "analysts"


@cache
def programs() -> Path | None:
    """The folder of the server's programs."""
    there = Path("/usr/lib/postgresql").glob("*/bin/pg_dump")
    newest = sorted(there, key=lambda one: float(one.parts[-3]))
    if newest:
        return newest[-1].parent
    found = shutil.which("initdb")
    return None if found is None else Path(os.path.realpath(found)).parent


def missing() -> str | None:
    """Why there is no server to test with; None if there is one."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    return None if programs() else "PostgreSQL is not installed (tests/support/install-postgres)"


class Server:
    """A server in a folder of its own, reached by a socket in that folder."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="gv-pg-", dir="/tmp"))
        self.password = secrets.token_hex(16)
        self._numbers = itertools.count()
        self._spare: list[str] = []
        self._as = {}
        if os.getuid() == 0:
            known = {one.pw_name: one for one in pwd.getpwall()}
            who = known.get("postgres") or known["nobody"]
            os.chown(self.folder, who.pw_uid, who.pw_gid)
            self._as = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
        key = self.folder / "password"
        key.write_text(self.password)
        if self._as:
            os.chown(key, self._as["user"], self._as["group"])
        self._run(
            "initdb", "-D", self.data, "-U", ADMIN, "-A", "scram-sha-256", f"--pwfile={key}",
            "-E", "UTF8", "--locale=C", "--no-sync",
        )  # fmt: skip
        # Passwords take a while to check: the owner needs none here, and the analyst does.
        (self.data / "pg_hba.conf").write_text(
            f"local all {ADMIN},{OWNER} trust\nlocal all all scram-sha-256\n"
        )
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write(
                f"listen_addresses = ''\nunix_socket_directories = '{self.folder}'\n"
                f"port = {PORT}\nshared_buffers = 16MB\nmax_connections = 60\n"
                "autovacuum = off\nmax_wal_size = 64MB\n"
            )
        self.start()
        self.sql(
            "postgres",
            f"CREATE ROLE {OWNER} LOGIN",
            f"CREATE ROLE {TEAM}",
            f"CREATE ROLE {ANALYST} LOGIN PASSWORD '{self.password}' IN ROLE {TEAM}",
        )

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _run(self, program: str, *words: object, check: bool = True, **more: object) -> int:
        command = [programs() / program, *map(str, words)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
        environment = {"PATH": os.environ["PATH"], "PGPASSWORD": self.password, "LC_ALL": "C"}
        done = subprocess.run(
            command, check=check, cwd="/", env=environment, **quiet, **self._as, **more
        )
        return done.returncode

    def start(self) -> None:
        """Start it; after a kill, once what is left of it has ended."""
        end = time.monotonic() + PATIENCE
        log = self.folder / "log"
        while self._run("pg_ctl", "-D", self.data, "-w", "-l", log, "start", check=False):
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)

    def kill(self) -> None:
        """End it as a power cut would: no server process gets to say anything."""
        first, *_ = (self.data / "postmaster.pid").read_text().splitlines()
        os.kill(int(first), signal.SIGKILL)

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def address(self, database: str, user: str = OWNER, *, socket: Path | None = None) -> str:
        host = str(socket or self.folder).replace("/", "%2F")
        return f"postgresql://{user}:{self.password}@{host}:{PORT}/{database}"

    def sql(self, database: str, *statements: str, user: str = ADMIN) -> None:
        import psycopg

        with closing(psycopg.connect(self.address(database, user), autocommit=True)) as connection:
            for statement in statements:
                connection.execute(statement)

    def new_database(self) -> str:
        """A database without a ledger: a new one, or one that a test is done with."""
        if self._spare:
            return self._spare.pop()
        name = f"ledger{next(self._numbers)}"
        self.sql("postgres", f"CREATE DATABASE {name} OWNER {OWNER}")
        return name

    def done_with(self, database: str) -> None:
        self.sql(database, "DROP SCHEMA IF EXISTS gridveil CASCADE")
        self._spare.append(database)

    def dump(self, database: str) -> Path:
        """A backup, as the administrator makes it."""
        target = self.folder / f"{database}.dump"
        self._run(
            "pg_dump", "-Fc", "-h", self.folder, "-p", PORT, "-U", ADMIN, "-f", target, database
        )
        return target

    def restore(self, database: str, backup: Path) -> None:
        self._run(
            "pg_restore", "--clean", "--exit-on-error", "-h", self.folder, "-p", PORT, "-U", ADMIN,
            "-d", database, backup,
        )  # fmt: skip


@cache
def server() -> Server:
    """The server that tests share; one for each process of the tests."""
    made, owner = Server(), os.getpid()
    atexit.register(lambda: made.stop() if os.getpid() == owner else None)
    return made


class Files:
    """Ledgers in files."""

    kind = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()

    def new(self) -> Path:
        """A place where a ledger can be opened, with nothing in it."""
        number = next(self._numbers)
        return self._folder / f"ledger{number or ''}.sqlite"

    def empty(self) -> Path:
        """A place where there is no ledger at all."""
        return self.new()

    def tamper(self, ledger: Ledger, *statements: str) -> None:
        with closing(sqlite3.connect(ledger.path)) as connection:
            for trigger in ("never_change", "never_delete"):
                connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    def backup(self, ledger: Ledger) -> object:
        return ledger.path.read_bytes()

    def restore(self, ledger: Ledger, backup: object) -> None:
        ledger.path.write_bytes(backup)

    def close(self) -> None:
        pass


class Databases:
    """Ledgers in databases of one server."""

    kind = "postgresql"

    def __init__(self, its_server: Server | None = None) -> None:
        self.server = its_server or server()
        self._used: dict[str, str] = {}

    def empty(self) -> str:
        name = self.server.new_database()
        address = self.server.address(name)
        self._used[address] = name
        return address

    def new(self) -> str:
        from gridveil.privacy.ledger import Address
        from gridveil.privacy.ledger.database_tables import create

        address = self.empty()
        create(Address(address), analysts=TEAM)
        return address

    def name(self, ledger: Ledger) -> str:
        return self._used[ledger.place.secret()]

    def analyst(self, place: str) -> str:
        """The same ledger, as an analyst reaches it."""
        return self.server.address(self._used[place], ANALYST)

    def tamper(self, ledger: Ledger, *statements: str) -> None:
        def switched(how: str) -> list[str]:
            return [f"ALTER TABLE {table} {how} TRIGGER USER" for table in ("entries", "ledger")]

        self.server.sql(
            self.name(ledger), "SET search_path = gridveil", *switched("DISABLE"), *statements,
            *switched("ENABLE"),
        )  # fmt: skip

    def backup(self, ledger: Ledger) -> object:
        return self.server.dump(self.name(ledger))

    def restore(self, ledger: Ledger, backup: object) -> None:
        self.server.restore(self.name(ledger), backup)

    def close(self) -> None:
        for name in self._used.values():
            self.server.done_with(name)
