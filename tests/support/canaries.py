"""Canaries: private numbers with digits of their own, and a search for them in all kinds of bytes.

A number counts as a canary if it agrees with one, in some unit, to every digit that it has, and has
six or more: written out (with commas, points, exponents, as single precision), as bytes of a
floating-point number, or in a column of a compressed table.
"""

import base64
import math
import re
import struct
import zipfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DIGITS = 6
LIKE = 10.0**-DIGITS / 2  # how close two numbers are that agree to all digits
# Public numbers of a population are about 1 (multipliers) and 80 to 100 (costs): canaries are not.
LEADING = (1.2, 7.9)
_NUMBER = re.compile(rb"\d[\d,'_]*\.?\d*(?:[eE][+-]?\d{1,3})?")


def distinctive(values, units, count=12):
    """The first values that no public number looks like, in whatever unit."""
    low, high = LEADING
    shares = list(units.values())
    some = [
        float(value)
        for value in values
        if math.isfinite(value)
        and value > 0
        and all(low <= value * f / 10 ** math.floor(math.log10(value * f)) <= high for f in shares)
    ]
    chosen = list(dict.fromkeys(some))[:count]
    assert len(chosen) == count, "not enough canaries"
    return chosen


def spellings(value, units):
    """Every way to write a number in these units, rounded to six digits or more."""
    found = {}
    for unit, factor in units.items():
        amount = value * factor
        said = f"{value!r} in {unit}"
        for digits in range(DIGITS, 18):
            found[Decimal(f"{amount:.{digits}g}").normalize()] = said
        for exact in (repr(amount), repr(float(np.float32(amount))), str(np.float32(amount))):
            found[Decimal(exact).normalize()] = said
    return found


def spoken(blob):
    """Every number in some bytes, with those inside pictures."""
    for text in _NUMBER.findall(blob):
        digits = re.sub(r"['_]", "", text.decode())
        for plain in {digits.replace(",", ""), digits.replace(",", ".", 1).replace(",", "")}:
            if plain.count(".") <= 1:
                number = Decimal(plain).normalize()
                if len(number.as_tuple().digits) >= DIGITS:
                    yield number
    for picture in re.findall(rb"base64,([A-Za-z0-9+/=]+)", blob):
        decoded = base64.b64decode(picture)
        for start in (m.start() for m in re.finditer(rb"tEXt|iTXt|eXIf", decoded)):
            yield from spoken(decoded[start : start + 2000])


def leaks(parts, canaries, units):
    """The canaries that are somewhere in these bytes and columns of numbers."""
    parts = list(parts)
    blobs = [part for part in parts if isinstance(part, bytes)]
    columns = [np.abs(part) for part in parts if not isinstance(part, bytes)]
    numbers = np.concatenate([column[np.isfinite(column)] for column in columns] or [[]])
    wanted = {}
    for value in canaries:
        wanted |= spellings(value, units)
    found = {wanted[number] for blob in blobs for number in spoken(blob) if number in wanted}
    for value in canaries:
        for unit, factor in units.items():
            amount = value * factor
            packed = [struct.pack(kind, amount) for kind in ("<d", ">d", "<f", ">f")]
            if any(one in blob for one in packed for blob in blobs):
                found.add(f"{value!r} in {unit}, as bytes")
            if (np.abs(numbers - amount) <= LIKE * amount).any():
                found.add(f"{value!r} in {unit}, in a column")
    return found


def published(folder):
    """All bytes of a folder, and the columns of its tables unpacked."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.name.encode()
            yield path.read_bytes()
        if path.suffix == ".parquet":
            yield from _table(pq.read_table(path))
        if path.suffix == ".nc":
            yield from _dataset(path)


def _table(table):
    yield repr([table.schema.metadata, *(field.metadata for field in table.schema)]).encode()
    for name, column in zip(table.column_names, table.columns, strict=True):
        yield name.encode()
        joined = column.combine_chunks()
        while pa.types.is_list(joined.type) or pa.types.is_fixed_size_list(joined.type):
            joined = joined.flatten()
        yield from _values(joined.to_numpy(zero_copy_only=False))


def _dataset(path):
    import xarray

    with xarray.open_dataset(path) as data:
        yield repr([data.attrs, *(one.attrs for one in data.variables.values())]).encode()
        for name, one in data.variables.items():
            yield str(name).encode()
            yield from _values(np.ravel(one.to_numpy()))


def _values(values):
    if values.dtype.kind in "fiu":
        yield values.astype(np.float64)
    else:
        yield "\n".join(map(str, values)).encode()


def speak_in_cgmes(path: Path, said: Sequence[str]) -> None:
    """Numbers in descriptions, properties that nobody knows and comments of a CGMES model."""
    with zipfile.ZipFile(path) as packed:
        files = {name: packed.read(name).decode() for name in packed.namelist()}
    assert any("SvPowerFlow" in text for text in files.values())
    with zipfile.ZipFile(path, "w") as packed:
        for name, text in files.items():
            # What does not add up at a bus would be another load.
            lines = re.sub(r"<cim:SvInjection.*?</cim:SvInjection>", "", text, flags=re.S)
            lines = lines.splitlines()
            for at, line in enumerate(lines):
                if line.strip().startswith("</cim:"):
                    one = said[at % len(said)]
                    lines[at] = (
                        f"<cim:IdentifiedObject.description>{one}</cim:IdentifiedObject.description>"
                        f"<cim:Unknown.rating>{one}</cim:Unknown.rating><!-- {one} -->{line}"
                    )
            packed.writestr(name, "\n".join(lines))
