"""A population of OPF models on one network: costs, loads and generator limits of each.

Every array has one row per model. Loads, limits and capacities are public multipliers of the
network's own values, never values: sampled values would give the nominal ones away. Whether models
fit a network is decided by public data only: shapes, values, and whether generation can match load.
A population's file is Parquet: one row per model, one list column per array.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.grid.model.checks import Problem, refuse
from gridveil.grid.model.network import Network
from gridveil.grid.model.parameters import check_parameters
from gridveil.grid.model.public_network import PublicNetwork

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

KEY = b"gridveil.population"
"""The key of a file's metadata for the names of elements and the private parameters."""
MODEL = "model"

TABLE = {
    "load": "buses",
    "p_min": "generators",
    "p_max": "generators",
    "cost": "generators",
    "cost_factor": "generators",
    "capacity": "branches",
}
"""Which table of the network the columns of each array belong to."""


@dataclass(frozen=True, eq=False, repr=False)
class Population:
    """Models that share a network.

    Parameters
    ----------
    load
        Multipliers of the buses' loads, ``(models, buses)``; None: all 1.
    p_min, p_max
        Multipliers of the generators' limits, ``(models, generators)``; None: all 1.
    cost
        Linear cost in $/MWh, ``(models, generators)``, in place of the network's costs; or None.
    cost_factor
        Multipliers of the network's costs, ``(models, generators)``; None: all 1.
    capacity
        Multipliers of the branches' capacities, ``(models, branches)``; None: all 1.
    size
        How many models.
    private
        The parameters that the population was made for: a name, a text with commas or a sequence
        of names, kept as a tuple; empty: none is known. Nothing is checked against them.
    """

    size: int
    load: Floats | None = None
    p_min: Floats | None = None
    p_max: Floats | None = None
    cost: Floats | None = None
    cost_factor: Floats | None = None
    capacity: Floats | None = None
    private: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        private = check_parameters(self.private) if self.private else ()
        object.__setattr__(self, "private", private)
        if "cost" in private and self.cost is not None:
            raise values_of_private()
        for name in TABLE:
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, _frozen(given, name))

    def arrays(self) -> dict[str, Floats]:
        """The arrays that are there, by name."""
        return {name: getattr(self, name) for name in TABLE if getattr(self, name) is not None}

    def check(self, network: Network | PublicNetwork) -> Population:
        """The population itself, if it fits the network.

        Raises
        ------
        InputError
            If it does not: every problem is named.
        """
        refuse("The population", self.problems(network))
        return self

    def problems(self, network: Network | PublicNetwork) -> list[Problem]:
        """Everything that keeps these models from running on a network, on public data alone.

        Whether generation is enough in every model is asked only if neither loads nor
        generator limits are private: a refusal would tell something about them.
        """
        found = [*self._misshapen(network), *self._unusable()]
        private = {*self.private, *getattr(network, "parameters", ())}
        if found or private & {"load", "generator_limit"}:
            return found
        return list(self._inadequate(network))

    def write(
        self, path: str | os.PathLike[str], network: Network | PublicNetwork | None = None
    ) -> None:
        """Write the models as Parquet: one row per model, one list column per array.

        If the network is given too, the file names its elements, and is then only ever read with
        a network of the same elements.
        """
        names: dict[str, tuple[str, ...]] = {}
        if network is not None:
            self.check_shapes(network)
            names = {array: getattr(network, TABLE[array]).name for array in self.arrays()}
        columns: dict[str, Any] = {MODEL: pa.array(np.arange(self.size))}
        for name, array in self.arrays().items():
            flat = pa.array(np.ascontiguousarray(array).ravel())
            columns[name] = pa.FixedSizeListArray.from_arrays(flat, array.shape[1])
        about = {"names": names, "private": self.private}
        table = pa.table(columns).replace_schema_metadata({KEY: json.dumps(about).encode()})
        try:
            pq.write_table(table, Path(path), compression="zstd")
        except OSError as error:
            raise InputError(
                f"{Path(path)} can't be written: {error.strerror or error}.",
                remedy="Name a file in a folder that is there and that you may write.",
            ) from None

    @classmethod
    def read(cls, path: str | os.PathLike[str], network: Network | PublicNetwork) -> Population:
        """Read models from Parquet, written by `write` or by anyone else.

        A column is a list of numbers, one an element in the order of the network, and is called
        like an array of this class. The file may name the elements in its metadata; they must
        then be those of the network.

        Raises
        ------
        InputError
            If the file does not fit the network.
        """
        names = {array: getattr(network, table).name for array, table in TABLE.items()}
        arrays, size, private = _read(Path(path), names)
        population = cls(size=size, private=private, **arrays)
        population.check_shapes(network)
        return population

    def check_shapes(self, network: Network | PublicNetwork) -> None:
        """Raise if an array does not match the network, or holds what can't be used."""
        refuse("The population", [*self._misshapen(network), *self._unusable()])

    def _misshapen(self, network: Network | PublicNetwork) -> Iterator[Problem]:
        """Arrays that do not have a row per model and a column per element."""
        for name, array in self.arrays().items():
            wanted = (self.size, len(getattr(network, TABLE[name])))
            if array.shape != wanted:
                yield Problem(
                    name,
                    f"shape {array.shape}",
                    f"it does not match {wanted[0]} models and {wanted[1]} {TABLE[name]}",
                    "Give one row per model and one column per element.",
                )

    def _unusable(self) -> Iterator[Problem]:
        """Arrays that hold what no model can have."""
        for name, array in self.arrays().items():
            bad = ~np.isfinite(array)
            # A load that is public may be one at some times, and feed in at others.
            signed = name == "cost" or (
                name == "load" and bool(self.private) and "load" not in self.private
            )
            if not signed:
                bad |= array < 0
            rows = np.unique(np.argwhere(bad)[:, 0])
            if len(rows):
                yield Problem(
                    name,
                    f"{len(rows)} models, the first is {rows[0]}",
                    "it holds numbers that are missing, infinite or negative"
                    if not signed
                    else "it holds numbers that are missing or infinite",
                    "Correct or leave out these models.",
                )

    def _inadequate(self, network: Network | PublicNetwork) -> Iterator[Problem]:
        """Models in which an island's generators can't match its load, line limits aside."""
        island = _islands(network)
        short, over = self._unmatched(network, network, island)
        for bad, what in (
            (short, "generators can't cover the load"),
            (over, "generators can't go down to the load"),
        ):
            for model, label in np.argwhere(np.broadcast_to(bad, (self.size, bad.shape[1]))):
                first = network.buses.name[int(np.flatnonzero(island == label)[0])]
                yield Problem(
                    f"model {model}",
                    f"island of bus {first}",
                    what,
                    "Leave the model out, or widen it.",
                )

    def hopeless(self, low: Network, high: Network) -> Bools:
        """Models in which no values between those of two networks let generation match load.

        `low` has every private value at the lower end of its range, and `high` at the upper end.
        One answer per model; a single one if all models are alike.
        """
        # Limits may be infinite, and then nothing is hopeless.
        with np.errstate(invalid="ignore"):
            short, over = self._unmatched(low, high, low.islands())
        return np.asarray((short | over).any(axis=1))

    def _unmatched(self, low: Any, high: Any, island: Any) -> tuple[Bools, Bools]:
        """Islands whose generators can't cover the load, or can't go down to it, in each model.

        The least load and lower limits are those of `low`, the most load and upper limits of
        `high`.
        """
        shunt = _by_island(None, low.buses.shunt, island)
        needed, welcome = (
            _by_island(self.load, one.buses.load, island) + shunt for one in (low, high)
        )
        place = np.where(low.generators.in_service, island[low.generators.bus], -1)
        most = _by_island(self.p_max, high.generators.p_max, place, needed.shape[1])
        least = _by_island(self.p_min, low.generators.p_min, place, needed.shape[1])
        return (
            most < needed - 1e-9 * (1 + np.abs(needed)),
            least > welcome + 1e-9 * (1 + np.abs(welcome)),
        )

    def __repr__(self) -> str:
        lines = [f"Population of {self.size:,} models"]
        for name, array in self.arrays().items():
            unit = " $/MWh" if name == "cost" else ""
            ends = f"{array.min():.4g} to {array.max():.4g}" if array.size else "empty"
            lines.append(f"  {name:<12}{array.shape[1]:,} {TABLE[name]}, {ends}{unit}")
        if self.private:
            lines.append(f"  {'private':<12}{', '.join(self.private)}")
        return "\n".join(lines)


