"""A whole wind release of large Parquet files: processor time of every step, and peak memory.

    python benchmarks/wind_scale.py [--smallest 100000] [--largest 10000000] [--method tuned]
        [--stream]

One record by 15% of capacity is protected, by synthetic a whole day. Each size is a process of its
own. Noise is drawn by the secure source, and shown apart from the restoration. Peak memory is that
of the whole process, imports included.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--largest", type=int, default=10_000_000)
    parser.add_argument("--smallest", type=int, default=100_000)
    parser.add_argument("--method", default="tuned")
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(release(Path(options.one), options.method, options.stream)))
        return
    names = ("read", "features", "noise", "queries, restore", "write", "all", "passes", "peak MB")
    print(f"method {options.method}{', streamed' if options.stream else ''}")
    print(f"{'rows':>12}" + "".join(f"{name:>18}" for name in names))
    rows = options.smallest
    while rows <= options.largest:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "scada.parquet"
            write_source(source, rows)
            command = [sys.executable, __file__, "--one", str(source), "--method", options.method]
            command += ["--stream"] if options.stream else []
            found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        shown = "".join(f"{found.get(name, 0):>18.4g}" for name in names)
        print(f"{rows:>12,}{shown}", flush=True)
        rows *= 10


def write_source(path: Path, rows: int) -> None:
    """Ten-minute records of a made-up turbine, in pieces."""
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(path, _schema()) as writer:
        for start in range(0, rows, 1_000_000):
            size = min(1_000_000, rows - start)
            speed = 8 * rng.weibull(2, size)
            power = 2750 * np.clip((speed / 12) ** 3, 0, 1) + rng.normal(0, 200, size)
            when = (np.arange(start, start + size) * 600).astype("datetime64[s]")
            writer.write_table(pa.table([when, speed, power], schema=_schema()))


def _schema() -> pa.Schema:
    return pa.schema(
        [("time", pa.timestamp("ms")), ("speed", pa.float64()), ("power", pa.float64())]
    )


def release(source: Path, method: str, stream: bool) -> dict[str, float]:
    """Release one file and time the steps."""
    import gridveil as gv

    laps: dict[str, float] = {}
    last = ["read", time.process_time()]

    def lap(name: str) -> None:
        now = time.process_time()
        laps[last[0]] = laps.get(last[0], 0.0) + now - last[1]
        last[:] = [name, now]

    def progress(words: str) -> None:
        known = {"public features": "features", "noise on every record": "noise"}
        lap(known.get(words, "queries, restore"))

    records = gv.wind.read_records(
        source, speed="speed", power="power", capacity=2750, time="time", stream=stream or None
    )
    made = gv.wind.release(
        records,
        epsilon=1,
        method=method,
        **({"protect": "day"} if method == "synthetic" else {"alpha": "15%"}),  # type: ignore[arg-type]
        dataset="benchmark",
        ledger=source.with_name("ledger"),
        progress=progress,
    )
    lap("write")
    made.write(source.with_name("out"))
    lap("done")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    restored = made.restorations[0]
    passes = 0 if restored is None else restored.passes
    return {**laps, "all": sum(laps.values()), "passes": passes, "peak MB": peak}


if __name__ == "__main__":
    main()
