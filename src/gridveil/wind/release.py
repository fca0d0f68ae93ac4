"""Release wind power records: from sealed power to a bundle.

`plan` checks everything public and prepares a method (see `methods`); running the plan makes
the released records, the statement and the report. `release` is plan, charge and run.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import GridveilError, InputError, reason, show_exact, wrong_type
from gridveil.privacy.account import Account, Budget
from gridveil.privacy.adjacency import ENTRY, Adjacency, blocks_in
from gridveil.privacy.exact_numbers import Exact
from gridveil.privacy.ledger import Ledger, Sketch, Terms
from gridveil.privacy.sealed import Range
from gridveil.privacy.statement import Facts, make_statement
from gridveil.release.bundle import DEVIATIONS_FILE, Writer, write_deviations
from gridveil.release.options import options_of
from gridveil.release.plan import Asked, Plan, Progress, Release, silent
from gridveil.report.page import Section, Snippet
from gridveil.wind.clock import SECONDS, Whole, calendar, check_unit, largest_group
from gridveil.wind.disclosures import assumed, make_facts, unusual
from gridveil.wind.features import Features
from gridveil.wind.methods import BY_NAME, Method, Synthetic
from gridveil.wind.methods.base import Guarantee, Outcome, Prepared, Task, clipped
from gridveil.wind.records import Records
from gridveil.wind.regression import Fit, default_features, fit_records
from gridveil.wind.report import Made, loading_snippets, series_section, wind_section

Vector = NDArray[np.float64]
METHODS = tuple(BY_NAME)
"""Names of the methods."""
AUTO = "auto"
"""The name that stands for the method that `choose` picks."""

_GOOD = 0.01  # an error of the curve, as a share of capacity
_MANY = 500


class WindRelease(Release):
    """Released wind power records: `data` as a table, `write` for the bundle."""

    def __init__(self, task: Task, outcome: Outcome, facts: Facts) -> None:
        self.records = task.records
        self.restorations = [one.restoration for one in outcome.turbines]
        self._fits = task.fits
        self.turbines = outcome.turbines
        self._drawn = facts.method == Synthetic.method
        files: dict[str, Writer] = {
            self.records.file_name: lambda path: self.records.write(path, self.blocks)
        }
        if all(turbine.deviations is not None for turbine in self.turbines):
            files[DEVIATIONS_FILE] = lambda path: write_deviations(path, self._deviations())
        super().__init__(make_statement(task.account, facts), task.account, files)

    def _deviations(self) -> Iterator[dict[str, Any]]:
        """Rows as in the released records, in the unit of their power."""
        start = 0
        for turbine, fit in zip(self.turbines, self._fits, strict=True):
            for block in turbine.deviations() if turbine.deviations else ():
                rows = np.arange(start, start + len(block), dtype=np.int64)
                yield {"row": rows, "deviation": block * fit.group.capacity}
                start += len(block)

    def loading(self) -> tuple[Snippet, ...]:
        """Code that loads the released records, and their error bars."""
        return loading_snippets(tuple(self.files), self.records, drawn=self._drawn)

    def blocks(self) -> Iterator[Vector]:
        """Released power as shares of capacity, in the released order, in blocks."""
        for turbine in self.turbines:
            yield from turbine.blocks()

    def sections(self) -> tuple[Section, ...]:
        """Pictures of one turbine's released records, and a line for each turbine."""
        blocks = [turbine.blocks for turbine in self.turbines]
        made: Made = "drawn" if self._drawn else "noisy"
        if any(one.restoration or one.solver for one in self.turbines):
            made = "restored"
        largest = max(range(len(blocks)), key=lambda place: self._fits[place].rows)
        series = series_section(self._fits[largest].group, blocks[largest], self.records)
        section = wind_section(blocks, self._fits, self.records, made=made)
        return (section,) if series is None else (section, series)

    @cached_property
    def data(self) -> Any:
        """The released records, as a table of the kind that came in (pandas for files)."""
        return self.records.to_table(np.concatenate(list(self.blocks())))