def take(models: Population, places: NDArray[np.int64]) -> Population:
    """Some models of a population."""
    arrays: dict[str, Any] = {name: array[places] for name, array in models.arrays().items()}
    return replace(models, size=len(places), **arrays)


def values_of_private() -> InputError:
    """Make the error for a population that holds values of private costs."""
    return InputError(
        "Costs are private here, so a population can't hold values of them.",
        remedy="Give multipliers: costs=0.1 for factors in 0.9 to 1.1, or costs=None "
        "(--costs 10% or --costs none).",
    )


def _frozen(values: Any, name: str) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"The values of {name} are not all numbers.") from None
    array.setflags(write=False)
    return array


def _islands(network: Any) -> Any:
    if isinstance(network, Network):
        return network.islands()
    blank = np.zeros(network.entries)
    return network.with_values(blank).islands()


def _by_island(
    factors: Floats | None, values: Floats, island: Any, count: int | None = None
) -> Floats:
    """Sums over islands, ``(models, islands)``; a single row if all models are alike."""
    width = int(island.max(initial=-1)) + 1 if count is None else count
    on = island >= 0
    member = np.zeros((int(on.sum()), width))
    member[np.arange(len(member)), island[on]] = 1
    scaled = values[on] if factors is None else factors[:, on] * values[on]
    total: Floats = np.atleast_2d(scaled @ member)
    return total


