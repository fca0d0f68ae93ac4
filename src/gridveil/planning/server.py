"""Serve the page on the loopback address, to whoever has its secret address, and to no other page.

- It listens on 127.0.0.1 only.
- Every address holds a random token; without it nothing is answered.
- The ``Host`` must be the loopback address itself, so that no foreign name can be pointed at it
  (DNS rebinding), and a request that a page of another origin makes is refused.
- The page's policy lets it load nothing from elsewhere and run no script but its own.
"""

from __future__ import annotations

import hmac
import json
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any

from gridveil.errors import GridveilError
from gridveil.planning.planner import Planner

ADDRESS = "127.0.0.1"

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_LONGEST = 64 * 1024  # bytes of a request
_FILES = {
    "": ("page/index.html", "text/html; charset=utf-8"),
    "plan.js": ("page/plan.js", "text/javascript; charset=utf-8"),
    "plan.css": ("page/plan.css", "text/css; charset=utf-8"),
}


class Server(ThreadingHTTPServer):
    """The page's server.

    Parameters
    ----------
    planner
        What answers the page.
    port
        Where to listen; 0 for any free one.
    """

    daemon_threads = True

    def __init__(self, planner: Planner, port: int = 0) -> None:
        super().__init__((ADDRESS, port), _Handler)
        self.planner = planner
        self.token = secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        """The page's address, with its token."""
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """What a request may call this server."""
        return tuple(f"{name}:{self.server_port}" for name in (ADDRESS, "localhost"))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    server: Server

    def do_GET(self) -> None:
        place = self._allowed()
        if place is None:
            return
        if place == "api/start":
            self._send_json(self.server.planner.start())
        elif place in _FILES:
            name, kind = _FILES[place]
            self._send(HTTPStatus.OK, _read(name), kind)
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def do_POST(self) -> None:
        body = self._body()
        place = self._allowed()
        if place is None:
            return
        if place != "api/plan":
            self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")
        elif self.headers.get("Content-Type", "").split(";")[0].strip() != "application/json":
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Ask in JSON.")
        elif (asked := _parsed(body)) is None:
            self._refuse(HTTPStatus.BAD_REQUEST, "The page does not ask this question.")
        else:
            try:
                self._send_json(self.server.planner.answer(asked))
            except GridveilError as error:
                self._send_json({"problem": error.what, "remedy": error.remedy})

    def _allowed(self) -> str | None:
        """What is asked for, after the token; None if the request was refused."""
        token, _, place = self.path.partition("?")[0].removeprefix("/").partition("/")
        reason = self._stranger()
        if reason is None and not hmac.compare_digest(token.encode(), self.server.token.encode()):
            reason = "Open the address that gridveil plan printed."
        if reason is not None:
            self._refuse(HTTPStatus.FORBIDDEN, reason)
            return None
        return place

    def _stranger(self) -> str | None:
        """Why a request is not the page's own, or None."""
        host, origin = self.headers.get("Host"), self.headers.get("Origin")
        if host not in self.server.hosts:
            return "This page has no such name."
        if origin is None and self.command == "POST":
            return "Only the page itself may ask."
        foreign = origin is not None and origin != f"http://{host}"
        if foreign or self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            return "Another page may not ask."
        return None

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and int(length) <= _LONGEST):
            self.close_connection = True
            return b""
        return self.rfile.read(int(length))

    def _send_json(self, value: Any) -> None:
        body = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        self._send(HTTPStatus.OK, body, "application/json")

    def _refuse(self, status: HTTPStatus, words: str) -> None:
        self.close_connection = True
        self._send(status, words.encode(), "text/plain; charset=utf-8")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response_only(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Keep the terminal quiet: addresses hold the token."""


def _read(name: str) -> bytes:
    here = resources.files("gridveil.planning").joinpath(name).read_bytes()
    if not name.endswith(".css"):
        return here
    # The report's style first: the two pages are of one family.
    shared = resources.files("gridveil.report").joinpath("templates/style.css").read_bytes()
    return shared + here


def _parsed(body: bytes) -> dict[str, Any] | None:
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return asked if isinstance(asked, dict) else None
