"""Examples in docstrings give what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

import gridveil

ROOT = Path(gridveil.__file__).parent
EXAMPLES = sorted(path for path in ROOT.rglob("*.py") if ">>> " in path.read_text())


def test_there_are_examples():
    assert len(EXAMPLES) > 20


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_of_a_module(path):
    name = ".".join(["gridveil", *path.relative_to(ROOT).with_suffix("").parts])
    failed, tried = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert tried
    assert not failed
