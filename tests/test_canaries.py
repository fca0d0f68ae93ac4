"""No private number leaves: canaries in the private data are searched for in all that is published.

A number counts as a canary if it agrees with one, in some unit, to every digit that it has, and has
six or more. Released values are noisy, so one may agree by chance: with random canaries 0.01 a run
were found in wind bundles and 0.4 in networks (12 canaries). So the same canary must be found in
each of five runs with fresh noise, which chance does once in a million; a leak is there every time.
"""

import base64
import logging
import re
import struct
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from typer.testing import CliRunner

from gridveil import grid
from gridveil.cli.main import app
from gridveil.wind.demo import CAPACITY, demo_records

RUNS = 5
DIGITS = 6
NUMBER = re.compile(rb"\d[\d,]*\.?\d*(?:[eE][+-]?\d{1,2})?")


def spellings(value, units):
    """Every way to write a number in these units, rounded to six digits or more."""
    found = {}
    for unit, factor in units.items():
        amount = value * factor
        for digits in range(DIGITS, 18):
            found[Decimal(f"{amount:.{digits}g}").normalize()] = f"{value!r} in {unit}"
        found[Decimal(repr(amount)).normalize()] = f"{value!r} in {unit}"
    return found


def spoken(blob):
    """Every number in some bytes, with those inside pictures."""
    for text in NUMBER.findall(blob):
        digits = text.replace(b",", b"").decode().rstrip(".")
        significant = Decimal(digits).normalize()
        if len(significant.as_tuple().digits) >= DIGITS:
            yield significant
    for picture in re.findall(rb"base64,([A-Za-z0-9+/=]+)", blob):
        decoded = base64.b64decode(picture)
        for start in (m.start() for m in re.finditer(rb"tEXt|iTXt|eXIf", decoded)):
            yield from spoken(decoded[start : start + 2000])


def leaks(blobs, canaries, units):
    """The canaries that are somewhere in these bytes, in digits or as floating-point numbers."""
    wanted, blobs = {}, list(blobs)
    for value in canaries:
        wanted |= spellings(value, units)
    found = {wanted[number] for blob in blobs for number in spoken(blob) if number in wanted}
    for value in canaries:
        for unit, factor in units.items():
            for kind in ("<d", "<f", ">d"):
                packed = struct.pack(kind, value * factor)
                if any(packed in blob for blob in blobs):
                    found.add(f"{value!r} in {unit}, as bytes")
    return found


def published(folder):
    """All bytes of a bundle, tables unpacked."""
    for path in folder.rglob("*"):
        yield path.read_bytes()
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            yield table.schema.to_string().encode()
            for column in table.columns:
                yield _flat(column).tobytes()


def _flat(column):
    joined = column.combine_chunks()
    while pa.types.is_list(joined.type) or pa.types.is_fixed_size_list(joined.type):
        joined = joined.flatten()
    return np.asarray(joined.to_numpy(zero_copy_only=False), dtype=np.float64)


def run(command, capsys, caplog):
    """Everything that a command shows and logs."""
    with caplog.at_level(logging.DEBUG):
        result = CliRunner().invoke(app, [str(word) for word in command])
    assert result.exit_code == 0, result.output
    spilt = capsys.readouterr()
    return "\n".join([result.output, spilt.out, spilt.err, caplog.text]).encode()


@pytest.fixture
def turbine(tmp_path):
    """A file of wind records in which every tenth power is a canary."""
    table = demo_records(300, seed=5).to_pandas()
    canaries = [round(91.7345678 + 88.0123456789 * place, 9) for place in range(30)]
    table.loc[::10, "power"] = canaries
    path = tmp_path / "farm.csv"
    csv.write_csv(pa.Table.from_pandas(table, preserve_index=False), path)
    units = {"kW": 1.0, "share": 1 / CAPACITY, "percent": 100 / CAPACITY, "MW": 1e-3}
    words = ["--speed", "wind_speed", "--power", "power", "--capacity", "2750", "--alpha", "15%"]
    return ["wind", "release", path, *words], canaries, units


@pytest.fixture
def network(tmp_path):
    """RTS-96 with canaries for capacities, also in the file's comments."""
    real = grid.cases.rts96(variant="paper")
    canaries = [round(101.3456781 + 7.0123456789 * place, 7) for place in range(12)]
    capacity = real.branches.capacity.copy()
    capacity[: len(canaries)] = canaries
    real = replace(real, branches=replace(real.branches, capacity=capacity))
    path = tmp_path / "case.m"
    real.write(path)
    path.write_text(path.read_text() + "".join(f"% rated {one!r} MW\n" for one in canaries))
    models = tmp_path / "models.parquet"
    grid.sample_population(real, 5, costs=(80, 100)).write(models)
    units = {"MW": 1.0, "per unit": 1e-2, "percent": 1e2, "kW": 1e3}
    return ["grid", "release", path, "--alpha", 30, "--population", models], canaries, units


@pytest.mark.parametrize(
    ("kind", "method"),
    [("turbine", "tuned"), ("turbine", "wpo"), ("turbine", "laplace")]
    + [("network", "certified"), ("network", "laplace")],
)
def test_no_canary_leaves(kind, method, request, tmp_path, capsys, caplog):
    command, canaries, units = request.getfixturevalue(kind)
    found = None
    for number in range(RUNS):
        folder = tmp_path / f"out-{number}"
        shown = run([*command, "--method", method, "-o", folder], capsys, caplog)
        ledger = (tmp_path / "default-ledger.sqlite").read_bytes()
        here = leaks([*published(folder), shown, ledger], canaries, units)
        found = here if found is None else found & here
        if not found:
            return
    pytest.fail(f"in all of {RUNS} runs: {sorted(found)}")


@pytest.mark.parametrize("kind", ["turbine", "network"])
def test_the_search_finds_a_leak(kind, request, tmp_path, capsys, caplog):
    command, canaries, units = request.getfixturevalue(kind)
    folder = tmp_path / "out"
    run([*command, "--method", "laplace", "-o", folder], capsys, caplog)
    sound = leaks(published(folder), canaries, units)
    value, other = canaries[3], canaries[4]
    picture = b"\x89PNG....tEXtnote\0" + repr(value).encode()
    planted = [
        repr(value),
        f"{value:.6g}",
        f"{value:,.4f}",
        f"mean {value * list(units.values())[1]:.7g} of all",
        f"{100 * value:.5e}" if kind == "network" else f"{value / 1000:.8f}",
        f'<img src="data:image/png;base64,{base64.b64encode(picture).decode()}">',
    ]
    for text in planted:
        assert leaks([*published(folder), text.encode()], canaries, units) - sound, text
    pq.write_table(pa.table({"list": [[1.0, other]]}), folder / "extra.parquet")
    assert leaks(published(folder), [other], units)


def test_the_source_itself_is_full_of_canaries(turbine, network):
    for command, canaries, units in (turbine, network):
        assert len(leaks([command[2].read_bytes()], canaries, units)) == len(canaries)
