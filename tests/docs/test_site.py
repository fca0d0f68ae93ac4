"""The site builds without a warning, says all there is, and needs nothing from elsewhere."""

import ast
import importlib
import os
import re
import subprocess
import sys

import nbformat
import pytest
from docs.blocks import blocks
from docs.running import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
pytest.importorskip("mkdocs", reason="the documentation's tools are not installed: .[docs]")


def test_the_site_builds_and_is_whole(tmp_path):
    """One build for all checks: it takes some seconds."""
    build(tmp_path)
    loads_nothing_from_elsewhere(tmp_path)
    draws_its_formulas(tmp_path)
    has_every_public_name(tmp_path, "wind")
    has_every_public_name(tmp_path, "grid")
    has_every_name_that_pages_and_notebooks_use(tmp_path)
    has_every_command(tmp_path)
    leads_to_every_page(tmp_path)


def build(site):
    """A strict build: links, anchors and docstrings that are wrong are errors."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", site],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def page(site, name):
    return (site / name).read_text(encoding="utf-8")


def loads_nothing_from_elsewhere(site):
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//', text), path
        assert not re.findall(r'<link[^>]+stylesheet[^>]+href="(?:https?:)?//', text), path


def draws_its_formulas(site):
    for path in (site / "maths").rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert "<math" in text
        assert "$<code>" not in text
        assert "<merror" not in text


def has_every_public_name(site, part):
    module = importlib.import_module(f"gridveil.{part}")
    text = page(site, f"reference/{part}.html")
    # A function that is called like its module is listed under its full path.
    paths = {name: f"{part}.{name}" for name in module.__all__ if name != "cases"}
    paths["release"] = f"{part}.release.release"
    paths["plan"] = f"{part}.release.plan"
    assert [path for path in paths.values() if f'id="gridveil.{path}"' not in text] == []


# Pages of proofs look inside: what they import is nobody's way to use the library. Studies have a
# page of their own.
INSIDE = ("docs/maths/", "docs/studies")
MODULES = {"gridveil.auditing.attacks"}


def has_every_name_that_pages_and_notebooks_use(site):
    """What a reader imports is explained somewhere in the reference."""
    explained = "".join(path.read_text(encoding="utf-8") for path in (site / "reference").iterdir())
    pages = {path: path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")}
    codes = [b.text for path, text in pages.items() if not inside(path) for b in blocks(text)]
    codes += [cell.source for path in NOTEBOOKS for cell in code_cells(path)]
    used = {name for code in codes for name in imported(code)} - MODULES
    assert len(used) > 15
    assert [name for name in sorted(used) if f'id="{name}"' not in explained] == []


def inside(path):
    return path.relative_to(ROOT).as_posix().startswith(INSIDE)


def code_cells(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def imported(code):
    """The functions and classes of ours that some code imports by name."""
    try:
        tree = ast.parse(code)
    except SyntaxError:  # no Python
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gridveil"):
            yield from (f"{node.module}.{one.name}" for one in node.names if not one.name.isupper())


def has_every_command(site):
    import typer

    from gridveil.cli.commands import app

    text = page(site, "reference/commands.html")
    for name, command in typer.main.get_command(app).commands.items():
        assert f'id="gridveil-{name}"' in text
        for part in getattr(command, "commands", {}):
            assert f'id="gridveil-{name}-{part}"' in text


def leads_to_every_page(site):
    """Pages that no menu leads to are pages that nobody reads."""
    index = page(site, "index.html")
    for path in site.rglob("*.html"):
        name = path.relative_to(site).as_posix()
        assert name == "404.html" or f'href="{name}"' in index, name
