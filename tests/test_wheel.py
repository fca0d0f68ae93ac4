"""The wheel by itself: built, and run beside nothing but what it declares that it needs."""

import os
import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import gridveil

ROOT = Path(__file__).parents[1]
_NAME = re.compile(r"[A-Za-z0-9._-]+")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "-w", str(folder), str(ROOT)], check=True)
    (built,) = folder.glob("gridveil-*.whl")
    return built


def needed(name, found):
    """A distribution and all that it needs, without extras, by name."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in found:
        return found
    try:
        found[key] = metadata.distribution(key)
    except metadata.PackageNotFoundError:
        return found  # for another platform or version of Python
    for line in found[key].requires or ():
        if "extra ==" not in line:
            needed(_NAME.match(line)[0], found)
    return found


def farm(folder):
    """Links to the modules of what GridVeil needs, and to nothing else that is installed here."""
    for name, distribution in needed("gridveil", {}).items():
        if name == "gridveil":
            continue
        tops = {path.parts[0] for path in distribution.files or () if path.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            place = folder / top
            source = Path(str(distribution.locate_file(top)))
            if source.exists() and not place.exists():
                place.symlink_to(source)


def test_the_wheel_has_all_that_the_package_reads(wheel):
    package = Path(gridveil.__file__).parent
    data = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert data
    held = set(zipfile.ZipFile(wheel).namelist())
    assert data <= held
    assert not [name for name in held if name.startswith(("tests", "docs", "benchmarks"))]


def test_it_runs_without_the_development_tools(wheel, tmp_path):
    alone = tmp_path / "alone"
    alone.mkdir()
    farm(alone)
    zipfile.ZipFile(wheel).extractall(alone)
    assert not (alone / "pytest").exists()
    assert not (alone / "cvxpy").exists()
    run = "from gridveil.cli.main import run; import gridveil; print(gridveil.__file__); run()"
    # -S leaves out everything that is installed; -I everything of this shell.
    start = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import sys; sys.path.insert(0, {str(alone)!r}); {run}",
    ]
    folder = tmp_path / "demo"
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    for words in (["demo", "-o", str(folder), "--quiet"], ["verify", str(folder / "wind")]):
        done = subprocess.run(
            [*start, *words], capture_output=True, text=True, env=env, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        assert str(alone) in done.stdout
