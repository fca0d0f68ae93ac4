"""No command writes over what it reads, or over anything but an older file of the same kind."""

import os
import shutil

import pytest
from pyarrow import csv
from typer.testing import CliRunner

from gridveil.cli import audit
from gridveil.cli.commands import app
from gridveil.cli.output_files import VERDICTS, check_output
from gridveil.grid import cases
from gridveil.wind.demo import demo_records

W = "--speed wind_speed --power power --capacity 2750 --alpha 15% --method laplace --dataset t"

# What is asked, and words of the refusal.
REFUSED = [
    ("grid evaluate made --against case.m --report case.m", "is an input"),
    ("grid evaluate made --against case.m --unseen m.parquet --report m.parquet", "is an input"),
    ("grid evaluate made --against case.m --report other.m", "ending in .html"),
    ("grid evaluate made --against case.m --report words.html", "is not an HTML report"),
    ("wind evaluate made --against t.csv --report t.csv", "is an input"),
    ("wind evaluate made --against t.csv --report link.html", "is an input"),
    ("wind evaluate made --against t.csv --report hard.html", "is an input"),
    ("wind evaluate made --against t.csv --report sub/../t.csv", "is an input"),
    ("grid population case.m -o case.m", "is an input"),
    ("grid population rts96 -o case.m", "ending in .parquet"),
    ("grid population rts96 -o words.parquet", "is not a Parquet file"),
    ("grid population rts96 -o made/models.parquet", "is inside the bundle"),
    ("grid solve case.m -o case.m", "is an input"),
    ("grid solve case.m --plot case.m", "is an input"),
    ("grid solve case.m --population m.parquet -o m.parquet", "is an input"),
    ("grid solve rts96 --plot words.png", "is not a picture"),
    ("audit --fast --json net.json", "is not a file of verdicts"),
    ("audit --fast --json t.csv", "ending in .json"),
    (f"wind release made/in.csv {W} -o made --force", "nothing but the bundle"),
    (f"wind release t.csv {W} -o out --ledger out/ledger.sqlite", "nothing but the bundle"),
    ("grid release made/case.m --alpha 30 -o made --force", "nothing but the bundle"),
    (
        "grid release rts96 --alpha 30 -o made --force --population made/case.m",
        "nothing but the bundle",
    ),
    ("demo -o own", "is not the demo's"),
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outputs") / "owner"
    folder.mkdir()
    csv.write_csv(demo_records(60), folder / "t.csv")
    cases.rts96().write(folder / "case.m")
    shutil.copy(folder / "case.m", folder / "other.m")
    for name in ("words.html", "words.parquet", "words.png"):
        (folder / name).write_text("words")
    (folder / "net.json").write_text('{\n  "_module": "pandapower.auxiliary"\n}\n')
    (folder / "link.html").symlink_to(folder / "t.csv")
    os.link(folder / "t.csv", folder / "hard.html")
    (folder / "sub").mkdir()
    (folder / "own").mkdir()
    (folder / "own" / "turbine.csv").write_text("mine")
    assert run(folder, "grid population rts96 --size 2 -o m.parquet").exit_code == 0
    assert run(folder, f"wind release t.csv {W} -o made").exit_code == 0
    shutil.copy(folder / "t.csv", folder / "made" / "in.csv")
    shutil.copy(folder / "case.m", folder / "made")
    return folder


def run(folder, command):
    here = os.getcwd()
    os.chdir(folder)
    try:
        environment = {"GRIDVEIL_LEDGER": str(folder / "ledger.sqlite")}
        return CliRunner().invoke(app, command.split(), env=environment)
    finally:
        os.chdir(here)


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(("command", "words"), REFUSED, ids=[row[0] for row in REFUSED])
def test_nothing_of_the_owners_is_written_over(prepared, command, words):
    before = contents(prepared)
    result = run(prepared, command)
    assert result.exit_code == 2, result.output
    assert words in " ".join(result.stderr.split())
    assert contents(prepared) == before


def test_an_older_file_of_the_same_kind_is_replaced(prepared, tmp_path):
    shutil.copy(prepared / "case.m", tmp_path)
    for command in (
        "grid population case.m --size 2 -o models.parquet",
        "grid population case.m --size 3 -o models.parquet",
        "grid solve case.m --population models.parquet -o costs.parquet --plot one.svg -q",
        "grid solve case.m -o costs.parquet --plot one.svg -q",
        "grid solve case.m --plot one.png -q",
        "grid solve case.m --plot one.png -q",
    ):
        result = run(tmp_path, command)
        assert result.exit_code == 0, result.output


def test_a_report_is_replaced(prepared, tmp_path):
    bundle = shutil.copytree(prepared / "made", tmp_path / "made")
    for name in ("in.csv", "case.m"):
        (bundle / name).unlink()
    (tmp_path / "owner.html").touch()
    for _ in range(2):
        command = f"wind evaluate made --against {prepared / 't.csv'} --report owner.html"
        result = run(tmp_path, command)
        assert result.exit_code == 0, result.output


def test_verdicts_are_replaced(tmp_path):
    path = tmp_path / "verdicts.json"
    path.write_text(audit._as_json([], fast=True))
    check_output(path, VERDICTS)


@pytest.mark.parametrize("name", ["x" * 300 + ".parquet", "~nobody-here/x.parquet", "no/x.parquet"])
def test_names_that_can_not_be_used_are_refused(prepared, name):
    before = contents(prepared)
    result = run(prepared, f"grid population rts96 --size 2 -o {name}")
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ")
    assert contents(prepared) == before
