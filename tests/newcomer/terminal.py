"""A person at a terminal: types, reads what is shown, and waits for as long as it takes."""

import os
import pty
import re
import select
import subprocess
import sys
import termios
from pathlib import Path

_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_PATIENCE = 300  # seconds without a word before a person gives up: no machine is that busy


class Terminal:
    """A program in a pseudo-terminal.

    Parameters
    ----------
    folder
        Where it runs.
    """

    def __init__(self, folder: Path) -> None:
        self._side, other = pty.openpty()
        modes = termios.tcgetattr(other)
        modes[3] &= ~termios.ECHO  # what was typed is not what was said
        termios.tcsetattr(other, termios.TCSANOW, modes)
        shell = Path(__file__).with_name("shell.py")
        settings = {"TERM": "dumb", "COLUMNS": "500", "LINES": "50", "PYTHONUNBUFFERED": "1"}
        self._program = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(shell)],
            cwd=folder,
            stdin=other,
            stdout=other,
            stderr=other,
            env={**os.environ, **settings, "GRIDVEIL_LEDGER": str(folder / "ledger.sqlite")},
            start_new_session=True,
        )
        os.close(other)
        self._unread = ""
        self.wait_for("$ ")

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self._side, f"{line}\n".encode())

    def wait_for(self, words: str) -> str:
        """Read until this is shown, and return all that was, without styles."""
        while words not in self._unread:
            self._read()
        end = self._unread.index(words) + len(words)
        shown, self._unread = self._unread[:end], self._unread[end:]
        return shown

    def _read(self) -> None:
        ready, _, _ = select.select([self._side], [], [], _PATIENCE)
        assert ready, f"nothing more was shown after: {self._unread[-2000:]}"
        try:
            more = os.read(self._side, 65536).decode(errors="replace")
        except OSError:  # the other side is closed
            more = ""
        assert more, f"the program ended after: {self._unread[-2000:]}"
        self._unread = _STYLE.sub("", self._unread + more)

    def run(self, line: str, *talk: tuple[str, str]) -> tuple[str, int]:
        """Run a command and answer its questions: what it showed, and its exit code.

        Parameters
        ----------
        line
            The command.
        talk
            The end of each question that is expected, and the answer to it.
        """
        self.type(line)
        shown = ""
        for question, answer in talk:
            shown += self.wait_for(question)
            self.type(answer)
        shown += self.wait_for("exit code ")
        code = int(self.wait_for("\n"))
        self.wait_for("$ ")
        return " ".join(shown.split()), code

    def close(self) -> None:
        """Close the window, whatever is going on in it."""
        self._program.kill()
        self._program.wait()
        os.close(self._side)
