"""The code blocks of a page, and how they are run.

- ``python``: the blocks of a page share one namespace. What a block prints, and the value of its
  last expression, is its output.
- ``bash``: a script. ``console``: commands after ``$``, each with the output below it.
- ``text`` right after a ``python`` or ``bash`` block is the output that the page shows for it.
- Shown output must be the real one, with the reader's folder left out of paths. Under the title
  "One run" numbers are not compared, since noise differs from run to run. ``...`` stands for
  anything.
- ``<!-- exit code N -->`` above a block: its commands end so.
- ``<!-- not run: WHY -->`` above a block: the only way not to run it.
"""

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from gridveil.cli.commands import app
from gridveil.errors import NotPrivateWarning

LANGUAGES = {"python", "bash", "console", "text", "math"}
ONE_RUN = "One run"

_GUARD = 'if __name__ == "__main__":\n    run()\n'

_FENCE = re.compile(r"^(\s*)```([\w-]*)\s*(.*)$")
_TITLE = re.compile(r'title="([^"]*)"')
_WHY = re.compile(r"<!-- not run: (.+?) -->")
_EXIT = re.compile(r"<!-- exit code (\d+) -->")
_PLAIN = re.compile(r"gridveil( [^|&;<>$()`#]*)?")
_VARYING = (
    (re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{12,}\b"), "#"),  # hashes
    (re.compile(r"[-+]?\d[\d,]*(\.\d*)?(e[-+]?\d+)?"), "#"),
    (re.compile(r"─+"), "─"),
)


@dataclass(frozen=True)
class Block:
    """A fenced block, where it is, and what its page says of it."""

    line: int
    language: str
    title: str
    text: str
    why_not: str | None
    exit_code: int
    follows: bool  # only blank lines between it and the block before

    @property
    def one_run(self) -> bool:
        return self.title.startswith(ONE_RUN)


def blocks(markdown: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = iter(enumerate(markdown.splitlines(), start=1))
    above, near = "", False
    for number, line in lines:
        opened = _FENCE.match(line)
        if not opened:
            above, near = (line, False) if line.strip() else (above, near)
            continue
        indent, language, rest = opened.groups()
        inside = []
        for _, other in lines:
            if other.strip() == "```":
                break
            inside.append(other.removeprefix(indent))
        title, why, code = _TITLE.search(rest), _WHY.search(above), _EXIT.search(above)
        found.append(
            Block(
                number,
                language,
                title[1] if title else "",
                "\n".join(inside),
                why[1] if why else None,
                int(code[1]) if code else 0,
                near,
            )
        )
        above, near = "", True
    return found


class Session:
    """One reader at work: a folder, the names defined so far, and a shell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, object] = {"__name__": "__main__"}
        tools = folder.parent / "bin"
        tools.mkdir()
        command = tools / "gridveil"
        # Workers import this file, and must not run it.
        lines = (f"#!{sys.executable}", "from gridveil.cli.main import run", "", "", _GUARD)
        command.write_text("\n".join(lines), encoding="utf-8")
        command.chmod(0o755)
        source = Path(__file__).resolve().parents[2] / "src"
        self.environment = os.environ | {
            "PATH": os.pathsep.join(
                [str(tools), str(Path(sys.executable).parent), os.environ["PATH"]]
            ),
            "PYTHONPATH": str(source),
            "GRIDVEIL_LEDGER": "ledger.sqlite",
            "COLUMNS": "92",
        }

    def python(self, text: str, where: str = "block", line: int = 0) -> str:
        """Run a block of Python and give back what a notebook would show below it."""
        tree = ast.increment_lineno(ast.parse(text), line)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore", NotPrivateWarning)
            exec(compile(tree, where, "exec"), self.names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), where, "eval"), self.names)
                if value is not None:
                    print(repr(value))
        return self._without_folder(printed.getvalue())

    def shell(self, script: str, exit_code: int = 0) -> str:
        """Run a script, which must end with this code, and give back all that it printed."""
        lines = script.replace("\\\n", " ").splitlines()
        plain = all(_PLAIN.fullmatch(line) for line in lines)
        printed, code = self._commands(lines) if plain else self._bash(script)
        assert code == exit_code, f"{script}\nended with {code}:\n{printed}"
        return self._without_folder(printed)

    def _without_folder(self, text: str) -> str:
        return text.replace(f"{self.folder}{os.sep}", "")

    def _commands(self, lines: list[str]) -> tuple[str, int]:
        """Run commands of ours in this process, which saves starting others."""
        printed, code = "", 0
        for line in lines:
            done = CliRunner().invoke(app, shlex.split(line)[1:], env=self.environment)
            printed, code = printed + done.output, done.exit_code
            if code:
                break
        return printed, code

    def _bash(self, script: str) -> tuple[str, int]:
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout, done.returncode


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a ``console`` block, each with the output that is shown for it."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif found and found[-1][0].endswith("\\") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line}", "")
        else:
            found[-1] = (found[-1][0], f"{found[-1][1]}{line}\n")
    return found


def agree(shown: str, printed: str, *, one_run: bool) -> bool:
    """Whether a page shows what was printed."""
    wanted, got = tidy(shown, one_run=one_run), tidy(printed, one_run=one_run)
    pattern = ".*".join(re.escape(part) for part in wanted.split("..."))
    return re.fullmatch(pattern, got, re.DOTALL) is not None


def tidy(text: str, *, one_run: bool) -> str:
    """Text without blank ends; where one run is shown, without numbers and spaces either."""
    if one_run:
        for pattern, instead in _VARYING:
            text = pattern.sub(instead, text)
        text = re.sub(r"[ \t]+", "", text)
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(lines).strip("\n")
