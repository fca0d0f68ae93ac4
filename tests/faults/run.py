"""The full campaigns of faults and fuzzed inputs, and the table of what they found.

python tests/faults/run.py                 everything
python tests/faults/run.py --inputs 1000   the same with fewer inputs a reader
python tests/faults/run.py --only faults   one part; the others stay as they were
python tests/faults/run.py --only readers --reader "ledger, SQLite"   one reader of them
python tests/faults/run.py --only table    only write the tables again, from the last results

Results go to docs/privacy/faults.json, and as tables into docs/privacy/faults.md. The exit code is
1 if anything was lost, overspent, half-made or answered with a traceback.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

from faults import campaigns, children, tracing  # noqa: E402 - tests are no package
from faults.releasing import Tally  # noqa: E402
from fuzz import atheris_run, harness  # noqa: E402
from fuzz.targets import TARGETS  # noqa: E402

RESULTS = ROOT / "docs" / "privacy" / "faults.json"
PAGE = RESULTS.with_suffix(".md")
INPUTS = 100_000
ATHERIS_RUNS = 10_000
PARTS = ("faults", "injected", "readers", "atheris")
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


def main() -> int:
    """Run what was asked for and write down what came of it."""
    options = _options()
    results = {name: [] for name in PARTS}
    results |= json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    names = [options.reader] if options.reader else list(TARGETS)
    parts: dict[str, Callable[[], list]] = {
        "faults": lambda: [asdict(tally) for tally in _faults()],
        "injected": lambda: list(_injected()),
        "readers": lambda: _fuzzed(results["readers"], names, options.inputs, options.workers),
        "atheris": lambda: _renewed(results["atheris"], _atheris(names, options.runs)),
    }
    for name in PARTS if options.only is None else [options.only]:
        if name in parts:
            results[name] = parts[name]()
            RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    PAGE.write_text(_with_tables(PAGE.read_text(), results))
    return int(_wrong(results))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=INPUTS, help="inputs a reader")
    parser.add_argument("--workers", type=int, default=1, help="readers to fuzz at a time")
    parser.add_argument("--only", choices=[*PARTS, "table"], help="one part")
    parser.add_argument("--reader", choices=[*TARGETS], help="fuzz this one, of all readers")
    parser.add_argument("--runs", type=int, default=ATHERIS_RUNS, help="inputs of atheris a reader")
    return parser.parse_args()


# -- running ---------------------------------------------------------------------------------------


def _faults() -> Iterator[Tally]:
    for needs, campaign in _campaigns():
        if needs is not None:
            _say(f"left out: {campaign.__doc__}: {needs}")
            continue
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            found = campaign(Path(folder))
        for tally in found if isinstance(found, list) else [found]:
            _say(f"{tally.kind}: {tally.tried:,} tried, {'clean' if tally.clean else 'NOT clean'}")
            yield tally


def _campaigns() -> Iterator[tuple[str | None, Callable[[Path], list[Tally] | Tally]]]:
    traced = tracing.unavailable()
    mounts = None if children.can_mount() else "needs root on Linux"
    yield traced, campaigns.kills
    yield traced, lambda folder: campaigns.kills_anywhere(folder, 200)
    yield traced, lambda folder: campaigns.grid_kills(folder, 60)
    yield traced, campaigns.full_disk
    yield traced, campaigns.input_output_errors
    yield mounts, lambda folder: campaigns.small_disk(folder, range(0, 1 << 21, 1 << 16))
    yield None, lambda folder: campaigns.short_files(folder, range(2000, 130_000, 4000))
    yield mounts, campaigns.locked_folder
    yield None, campaigns.at_once
    yield None, campaigns.clock_back
    yield None, campaigns.newer_ledger
    yield None, campaigns.flipped_ledger
    yield None, campaigns.cut_ledger
    yield None, campaigns.flipped_log
    yield None, campaigns.lost_log


def _injected() -> Iterator[dict[str, object]]:
    """Failures of private and public computations, as the tests inject them."""
    for kind, name in (("wind", "test_private_failures.py"), ("grid", "test_grid_failures.py")):
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder) / "result.xml"
            command = [sys.executable, "-m", "pytest", "-q", "-n", "0", str(HERE / name)]
            subprocess.run(
                [*command, f"--junitxml={result}"], cwd=ROOT, check=False, capture_output=True
            )
            suite = ET.parse(result).getroot().find("testsuite")
        assert suite is not None
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        _say(f"failures in {kind} releases: {suite.get('tests')} tried, {failed} failed")
        yield {"kind": kind, "tried": int(suite.get("tests", 0)), "wrong": failed}


def _fuzzed(before: list[dict], names: list[str], inputs: int, workers: int) -> list[dict]:
    return _renewed(before, (asdict(count) for count in _readers(names, inputs, workers)))


def _renewed(before: list[dict], found: Iterator[dict]) -> list[dict]:
    """Counts of readers, new ones in the place of old ones."""
    by_name = {one["reader"]: one for one in before} | {one["reader"]: one for one in found}
    return [by_name[name] for name in TARGETS if name in by_name]


def _readers(names: list[str], inputs: int, workers: int) -> Iterator[harness.Count]:
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        for count in pool.map(_fuzz, names, [inputs] * len(names)):
            state = "clean" if count.clean else f"NOT clean: {count.found[:2]}"
            _say(f"{count.reader}: {count.inputs:,} inputs in {count.seconds:.0f} s, {state}")
            yield count


def _fuzz(name: str, inputs: int) -> harness.Count:
    return harness.run(TARGETS[name], inputs)


def _atheris(names: list[str], runs: int) -> Iterator[dict[str, object]]:
    for name in names:
        command = [sys.executable, str(ROOT / "tests/fuzz/atheris_run.py"), name, str(runs)]
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:  # it leaves files behind
            there = {**os.environ, "TMPDIR": folder}
            done = subprocess.run(command, cwd=folder, env=there, capture_output=True, text=True)
        if done.returncode == atheris_run.SKIPPED:
            _say(f"left out: {done.stdout.strip()}")
            return
        _say(f"{name}: {runs:,} inputs by atheris, exit code {done.returncode}")
        if done.returncode != 0:
            _say(done.stderr[-4000:])
        yield {"reader": name, "inputs": runs, "wrong": int(done.returncode != 0)}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _wrong(results: dict) -> bool:
    bad = ("losses", "half_bundles", "overspends", "tracebacks")
    return (
        any(tally[name] for tally in results["faults"] for name in bad)
        or any(one["wrong"] for one in results["injected"] + results["atheris"])
        or any(
            count[name]
            for count in results["readers"]
            for name in ("tracebacks", "hangs", "crashes", "wrong")
        )
    )


# -- the page --------------------------------------------------------------------------------------


def _with_tables(page: str, results: dict) -> str:
    for name, table in (("faults", _fault_table(results)), ("readers", _reader_table(results))):
        start, end = f"<!-- {name}: written by make faults -->", f"<!-- end of {name} -->"
        before, _, rest = page.partition(start)
        _, _, after = rest.partition(end)
        page = f"{before}{start}\n{table}\n{end}{after}"
    return page


def _fault_table(results: dict) -> str:
    lines = [
        "| fault | tried | losses | half bundles | overspends | tracebacks |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    notes = []
    for tally in results["faults"]:
        mark = ""
        if tally["note"]:
            notes.append(f"{len(notes) + 1}. {tally['kind'].capitalize()}: {tally['note']}.")
            mark = f" ({len(notes)})"
        counts = (tally[n] for n in ("losses", "half_bundles", "overspends", "tracebacks"))
        cells = " | ".join(str(len(found)) for found in counts)
        lines.append(f"| {tally['kind']}{mark} | {tally['tried']:,} | {cells} |")
    for one in results["injected"]:
        wrong = one["wrong"]
        kind = f"a failing computation, private or public, in a {one['kind']} release"
        lines.append(f"| {kind} | {one['tried']:,} | {wrong} | {wrong} | {wrong} | {wrong} |")
    return "\n".join([*lines, "", *notes])


def _reader_table(results: dict) -> str:
    lines = [
        "| reader | inputs | taken as sound | tracebacks | hangs | crashes | wrong successes |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for count in results["readers"]:
        cells = " | ".join(str(count[n]) for n in ("tracebacks", "hangs", "crashes", "wrong"))
        lines.append(f"| {count['reader']} | {count['inputs']:,} | {count['taken']:,} | {cells} |")
    done = [count["reader"] for count in results["readers"]]
    if left := [name for name in TARGETS if name not in done]:
        lines += ["", f"Not run to the end yet: {'; '.join(left)}."]
    by_coverage = sum(one["inputs"] for one in results["atheris"])
    wrong = sum(one["wrong"] for one in results["atheris"])
    if by_coverage:
        lines += [
            "",
            f"{by_coverage:,} more inputs were chosen by coverage (atheris): {wrong} bad.",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