class WindPlan(Plan[WindRelease]):
    """A wind release that was checked and prepared from public data; made by `plan`."""

    def __init__(
        self,
        records: Records,
        method: Method,
        adjacency: Adjacency,
        guarantee: Guarantee,
        features: Features,
        fits: Sequence[Fit],
        prepared: Prepared,
        why: str | None,
    ) -> None:
        super().__init__(
            Terms(
                dataset=records.dataset,
                epsilon=guarantee.epsilon,
                adjacency=(adjacency,),
                clear=records.published,
                private=[records.power_column],
                purpose=_purpose(method, guarantee),
            )
        )
        self.records = records
        self.method = method
        self.guarantee = guarantee
        self.why = why
        self.features = features
        self.fits = fits
        self.prepared = prepared
        self._room: tuple[Vector, Vector] | None = None

    def _before_charge(self) -> None:
        # That there is room for the noisy records, and for what is made of them, must be known.
        self._room = _scratch(self.records), _scratch(self.records)

    def asked(self) -> Sequence[Asked]:
        """See `Plan.asked`."""
        return self.prepared.asked(self.fits, self.guarantee)

    @cached_property
    def assumed(self) -> dict[str, str]:
        """See `Plan.assumed`."""
        found = assumed(self.records, self.fits, self.guarantee, self.prepared)
        name, largest = self.method.method, max(group.rows for group in self.records.groups)
        if self.why is not None:
            return {**found, "method": f"{name}, since {self.why}"}
        said = advice(name, self.records.rows, self.guarantee, largest)
        return found if said is None else {**found, "method": said}

    @cached_property
    def unusual(self) -> tuple[str, ...]:
        """See `Plan.unusual`."""
        own = unusual(self.records, self.features, self.fits, self.guarantee, self.prepared)
        return *super().unusual, *own

    def sketch(self) -> Sketch:
        """See `Plan.sketch`: of the published columns."""
        return self.records.sketch()

    def _run(self, account: Account, progress: Progress) -> WindRelease:
        noisy, room = self._room or (_scratch(self.records), _scratch(self.records))
        self._room = None
        task = Task(account, self.records, self.fits, self.guarantee, noisy, room, progress)
        outcome = _run_steps(self.method, task, self.prepared)
        return WindRelease(task, outcome, make_facts(self, task, outcome))


def release(
    records: Records,
    *,
    epsilon: Exact,
    alpha: Exact | None = None,
    protect: str = "record",
    method: str | Method = "tuned",
    features: Features | None = None,
    dataset: str | None = None,
    distinct: str | None = None,
    ledger: Ledger | Path | str | None = None,
    seed: int | None = None,
    progress: Progress = silent,
    **options: Any,
) -> WindRelease:
    """Release wind power records with a differential-privacy guarantee: plan, charge and run.

    Parameters
    ----------
    records
        From `read_records`.
    epsilon
        The guarantee: 1, 0.5, "1/3".
    alpha
        How far one record may move between neighbours, as a share of capacity: 0.15, "15%". It
        may be left out for the method synthetic, which protects the whole range.
    protect
        What epsilon is for: one ``"record"``, or all records of one turbine in one calendar
        ``"hour"``, ``"day"`` or ``"week"``, each moving by alpha. Those need a column of times.
    method
        ``"tuned"`` (noise on every record, and the best use of epsilon), ``"synthetic"`` (records
        drawn from noisy sums over whole units), ``"wpo"`` (the paper's algorithm), ``"laplace"``
        (noise and clipping only), or ``"auto"``, which chooses from public numbers; or a method
        with its options, as ``Tuned(nominal=0.02)``.
    features
        Public features of the regression whose results the records keep; bumps every 2.5 m/s over
        the range of wind speeds by default.
    dataset, distinct, ledger, seed, progress
        As in `gridveil.grid.release`, and so are the errors. The dataset may also be left out if
        `read_records` was given one.
    **options
        Options of the method named: ``nominal=0.02``, for example. `Tuned`, `Wpo` and `Laplace`
        have the list.
    """
    what: dict[str, Any] = {"epsilon": epsilon, "alpha": alpha, "protect": protect}
    planned = plan(records, method=method, features=features, progress=progress, **what, **options)
    return planned.release(ledger, dataset=dataset, distinct=distinct, seed=seed, progress=progress)


def plan(
    records: Records,
    *,
    epsilon: Exact,
    alpha: Exact | None = None,
    protect: str = "record",
    method: str | Method = "tuned",
    features: Features | None = None,
    progress: Progress = silent,
    **options: Any,
) -> WindPlan:
    """Check and prepare a wind release; it opens nothing and charges nothing.

    Parameters, and what is raised for public input, are as in `release`.
    """
    if not isinstance(records, Records):
        raise wrong_type("Records", records, remedy="Read them with gv.wind.read_records.")
    if features is not None and not isinstance(features, Features):
        raise wrong_type("feature map", features, remedy="Use RBF, Polynomial, BSpline, Columns.")
    unit = check_unit(protect, timed=records.time is not None)
    alpha = _alpha(alpha, method)
    times = [one for one in (group.times() for group in records.groups) if one is not None]
    members = {block: largest_group(times, block) for block in SECONDS if times and SECONDS[block]}
    adjacency = Adjacency.of(
        "power",
        alpha=alpha,
        unit="of capacity",
        range=Range(0.0, 1.0),
        entries=records.rows,
        wholes={group.name: Fraction(group.capacity) for group in records.groups},
        measure=records.unit,
        block=ENTRY if unit == "record" else unit,
        whose="turbine",
        members=members,
        clock=records.clock if times else "",
        groups=_groups(records, times, unit, members),
        each=max(group.rows for group in records.groups),
    )
    guarantee = Guarantee(Budget(epsilon).total, adjacency.alpha, unit, members.get(unit, 1))
    why = None
    if method == AUTO:
        largest = max(group.rows for group in records.groups)
        method, why = choose(records.rows, guarantee, largest)
        progress(f"method {method}: {why}")
    chosen_method = _method(method, options)
    progress("public features")
    chosen = default_features(records) if features is None else features
    fits = fit_records(records, chosen, chosen_method.ridge)
    prepared = chosen_method.prepare(fits, guarantee)
    prepared.check(guarantee)
    return WindPlan(records, chosen_method, adjacency, guarantee, chosen, fits, prepared, why)


