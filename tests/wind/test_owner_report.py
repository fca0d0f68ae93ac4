"""The owner's report: complete, marked, and never inside a bundle."""

import shutil
import stat

import pytest
from pyarrow import csv
from typer.testing import CliRunner

from gridveil.cli.commands import app
from gridveil.errors import InputError
from gridveil.release.bundle import OWNER_MARK
from gridveil.release.verification import verify_bundle
from gridveil.wind import read_records, release
from gridveil.wind.demo import CAPACITY, demo_records
from gridveil.wind.evaluation import evaluate


@pytest.fixture
def bundle(ledger, tmp_path):
    csv.write_csv(demo_records(200), tmp_path / "real.csv")
    records = read_records(
        tmp_path / "real.csv", speed="wind_speed", power="power", capacity=CAPACITY
    )
    made = release(records, epsilon=1, alpha="15%", method="laplace", dataset="farm", ledger=ledger)
    return made.write(tmp_path / "out")


def test_it_is_marked_complete_and_for_the_owners_eyes(bundle, tmp_path):
    path = tmp_path / "owner.html"
    result = CliRunner().invoke(
        app,
        ["wind", "evaluate", str(bundle), "--against", str(tmp_path / "real.csv")]
        + ["--report", str(path)],
    )
    assert result.exit_code == 0, result.output
    assert str(path) in result.stdout
    page = path.read_text()
    found = evaluate(bundle, tmp_path / "real.csv").turbines[0]
    assert page.count(OWNER_MARK) >= 3
    assert f"{found.released_loss:.4g} ({found.real_loss:.4g})" in page
    assert "regression on real records" in page
    assert "must not decide what is published" in page
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_a_notebook_shows_of_it_is_its_mark_and_no_figure(bundle, tmp_path):
    found = evaluate(bundle, tmp_path / "real.csv")
    assert repr(found) == str(found) == f"<{OWNER_MARK}: evaluation of 200 records, laplace>"


def test_records_that_are_sealed_are_no_source(bundle):
    records = read_records(demo_records(200), speed="wind_speed", power="power", capacity=CAPACITY)
    with pytest.raises(InputError, match=r"^Expected a source of records, got Records.") as caught:
        evaluate(bundle, records)
    assert "that was given to read_records" in caught.value.remedy


def test_an_old_file_is_closed_to_others_before_it_is_written(bundle, tmp_path):
    path = tmp_path / "owner.html"
    path.write_text("old")
    path.chmod(0o644)
    evaluate(bundle, tmp_path / "real.csv").write_report(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "old" not in path.read_text()[:10]


@pytest.mark.parametrize("place", ["out/owner.html", "out/deep/owner.html", "link/owner.html"])
def test_it_is_refused_inside_a_bundle(bundle, tmp_path, place):
    (bundle / "deep").mkdir()
    (tmp_path / "link").symlink_to(bundle)
    found = evaluate(bundle, tmp_path / "real.csv")
    with pytest.raises(InputError, match="inside the bundle"):
        found.write_report(tmp_path / place)
    assert not (tmp_path / place).exists()


def test_a_bundle_with_it_fails_its_check(bundle, tmp_path):
    path = evaluate(bundle, tmp_path / "real.csv").write_report(tmp_path / "owner.html")
    assert all(finding.ok for finding in verify_bundle(bundle))
    shutil.copy(path, bundle / "owner.html")
    failed = {finding.check for finding in verify_bundle(bundle) if not finding.ok}
    assert "owner" in failed


def test_the_public_report_has_no_comparison(bundle):
    page = (bundle / "report.html").read_text()
    assert OWNER_MARK not in page
    assert "regression on real records" not in page


def test_the_public_report_has_ramps_over_minutes(tmp_path, ledger):
    table = demo_records(50).to_pandas()
    table["when"] = [
        f"2024-01-01 {minute // 60:02}:{minute % 60:02}" for minute in range(0, 500, 10)
    ]
    columns = {"speed": "wind_speed", "power": "power", "time": "when"}
    records = read_records(table, **columns, capacity=CAPACITY)
    made = release(records, epsilon=1, alpha="15%", dataset="timed", ledger=ledger)
    assert "Ramps over 10 minutes;" in (made.write(tmp_path / "timed") / "report.html").read_text()
