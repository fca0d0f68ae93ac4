"""Release wind power records: from sealed power to a bundle.

`plan` checks everything public and prepares a method (see `methods`); running the plan makes
the released records, the statement and the report. `release` is plan, charge and run.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError, reason, show_exact
from gridveil.privacy.account import Account
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.budget import Budget, Exact, exact
from gridveil.privacy.ledger import Ledger, Sketch
from gridveil.privacy.sealed import Limits
from gridveil.privacy.statement import Facts, Restoration, make_statement
from gridveil.release import Plan, Progress, Release, Terms, silent
from gridveil.report.page import Section
from gridveil.wind.features import Features
from gridveil.wind.fit import Fit, default_features, fit_records
from gridveil.wind.methods import Outcome, Prepared, Settings, Task, prepare, run
from gridveil.wind.records import Records
from gridveil.wind.report import wind_section

Vector = NDArray[np.float64]
Method = Literal["tuned", "wpo", "laplace"]
METHODS = ("tuned", "wpo", "laplace")

_LIMITATIONS = (
    "Records close in time resemble each other: what many of them say together is bounded by the "
    "figure for several entries, not by epsilon for one.",
    "Wind speeds are public, and power follows from them to a large part.",
    "Duplicates of one measurement count as several entries.",
)

_FORMULAS = (
    "Some of its text begins as a spreadsheet's formula does, and is published as it was: load the "
    "file as data, and do not open it in a spreadsheet."
)


class WindRelease(Release):
    """Released wind power records: `data` as a table, `write` for the bundle."""

    def __init__(self, task: Task, outcome: Outcome, facts: Facts) -> None:
        self.records = task.records
        self.restorations = [one.restoration for one in outcome.turbines]
        self._fits = task.fits
        self.turbines = outcome.turbines
        files = {self.records.file_name: lambda path: self.records.write(path, self.blocks)}
        super().__init__(make_statement(task.account, facts), task.account, files)

    def blocks(self) -> Iterator[Vector]:
        """Released power as shares of capacity, in the released order, in blocks."""
        for turbine in self.turbines:
            yield from turbine.blocks()

    def sections(self) -> tuple[Section, ...]:
        """Pictures of one turbine's released records, and a line for each turbine."""
        blocks = [turbine.blocks for turbine in self.turbines]
        restored = any(one is not None for one in self.restorations)
        return (wind_section(blocks, self._fits, self.records, restored=restored),)

    @cached_property
    def data(self) -> Any:
        """The released records, as a table of the kind that came in (pandas for files)."""
        return self.records.to_table(np.concatenate(list(self.blocks())))


class WindPlan(Plan[WindRelease]):
    """A wind release that was checked and prepared from public data; made by `plan`."""

    def __init__(
        self,
        records: Records,
        settings: Settings,
        adjacency: Adjacency,
        epsilon: Fraction,
        features: Features,
        fits: Sequence[Fit],
        prepared: Prepared,
    ) -> None:
        super().__init__(
            Terms(
                dataset=records.dataset,
                epsilon=epsilon,
                adjacency=(adjacency,),
                clear=records.published,
                private=[records.power_column],
                purpose=f"wind power records, method {settings.method}",
            )
        )
        self.records = records
        self.settings = settings
        self.features = features
        self.fits = fits
        self.prepared = prepared
        self._room: Vector | None = None

    def _before_charge(self) -> None:
        # That there is room for the noisy records must be known.
        self._room = _scratch(self.records)

    def sketch(self) -> Sketch:
        """See `Plan.sketch`: of the published columns."""
        return self.records.sketch()

    def _run(self, account: Account, progress: Progress) -> WindRelease:
        noisy = _scratch(self.records) if self._room is None else self._room
        self._room = None
        (adjacency,) = self.terms.adjacency
        task = Task(
            account, self.records, self.fits, adjacency.alpha, self.settings, noisy, progress
        )
        outcome = run(task, self.prepared)
        return WindRelease(task, outcome, _facts(task, self.prepared, outcome, self.features))