def choose(rows: int, guarantee: Guarantee, largest: int) -> tuple[str, str]:
    """Choose the method that suits these public numbers; return its name and the reason.

    Parameters
    ----------
    rows, largest
        The number of all records, and that of the largest turbine.
    guarantee
        The guarantee.
    """
    unit, alpha = guarantee.unit, show_exact(guarantee.alpha)
    if unit != "record":
        if guarantee.curve_error(largest, 10) < _GOOD:
            why = f"noise on every record for a whole {unit} leaves the curve within {_GOOD:.0%}"
            return "tuned", why
        return "synthetic", f"noise on every record for a whole {unit} would drown the curve"
    if guarantee.alpha == 1 and rows >= _MANY:
        return "synthetic", f"there are {rows:,} records, each protected over its whole range"
    return "tuned", f"there are {rows:,} records, each protected for steps of {alpha} of capacity"


def advice(method: str, rows: int, guarantee: Guarantee, largest: int) -> str | None:
    """Return a note for the plan if the other of "tuned" and "synthetic" would suit better."""
    best, why = choose(rows, guarantee, largest)
    if method == best or method not in ("tuned", "synthetic"):
        return None
    return f"{method}, although public numbers favour {best} ({why}); --method auto takes {best}"


def _groups(
    records: Records, times: Sequence[Whole], unit: str, members: Mapping[str, int]
) -> dict[str, int]:
    """What owners ask about as a whole, a day, a week and a turbine, in units of protection."""
    part = ENTRY if unit == "record" else unit
    whose = " of one turbine" if records.turbine else ""
    found = {
        f"one {block}{whose}": blocks_in(block, part, members)
        for block in ("day", "week")
        if block in members and SECONDS[block] > SECONDS[unit]
    }
    all_of_it = "one whole turbine" if records.turbine else "all records"
    most = max(group.rows for group in records.groups)
    if unit != "record":
        most = max(len(np.unique(calendar(moments, unit))) for moments in times)
    smaller = {name: count for name, count in found.items() if count < most}
    return {**smaller, all_of_it: most}


def _alpha(alpha: Exact | None, method: str | Method) -> Exact:
    if alpha is not None:
        return alpha
    if method in (AUTO, Synthetic.method) or isinstance(method, Synthetic):
        return 1
    raise InputError(
        "alpha is missing: how far one record may move.",
        remedy='Give a share of capacity, as alpha="15%" (--alpha 15%); or use the method auto or '
        "synthetic, which protects whole values and needs no alpha.",
    )


def _purpose(method: Method, guarantee: Guarantee) -> str:
    of = "" if guarantee.unit == "record" else f", protecting each {guarantee.unit}"
    return f"wind power records, method {method.method}{of}"


def _method(method: str | Method, options: dict[str, Any]) -> Method:
    """The method with its options; one of another method counts as left out at its default."""
    own = BY_NAME[method].about() if isinstance(method, str) and method in BY_NAME else {}
    idle = {
        name
        for name, value in options.items()
        for kind in BY_NAME.values()
        if name not in own and name in kind.about() and value == getattr(kind(), name)
    }
    return options_of(BY_NAME, method, {n: v for n, v in options.items() if n not in idle})


def _run_steps(method: Method, task: Task, prepared: Prepared) -> Outcome:
    """Run the method on the private records.

    Private computations fail inside mechanisms, which abort. Any other failure is numerical
    trouble with noisy and public data: what was paid for is released without a restoration.
    """
    try:
        return method.steps(task, prepared)
    except GridveilError:
        raise
    except (ArithmeticError, ValueError):
        if not np.isfinite(task.noisy).all():
            raise
    return clipped(task, {"restored": False})


def _scratch(records: Records) -> Vector:
    """Room for the noisy records: in memory, or in a nameless file if they are streamed.

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
