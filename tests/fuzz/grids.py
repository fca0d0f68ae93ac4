"""Networks from MATPOWER cases, and populations from Parquet files."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from fuzz.mutations import Choose, mutate, mutate_binary
from fuzz.verdicts import wrong_unless
from fuzz.winds import parquet_bytes

from gridveil.errors import GridveilError
from gridveil.grid import Population, problems, read_case

CASE = b"""function mpc = case3
%CASE3  three buses
mpc.version = '2';
mpc.baseMVA = 100;
%% bus data
mpc.bus = [
\t1\t3\t0\t0\t0\t0\t1\t1\t0\t230\t1\t1.1\t0.9;
\t2\t1\t90.5\t10\t0\t0\t1\t1\t0\t230\t1\t1.1\t0.9;
\t3\t2\t-5\t0\t2\t0\t1\t1\t0\t230\t1\t1.1\t0.9;
];
mpc.gen = [
\t1\t0\t0\t50\t-50\t1\t100\t1\t200\t0\t0\t0;
\t3\t0\t0\t50\t-50\t1\t100\t1\t80\t10\t0\t0;
];
mpc.branch = [
\t1\t2\t0.01\t0.1\t0.02\t100\t110\t120\t0\t0\t1\t-360\t360;
\t2\t3\t0.01\t0.1\t0.02\t0\t0\t0\t1.05\t5\t1\t-30\t30;
\t1\t3\t0\t0.2\t0\t75.5\t75.5\t75.5\t0\t0\t1\t0\t0;
];
mpc.gencost = [
\t2\t0\t0\t3\t0.01\t40\t0\t0;
\t1\t0\t0\t2\t0\t0\t80\t3200;
];
mpc.bus_name = {
\t'one';
\t'two % not a comment';
\t'three''s';
};
"""
CASE_SEEDS = [CASE, CASE.replace(b"\n", b"\r\n"), CASE.replace(b"\t", b" ").replace(b";\n", b"\n")]


def make_case(choose: Choose) -> bytes:
    """A MATPOWER case."""
    return mutate(CASE_SEEDS[choose(len(CASE_SEEDS))], choose, CASE_SEEDS)


def check_case(data: bytes, folder: Path) -> bool:
    """Read a case; what reads has no problems, and comes back byte for byte."""
    path = folder / "case.m"
    path.write_bytes(data)
    try:
        network = read_case(path)
    except GridveilError as error:
        wrong_unless("case.m" in str(error), "the error does not name the file")
        return False
    wrong_unless(problems(network) == [], "a network with problems")
    network.write(folder / "again.m")
    wrong_unless((folder / "again.m").read_bytes() == data, "it does not come back the same")
    return True


def _network() -> object:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "case3.m").write_bytes(CASE)
        return read_case(Path(folder) / "case3.m")


NETWORK = _network()
WIDTH = {"load": 3, "p_min": 2, "p_max": 2, "cost": 2, "capacity": 3}


def _population_seeds() -> list[bytes]:
    seeds = [parquet_bytes(pa.table({"load": [[1.0, 2.0, 3.0], [1.0] * 3]}), compression="none")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "models.parquet"
        for size, names in ((1, ["load"]), (5, [*WIDTH]), (3, ["cost", "capacity"])):
            given = {n: np.linspace(0.5, 1.5, size * WIDTH[n]).reshape(size, -1) for n in names}
            Population(size, private="load" if size == 5 else None, **given).write(path, NETWORK)
            seeds.append(path.read_bytes())
    return seeds


POPULATION_SEEDS = _population_seeds()


def make_population(choose: Choose) -> bytes:
    """A population's Parquet file."""
    seed = POPULATION_SEEDS[choose(len(POPULATION_SEEDS))]
    return mutate_binary(seed, choose, POPULATION_SEEDS)


def check_population(data: bytes, folder: Path) -> bool:
    """Read a population; what reads is of the right shape and has usable numbers."""
    path = folder / "models.parquet"
    path.write_bytes(data)
    try:
        models = Population.read(path, NETWORK)
    except GridveilError:
        return False
    for name, array in models.arrays().items():
        wrong_unless(array.shape == (models.size, WIDTH.get(name, 2)), f"shape of {name}")
        wrong_unless(np.isfinite(array).all(), f"{name} is not finite")
        wrong_unless(name == "cost" or (array >= 0).all(), f"{name} is negative")
    return True
