"""How good a release is, for the owner's eyes only: it compares with the real records.

Nothing here may be published, nor decide what is: choosing among releases by how close they come
to the real data would tell more about it than epsilon allows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError, wrong_type
from gridveil.privacy.mechanisms import Blocks
from gridveil.privacy.sealed import unseal
from gridveil.privacy.statement import Statement
from gridveil.release.bundle import OWNER_MARK, read_statement, write_owner_file
from gridveil.report.attack_section import inference_section
from gridveil.report.inference_attack import Inference, infer
from gridveil.report.page import Section, Table, owner_page
from gridveil.wind.downstream_report import Downstream, look_downstream, prior_only
from gridveil.wind.features import features_from
from gridveil.wind.records import Records, read_records
from gridveil.wind.regression import Fit, fit_records
from gridveil.wind.report import Sample, comparison, take_sample

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class TurbineEvaluation:
    """One turbine's released records beside its real ones, in shares of capacity.

    ``curve_error`` is the root mean square of what lies between the two regressions, over the
    range of wind speeds.
    """

    name: str
    rows: int
    rmse: float
    largest_error: float
    real_loss: float
    released_loss: float
    weight_error: float
    curve_error: float
    real_energy: float
    released_energy: float


@dataclass(frozen=True)
class Evaluation:
    """What the owner may know of a release, and nobody else."""

    turbines: tuple[TurbineEvaluation, ...]
    clipped: int
    rows: int
    statement: Statement = field(repr=False)
    picture: Section = field(repr=False)
    inference: Inference
    downstream: Downstream | None = field(repr=False)

    def __repr__(self) -> str:
        # A notebook shows this, and may be published: figures are asked for by their names.
        return (
            f"<{OWNER_MARK}: evaluation of {self.rows:,} records, {self.statement.body['method']}>"
        )

    def to_json(self) -> dict[str, Any]:
        """Every figure, marked as the owner's."""
        turbines = [asdict(one) for one in self.turbines]
        return {
            "mark": OWNER_MARK,
            "turbines": turbines,
            "clipped": self.clipped,
            "rows": self.rows,
            "inference": asdict(self.inference),
            "downstream": [asdict(one) for one in self.downstream.figures]
            if self.downstream
            else [],
        }

    def write_report(self, path: Path | str) -> Path:
        """Write the owner's report, readable by its owner alone.

        Raises
        ------
        InputError
            If the file would be inside a bundle, or can't be written.
        """
        sections = [self._figures(), self.picture]
        if self.downstream is not None:
            sections.append(self.downstream.section)
        sections.append(inference_section((self.inference,), self.statement))
        return write_owner_file(path, owner_page(self.statement, sections, OWNER_MARK))

    def _figures(self) -> Section:
        columns = ("turbine", "records", "RMSE", "largest", "loss", "weights", "energy")
        rows = [
            (
                one.name,
                f"{one.rows:,}",
                f"{one.rmse:.4f}",
                f"{one.largest_error:.3f}",
                f"{one.released_loss:.4g} ({one.real_loss:.4g})",
                f"{one.weight_error:.4f}",
                f"{one.released_energy:,.5g} ({one.real_energy:,.5g})",
            )
            for one in self.turbines
        ]
        clipped = (
            f"{self.clipped:,} of {self.rows:,} real values lay outside [0, capacity] and were "
            "clipped."
        )
        return Section(
            "How close the release comes",
            (
                "RMSE and largest error of a record, and error of the weights, are shares of "
                "capacity. Loss of the regression, and energy in record-lengths at full power: "
                "released (real).",
                clipped,
            ),
            tables=(Table("Released records beside the real ones", columns, rows),),
        )


