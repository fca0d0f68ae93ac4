"""Controls that carry something of a private file into the released one: a type, a curve.

Each is a small reader and writer of its own, replayed on two files whose private values differ.
"""

import io
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from gridveil.auditing.transcript_audits import Replay
from museum.boundary import noisy_copy
from museum.control import Control, same

REPLAYS = same(4)

# -- a type ----------------------------------------------------------------------------------------

RECORDS = ("100\n250\n900", "100.5\n250\n900")  # neighbours


def inferred(keeps):
    """A column of power, whose type a reader infers from its values, back in Parquet."""

    def run(text, noise):
        read = pyarrow.csv.read_csv(io.BytesIO(f"power\n{text}\n".encode())).column("power")
        released = np.clip(noisy_copy(read.to_numpy().astype(float), noise), 1, 2000)
        kind = read.type if keeps else pa.float64()
        sink = io.BytesIO()
        table = pa.table({"power": pa.array(np.rint(released)).cast(kind)})
        pyarrow.parquet.write_table(table, sink)
        return {"records.parquet": sink.getvalue()}

    return Replay("records", [partial(run, text) for text in RECORDS], REPLAYS)


# -- a curve ---------------------------------------------------------------------------------------

PARABOLA = (0.02, 20.0, 5.0)  # public: what a MW costs
LIMITS = ((10.0, 120.0), (15.0, 120.0))  # private; the curve's ends


def curve(real):
    """Limits with noise, and the line through the cost at both: at the real ones, or the noisy."""

    def run(limits, noise):
        released = np.sort(np.round(noisy_copy(np.array(limits), noise), 2))
        ends = np.array(limits) if real else released
        low, high = np.polyval(PARABOLA, ends)
        slope = (high - low) / (ends[1] - ends[0])
        row = [*released, slope, low - slope * ends[0]]
        return {"network.m": " ".join(f"{value:.6f}" for value in row).encode()}

    return Replay("limits", [partial(run, limits) for limits in LIMITS], REPLAYS)


FILES = (
    Control(
        "The inferred type",
        "released power has the type that a reader inferred: whole numbers, or fractions",
        partial(inferred, True),
        partial(inferred, False),
    ),
    Control(
        "The two-point curve",
        "a cost curve goes through the real limits of its unit, which are released with noise",
        partial(curve, True),
        partial(curve, False),
    ),
)
