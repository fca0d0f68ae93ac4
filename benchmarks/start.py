"""How long `gridveil`, its `--help` and `import gridveil` take, and loading everything at once.

Each line is a fresh interpreter, best and median of several, by the script's own way in; the last
lines load what a release needs before anything was asked for, as a package without lazy imports
would. Every run's peer is checked: the eager ones have the heavy modules loaded, the lazy ones have
none.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 15
HEAVY = ("numpy", "scipy", "pandas", "pyarrow", "opendp", "highspy", "clarabel", "matplotlib")
COMMAND = """import contextlib, sys
sys.argv[1:] = {words!r}
from gridveil.cli.main import run
with contextlib.suppress(SystemExit):
    run()"""
EAGER = f"import {', '.join(HEAVY)}\n"
CASES = {
    "python itself": "pass",
    "import gridveil": "import gridveil",
    "gridveil": COMMAND.format(words=[]),
    "gridveil --help": COMMAND.format(words=["--help"]),
    "gridveil wind release --help": COMMAND.format(words=["wind", "release", "--help"]),
    "import gridveil, eagerly": EAGER + "import gridveil, gridveil.wind, gridveil.grid",
    "gridveil, eagerly": EAGER + COMMAND.format(words=[]),
    "gridveil --help, eagerly": EAGER + COMMAND.format(words=["--help"]),
}


def main() -> None:
    """Print the table."""
    print(f"{RUNS} fresh interpreters each, seconds")
    print(f"{'':32}{'best':>8}{'median':>8}")
    best = {}
    for name, code in CASES.items():
        _check(name, code)
        times = [_time(code) for _ in range(RUNS)]
        best[name] = min(times)
        print(f"{name:32}{min(times):>8.3f}{statistics.median(times):>8.3f}")
    for lazy in ("import gridveil", "gridveil", "gridveil --help"):
        ratio = best[f"{lazy}, eagerly"] / best[lazy]
        print(f"{lazy}: {ratio:.0f} times as fast as with everything loaded")


def _time(code: str) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def _check(name: str, code: str) -> None:
    """Stop where the lazy start loads a heavy module, or the eager one leaves one out."""
    tell = f"\nimport sys; print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code + tell], check=True, capture_output=True, text=True
    )
    wanted = list(HEAVY) if "eagerly" in name else []
    if done.stderr.strip() != str(wanted):
        raise SystemExit(f"{name} has loaded {done.stderr.strip()}, not {wanted}")


if __name__ == "__main__":
    main()
