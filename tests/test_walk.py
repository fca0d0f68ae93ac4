"""One release of each kind, followed through the package: who calls whom, and who calls back.

Files that call each other both ways are hard to follow. Callbacks are fine if they are known: each
file that makes one says so in its docstring, docs/architecture.md lists them all, and the releases
here find these pairs and no other.
"""

import ast
import re
import sys
from pathlib import Path
from types import FrameType

import numpy as np
import pandas as pd
import pytest

import gridveil as gv
from gridveil.cli.main import run

ROOT = f"{Path(gv.__file__).parent}/"
TEMPLATES = "report/templates"
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
COMMON = [
    "--epsilon",
    "1",
    "-o",
    "out",
    "--ledger",
    "ledger.sqlite",
    "--dataset",
    "walk",
    "--quiet",
]
UNNAMED = {"<module>", "<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>"}


def wind() -> list[str]:
    draws = np.random.default_rng(0)
    speed = draws.uniform(3, 12, 500)
    power = np.clip(2750 * ((speed - 3) / 9) ** 3 + draws.normal(0, 80, 500), 0, 2750)
    pd.DataFrame({"wind_speed": speed, "power_kw": power}).to_csv("scada.csv", index=False)
    columns = ["--speed", "wind_speed", "--power", "power_kw", "--capacity", "2750"]
    return ["wind", "release", "scada.csv", *columns, "--alpha", "15%", *COMMON]


def grid() -> list[str]:
    step = ["--parameter", "capacity", "--alpha", "30", "--range", "50:1000"]
    gv.grid.sample_population(gv.grid.cases.rts96(), 10).write("models.parquet")
    return ["grid", "release", "rts96", "--population", "models.parquet", *step, *COMMON]


def file_of(frame: FrameType | None) -> str | None:
    """The file of the package that a frame is in, or was called from; all templates are one."""
    while frame is not None and not frame.f_code.co_filename.startswith(ROOT):
        frame = frame.f_back
    name = None if frame is None else frame.f_code.co_filename[len(ROOT) :]
    return TEMPLATES if name is not None and name.startswith(TEMPLATES) else name


def calls(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """The pairs of files of which the first called the second while a command ran."""
    found: set[tuple[str, str]] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and code.co_name not in UNNAMED:
            caller, called = file_of(frame.f_back), file_of(frame)
            if caller is not None and called is not None:
                found.add((caller, called))

    monkeypatch.setattr(sys, "argv", ["gridveil", *arguments])
    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        with pytest.raises(SystemExit) as end:
            run()
    finally:
        sys.setprofile(before)
    assert not end.value.code
    return found


def documented() -> set[tuple[str, str]]:
    """The pairs of the page's table: who calls back, and into what."""
    table = PAGE.read_text(encoding="utf-8").split("## Who calls back")[1].split("\n## ")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    files = [[re.findall(r"`([^`]+)`", cell) for cell in row] for row in rows]
    return {(low, high) for lows, highs in files for low in lows for high in highs}


def both_ways(found: set[tuple[str, str]]) -> set[frozenset[str]]:
    return {frozenset((a, b)) for a, b in found if a != b and (b, a) in found}


def test_files_call_each_other_where_callbacks_are_documented_and_nowhere_else(
    tmp_path, monkeypatch
):
    found = set()
    for command in (wind, grid):
        place = tmp_path / command.__name__
        place.mkdir()
        monkeypatch.chdir(place)
        pairs = both_ways(calls(command(), monkeypatch))
        # The control: without the rows of mechanisms, which call their query, a pair is reported.
        others = {frozenset(pair) for pair in documented() if "privacy/mechanisms.py" not in pair}
        assert pairs - others
        found |= pairs
    assert found == {frozenset(pair) for pair in documented()}


@pytest.mark.parametrize("name", sorted({low for low, _ in documented()}))
def test_a_file_that_calls_back_says_so(name):
    said = ast.get_docstring(ast.parse(Path(ROOT, name).read_text(encoding="utf-8")))
    assert re.search(r"\bcall(s|ed)?\s+back\b", said or "")


def test_the_table_of_callbacks_names_files_that_exist():
    assert not {name for pair in documented() for name in pair if not Path(ROOT, name).exists()}
