"""How good a release is, for the owner's eyes only: it compares with the real records.

Nothing here may be published, nor decide what is: choosing among releases by how close they come
to the real data would tell more about it than epsilon allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.bundle import OWNER_MARK
from gridveil.errors import InputError
from gridveil.privacy.mechanisms import Blocks
from gridveil.privacy.sealed import unseal
from gridveil.privacy.statement import STATEMENT_FILE, Statement
from gridveil.wind.feature_words import features_from
from gridveil.wind.fit import Fit, fit_records
from gridveil.wind.records import Records, read_records

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class TurbineEvaluation:
    """One turbine's released records beside its real ones, in shares of capacity."""

    name: str
    rows: int
    rmse: float
    largest_error: float
    real_loss: float
    released_loss: float
    weight_error: float
    real_energy: float
    released_energy: float


@dataclass(frozen=True)
class Evaluation:
    """What the owner may know of a release, and nobody else."""

    turbines: tuple[TurbineEvaluation, ...]
    clipped: int
    rows: int

    def to_json(self) -> dict[str, Any]:
        """Everything, marked as the owner's."""
        return {"mark": OWNER_MARK, **asdict(self)}


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
        Where the bundle is no wind release, or the records are not the ones it was made from.
    """
    folder = Path(bundle)
    statement = _statement(folder)
    settings = statement.body["settings"]
    data = [one["name"] for one in statement.body["files"] if one["name"].startswith("records.")]
    real = _read(against, settings)
    released = _read(folder / data[0], settings)
    if [group.rows for group in real.groups] != [group.rows for group in released.groups]:
        raise InputError(
            f"The records have {real.rows:,} rows and the bundle has {released.rows:,}.",
            remedy="Give the file that the release was made from.",
        )
    fits = fit_records(real, features_from(settings["features"]), settings["ridge"])
    private, noisy = unseal(real.by_turbine), unseal(released.by_turbine)
    turbines = tuple(
        _compare(fit, one, other) for fit, one, other in zip(fits, private, noisy, strict=True)
    )
    return Evaluation(turbines, unseal(real.clipped), real.rows)


def _statement(folder: Path) -> Statement:
    try:
        statement = Statement.from_json((folder / STATEMENT_FILE).read_bytes())
    except OSError:
        raise InputError(f"There is no bundle at {folder}.") from None
    if statement.body["kind"] != "wind power records":
        raise InputError(f"The bundle at {folder} holds no wind power records.")
    return statement


def _read(source: Any, settings: dict[str, Any]) -> Records:
    names = ("speed", "power", "capacity", "unit", "public", "key", "turbine", "missing")
    return read_records(source, **{name: settings[name] for name in names})


def _compare(fit: Fit, private: Blocks, released: Blocks) -> TurbineEvaluation:
    real_weights, real_loss = fit.ridge.weights_and_loss(fit.with_blocks(private))
    weights, loss = fit.ridge.weights_and_loss(fit.with_blocks(released))
    square = largest = real_energy = released_energy = 0.0
    for y, noisy in _aligned(private, released):
        error = noisy - y
        square += float(error @ error)
        largest = max(largest, float(np.abs(error).max()))
        real_energy += float(y.sum())
        released_energy += float(noisy.sum())
    return TurbineEvaluation(
        name=fit.group.name,
        rows=fit.rows,
        rmse=float(np.sqrt(square / fit.rows)),
        largest_error=largest,
        real_loss=real_loss,
        released_loss=loss,
        weight_error=float(np.linalg.norm(weights - real_weights)),
        real_energy=real_energy,
        released_energy=released_energy,
    )


def _aligned(one: Blocks, other: Blocks) -> Iterator[tuple[Vector, Vector]]:
    yield from zip(one(), other(), strict=True)
