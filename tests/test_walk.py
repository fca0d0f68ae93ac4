"""One release of each kind, followed through the package: who calls whom, and who calls back.

Files that call each other both ways are hard to follow. Callbacks are fine if they are known, so
docs/architecture.md lists them, and the releases here find no pair that is not in its table.
"""

import collections
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pandas as pd
import pytest

import gridveil as gv
from gridveil.cli.main import run

ROOT = f"{Path(gv.__file__).parent}/"
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


def calls(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """The pairs of files of which the first called the second while a command ran."""
    found: collections.Counter[tuple[str, str]] = collections.Counter()

    def file_of(frame: FrameType | None) -> str | None:
        while frame is not None and not frame.f_code.co_filename.startswith(ROOT):
            frame = frame.f_back
        return None if frame is None else frame.f_code.co_filename[len(ROOT) :]

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and code.co_name not in UNNAMED:
            caller = file_of(frame.f_back)
            if caller is not None:
                found[caller, code.co_filename[len(ROOT) :]] += 1

    monkeypatch.setattr(sys, "argv", ["gridveil", *arguments])
    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        with pytest.raises(SystemExit) as end:
            run()
    finally:
        sys.setprofile(before)
    assert not end.value.code
    return {pair for pair in found if pair[0] != pair[1]}


def documented() -> set[tuple[str, str]]:
    """The pairs of the page's table: who calls back, and into what."""
    table = PAGE.read_text(encoding="utf-8").split("## Who calls back")[1].split("\n## ")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    files = [[re.findall(r"`([^`]+)`", cell) for cell in row] for row in rows]
    return {(low, high) for lows, highs in files for low in lows for high in highs}


def both_ways(found: set[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(a, b) for a, b in found if (b, a) in found and a < b}


def known(pair: tuple[str, str], table: set[tuple[str, str]]) -> bool:
    one, other = (re.sub(r"(templates)/.*", r"\1", name) for name in pair)
    return (one, other) in table or (other, one) in table


@pytest.mark.parametrize("command", [wind, grid])
def test_no_two_files_call_each_other_but_for_documented_callbacks(
    command: Callable[[], list[str]], tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    found = both_ways(calls(command(), monkeypatch))
    assert found  # the mechanism calls back into its query, at least
    table = documented()
    assert not {pair for pair in found if not known(pair, table)}
    # The control: without its row, a pair is reported.
    query = {pair for pair in table if pair[0] == "privacy/mechanisms.py"}
    assert {pair for pair in found if not known(pair, table - query)}


def test_the_table_of_callbacks_names_files_that_exist():
    assert not {name for pair in documented() for name in pair if not Path(ROOT, name).exists()}
