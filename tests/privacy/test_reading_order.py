"""The reading order for reviewers: every file is in it, with about the lines that it has."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from gridveil import privacy

ROOT = Path(privacy.__file__).parent
SAID = {name: int(lines) for name, lines in re.findall(r"`([a-z_.]+)` \((\d+)\)", privacy.__doc__)}
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in ROOT.rglob("*.py")
    if path.name != "__init__.py"
}


def test_every_file_is_in_the_reading_order():
    assert set(SAID) == set(FILES)


@pytest.mark.parametrize("name", SAID)
def test_a_file_has_about_the_lines_that_the_reading_order_says(name):
    lines = len(FILES[name].read_text(encoding="utf-8").splitlines())
    assert abs(lines - SAID[name]) <= 0.1 * SAID[name]


def test_what_the_guarantee_rests_on_reads_in_an_hour():
    """Some 40 lines a minute, of which six in ten are code."""
    hour = privacy.__doc__.partition("**Keeping it.**")[0]
    lines = sum(int(one) for one in re.findall(r"` \((\d+)\)", hour))
    assert 1000 < lines <= 2020


def imports(path):
    """The modules of the package that a file imports, by their names in it."""
    found = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom)]
    inside = "gridveil.privacy"
    named = {f"{n.module}.{alias.name}" for n in found if n.module == inside for alias in n.names}
    named |= {n.module for n in found if n.module.startswith(f"{inside}.")}
    return {name.removeprefix(f"{inside}.") for name in named}


def test_imports_go_one_way():
    graph = {name: imports(path) for name, path in FILES.items()}
    graph["ledger"] = imports(ROOT / "ledger" / "__init__.py")
    assert graph["mechanisms"] >= {"account", "sealed"}
    TopologicalSorter(graph).prepare()
    with pytest.raises(CycleError):  # the control: account and mechanisms both ways
        TopologicalSorter({**graph, "account": {*graph["account"], "mechanisms"}}).prepare()
