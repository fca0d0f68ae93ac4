"""Every code block of the documentation runs, and gives what its page shows."""

import re
from pathlib import Path

import pytest
from docs.blocks import LANGUAGES, Block, agree, blocks
from docs.running import ROOT, run

FRONT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = [FRONT[0], *sorted((ROOT / "docs").rglob("*.md"))]


def name(page):
    return page.relative_to(ROOT).as_posix()


def found_in(page):
    return blocks(page.read_text(encoding="utf-8"))


RUN = [
    page
    for page in PAGES
    if any(
        b.language in {"python", "bash", "console"} and b.why_not is None for b in found_in(page)
    )
]


@pytest.mark.usefixtures("usual_models")
@pytest.mark.parametrize("page", RUN, ids=name)
def test_every_block_runs_and_gives_what_is_shown(page, tmp_path, monkeypatch):
    folder = tmp_path / "reader"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GRIDVEIL_LEDGER", "ledger.sqlite")
    for block, pairs in run(page, folder):
        for shown, printed in pairs:
            if not agree(shown, printed, one_run=block.one_run):
                pytest.fail(f"line {block.line} shows\n\n{shown}\n\nand the run gave\n\n{printed}")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_blocks_say_what_they_are(page):
    """No block escapes by having no language, and output stands right below what gives it."""
    before: Block | None = None
    for block in found_in(page):
        assert block.language in LANGUAGES, f"line {block.line}: {block.language!r}"
        if block.language == "text":
            assert block.follows, f"line {block.line}: output of nothing"
            assert before is not None
            assert before.language in {"python", "bash"}, f"line {block.line}"
        before = block


@pytest.mark.parametrize("page", [*FRONT, ROOT / "examples" / "README.md"], ids=name)
def test_links_lead_somewhere(page):
    """Of pages that are not in the site: the site's own are checked when it is built."""
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    inside = [link.partition("#")[0] for link in links if "://" not in link]
    assert links == [] or inside, "nothing was checked"
    assert [link for link in inside if not (page.parent / link).exists()] == []


def test_few_blocks_are_not_run():
    skipped = {
        f"{name(page)}:{block.line}": block.why_not
        for page in PAGES
        for block in found_in(page)
        if block.why_not is not None
    }
    assert all(len(why) > 10 for why in skipped.values())
    # Some need more than a shell: a test that knows their page runs them.
    here = {place: why for place, why in skipped.items() if not run_elsewhere(place, why)}
    assert len(here) <= 10, here


def run_elsewhere(place, why):
    found = re.search(r"(tests/\S+\.py) runs it", why)
    page = Path(place.partition(":")[0]).name
    return found is not None and page in (ROOT / found[1]).read_text(encoding="utf-8")
