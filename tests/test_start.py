"""What starts at once stays so: the heavy modules are loaded by what needs them, and no sooner."""

import subprocess
import sys

import pytest

import gridveil

LIGHT = {"typer", "click", "rich", "gridveil.cli.commands"}  # what the greeting can do without
HEAVY = {"numpy", "scipy", "pandas", "pyarrow", "opendp", "highspy", "clarabel", "matplotlib"}
SELDOM = {"matplotlib", "jinja2", "opendp"} | {
    f"scipy.{part}" for part in ("signal", "stats", "interpolate", "optimize", "spatial")
}
RUN = "from gridveil.cli.commands import app; app({!r}, standalone_mode=False)"
GREET = "import sys; sys.argv[1:] = []; from gridveil.cli.main import run; run()"


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
    names = ("main", "commands", "console")
    assert commands == {f"gridveil.cli.{name}" for name in names}


def test_the_greeting_loads_nothing_at_all():
    there = loaded(GREET)
    assert "gridveil.cli.main" in there
    assert there & (LIGHT | HEAVY) == set()


def test_the_module_runs_as_the_script_does():
    done = subprocess.run(
        [sys.executable, "-m", "gridveil", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"gridveil {gridveil.__version__}\n"


def test_a_part_is_loaded_when_it_is_used_and_what_it_seldom_needs_later():
    assert {"numpy", "pyarrow"} <= loaded("import gridveil as gv; gv.wind")
    assert "pandas" not in loaded("import gridveil as gv; gv.grid")
    there = loaded("import gridveil as gv; gv.wind; gv.grid")
    assert {"gridveil.grid", "gridveil.wind"} <= there
    assert there & SELDOM == set()


def test_noise_loads_no_more_of_opendp_than_it_draws_with():
    draw = "from gridveil.privacy.noise import SecureNoise as S; import numpy as np; "
    there = loaded(draw + "S().laplace(np.zeros(3, np.int64), 9); S().noisy_max(np.arange(3), 9)")
    assert "opendp" in there
    assert there & {"polars", "sklearn", "opendp.prelude"} == set()


def test_a_study_loads_what_it_needs_and_no_other_study():
    assert not {"gridveil.wind", "gridveil.grid"} & loaded("import gridveil.studies")
    assert "gridveil.grid" in loaded("from gridveil.studies import Fig4")
