"""The address of a ledger in a database. It shows no password, whatever is done with it."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode

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
