"""Documentation and notebooks use public names alone."""

import ast
import importlib
import re
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
from docs.blocks import blocks
from docs.test_examples import NOTEBOOKS
from docs.test_pages import PAGES, name

import gridveil

ROOT = Path(gridveil.__file__).parents[2]
FILES = [path for part in ("src", "tests", "benchmarks") for path in (ROOT / part).rglob("*.py")]
PUBLIC = ("auditing", "errors", "grid", "privacy", "studies", "wind")


def public_names(package: str) -> set[str]:
    module = importlib.import_module(package)
    return set(getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")]))


def internal(code: str) -> list[str]:
    """What a piece of code takes from the package that is not public."""
    allowed = {"gridveil", *(f"gridveil.{one}" for one in PUBLIC)}
    found, aliases = [], set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gridveil":
            names = {one.name for one in node.names}
            if node.module not in allowed:
                found.append(node.module)
            else:
                found += sorted(names - public_names(node.module))
        elif isinstance(node, ast.Import):
            ours = [one for one in node.names if one.name.split(".")[0] == "gridveil"]
            found += [one.name for one in ours if one.name not in allowed]
            aliases |= {one.asname or "gridveil" for one in ours}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute):
            found += _attributes(node, aliases | {"gv"})
    return found


def _attributes(node: ast.Attribute, aliases: set[str]) -> list[str]:
    """The part of ``gv.grid.io.x`` that no package lists, if there is one."""
    path, inner = [], node
    while isinstance(inner, ast.Attribute):
        path.insert(0, inner.attr)
        inner = inner.value
    if not (isinstance(inner, ast.Name) and inner.id in aliases):
        return []
    here: object = gridveil
    for one in path:
        if not isinstance(here, ModuleType):
            return []
        if one not in public_names(here.__name__):
            return [f"{here.__name__}.{one}"]
        here = getattr(here, one)
    return []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pages_use_public_names(page):
    text = page.read_text(encoding="utf-8")
    for block in blocks(text):
        if block.language == "python":
            assert internal(block.text) == [], f"line {block.line}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_use_public_names(path):
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            assert internal(cell.source) == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from gridveil.wind.row_blocks import ArrayRows", ["gridveil.wind.row_blocks"]),
        ("from gridveil.wind import Fit", ["Fit"]),
        ("import gridveil.report", ["gridveil.report"]),
        ("import gridveil as gv\ngv.grid.io.released_columns", ["gridveil.grid.io"]),
        ("import gridveil as gv\ngv.release", ["gridveil.release"]),
        ("import gridveil as gv\ngv.grid.cases.rts96().branches.capacity", []),
    ],
)
def test_an_internal_name_is_noticed(code, expected):
    assert set(internal(code)) == set(expected)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "SECURITY.md"], ids=lambda path: path.name)
def test_modules_that_a_page_names_are_there(page):
    """Pages name modules by their whole path or by its end."""
    places = [f"/{path.relative_to(ROOT).as_posix()}" for path in FILES]
    for found in re.findall(r"`([\w/]+\.py)`", page.read_text(encoding="utf-8")):
        assert any(place.endswith(f"/{found}") for place in places), found


@pytest.mark.parametrize("package", ["gridveil", *(f"gridveil.{one}" for one in PUBLIC)])
def test_every_public_name_is_there(package):
    module = importlib.import_module(package)
    assert all(getattr(module, one) is not None for one in public_names(package))
    assert public_names(package) <= {*dir(module), *getattr(module, "__all__", ())}
