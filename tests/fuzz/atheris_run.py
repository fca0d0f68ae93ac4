"""Fuzz a reader by coverage, with atheris where it is installed.

python tests/fuzz/atheris_run.py "network, MATPOWER" 100000

It is optional: atheris has no wheel for every Python. The bytes that it makes are read as choices
by the same mutations, and as a file of their own every fourth time.
"""

import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))


SKIPPED = 3
"""The exit code where atheris is not installed; its own for a finding are 70, 71 and 77."""


def main(name: str, runs: int) -> int:
    try:
        import atheris
    except ImportError:
        print("atheris is not installed: pip install atheris, where there is a wheel for it")
        return SKIPPED
    with atheris.instrument_imports(include=["gridveil"]):
        from fuzz.targets import TARGETS
    target = TARGETS[name]
    folder = Path(tempfile.mkdtemp())

    def one(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        if provider.ConsumeIntInRange(0, 3):
            made = target.make(lambda n: provider.ConsumeIntInRange(0, n - 1))
        else:
            made = provider.ConsumeBytes(provider.remaining_bytes())
        target.check(made, folder)

    # From nothing it would try a few bytes for a long time, which choose the first of everything.
    options = [f"-runs={runs}", "-timeout=30", "-rss_limit_mb=4096", "-max_len=4096", "-seed=1"]
    options += ["-len_control=0", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *options, str(_corpus())], one)
    atheris.Fuzz()
    return 0


def _corpus() -> Path:
    """A folder of inputs to begin with: choices by chance, enough for three mutations each."""
    folder, rng = Path(tempfile.mkdtemp()), random.Random(1)
    for number in range(64):
        (folder / f"{number}").write_bytes(rng.randbytes(256))
    return folder


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