def release(
    records: Records,
    *,
    epsilon: Exact,
    alpha: Exact,
    method: Method = "tuned",
    features: Features | None = None,
    ridge: float = 1e-3,
    split: Sequence[Exact] | None = None,
    gamma_weights: float | None = None,
    gamma_records: float = 1e-5,
    nominal: float = 0.1,
    dataset: str | None = None,
    distinct: str | None = None,
    ledger: Ledger | Path | str | None = None,
    seed: int | None = None,
    progress: Progress = silent,
) -> WindRelease:
    """Release wind power records with a differential-privacy guarantee: plan, charge and run.

    Parameters
    ----------
    records
        From `read_records`.
    epsilon
        The guarantee: 1, 0.5, "1/3".
    alpha
        How far one record may move between neighbours, as a share of capacity: 0.15, "15%".
    method
        ``"tuned"`` (the best use of epsilon), ``"wpo"`` (the paper's algorithm), ``"laplace"``
        (noise and clipping only).
    features
        Public features of the regression whose results the records keep; bumps every 2.5 m/s over
        the range of wind speeds by default.
    ridge
        The regression's ridge parameter.
    split
        Three shares of epsilon that add up to 1: for the records, for the loss (tuned: the
        spread), for the weights. The method's own by default.
    gamma_weights, gamma_records
        The restoration's prices of the weights and of the records. Without one for the weights,
        tuned weighs them by how well they are known, and wpo takes the paper's 1e-5.
    nominal
        Tuned: the typical distance of a record from its curve that the split is planned for, as a
        share of capacity. A public guess; accuracy depends on it a little, privacy not at all.
    dataset
        The ledger's name for the data, which is in the statement. It may be left out if
        `read_records` was given one, or once the ledger knows the data.
    distinct
        Why this is not the data of another dataset that it looks like; the ledger keeps it.
    ledger
        A ledger or its file; the user's own by default.
    seed
        For studies on public data only: seeded noise, no ledger, no guarantee.
    progress
        Called with a few words as each step begins.

    Raises
    ------
    InputError, LedgerRefused
        Before anything is charged.
    ReleaseAborted
        Where a computation on the private records failed; the charge stays.
    """
    planned = plan(
        records,
        epsilon=epsilon,
        alpha=alpha,
        method=method,
        features=features,
        ridge=ridge,
        split=split,
        gamma_weights=gamma_weights,
        gamma_records=gamma_records,
        nominal=nominal,
        progress=progress,
    )
    if seed is None:
        account = planned.charge(ledger, dataset=dataset, distinct=distinct)
    else:
        account = planned.study(seed)
    return planned.run(account, progress)


def plan(
    records: Records,
    *,
    epsilon: Exact,
    alpha: Exact,
    method: Method = "tuned",
    features: Features | None = None,
    ridge: float = 1e-3,
    split: Sequence[Exact] | None = None,
    gamma_weights: float | None = None,
    gamma_records: float = 1e-5,
    nominal: float = 0.1,
    progress: Progress = silent,
) -> WindPlan:
    """Check and prepare a wind release; it opens nothing and charges nothing.

    Parameters, and what is raised for public input, are as in `release`.
    """
    settings = _checked(method, ridge, split, gamma_weights, gamma_records, nominal)
    adjacency = Adjacency.of(
        "power",
        alpha=alpha,
        unit="of capacity",
        limits=Limits(0.0, 1.0),
        entries=records.rows,
        wholes={group.name: Fraction(group.capacity) for group in records.groups},
        measure=records.unit,
    )
    total = Budget(epsilon).total
    progress("public features")
    chosen = default_features(records) if features is None else features
    fits = fit_records(records, chosen, settings.ridge)
    prepared = prepare(fits, adjacency.alpha, total, settings)
    return WindPlan(records, settings, adjacency, total, chosen, fits, prepared)


