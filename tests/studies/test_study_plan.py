"""Runs are fixed by their cells and numbers."""

import pickle

import pytest
from studies.toy import Toy

from gridveil.errors import InputError
from gridveil.studies import Plan
from gridveil.studies.study_plan import run_seed


def test_every_run_has_a_seed_of_its_own():
    runs = Plan(Toy(), 50).all_runs()
    assert len({run.seed for run in runs}) == len({run.key for run in runs}) == 200


def test_a_seed_does_not_depend_on_the_other_cells_nor_on_how_many_runs_there_are():
    few = {run.key: run.seed for run in Plan(Toy(), 2).all_runs()}
    many = {run.key: run.seed for run in Plan(Toy(), 9).all_runs()}
    assert few.items() <= many.items()
    alone = Plan(Toy(methods=("that",)), 2).all_runs()
    assert {run.seed for run in alone} <= set(few.values())


@pytest.mark.parametrize(
    "other",
    [(1, {"alpha": 0.1}, 0), (0, {"alpha": 0.2}, 0), (0, {"alpha": 0.1}, 1), (0, {"beta": 0.1}, 0)],
)
def test_a_seed_depends_on_all_that_a_run_is(other):
    assert run_seed(*other) != run_seed(0, {"alpha": 0.1}, 0)


def test_a_study_with_its_settings_survives_pickling():
    plan = Plan(Toy(scale=2.0), 3, seed=4)
    assert pickle.loads(pickle.dumps(plan)).header() == plan.header()


@pytest.mark.parametrize("bad", [{"runs": 0}, {"runs": 3, "seed": -1}])
def test_nonsense_is_refused(bad):
    with pytest.raises(InputError):
        Plan(Toy(), **bad)
