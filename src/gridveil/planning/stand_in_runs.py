"""Seeded releases of the stand-in, made one after the other in the background and kept.

What the page asks for last comes first: a run that nobody wants any more is stopped. Results are
kept by choice, so that going back to one shows them at once.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gridveil.errors import GridveilError, InputError, NotPrivateWarning
from gridveil.planning.child_process import Stopped, Worker
from gridveil.planning.choice import Choice
from gridveil.planning.release_kind import Kind, Run, Session

_KEPT = 400  # choices
_PATIENCE = 1.0  # seconds that a run which nobody wants any more may take to end by itself


class Sessions:
    """Runs of any choice; what the last choice's runs share is kept, since they come in rows."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds
        self._last: tuple[Choice, Session] | None = None

    def run(self, choice: Choice, seed: int) -> Run:
        """Make a seeded release of the stand-in, and measure it.

        Raises
        ------
        GridveilError
            With what is wrong, whatever it is: the data is public.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotPrivateWarning)
                if self._last is None or self._last[0] != choice:
                    self._last = choice, self._kinds[choice.kind].session(choice)
                return self._last[1].run(seed)
        except GridveilError:
            raise
        except Exception as error:  # noqa: BLE001 - the page says so; the data is public
            what = f"The stand-in could not be released ({type(error).__name__}: {error})."
            raise InputError(what) from None


@dataclass
class Results:
    """The runs of one choice so far, or why there can be none."""

    runs: list[Run] = field(default_factory=list)
    problem: str | None = None

    def complete(self, runs: int) -> bool:
        """Whether there are so many runs, or there can be none."""
        return self.problem is not None or len(self.runs) >= runs

    def values(self, metric: str) -> list[float]:
        """One number per run, for those in which it could be measured."""
        return [run.values[metric] for run in self.runs if metric in run.values]


class Runner:
    """A thread that has runs made until all that are wanted are there.

    Parameters
    ----------
    worker
        What makes them.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._results: dict[Choice, Results] = {}
        self._wanted: list[tuple[Choice, int]] = []
        self._current: tuple[Choice, float] | None = None  # and when its run began
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="gridveil-plan", daemon=True)
        self._thread.start()

    def want(self, wanted: Sequence[tuple[Choice, int]]) -> list[Results]:
        """Ask for so many runs of each choice, first things first; gives what is there now."""
        with self._changed:
            self._wanted = list(wanted)
            self._changed.notify_all()
            if self._current is not None:
                choice, begun = self._current
                unwanted = choice not in (one for one, _ in wanted)
                if unwanted and time.monotonic() - begun > _PATIENCE:
                    self._worker.stop()
            found = [self._results.get(choice, Results()) for choice, _ in wanted]
            return [Results(list(one.runs), one.problem) for one in found]

    def close(self) -> None:
        """End the run under way, and the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        while self._thread.is_alive():
            self._worker.stop()
            self._thread.join(0.1)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._next() is not None)
                choice = self._next()
                if self._closed or choice is None:
                    return
                self._current = choice, time.monotonic()
                seed = len(self._results.get(choice, Results()).runs)
            run, problem = None, None
            try:
                run = self._worker.run(choice, seed)
            except GridveilError as error:
                problem = str(error)
            except Stopped:
                continue
            with self._changed:
                self._current = None
                self._keep(choice, run, problem)
                self._changed.notify_all()

    def _next(self) -> Choice | None:
        for choice, runs in self._wanted:
            if not self._results.get(choice, Results()).complete(runs):
                return choice
        return None

    def _keep(self, choice: Choice, run: Run | None, problem: str | None) -> None:
        found = self._results.setdefault(choice, Results())
        found.problem = problem
        if run is not None:
            found.runs.append(run)
        while len(self._results) > _KEPT:
            del self._results[next(iter(self._results))]
