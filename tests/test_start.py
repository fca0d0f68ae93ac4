"""What starts at once stays so: the heavy modules are loaded by what needs them, and no sooner."""

import subprocess
import sys

import pytest

HEAVY = {"numpy", "scipy", "pandas", "pyarrow", "opendp", "highspy", "clarabel", "matplotlib"}
RUN = "from gridveil.cli.main import app; app({!r}, standalone_mode=False)"


def loaded(code):
    """The modules that are there after some code ran in a fresh interpreter."""
    tell = "\nimport sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code + tell], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "code",
    ["import gridveil", RUN.format([]), RUN.format(["--help"]), RUN.format(["plan", "--help"])],
)
def test_nothing_heavy_is_loaded_at_the_start(code):
    assert loaded(code) & HEAVY == set()


def test_the_help_loads_no_command():
    commands = {name for name in loaded(RUN.format(["--help"])) if name.startswith("gridveil.cli.")}
    assert commands == {"gridveil.cli.main", "gridveil.cli.console", "gridveil.cli.table"}


def test_a_part_is_loaded_when_it_is_used():
    assert {"numpy", "pyarrow"} <= loaded("import gridveil as gv; gv.wind")
    assert "gridveil.grid" in loaded("import gridveil as gv; gv.grid")
