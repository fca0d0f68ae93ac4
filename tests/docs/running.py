"""Run a page from top to bottom, and compare or renew the output that it shows.

``python tests/docs/running.py docs/PAGE.md ...`` runs pages and writes what they now print into
them. Shown output that is cut short by ``...`` stays as it is.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from docs.blocks import Block, Session, blocks, commands

ROOT = Path(__file__).resolve().parents[2]


def write_files(folder: Path) -> None:
    """What pages take for granted: a turbine's file and a network's."""
    from gridveil.grid import cases
    from gridveil.wind.demo import demo_records

    records = demo_records(1000).to_pandas()
    table = pd.DataFrame(
        {
            "time": pd.date_range("2024-01-01", periods=1000, freq="10min"),
            "wind_speed": records.wind_speed.round(2),
            "power_kw": records.power.round(1),
        }
    )
    table.to_csv(folder / "scada.csv", index=False)
    cases.rts96().write(folder / "case.m")


def run(page: Path, folder: Path) -> Iterator[tuple[Block, list[tuple[str, str]]]]:
    """Run a page's blocks in a folder, which must be the current one.

    Yields every block that shows output, with pairs of what it shows and what was printed.
    """
    write_files(folder)
    session = Session(folder)
    printed = None
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "text":
            if printed is not None and block.follows:
                yield block, [(block.text, printed)]
            printed = None
        elif block.why_not is not None:
            printed = None
        elif block.language == "python":
            printed = session.python(block.text, page.name, block.line)
        elif block.language == "bash":
            printed = session.shell(block.text, block.exit_code)
        elif block.language == "console":
            given = commands(block.text)
            yield block, [(shown, session.shell(one, block.exit_code)) for one, shown in given]
            printed = None


def renew(page: Path) -> None:
    """Run a page and write into it what it prints."""
    lines = page.read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "reader"
        folder.mkdir()
        os.chdir(folder)
        os.environ["GRIDVEIL_LEDGER"] = "ledger.sqlite"
        for block, pairs in reversed(list(run(page, folder))):
            if "..." in block.text:
                continue
            if block.language == "text":
                new = _tidy(pairs[0][1])
            else:
                given = [command for command, _ in commands(block.text)]
                new = []
                for command, (_, printed) in zip(given, pairs, strict=True):
                    new += [*f"$ {command}".splitlines(), *_tidy(printed)]
                while not new[-1]:
                    new.pop()
            lines[block.line : block.line + len(block.text.splitlines())] = new
        os.chdir(ROOT)
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _tidy(printed: str) -> list[str]:
    return [line.rstrip() for line in printed.strip("\n").splitlines()]


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        renew(Path(argument).resolve())
