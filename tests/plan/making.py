"""What the tests of the page ask."""

import time

from support.sizes import PATIENCE

from gridveil.planning.planner import Planner
from gridveil.planning.stand_in_runs import Sessions

CHOICE = {
    "kind": "wind",
    "private": [{"name": "power", "alpha": "15"}],
    "method": "laplace",
    "epsilon": "1",
    "size": "200",
    "dataset": "north farm",
    "fields": {
        "file": "scada.csv",
        "speed": "wind",
        "power": "power_kw",
        "capacity": "2750",
        "output": "out",
        "time": "",
        "turbine": "",
        "decimal": "",
        "encoding": "",
        "unit": "",
        "missing": "",
    },
}


class Here:
    """A worker in this process."""

    def __init__(self, make):
        self._sessions = Sessions({kind.name: kind for kind in make()})

    def run(self, choice, seed):
        return self._sessions.run(choice, seed)

    def stop(self):
        """A run here ends by itself."""


def planner_of(make, ledger):
    """A planner whose runs are made in this process."""
    return Planner(make, ledger, Here(make))


def asked(**changes):
    """The question of the page, with some of it changed."""
    fields = {**CHOICE["fields"], **changes.pop("fields", {})}
    return {**CHOICE, **changes, "fields": fields}


def settled(planner, question):
    """The answer when all runs are made."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        answer = planner.answer(question)
        if answer["accuracy"]["done"]:
            return answer
        time.sleep(0.05)
    raise AssertionError("the runs never end")
