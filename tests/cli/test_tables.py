"""A table shows all of its data, however wide it is and wherever it goes."""

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
