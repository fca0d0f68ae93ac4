"""The import rules, who may open a seal, and who may draw random numbers."""

import ast
from pathlib import Path

import pytest

import gridveil

ROOT = Path(gridveil.__file__).parent
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))

MAY_UNSEAL = {
    "privacy/sealed.py",
    "privacy/mechanisms.py",
    "wind/evaluation.py",  # the owner's comparison, which is never published
}
MAY_DRAW = {
    "privacy/seeded.py",
    "wind/demo.py",
    "grid/population.py",
    "grid/congestion.py",  # about released values, by a seed that hides nothing
    "studies/published_grid.py",  # what the published code draws, on public data only
    "studies/published_wind.py",
}

# Data walks one way. A package may import itself, and what is listed for it.
MAY_IMPORT = {
    "errors": set(),
    "cluster": {"errors"},
    "privacy": {"errors"},
    "bundle": {"errors", "privacy"},
    "report": {"errors", "privacy"},
    "verification": {"errors", "privacy", "bundle"},
    "release": {"errors", "privacy", "bundle", "report"},
    "wind": {"errors", "privacy", "bundle", "report", "release"},
    "grid": {"errors", "privacy", "bundle", "report", "release"},
}
EVERYTHING = {"audits", "cli", "plan", "studies", "__init__"}


def tree(module: str) -> ast.Module:
    return ast.parse((ROOT / module).read_text(encoding="utf-8"))


def package(module: str) -> str:
    return module.removesuffix(".py").split("/")[0]


def imported(module: str) -> set[str]:
    found = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} uses a relative import"
            if node.module == "gridveil":
                found |= {alias.name for alias in node.names}
            elif (node.module or "").startswith("gridveil."):
                found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("gridveil.")}
    return found - {"__version__"}


def names(module: str) -> set[str]:
    nodes = list(ast.walk(tree(module)))
    return {n.id for n in nodes if isinstance(n, ast.Name)} | {
        n.attr for n in nodes if isinstance(n, ast.Attribute)
    }


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module):
    here = package(module)
    if here not in EVERYTHING:
        assert imported(module) - {here} <= MAY_IMPORT[here]


def test_only_mechanisms_open_a_seal():
    opening = {m for m in MODULES if names(m) & {"unseal", "_Sealed__contents"}}
    assert opening == MAY_UNSEAL


def test_only_the_seeded_source_draws_random_numbers():
    drawing = {m for m in MODULES if names(m) & {"default_rng", "random", "RandomState"}}
    assert drawing <= MAY_DRAW


def test_only_the_study_command_reaches_studies():
    """The published code's noise is repeated there: no release may come near it."""
    reaching = {m for m in MODULES if "studies" in imported(m) and package(m) != "studies"}
    assert reaching == {"cli/study.py", "cli/frontier.py"}


def test_modules_fit_on_a_few_screens():
    long = {m for m in MODULES if len((ROOT / m).read_text().splitlines()) > 400}
    assert long == set()


@pytest.mark.parametrize("module", MODULES)
def test_nothing_that_ships_is_patched(module):
    """Noise and accounts are passed in: what an audit hears is the code that releases."""
    assert "unittest" not in (ROOT / module).read_text(encoding="utf-8")