def _read(
    path: Path, names: dict[str, tuple[str, ...]]
) -> tuple[dict[str, Floats], int, tuple[str, ...]]:
    """Read a file for these elements: arrays, number of models and private parameters."""
    if not os.path.exists(path):  # `Path.exists` fails on a name that is too long
        raise InputError(
            f"There is no population at {path}.",
            remedy="gridveil grid population makes one; or check the path.",
        )
    try:
        # Not `read_table`, which fails on a file with a column name twice.
        with pq.ParquetFile(path) as file:
            table = file.read()
        present = list(table.column_names)
    except (OSError, ValueError, pa.ArrowException) as error:  # also names that are not UTF-8
        raise InputError(
            f"{path.name} can't be read as Parquet: {error}.", remedy="Check the file."
        ) from None
    about = _about(table, path.name)
    unknown = sorted(set(present) - set(names) - {MODEL})
    if unknown:
        raise InputError(
            f"{path.name} has columns that mean nothing here: {', '.join(unknown)}.",
            remedy=f"Use some of {', '.join(names)}.",
        )
    twice = sorted({name for name in present if present.count(name) > 1})
    if twice:
        raise InputError(
            f"{path.name} has several columns called {twice[0]}.", remedy="Keep one of them."
        )
    if not table.num_rows:
        raise InputError(f"{path.name} has no models.", remedy="Give one row per model.")
    arrays = {}
    for name in present:
        if name != MODEL:
            stored = about["names"].get(name)
            if stored is not None and stored != names[name]:
                raise InputError(
                    f"The elements of {name} in {path.name} are not those of the network.",
                    remedy="Use the network that the population was made for.",
                )
            arrays[name] = _matrix(table.column(name), name, len(names[name]))
    return arrays, table.num_rows, about["private"]


def _about(table: Any, file: str) -> dict[str, Any]:
    text = (table.schema.metadata or {}).get(KEY)
    try:
        about = json.loads(text) if text is not None else {"names": {}, "private": None}
        names = {str(array): tuple(names) for array, names in about["names"].items()}
        return {"names": names, "private": _private(about["private"])}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InputError(f"The metadata of {file} is damaged.", remedy="Write it again.") from None


def _private(stored: Any) -> tuple[str, ...]:
    # Older files have None or a single name: at most one parameter could be private.
    if stored is None or isinstance(stored, str):
        return () if stored is None else (stored,)
    if not isinstance(stored, list):
        raise TypeError
    return tuple(str(name) for name in stored)


def _matrix(column: Any, name: str, width: int) -> Floats:
    kind = column.type
    if not (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    ):
        raise InputError(
            f"Column {name} holds {kind}, not lists of numbers.",
            remedy="Give one list for each model, with one number for each element.",
        )
    lengths = set(pc.list_value_length(column).to_pylist())
    if lengths - {width}:
        other = lengths.pop() if len(lengths) == 1 else None
        has = "different lengths, or some are missing" if other is None else f"{other:,} numbers"
        raise InputError(
            f"The lists of column {name} have {has}, and the network has {width:,} such elements.",
            remedy="Name a population of this network (gridveil grid population), or give one "
            "number for each element.",
        )
    flat = column.combine_chunks().flatten()
    try:
        values = np.asarray(flat.cast(pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowException:
        raise InputError(f"Column {name} does not hold numbers.") from None
    return values.reshape(-1, width)
