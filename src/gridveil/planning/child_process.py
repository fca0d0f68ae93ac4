"""A process of its own for the runs: the page stays quick, and a run can be stopped in its middle.

It gets public data only: the stand-in, and what the owner chose.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Protocol

from gridveil.errors import GridveilError, InputError
from gridveil.planning.choice import Choice
from gridveil.planning.release_kind import Kind, Run

MakeKinds = Callable[[], Sequence[Kind]]


class Stopped(Exception):
    """The run was stopped before its end."""


class Worker(Protocol):
    """What makes runs: `Child`, or anything like it."""

    def run(self, choice: Choice, seed: int) -> Run:
        """Make a run, or raise `InputError` with what is wrong, or `Stopped`."""
        ...

    def stop(self) -> None:
        """End the run under way, if there is one."""
        ...


class Child:
    """A worker in a process, which starts when the first run is asked for.

    Parameters
    ----------
    make
        Makes the kinds in the process; it is pickled.
    """

    def __init__(self, make: MakeKinds) -> None:
        self._make = make
        self._context = multiprocessing.get_context("spawn")
        self._process: Any = None
        self._ours: Connection | None = None
        self._asked = False  # to stop

    def run(self, choice: Choice, seed: int) -> Run:
        """Make a run there."""
        try:
            connection = self._connection()
            connection.send((choice, seed))
            found = connection.recv()
        except (OSError, EOFError):
            self._process, asked = None, self._asked
            self._asked = False
            if asked:
                raise Stopped from None
            raise InputError(
                "The process that makes the runs ended by itself.",
                remedy="The computer may be short of memory: choose a smaller stand-in.",
            ) from None
        if isinstance(found, Run):
            return found
        raise InputError(found)

    def stop(self) -> None:
        """End the process: the next run starts another."""
        process = self._process
        if process is not None:
            self._asked = True
            process.terminate()
            process.join()

    def _connection(self) -> Connection:
        if self._process is None or self._ours is None:
            self._ours, theirs = self._context.Pipe()
            process = self._context.Process(
                target=_serve, args=(theirs, self._make), name="gridveil-plan", daemon=True
            )
            process.start()
            theirs.close()
            self._process = process
        return self._ours


def _serve(connection: Connection, make: MakeKinds) -> None:
    """Make the runs that are asked for until nobody is there to ask."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the server, which ends this one
    from gridveil.planning.stand_in_runs import Sessions

    sessions = Sessions({kind.name: kind for kind in make()})
    with suppress(EOFError, OSError):
        while True:
            choice, seed = connection.recv()
            try:
                connection.send(sessions.run(choice, seed))
            except GridveilError as error:
                connection.send(str(error))