def _checked(
    method: str,
    ridge: float,
    split: Sequence[Exact] | None,
    gamma_weights: float | None,
    gamma_records: float,
    nominal: float,
) -> Settings:
    if method not in METHODS:
        raise InputError(f"There is no method {method!r}.", remedy=f"Use {', '.join(METHODS)}.")
    for name, value, least in (
        ("ridge", ridge, 0.0),
        ("gamma_weights", 0.0 if gamma_weights is None else gamma_weights, 0.0),
        ("gamma_records", gamma_records, 1e-12),
        ("nominal", nominal, 1e-4),
    ):
        if not (np.isfinite(value) and least <= value <= 1e6):
            raise InputError(f"{name} is {value}.", remedy=f"It must be between {least:g} and 1e6.")
    if nominal > 1:
        raise InputError(
            f"nominal is {nominal:g}, more than the whole capacity.",
            remedy="It is a share of capacity: 0.1, for example.",
        )
    return Settings(
        method, float(ridge), _checked_split(method, split), gamma_weights, gamma_records, nominal
    )


def _checked_split(
    method: str, split: Sequence[Exact] | None
) -> tuple[Fraction, Fraction, Fraction] | None:
    if split is None:
        return None
    if method == "laplace":
        raise InputError("The method laplace spends all epsilon on the records: leave split out.")
    shares = [exact(share, name="a share of epsilon") for share in split]
    if len(shares) != 3 or sum(shares) != 1:
        raise InputError(
            "A split needs three shares that add up to 1: records, loss or spread, weights.",
            remedy='For example "1/2", "1/4", "1/4".',
        )
    return shares[0], shares[1], shares[2]


def _scratch(records: Records) -> Vector:
    """Room for the noisy records: in memory, or in a nameless file where they are streamed.

    It begins as NaN: memory that was not written to may hold what was there before, private
    records among it.
    """
    if not records.streamed:
        return np.full(records.rows, np.nan)
    with tempfile.TemporaryFile() as stream:
        try:
            _make_room(stream, 8 * records.rows)
        except OSError as problem:
            raise InputError(
                f"There is no room for {records.rows:,} noisy records in the folder for temporary "
                f"files: {reason(problem)}.",
                remedy="Make room, or name another folder with TMPDIR.",
            ) from None
        room = np.memmap(stream, dtype=np.float64, mode="r+", shape=(records.rows,))
        room[:] = np.nan
        return room


def _make_room(stream: IO[bytes], size: int) -> None:
    """Take the room on the disk now: a full one would end the process when it is written to."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(stream.fileno(), 0, size)
    else:
        stream.truncate(size)


def _facts(task: Task, prepared: Prepared, outcome: Outcome, features: Features) -> Facts:
    records, settings = task.records, task.settings
    # The owner's name for the data: that of a file may tell about it.
    name = records.name if task.account.charge is None else task.account.charge.dataset
    shares = ", ".join(show_exact(share) for share in prepared.shares)
    turbines = f" of {len(records.groups)} turbines" if records.turbine else ""
    known = {
        "speed": records.speed,
        "power": records.power_column,
        "capacity": records.capacity,
        "unit": records.unit,
        "public": [
            n for n in records.published if n not in (records.speed, records.key, records.turbine)
        ],
        "key": records.key,
        "turbine": records.turbine,
        "missing": records.missing,
        "rows dropped for missing values": records.dropped,
        "features": features.describe(),
        "ridge": settings.ridge,
        "shares of epsilon (records, loss or spread, weights)": shares,
    }
    if settings.method == "tuned":
        known["nominal residual, of capacity"] = settings.nominal
    return Facts(
        kind="wind power records",
        method=settings.method,
        summary=f"{records.rows:,} wind power records{turbines} ({name})",
        settings={**known, **outcome.chosen},
        public_inputs=[f"column {name!r}" for name in records.published]
        + ["which rows are missing, and the number of rows", "the nameplate capacity"],
        published_in_clear=list(records.published),
        restoration=_restoration(outcome, settings),
        limitations=[*_LIMITATIONS, *([_FORMULAS] if records.formulas else [])],
    )


def _restoration(outcome: Outcome, settings: Settings) -> Restoration | None:
    found = [one.restoration for one in outcome.turbines if one.restoration is not None]
    if not found:
        return None
    gammas = {"gamma_weights": settings.gamma_weights, "gamma_records": settings.gamma_records}
    gap = max(one.gap for one in found)
    return Restoration(
        solver=", ".join(sorted({one.solver for one in found})),
        gap=gap if np.isfinite(gap) else None,
        settings={**gammas, "passes": max(one.passes for one in found)},
    )
