"""Wind power records on the page. The stand-in: made-up records about a real turbine's curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from gridveil.errors import InputError, show_exact
from gridveil.planning.choice import Choice
from gridveil.planning.release_kind import (
    Field,
    Kind,
    Metric,
    Parameter,
    Run,
    Session,
    Share,
    file_word,
    method_options,
    percent,
)
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.sealed import Range
from gridveil.wind.demo import CAPACITY, demo_records
from gridveil.wind.evaluation import TurbineEvaluation, compare
from gridveil.wind.io.read_options import CsvStyle
from gridveil.wind.methods import BY_NAME, Synthetic
from gridveil.wind.records import Records, read_records
from gridveil.wind.release import plan

_METRICS = (
    Metric("curve", "Power curve", "% of capacity", "typical error of the fitted power curve"),
    Metric("spread", "Scatter", "%", "error of the records' scatter about their curve"),
    Metric("energy", "Energy", "%", "error of the sum of all records"),
    Metric("record", "One record", "% of capacity", "typical error of a single record"),
)


_WHEN = {
    "tuned": "For one record at a time, by a step below its whole range. From 500 records on the "
    "method synthetic keeps more of whole values (100%), and it protects whole hours, days and "
    "weeks: gridveil wind release --method auto --protect day.",
}


class Wind(Kind):
    """Release wind power records.

    Parameters
    ----------
    public
        Records that their owner declared public, in place of the built-in ones.
    """

    name = "wind"
    title = "Wind power records"
    parameters = (
        Parameter(
            "power",
            "power",
            "%",
            ("1", "2", "5", "10", "15", "20", "25", "30", "40", "50", "75", "100"),
            "15",
            "How far one record may move, in percent of the nameplate capacity, and still be "
            "hidden among the possibilities.",
        ),
    )
    # The page asks for alpha, and synthetic records protect the whole range.
    methods = tuple(
        replace(one, text=f"{one.text} {_WHEN.get(one.name, '')}".strip())
        for one in method_options({n: m for n, m in BY_NAME.items() if n != Synthetic.method})
    )
    fields = (
        Field("file", "Your file", "scada.csv", "CSV or Parquet. It is not opened here."),
        Field("speed", "Column of wind speed", "wind_speed", "Public."),
        Field("power", "Column of power", "power_kw", "Private."),
        Field("capacity", "Nameplate capacity", "2750", "Public, in the unit of the power column."),
        Field("unit", "Unit of power", "", "MW, % or pu, for example, if not kW.", optional=True),
        Field("time", "Column of times", "", "Public: it orders the rows.", optional=True),
        Field("turbine", "Column of turbines", "", "Public, if there are several.", optional=True),
        Field(
            "decimal", "Sign before decimals", "", "A comma, if it is not a point.", optional=True
        ),
        Field("encoding", "Encoding", "", "cp1252, for example, if not UTF-8.", optional=True),
        Field(
            "missing", "Rows with gaps", "", "drop, to leave them out; else refused.", optional=True
        ),
        Field("output", "Folder for the release", "release", "Made by the command."),
    )

    def __init__(self, public: Records | None = None) -> None:
        self._public = public
        rows = None if public is None else public.rows
        self.size = ("records", rows or 100, rows or 1000, rows or 20_000)

    @property
    def stand_in(self) -> str:
        """The public data that accuracy is measured on, in a sentence."""
        if self._public is not None:
            return f"{self._public.rows:,} records of {self._public.name}, which you named public."
        return (
            "Made-up records about the curve of a GE 2.75-103 turbine. Choose as many as you have: "
            "accuracy grows with their number."
        )

    def metrics(self, choice: Choice) -> tuple[Metric, ...]:
        """The power curve first: it is what records are bought for."""
        return _METRICS

    def check_field(self, name: str, fields: Mapping[str, str], choice: Choice | None) -> None:
        """Raise `InputError` for text that can't be read so, or a column in two roles."""
        if name == "capacity":
            _capacity(fields[name])
        if name in ("decimal", "encoding") and fields[name]:
            CsvStyle(**{name: fields[name]})
        if name == "missing" and fields[name] not in ("", "drop", "refuse"):
            raise InputError(
                f"Rows with gaps are left out or refused, and {fields[name][:20]!r} is neither.",
                remedy="Write drop or refuse.",
            )
        if name == "power" and fields["power"] == fields["speed"]:
            raise InputError(
                "The same column can't be public and private.",
                remedy="Name the column of power here.",
            )

    def neighbours(self, choice: Choice) -> Sequence[Adjacency]:
        """One record moves by alpha, a share of capacity."""
        return [_adjacency(choice)]

    def charged(self, choice: Choice, fields: Mapping[str, str]) -> Sequence[Adjacency]:
        """The ledger compares amounts, which follow from the capacity."""
        # The name of the turbine is in the file, which is not opened here.
        wholes = {"": Fraction(_capacity(fields["capacity"]))}
        return [replace(_adjacency(choice), wholes=wholes, measure=fields["unit"] or "kW")]

    def session(self, choice: Choice) -> Session:
        """Work out the split of epsilon, which all runs share."""
        records = _built_in(choice.size) if self._public is None else self._public
        return WindSession(records, choice)

    def command(self, choice: Choice, fields: Mapping[str, str]) -> list[str]:
        """``gridveil wind release`` with everything that was chosen."""
        words = ["gridveil", "wind", "release", file_word(fields["file"])]
        words += ["--speed", fields["speed"], "--power", fields["power"]]
        words += ["--capacity", fields["capacity"]]
        for name in ("unit", "time", "turbine", "decimal", "encoding", "missing"):
            words += [f"--{name}", fields[name]] if fields[name] else []
        words += [
            "--alpha",
            percent(choice.alphas["power"]),
            "--epsilon",
            show_exact(choice.epsilon),
        ]
        if choice.method != self.methods[0].name:
            words += ["--method", choice.method]
        return [*words, "-o", file_word(fields["output"])]

    def effort(self, choice: Choice) -> tuple[int, int]:
        """Runs take some hundredths of a second."""
        return 20, 4

    def exposure(self, choice: Choice, fields: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """The ledger knows columns by their names."""
        named = (fields[name] for name in ("speed", "time", "turbine"))
        return [fields["power"]], [name for name in named if name]


class WindSession(Session):
    """Seeded releases of the stand-in, as `gridveil.wind.release` makes them."""

    def __init__(self, records: Records, choice: Choice) -> None:
        self._records, self._choice = records, choice
        self._plan = plan(
            records,
            epsilon=choice.epsilon,
            alpha=choice.alphas["power"],
            method=choice.method,
        )

    def run(self, seed: int) -> Run:
        """Make a seeded release of the stand-in, and measure it."""
        made = self._plan.run(self._plan.study(seed))
        released = [turbine.blocks for turbine in made.turbines]
        found, picture = compare(self._records, self._plan.fits, released, called="stand-in")
        shares = [
            Share(record.query, float(100 * record.epsilon / self._choice.epsilon))
            for record in made.account.records
        ]
        return Run(_values(found), shares, picture.pictures[:1])


def _values(found: tuple[TurbineEvaluation, ...]) -> dict[str, float]:
    """The metrics in percent, over all turbines by their numbers of records."""
    rows = np.array([one.rows for one in found], dtype=float)
    real_loss = math.hypot(*(one.real_loss for one in found))
    loss = math.hypot(*(one.released_loss for one in found))
    real_energy = sum(one.real_energy for one in found)
    energy = sum(one.released_energy for one in found)
    curve = np.average([one.curve_error**2 for one in found], weights=rows)
    record = np.average([one.rmse**2 for one in found], weights=rows)
    return {
        "curve": 100 * float(np.sqrt(curve)),
        "spread": 100 * abs(loss - real_loss) / max(real_loss, 1e-12),
        "energy": 100 * abs(energy - real_energy) / max(real_energy, 1e-12),
        "record": 100 * float(np.sqrt(record)),
    }


@lru_cache(maxsize=4)
def _built_in(rows: int) -> Records:
    return read_records(
        demo_records(rows), speed="wind_speed", power="power", capacity=CAPACITY, name="stand-in"
    )


def _adjacency(choice: Choice) -> Adjacency:
    return Adjacency.of(
        "power",
        alpha=choice.alphas["power"],
        unit="of capacity",
        range=Range(0.0, 1.0),
        entries=choice.size,
        groups={"all records": choice.size},
    )


def _capacity(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise InputError(
            "The nameplate capacity is not a positive number.", remedy="Write 2750, for example."
        )
    return number
