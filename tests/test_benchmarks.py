"""Benchmarks take minutes, so the suite runs none; what they set up must still be possible."""

import importlib.util
from pathlib import Path

import pytest

from gridveil import grid

FOLDER = Path(__file__).parents[1] / "benchmarks"


def benchmark(name):
    found = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


ACCURACY = benchmark("grid_accuracy")


@pytest.mark.parametrize("name", ACCURACY.SETTINGS)
def test_every_setting_of_the_accuracy_benchmark_can_be_planned(name):
    case = ACCURACY.Case(name, 2)
    assert case.population.size == 2
    planned = grid.plan(case.network, case.population, epsilon=1, alpha=5, **case.settings)
    assert planned.problem.public.parameters == tuple(case.settings["parameter"].split(","))
