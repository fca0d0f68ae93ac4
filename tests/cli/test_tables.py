"""Tables show all of their data, and lines on a terminal end between words."""

import io

import pytest

from gridveil.cli import console

NAME = "a-dataset-with-a-name-that-is-far-too-long-for-any-single-line-of-a-terminal-" * 2
TIME = "2026-11-17T03:04:05.678901+00:00"


def printed(*, terminal, width=None):
    shown = console.table("dataset", "time", "details")
    shown.add_row(NAME, TIME, "wind power records; power by 15% of capacity")
    stream = io.StringIO()
    screen = console._screen()(
        file=stream, force_terminal=terminal, width=width, soft_wrap=True, color_system=None
    )
    screen.print(shown)
    return stream.getvalue()


def test_a_file_gets_one_line_a_row(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    text = printed(terminal=False)
    row = text.splitlines()[3]
    assert NAME in row
    assert TIME in row
    assert "…" not in text
    assert max(map(len, text.splitlines())) < 300


@pytest.mark.parametrize("width", [40, 80])
def test_a_narrow_terminal_folds_and_cuts_nothing(width):
    text = printed(terminal=True, width=width)
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    first = [line[1:].split(" ")[0] for line in text.splitlines()[3:]]
    assert "".join(first) == NAME


def lines(text, *, terminal=True, width=40):
    stream = io.StringIO()
    console._screen()(
        file=stream, force_terminal=terminal, width=width, soft_wrap=True, color_system=None
    ).print(text)
    return stream.getvalue().splitlines()


PROSE = "  [bold]protected:[/] all records of a turbine in one calendar day, each by 15% of it"


def test_lines_on_a_terminal_end_between_words_and_hang():
    plain = PROSE.replace("[bold]", "").replace("[/]", "")
    found = lines(f"Plan:\n{PROSE}\n\nend")
    assert found[0] == "Plan:"
    assert found[-2:] == ["", "end"]
    prose = found[1:-2]
    assert len(prose) > 1
    assert max(map(len, prose)) <= 40
    assert prose[0].startswith("  protected: ")
    assert all(one.startswith("    ") for one in prose[1:])
    assert " ".join(one.strip() for one in prose) == plain.strip()
    assert lines(PROSE, terminal=False) == [plain]


@pytest.mark.parametrize(
    "text",
    [
        "  the plan:    gridveil release release.toml --dry-run --ledger elsewhere.sqlite",
        "The report: /srv/data/releases/2024/north/farm/out/report.html, as it was released",
        "nothing",
    ],
)
def test_what_may_be_copied_is_left_to_the_terminal(text):
    assert lines(text) == [text]


def test_a_line_of_blanks_is_no_problem():
    assert "".join(lines("a\n" + " " * 60 + "\nb")).split() == ["a", "b"]
