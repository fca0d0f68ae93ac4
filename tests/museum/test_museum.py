"""Every control is caught, and the same mechanism without its fault passes.

Controls draw from seeds (a few from the secure source, where a miss has a probability under 1e-9),
so a run of these tests is like any other.
"""

from pathlib import Path

import pytest

from gridveil.auditing.catalogue import AUDITS
from museum import ERROR, MUSEUM
from museum.__main__ import audits, between, fewest, table
from museum.draws import reused_seed

NAMES = [control.name for control in MUSEUM]


@pytest.mark.parametrize("control", MUSEUM, ids=NAMES)
def test_the_audit_catches(control):
    verdict = control.broken().run(fast=True, error=ERROR)
    assert verdict.broken, verdict.words
    assert verdict.words.endswith("BROKEN")


@pytest.mark.parametrize("control", MUSEUM, ids=NAMES)
def test_without_its_fault_it_passes(control):
    verdict = control.sound().run(fast=True, error=ERROR)
    assert not verdict.broken, verdict.words


def test_a_reused_seed_shows_in_no_release_alone():
    alone = reused_seed(lambda k: (k, k), joint=False).run(fast=True, error=ERROR)
    assert not alone.broken, alone.words


def test_names_are_unique():
    assert len(set(NAMES)) == len(NAMES)


def test_the_page_shows_every_audit_and_every_control():
    # Written by `make audit`: a new audit or control needs a new run.
    page = (Path(__file__).parents[2] / "docs/privacy/audit.md").read_text(encoding="utf-8")
    assert [name for name in [*AUDITS, *NAMES] if f"| {name} |" not in page] == []


def test_tables_are_written_between_their_marks():
    page = "a\n<!-- x -->\nold\n<!-- end of x -->\nb"
    new = between(page, "x", table(("h",), [("r",)]))
    assert new == "a\n<!-- x -->\n\n| h |\n| --- |\n| r |\n\n<!-- end of x -->\nb"
    assert between(new, "x", table(("h",), [("r",)])) == new
    with pytest.raises(SystemExit, match="no place for y"):
        between(page, "y", "")


def test_the_page_says_what_was_run():
    verdict = {
        "name": "x", "check": "ratio", "claimed": 1.0, "proved": 0.5, "samples": 2_000, "ran": True
    }  # fmt: skip
    body = {"setting": "full", "false_alarm": 1e-4, "broken": 1, "verdicts": [verdict]}
    text = audits(body | {"verdicts": [verdict | {"broken": True}]})
    assert text.startswith(
        "The full setting: 1 audits, 1 claims broken, each frequency at 99.99% confidence.\n\n"
    )
    assert text.endswith("| x | ratio | 1 | 0.50 | 2,000 | **BROKEN** |")
    endless = audits(body | {"verdicts": [verdict | {"proved": "inf", "broken": True}]})
    assert endless.endswith("| x | ratio | 1 | inf | 2,000 | **BROKEN** |")


def test_the_page_says_what_was_not_run():
    verdict = {
        "name": "x", "check": "replay", "claimed": None, "proved": None, "samples": 0,
        "broken": False, "ran": False, "finding": "y is not installed",
    }  # fmt: skip
    body = {"setting": "full", "false_alarm": 1e-4, "broken": 0, "verdicts": [verdict]}
    text = audits(body)
    assert text.startswith("The full setting: 0 audits, 0 claims broken, ")
    assert "1 more were not run" in text
    assert text.endswith("| x | replay |  |  | 0 | not run: y is not installed |")


def test_the_fewest_samples_that_catch_a_control_are_found():
    found = fewest(MUSEUM[0].broken)
    assert found.broken
    assert found.samples < MUSEUM[0].broken().sizes.fast
    assert fewest(MUSEUM[0].sound) is None
