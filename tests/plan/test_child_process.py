"""Runs in a process of their own: the same ones, and they can be stopped."""

import threading
import time
from dataclasses import replace
from fractions import Fraction

import pytest
from plan.making import Here
from support.sizes import PATIENCE

from gridveil.errors import InputError
from gridveil.planning.child_process import Child, Stopped
from gridveil.planning.choice import Choice
from gridveil.planning.release_kind import make_kinds
from gridveil.planning.stand_in_runs import Runner

QUICK = Choice("wind", (("power", Fraction(3, 20)),), "laplace", Fraction(1), 200)
SLOW = Choice("grid", (("load", Fraction(15)),), "paper", Fraction(1), 1000)  # minutes


@pytest.fixture(scope="module")
def child():
    made = Child(make_kinds)
    yield made
    made.stop()


def test_a_run_there_is_a_run_here(child):
    assert child.run(QUICK, 2) == Here(make_kinds).run(QUICK, 2)


def test_a_problem_comes_back_in_words(child):
    with pytest.raises(InputError, match="more than the whole range"):
        child.run(replace(QUICK, private=(("power", Fraction(2)),)), 0)


def test_a_run_can_be_stopped_and_the_next_one_works(child):
    def stop_a_little_later():
        while child._process is None:  # a stop before that would stop nothing
            time.sleep(0.01)
        time.sleep(0.5)  # mostly in its middle; at any other moment it is stopped too
        child.stop()

    threading.Thread(target=stop_a_little_later).start()
    with pytest.raises(Stopped):
        child.run(SLOW, 0)
    assert child.run(QUICK, 0)


def test_a_process_that_ends_by_itself_is_a_problem(child):
    child.run(QUICK, 0)
    child._process.kill()
    child._process.join()
    with pytest.raises(InputError, match="ended by itself"):
        child.run(QUICK, 0)
    assert child.run(QUICK, 0)


class Slow:
    """A worker whose runs of one choice end only when they are stopped."""

    def __init__(self):
        self.begun, self._stop = threading.Event(), threading.Event()

    def run(self, choice, seed):
        if choice != SLOW:
            return seed
        self.begun.set()
        assert self._stop.wait(PATIENCE)
        raise Stopped

    def stop(self):
        self._stop.set()


def test_what_nobody_wants_any_more_is_stopped(monkeypatch):
    monkeypatch.setattr("gridveil.planning.stand_in_runs._PATIENCE", 0.0)
    worker = Slow()
    runner = Runner(worker)
    try:
        runner.want([(SLOW, 5)])
        assert worker.begun.wait(PATIENCE)
        end = time.monotonic() + PATIENCE
        (found,) = runner.want([(QUICK, 3)])
        while not found.complete(3) and time.monotonic() < end:
            time.sleep(0.05)
            (found,) = runner.want([(QUICK, 3)])
        assert found.runs == [0, 1, 2]
    finally:
        runner.close()


def test_closing_stops_the_run_under_way():
    worker = Slow()
    runner = Runner(worker)
    runner.want([(SLOW, 5)])
    assert worker.begun.wait(PATIENCE)
    runner.close()
