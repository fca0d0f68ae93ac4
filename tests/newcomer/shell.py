"""A shell for one program: it reads commands from its terminal and runs them, all in one process.

A person's terminal starts Python for every command, which takes seconds on a busy machine. All
else is the same: standard input, output and error are the terminal.
"""

import shlex

from gridveil.cli.commands import app


def main() -> None:
    while True:
        _, *words = shlex.split(input("$ "))
        code: object = 0
        try:
            app(words, prog_name="gridveil")
        except SystemExit as end:
            code = end.code or 0
        print(f"exit code {code}", flush=True)


if __name__ == "__main__":
    main()
