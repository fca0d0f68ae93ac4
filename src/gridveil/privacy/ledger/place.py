"""Where the ledger is: a file, or the address of a database.

A file is never on a network file system, whose locks can't be trusted. An address shows no
password, whatever is done with it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from gridveil.errors import LedgerError, wrong_type

_NETWORK = {
    "9p", "afp", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "drvfs", "fuse.ceph",
    "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "glusterfs", "gpfs", "lustre",
    "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "smb3", "smbfs", "webdav",
}  # fmt: skip
_OCTAL = re.compile(r"\\([0-7]{3})")


def ledger_place(given: Path | Address | str | None = None) -> Path | Address:
    """Where the ledger is: as given, else ``GRIDVEIL_LEDGER``, else in the user's data folder.

    A file, or the address of a database: ``postgresql://USER@HOST/DATABASE``.
    """
    wanted = given if given is not None else os.environ.get("GRIDVEIL_LEDGER")
    if isinstance(wanted, Address):
        return wanted
    if isinstance(wanted, str) and Address.like(wanted):
        return Address(wanted)
    if wanted is not None and (given is not None or wanted):
        return _expanded(wanted)
    import platformdirs

    return Path(platformdirs.user_data_dir("gridveil", appauthor=False)) / "ledger.sqlite"


def _expanded(path: Path | str) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise wrong_type("file or address of a ledger", path, remedy='Write "ledger.sqlite".')
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise LedgerError(
            f"The ledger {path} is in the home of a user who is not known here.",
            remedy="Write out its folder: --ledger FILE or GRIDVEIL_LEDGER.",
        ) from None


def refuse_network_file_system(path: Path) -> None:
    """Raise `LedgerError` if file locks can't be trusted: two releases could overspend."""
    kind = file_system(path)
    if kind in _NETWORK:
        raise LedgerError(
            f"The ledger {path} is on a network file system ({kind}), whose locks can't be "
            "trusted to keep two releases from overspending.",
            remedy="Put it on a local disk: --ledger FILE or GRIDVEIL_LEDGER.",
        )


def file_system(path: Path) -> str:
    """The type of the file system that holds a path, or ``"unknown"``."""
    place = path.resolve()
    while not os.path.exists(place) and place != place.parent:
        place = place.parent
    if sys.platform == "win32":
        return _windows(place)
    mounts = _linux_mounts() if sys.platform.startswith("linux") else _bsd_mounts()
    holding = [(len(str(at)), kind) for at, kind in mounts if place == at or at in place.parents]
    # The last mount on a folder hides the earlier ones.
    return (
        max(enumerate(holding), key=lambda item: (item[1][0], item[0]))[1][1]
        if holding
        else "unknown"
    )


def _linux_mounts() -> list[tuple[Path, str]]:
    try:
        raw = Path("/proc/self/mountinfo").read_bytes()
    except OSError:
        return []
    mounts = []
    for line in os.fsdecode(raw).split("\n")[:-1]:
        before, _, after = line.partition(" - ")
        # Spaces and backslashes are written in octal, everything else as it is.
        at = _OCTAL.sub(lambda code: chr(int(code[1], 8)), before.split(" ")[4])
        mounts.append((Path(at), after.split(" ")[0]))
    return mounts


def _bsd_mounts() -> list[tuple[Path, str]]:
    # macOS and the BSDs print: DEVICE on FOLDER (TYPE, options)
    listed = subprocess.run(["mount"], capture_output=True, text=True, check=False).stdout
    mounts = []
    for line in listed.splitlines():
        where, _, options = line.partition(" on ")[2].rpartition(" (")
        mounts.append((Path(where), options.split(",")[0].rstrip(")")))
    return mounts


def _windows(place: Path) -> str:
    import ctypes

    remote = 4  # DRIVE_REMOTE
    kind = ctypes.windll.kernel32.GetDriveTypeW(place.anchor)  # type: ignore[attr-defined,unused-ignore]
    return "cifs" if kind == remote or place.anchor.startswith("\\\\") else "local"


_SCHEMES = ("postgresql", "postgres")
_HOST = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._%-]*)(:[0-9]{1,5})?"
# Signs in a user, a password or a name are written in percent: what is not so may be a password
# with a sign that ends it too early, and none of it is shown.
_ADDRESS = re.compile(
    r"(?i:postgres(ql)?)://((?P<user>[^:@/?#\s]*)(?P<password>:[^@/?#\s]*)?@)?"
    rf"(?P<hosts>{_HOST}(,{_HOST})*)(?P<name>/[^@:/?#\s]*)?(\?(?P<more>[^@?#\s]*))?"
)
_SHOWN = ("host", "hostaddr", "port", "dbname", "user", "service", "sslmode")
_SECRET = ("password", "sslpassword")


class Address:
    """An address such as ``postgresql://ana@db.example/gridveil``.

    Printing, formatting or comparing it uses what is not secret. Only `secret`, which the
    connection is made with, has the whole of it.
    """

    __slots__ = ("_shown", "_text", "has_password", "readable")

    def __init__(self, text: str) -> None:
        self._text = text
        found = _ADDRESS.fullmatch(text)
        self.readable = found is not None
        self.has_password = True  # for all that is known
        self._shown = "postgresql://..."
        if found is not None:
            asked = parse_qsl(found["more"] or "", keep_blank_values=True)
            self.has_password = found["password"] is not None or any(
                key.lower() in _SECRET for key, _ in asked
            )
            user = f"{found['user']}@" if found["user"] else ""
            shown = urlencode([(key, value) for key, value in asked if key in _SHOWN], safe="/")
            more = f"?{shown}" if shown else ""
            self._shown = f"postgresql://{user}{found['hosts']}{found['name'] or ''}{more}"

    @staticmethod
    def like(text: str) -> bool:
        """Whether this is meant to be an address, and not the name of a file."""
        return text.partition("://")[0].lower() in _SCHEMES

    def secret(self) -> str:
        """The whole address, for the connection alone."""
        return self._text

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return f"Address({self._shown!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and other._shown == self._shown

    def __hash__(self) -> int:
        return hash(self._shown)

    def __reduce__(self) -> tuple[type[Address], tuple[str]]:
        return Address, (self._shown,)  # what is stored has no password
