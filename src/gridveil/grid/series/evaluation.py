"""Compare a released series with the real one, for the owner; never to be published."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.grid.model.network import Network
from gridveil.grid.model.population import Population
from gridveil.grid.opf.engine import Solutions, solve_population
from gridveil.grid.series.clock import Clock
from gridveil.grid.series.disclosures import KIND
from gridveil.grid.series.load_table import LoadSeries
from gridveil.grid.series.pictures import Drawn, year_pictures
from gridveil.privacy.statement import Statement
from gridveil.release.bundle import OWNER_MARK, read_statement, write_owner_file
from gridveil.report.page import Section, Table, owner_page

Floats = NDArray[np.float64]

_LINES = 10  # of a table


@dataclass(frozen=True)
class SeriesErrors:
    """Errors of a released series compared with the real one; NaN if there is no figure.

    Parameters
    ----------
    rmse
        Root mean square error over every load and time, MW.
    at_mean
        The control: the same error of loads that stay at their real mean all the time.
    total
        Mean error of the total at a time, in percent.
    peak
        Signed error of the highest total, in percent.
    energy, worst_energy
        Mean and largest error of a load's energy, in percent.
    ramp, ramp_real
        Mean over loads of the standard deviation of their changes from one time to the next, MW.
    cost
        Mean error of the cost of an hour, in percent, over hours that both can serve.
    infeasible
        Released hours that the network can't serve.
    congested, congested_real
        Hours in which some line is congested.
    """

    rmse: float
    at_mean: float
    total: float
    peak: float
    energy: float
    worst_energy: float
    ramp: float
    ramp_real: float
    cost: float
    infeasible: int
    congested: int
    congested_real: int


@dataclass(frozen=True, eq=False)
class SeriesEvaluation:
    """The owner's comparison of a released series with the real one."""

    statement: Statement
    clock: Clock
    errors: SeriesErrors
    real: Drawn
    released: Drawn
    lines: tuple[str, ...]

    def __repr__(self) -> str:
        # A notebook shows this, and may be published: figures are asked for by their names.
        times = f"{self.clock.size:,} times"
        return f"<{OWNER_MARK}: evaluation of loads at {times}, {self.statement.body['method']}>"

    def rows(self) -> list[tuple[str, str]]:
        """Return every figure with its description."""
        one = self.errors
        hours = f"of {self.clock.size:,}"
        return [
            ("error of a load and hour, rms", f"{one.rmse:.4g} MW"),
            ("the same of real mean loads, the control", f"{one.at_mean:.4g} MW"),
            ("error of an hour's total, mean", f"{one.total:.2f}%"),
            ("error of the highest total", f"{one.peak:+.2f}%"),
            ("error of a load's energy, mean", f"{one.energy:.2f}%"),
            ("error of a load's energy, largest", f"{one.worst_energy:.2f}%"),
            ("change of a load to the next time, released", f"{one.ramp:.4g} MW"),
            ("change of a load to the next time, real", f"{one.ramp_real:.4g} MW"),
            ("error of an hour's cost, mean", "-" if math.isnan(one.cost) else f"{one.cost:.2f}%"),
            ("released hours that can't be served", f"{one.infeasible:,} {hours}"),
            ("hours with congestion, released", f"{one.congested:,} {hours}"),
            ("hours with congestion, real", f"{one.congested_real:,} {hours}"),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the figures for a script."""
        found = {k: None if v != v else v for k, v in asdict(self.errors).items()}
        return {"mark": OWNER_MARK, **found}

    def write_report(self, path: Path | str) -> Path:
        """Write the owner's report, readable by its owner alone.

        Raises
        ------
        InputError
            If the file would be inside a bundle, or can't be written.
        """
        section = Section(
            "The released loads beside the real ones",
            "Do not let these figures decide what to publish: choosing the release that comes "
            "closest to the real data tells more about it than epsilon allows.",
            pictures=year_pictures(self.clock, (self.real, self.released)),
            tables=[Table("Figures", ("figure", "value"), self.rows()), *self._full_lines()],
        )
        return write_owner_file(path, owner_page(self.statement, (section,), OWNER_MARK))

    def _full_lines(self) -> list[Table]:
        """Make a table of the lines that are full most often in real and released hours."""
        hours = [
            one.solved.congested.sum(axis=0) * 24 / self.clock.slots
            for one in (self.real, self.released)
            if one.solved is not None
        ]
        most = np.argsort(-(hours[0] + hours[1]), kind="stable")[:_LINES]
        rows = [
            (self.lines[place], *(f"{one[place]:,.0f}" for one in hours))
            for place in most
            if hours[0][place] or hours[1][place]
        ]
        found = Table("Hours in which a line is full", ("line", "real", "released"), rows)
        return [found] if rows else []


def evaluate_series(
    bundle: Path | str, network: Network, series: LoadSeries, *, workers: int | None = None
) -> SeriesEvaluation:
    """Compare a bundle with the real series on the real network, for the owner alone.

    Parameters
    ----------
    bundle
        The folder of a release of load series.
    network, series
        The real ones, as they were released.
    workers
        Processes that share the hours.
    """
    folder = Path(bundle)
    statement = read_statement(folder)
    if statement.body["kind"] != KIND:
        raise InputError(
            f"The bundle at {folder} does not hold loads over time.",
            remedy="Name the folder of a release with --series.",
        )
    released = _released(folder, series)
    real = series.private(np.arange(len(series.names)))
    truth, made = (
        Drawn(name, colour, values, _solve(network, series, values, workers))
        for name, colour, values in (("real", "c0", real), ("released", "c1", released))
    )
    errors, lines = _errors(truth, made), tuple(network.branches.name)
    return SeriesEvaluation(statement, series.clock, errors, truth, made, lines)


def _released(folder: Path, series: LoadSeries) -> Floats:
    """Read the released values, in the order of the real series."""
    import pandas as pd

    file = folder / f"loads{series.layout.suffix}"
    if not file.is_file():
        raise InputError(
            f"The bundle has no file {file.name}.",
            remedy="Give the table that the release was made from, in the same format.",
        )
    frame = pd.read_csv(file) if file.suffix == ".csv" else pd.read_parquet(file)
    layout = series.layout
    if layout.kind == "long":
        frame[layout.load] = frame[layout.load].astype(str)
        frame = frame.pivot_table(index=layout.time, columns=layout.load, values=layout.power)
    frame.columns = frame.columns.astype(str)
    if not set(series.names) <= set(frame.columns) or len(frame) != series.clock.size:
        raise InputError(
            "The series has other loads or times than the bundle.",
            remedy="Give the table that the release was made from.",
        )
    return frame[list(series.names)].to_numpy(dtype=np.float64)


def _solve(network: Network, series: LoadSeries, values: Floats, workers: int | None) -> Solutions:
    load = np.zeros((len(values), len(network.buses)))
    np.add.at(load.T, series.bus, values.T)
    ones = network.with_load(np.ones(len(network.buses)))
    models = Population(len(values), load=load)
    return solve_population(ones, models, keep=("cost", "line_price"), workers=workers)


def _errors(truth: Drawn, made: Drawn) -> SeriesErrors:
    real, released, truly, ours = truth.values, made.values, truth.solved, made.solved
    assert truly is not None
    assert ours is not None
    total, found = real.sum(axis=1), released.sum(axis=1)
    energy, sums = released.sum(axis=0), real.sum(axis=0)
    used = sums != 0
    apart = 100 * np.abs(energy[used] / sums[used] - 1)
    both = np.isfinite(truly.cost) & np.isfinite(ours.cost) & (truly.cost != 0)
    error = 100 * np.abs(ours.cost[both] / truly.cost[both] - 1)
    return SeriesErrors(
        rmse=_rms(released - real),
        at_mean=_rms(real - real.mean(axis=0)),
        total=100 * float(np.mean(np.abs(found[total != 0] / total[total != 0] - 1))),
        peak=100 * float(found.max() / total.max() - 1),
        energy=float(apart.mean()),
        worst_energy=float(apart.max()),
        ramp=float(np.diff(released, axis=0).std(axis=0).mean()),
        ramp_real=float(np.diff(real, axis=0).std(axis=0).mean()),
        cost=float(error.mean()) if both.any() else math.nan,
        infeasible=int((~np.isfinite(ours.cost)).sum()),
        congested=int(ours.congested.any(axis=1).sum()),
        congested_real=int(truly.congested.any(axis=1).sum()),
    )


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2)))
