"""Noise reaches a release command from Python, by click's context, and in no other way."""

import inspect
import json

import pytest
from typer.testing import CliRunner

from gridveil.auditing.transcript import Recorder
from gridveil.auditing.triangle_network import triangle_text
from gridveil.cli.commands import app
from gridveil.cli.grid_release import release as grid_release
from gridveil.cli.release_orders import Listening
from gridveil.cli.wind import release as wind_release

ARGUMENTS = {
    "wind": ["--speed", "speed", "--power", "power", "--capacity", "100", "--alpha", "10%"],
    "grid": ["--parameter", "load", "--alpha", "10"],
}


def typed_for(kind, folder):
    """The words of a release command, without a folder for the bundle."""
    file = folder / ("records.csv" if kind == "wind" else "triangle.m")
    file.write_text("speed,power\n3,10\n5,20\n" if kind == "wind" else triangle_text({}))
    typed = [kind, "release", file, *ARGUMENTS[kind], "--method", "laplace"]
    return [*typed, "--dataset", "data", "--ledger", folder / "ledger.sqlite"]


def release(kind, folder, *, dry=False, as_json=True, **settings):
    typed = [*typed_for(kind, folder), "-o", folder / "out"]
    typed += ["--json"] * as_json + ["--dry-run"] * dry
    done = CliRunner().invoke(app, list(map(str, typed)), **settings)
    assert done.exit_code == 0, done.output
    return done.stdout if dry else json.loads(done.stdout)["statement"]


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_an_audit_hears_all_the_noise_of_a_command(kind, tmp_path):
    recorder = Recorder()
    statement = release(kind, tmp_path, obj=Listening(recorder))
    assert statement["dp_valid"]
    assert len(recorder.transcript) == len(statement["mechanisms"])


@pytest.mark.parametrize("kind", ARGUMENTS)
@pytest.mark.parametrize("obj", [None, Recorder(), {"noise": Recorder()}])
def test_nothing_else_in_the_context_is_taken_for_noise(kind, obj, tmp_path):
    assert release(kind, tmp_path, obj=obj)["dp_valid"]
    source = obj["noise"] if isinstance(obj, dict) else obj
    assert source is None or source.transcript == []


@pytest.mark.parametrize("command", [wind_release, grid_release])
def test_no_option_speaks_of_noise(command):
    assert [name for name in inspect.signature(command).parameters if "noise" in name] == []


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("kind", ARGUMENTS)
def test_a_dry_run_shows_the_plan_and_leaves_nothing(kind, as_json, tmp_path):
    recorder = Recorder()
    shown = release(kind, tmp_path, dry=True, as_json=as_json, obj=Listening(recorder))
    assert recorder.transcript == []
    assert {path.name for path in tmp_path.iterdir()} <= {"records.csv", "triangle.m"}
    if as_json:
        plan = json.loads(shown)["plan"]
        assert plan["epsilon"] == "1"
        assert [one["query"][:5] for one in plan["asked"]] == ["every"]
    else:
        assert "noise of scale" in shown
        assert "Charges: epsilon 1 for one of" in shown
        assert "by a factor of at most 2.72" in shown
        assert "Nothing was opened, charged or written." in shown


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_a_dry_run_needs_no_folder(kind, tmp_path):
    typed = [str(word) for word in typed_for(kind, tmp_path)]
    planned = CliRunner().invoke(app, [*typed, "--json", "--dry-run"])
    assert planned.stdout == release(kind, tmp_path, dry=True)
    refused = CliRunner().invoke(app, typed)
    assert refused.exit_code == 2
    assert "No folder was named for the release. Add -o FOLDER" in " ".join(refused.stderr.split())
    assert not (tmp_path / "ledger.sqlite").exists()