def evaluate(bundle: Path | str, against: Any) -> Evaluation:
    """Compare a bundle with the real records that it was made from.

    Parameters
    ----------
    bundle
        The bundle's folder.
    against
        The real records, as they were given to `read_records`.

    Raises
    ------
    InputError
        If the bundle is not a wind release, or the records are not those it was made from.
    """
    if not isinstance(bundle, (str, os.PathLike)):
        raise wrong_type("folder", bundle, remedy="Name the folder that release.write wrote.")
    if isinstance(against, Records):
        remedy = "Give the file or table that was given to read_records: it is read once more."
        raise wrong_type("source of records", against, remedy=remedy)
    folder = Path(bundle)
    statement = _statement(folder)
    settings = statement.body["settings"]
    data = [one["name"] for one in statement.body["files"] if one["name"].startswith("records.")]
    real = _read(against, settings, settings.get("source_encoding", "utf-8"))
    released = _read(folder / data[0], settings)
    if [group.rows for group in real.groups] != [group.rows for group in released.groups]:
        raise InputError(
            f"The records have {real.rows:,} rows and the bundle has {released.rows:,}.",
            remedy="Give the file that the release was made from.",
        )
    fits = fit_records(real, features_from(settings["features"]), settings["ridge"])
    noisy = unseal(released.by_turbine)
    turbines, picture = compare(real, fits, noisy)
    private = unseal(real.by_turbine)
    inference = _inference(fits, private, noisy, statement)
    found = None
    if not real.streamed:
        (neighbour,) = statement.body["guarantee"]["neighbours"]
        prior = prior_only(
            real,
            statement.body["method"],
            alpha=neighbour["alpha"],
            protect=settings.get("protect", "record"),
            features=fits[0].features,
        )
        found = look_downstream(real, private, noisy, prior)
    clipped = unseal(real.clipped)
    return Evaluation(turbines, clipped, real.rows, statement, picture, inference, found)


def compare(
    records: Records, fits: Sequence[Fit], released: Sequence[Blocks], *, called: str = "real"
) -> tuple[tuple[TurbineEvaluation, ...], Section]:
    """Compare released power with the records it was made from: figures, and a picture.

    Parameters
    ----------
    records, fits
        The records, and their regressions.
    released
        Released power of each turbine, as shares of capacity.
    called
        What the picture calls the records.
    """
    private = unseal(records.by_turbine)
    found = [
        _compare(fit, one, other) for fit, one, other in zip(fits, private, released, strict=True)
    ]
    place = max(range(len(fits)), key=lambda one: fits[one].rows)
    _, real, noisy = found[place]
    picture = comparison(real, noisy, fits[place], records, called=called)
    return tuple(one for one, _, _ in found), picture


def _inference(
    fits: Sequence[Fit], private: Sequence[Blocks], released: Sequence[Blocks], statement: Statement
) -> Inference:
    """The attack on the largest turbine: released records, and the regression on them."""
    place = max(range(len(fits)), key=lambda one: fits[one].rows)
    fit = fits[place]
    weights, _ = fit.ridge.weights_and_loss(fit.with_blocks(released[place]))
    real = take_sample(fit, private[place], weights)
    shown = take_sample(fit, released[place], weights)
    (one,) = statement.body["guarantee"]["neighbours"]
    return infer(
        "power",
        one["unit"],
        real.power,
        shown.power,
        alpha=Fraction(one["alpha"]),
        epsilon=statement.epsilon,
        guess=np.interp(shown.speed, shown.curve_speed, shown.curve),
    )


def _statement(folder: Path) -> Statement:
    statement = read_statement(folder)
    if statement.body["kind"] != "wind power records":
        raise InputError(
            f"The bundle at {folder} holds no wind power records.",
            remedy="Name the folder of a wind release.",
        )
    return statement


def _read(source: Any, settings: dict[str, Any], encoding: str = "utf-8") -> Records:
    names = ("speed", "power", "capacity", "unit", "public", "key", "turbine", "missing")
    said = ("time", "time_format", "sep", "decimal")
    known = {name: settings[name] for name in (*names, *said) if name in (*names, *settings)}
    return read_records(source, formulas="keep", encoding=encoding, **known)


def _compare(
    fit: Fit, private: Blocks, released: Blocks
) -> tuple[TurbineEvaluation, Sample, Sample]:
    real_weights, real_loss = fit.ridge.weights_and_loss(fit.with_blocks(private))
    weights, loss = fit.ridge.weights_and_loss(fit.with_blocks(released))
    real_sample = take_sample(fit, private, real_weights)
    sample = take_sample(fit, released, weights)
    square = largest = real_energy = released_energy = 0.0
    for y, noisy in _aligned(private, released):
        error = noisy - y
        square += float(error @ error)
        largest = max(largest, float(np.abs(error).max()))
        real_energy += float(y.sum())
        released_energy += float(noisy.sum())
    apart = sample.curve - real_sample.curve
    found = TurbineEvaluation(
        name=fit.group.name,
        rows=fit.rows,
        rmse=float(np.sqrt(square / fit.rows)),
        largest_error=largest,
        real_loss=real_loss,
        released_loss=loss,
        weight_error=float(np.linalg.norm(weights - real_weights)),
        curve_error=float(np.sqrt(np.mean(apart**2))),
        real_energy=real_energy,
        released_energy=released_energy,
    )
    return found, real_sample, sample


def _aligned(one: Blocks, other: Blocks) -> Iterator[tuple[Vector, Vector]]:
    yield from zip(one(), other(), strict=True)
