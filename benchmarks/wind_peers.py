"""Wind records by general synthesisers and by ours: the same table, epsilon and figures.

    python benchmarks/wind_peers.py SCADA.csv [--days 90] [--runs 2] [--epsilon 1]
        --peer "dpmm MST" /path/to/python/with/dpmm
        --peer "SmartNoise AIM" /path/to/python/with/smartnoise-synth
        --peer "SDV norm" /path/to/python/with/sdv

The first days of a farm, one whole record protected (alpha 100%). Each peer runs in its own
environment on a table of turbine, month, hour, wind speed (bins of 0.5 m/s) and power (0, and 50
bins of capacity), all domains given as public. It releases a table of its own; each public row then
takes the power of a random released row of its turbine and wind speed (of its wind speed, if there
is none), anywhere in the bin. Wind speeds are public for us and private for them, and neighbours
of theirs have one row more or less, at epsilon and a delta of 1e-9; ours have another power in one
row, at pure epsilon. Replacing a row costs them twice their epsilon. SDV takes no epsilon and has
no guarantee at all: it is a control, for what a general synthesiser reaches without any noise.

Figures as in wind_series.py; means over runs, the standard deviation in brackets.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

BINS = 50
DELTA = 1e-9
PEERS = (
    *("dpmm MST", "dpmm AIM", "SmartNoise MST", "SmartNoise AIM"),
    *("SDV beta", "SDV norm"),  # a Gaussian copula with these marginals
)
SIZES = {"turbine": 0, "month": 12, "hour": 24, "speed": 60, "power": BINS + 1}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--peer", nargs=2, action="append", default=[])
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    parser.set_defaults(time_format=None)
    for name, column in COLUMNS.items():
        parser.add_argument(f"--{name}", default=column)
    parser.add_argument("--capacity", type=float, default=2050.0)
    given = parser.parse_args()
    if given.inside:
        table = pd.read_csv(given.path)
        made = released_by(given.inside[0], table, float(given.epsilon), given.runs)
        made.to_csv(given.inside[1], index=False)
        return
    warnings.simplefilter("ignore")
    compare(given)


COLUMNS = {
    "speed": "Ws_avg",
    "power": "P_avg",
    "time": "Date_time",
    "turbine": "Wind_turbine_name",
}


def compare(given: argparse.Namespace) -> None:
    """Run all, and print the figures beside each other."""
    from wind_series import NAMES, measure, read, records_of, series_of, shown

    frame = read(given)
    frame = frame[frame["time"] < frame["time"].min() + pd.Timedelta(days=given.days)]
    series, real = series_of(frame)
    print(f"{len(real):,} records of {len(set(series.turbine))} turbines, epsilon {given.epsilon}, "
          f"{given.runs} runs")  # fmt: skip
    found: dict[str, dict[str, list[float]]] = {}
    for name, python in [("synthetic", ""), ("tuned", ""), *given.peer]:
        for seed in range(given.runs):
            if python:
                released = by_peer(name, python, frame, given.epsilon, seed)
            else:
                released = ours(records_of(frame), name, given.epsilon, seed)
            for figure, value in measure(series, real, released).items():
                found.setdefault(name, {}).setdefault(figure, []).append(value)
        print(f"done: {name}", file=sys.stderr, flush=True)
    print(f"{'':32}" + "".join(f"{name:>20}" for name in found))
    for figure, words in NAMES.items():
        cells = "".join(f"{shown(figure, one[figure]):>20}" for one in found.values())
        print(f"{words:32}{cells}")


def ours(records: Any, method: str, epsilon: str, seed: int) -> np.ndarray:
    """Power released by one of our methods, in the order of turbine and time."""
    from gridveil import wind

    plan = wind.plan(records, epsilon=epsilon, alpha="100%", method=method)
    return np.concatenate(list(plan.run(plan.study(seed)).blocks()))


def by_peer(name: str, python: str, frame: pd.DataFrame, epsilon: str, seed: int) -> np.ndarray:
    """Power drawn from the table that a peer releases."""
    table = pd.DataFrame(
        {
            "turbine": np.unique(frame["turbine"], return_inverse=True)[1],
            "month": frame["time"].dt.month.to_numpy() - 1,
            "hour": frame["time"].dt.hour.to_numpy(),
            "speed": np.clip((2 * frame["speed"]).astype(int), 0, SIZES["speed"] - 1).to_numpy(),
            "power": np.ceil(BINS * frame["power"].to_numpy() - 1e-9).astype(int),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / one) for one in ("in.csv", "out.csv")]
        table.to_csv(paths[0], index=False)
        command = [python, __file__, paths[0], "--epsilon", epsilon, "--runs", str(seed)]
        subprocess.run([*command, "--inside", name, paths[1]], check=True, capture_output=True)
        made = pd.read_csv(paths[1])
    return drawn(table, made, np.random.default_rng([seed, 15]))


def drawn(table: pd.DataFrame, made: pd.DataFrame, draws: np.random.Generator) -> np.ndarray:
    """Power for each public row, from released rows that are like it."""
    place = np.full(len(table), -1.0)
    for keys in (["turbine", "speed"], ["speed"], []):
        left = np.flatnonzero(place < 0)
        if not keys:
            place[left] = draws.choice(made["power"].to_numpy(), len(left))
            continue
        pools = made.groupby(keys)["power"].apply(np.asarray).to_dict()
        groups = table.iloc[left].groupby(keys).indices
        for key, rows in groups.items():
            pool = pools.get(key if len(keys) > 1 else key[0] if isinstance(key, tuple) else key)
            if pool is not None:
                place[left[rows]] = draws.choice(pool, len(rows))
    return np.where(place > 0, (place - draws.random(len(place))) / BINS, 0.0)


def released_by(name: str, table: pd.DataFrame, epsilon: float, seed: int) -> pd.DataFrame:
    """The table that a peer releases; runs in the peer's environment."""
    np.random.seed(seed)
    sizes = {**SIZES, "turbine": int(table["turbine"].max()) + 1}
    library, model = name.split()
    if library == "dpmm":
        from dpmm.pipelines import AIMPipeline, MSTPipeline

        kind = {"MST": MSTPipeline, "AIM": AIMPipeline}[model]
        pipeline = kind(epsilon=epsilon, delta=DELTA, disable_processing=True, n_jobs=1)
        pipeline.fit(table, domain=sizes, random_state=seed)
        return pd.DataFrame(pipeline.generate(n_records=len(table), random_state=seed))
    if library == "SDV":
        from sdv.metadata import Metadata
        from sdv.single_table import GaussianCopulaSynthesizer

        kinds = {column: {"sdtype": "numerical"} for column in sizes}
        kinds["turbine"] = {"sdtype": "categorical"}
        about = Metadata.load_from_dict({"tables": {"records": {"columns": kinds}}})
        copula = GaussianCopulaSynthesizer(about, default_distribution=model)
        copula.fit({"records": table})
        for _ in range(seed + 1):  # a synthesiser begins with the same draws each time
            made = copula.sample(len(table))["records"]
        return pd.DataFrame(made)
    from snsynth import Synthesizer
    from snsynth.transform import ChainTransformer, LabelTransformer, TableTransformer

    # Every value occurs once more, so that the labels are the public domain and not the data's.
    columns = []
    for column, size in sizes.items():
        label = LabelTransformer(nullable=False)
        label.fit([*range(size)])
        columns.append(ChainTransformer([label]))
        assert column in table
    transformer = TableTransformer(columns)
    synthesizer = Synthesizer.create(model.lower(), epsilon=epsilon, delta=DELTA)
    synthesizer.fit(table, transformer=transformer)
    return pd.DataFrame(synthesizer.sample(len(table)), columns=[*sizes])


if __name__ == "__main__":
    main()
