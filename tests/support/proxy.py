"""A network between a client and a PostgreSQL server that can be cut at a chosen moment."""

import socket
import threading
from contextlib import suppress
from pathlib import Path

from support.databases import PORT


class Proxy:
    """Listens on a socket in a folder, and hands everything on to the server's.

    Parameters
    ----------
    folder
        Where its socket is.
    server
        The folder of the server's socket.
    cut
        ``"before"``: the connection breaks when COMMIT is sent, which never arrives; ``"after"``:
        COMMIT arrives and its answer is lost; None: all is well.
    times
        How many connections are cut so.
    back
        Whether the server can be reached after a cut.
    """

    def __init__(
        self, folder: Path, server: Path, cut: str | None, *, times: int = 1, back: bool = True
    ) -> None:
        self._server, self._cut, self._times, self._back = server, cut, times, back
        self.cuts = 0
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / f".s.PGSQL.{PORT}"))
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Let nobody in any more."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self.cuts and not self._back:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server / f".s.PGSQL.{PORT}"))
                lost = threading.Event()
                for ends in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass, args=(*ends, lost), daemon=True).start()

    def _pass(self, here: socket.socket, there: socket.socket, asking: bool, lost) -> None:
        with suppress(OSError):
            while data := here.recv(65536):
                if asking and b"COMMIT\0" in data and self._cut and self.cuts < self._times:
                    self.cuts += 1
                    if self._cut == "before":
                        break
                    lost.set()
                elif not asking and lost.is_set():
                    break  # the answer
                there.sendall(data)
        for one in (here, there):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
