"""How good a release is, for the owner's eyes only: it compares with the real network.

Nothing here may be published, nor decide what is: choosing among releases by how close they come
to the real network would tell more about it than epsilon allows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.disclosures import KIND
from gridveil.grid.io import read_case
from gridveil.grid.methods import PENALTY
from gridveil.grid.model.alphas_by_class import classes_of
from gridveil.grid.model.costs import has_curves
from gridveil.grid.model.declarations import Declared
from gridveil.grid.model.network import Floats, Network
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.grid.model.population import Population
from gridveil.grid.model.release_problem import with_linear_costs
from gridveil.grid.model.sampling import sample_like
from gridveil.grid.model_comparison import AcErrors, ModelErrors, Reference, ac_errors, controls
from gridveil.grid.opf.outages import Contingencies, contingencies
from gridveil.grid.owner_report import owner_sections, values_picture
from gridveil.grid.release import POPULATION_FILE
from gridveil.privacy.statement import Statement
from gridveil.release.bundle import OWNER_MARK, read_statement, write_owner_file
from gridveil.report.inference_attack import Inference, infer
from gridveil.report.page import Picture, owner_page


@dataclass(frozen=True)
class ParameterError:
    """Errors of the released entries of one parameter, in its unit.

    Parameters
    ----------
    entries
        How many there are.
    mean, largest
        Error of an entry.
    real_total, released_total
        Sums of the entries.
    clipped
        How many real values lay outside the public range and were clipped; None if no range
        was given.
    range
        The public range.
    """

    parameter: str
    unit: str
    entries: int
    mean: float
    largest: float
    real_total: float
    released_total: float
    clipped: int | None = None
    range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Evaluation:
    """What the owner may know of a release, and nobody else.

    Parameters
    ----------
    parameters
        Errors of released values.
    population, unseen
        Errors on the release's own models, and on models that it never saw. If costs are
        private: against linear costs, which is what the noise did.
    penalty
        The price of broken limits in costs on the released network, $/MWh.
    population_with_curves, unseen_with_curves
        The same against the real cost curves and constants, which is what a user of the data
        sees; None if linear costs are the real ones.
    controls
        Errors, on the models that the release never saw, of networks that take no epsilon: by what
        they are. A release that is no better than these is of no use.
    ac
        Errors in AC on the population and on models never seen, if it was certified in AC.
    secured
        Errors on both with dispatches that survive every listed outage, if there are any: models
        that the real network can serve so.
    secured_in_ac
        The same in AC, if the release was certified in AC.
    """

    parameters: tuple[ParameterError, ...]
    population: ModelErrors
    unseen: ModelErrors
    statement: Statement = field(repr=False)
    penalty: float
    population_with_curves: ModelErrors | None = None
    unseen_with_curves: ModelErrors | None = None
    controls: tuple[tuple[str, ModelErrors], ...] = ()
    inference: tuple[Inference, ...] = ()
    pictures: tuple[Picture, ...] = field(repr=False, default=())
    ac: tuple[AcErrors, AcErrors] | None = None
    secured: tuple[ModelErrors, ModelErrors] | None = None
    secured_in_ac: tuple[AcErrors, AcErrors] | None = None

    def __repr__(self) -> str:
        # A notebook shows this, and may be published: figures are asked for by their names.
        names = ", ".join(one.parameter for one in self.parameters)
        return f"<{OWNER_MARK}: evaluation of {names}, {self.statement.body['method']}>"

    def to_json(self) -> dict[str, Any]:
        """Everything, marked as the owner's."""
        return {
            "mark": OWNER_MARK,
            "parameters": [asdict(one) for one in self.parameters],
            "population": _plain(self.population),
            "unseen": _plain(self.unseen),
            "population_with_curves": _plain(self.population_with_curves),
            "unseen_with_curves": _plain(self.unseen_with_curves),
            "controls": {name: _plain(errors) for name, errors in self.controls},
            "penalty": self.penalty,
            "ac": None if self.ac is None else [one.to_json() for one in self.ac],
            "secured": None if self.secured is None else [_plain(one) for one in self.secured],
            "secured_in_ac": None
            if self.secured_in_ac is None
            else [one.to_json() for one in self.secured_in_ac],
            "inference": [asdict(one) for one in self.inference],
        }

    def write_report(self, path: Path | str) -> Path:
        """Write the owner's report, readable by its owner alone.

        Raises
        ------
        InputError
            If the file would be inside a bundle, or can't be written.
        """
        return write_owner_file(path, owner_page(self.statement, owner_sections(self), OWNER_MARK))


def evaluate(
    bundle: Path | str,
    against: Any,
    *,
    unseen: Population | None = None,
    penalty: float = PENALTY,
    seed: int = 1,
) -> Evaluation:
    """Compare a bundle with the real network that it was made from.

    Parameters
    ----------
    bundle
        The bundle's folder.
    against
        The real network, or what `read_case` reads.
    unseen
        Models that the release never saw; sampled like its population by default, with `seed`.
    penalty
        The price of broken limits in ``C^R`` (psi), $/MWh.

    Raises
    ------
    InputError
        If the bundle is not a grid release, or the network is not the one it was made from.
    """
    folder = Path(bundle)
    statement = _statement(folder)
    settings = statement.body["settings"]
    parameters = settings["parameters"]
    (data,) = [one["name"] for one in statement.body["files"] if one["name"].startswith("network.")]
    declared = Declared.of(settings)
    # As the guarantee states them: on the side of 0 that values have.
    neighbours = statement.body["guarantee"]["neighbours"]
    ranges = {name: one["range"] for name, one in zip(parameters, neighbours, strict=True)}
    given = against if isinstance(against, Network) else read_case(against)
    real = with_linear_costs(given, parameters, declared)
    released = read_case(folder / data)
    _check_same(real, released)
    population = Population.read(folder / POPULATION_FILE, released)
    others = (
        sample_like(population, released, population.size, seed=seed) if unseen is None else unseen
    )
    others.check_shapes(released)
    adequate = not {"load", "generator_limit"} & set(parameters)

    def errors(reference: Reference, network: Network) -> ModelErrors:
        return reference.errors(network, penalty=penalty, adequate=adequate)

    outages = None
    if settings.get("contingencies"):
        outages = contingencies(released, settings["contingencies"], settings["emergency"])

    def in_ac(after: Contingencies | None) -> tuple[AcErrors, AcErrors] | None:
        if not settings.get("ac"):
            return None
        first, second = (ac_errors(real, released, one, after) for one in (population, others))
        return first, second

    def secured(models: Population) -> ModelErrors:
        return errors(Reference(real, models, outages), released)

    curved = "cost" in parameters and has_curves(given.generators, declared.chosen(given, "cost"))
    unseen_by = Reference(real, others)
    return Evaluation(
        parameter_errors(real, released, parameters, ranges, declared),
        errors(Reference(real, population), released),
        errors(unseen_by, released),
        statement,
        penalty,
        errors(Reference(given, population), released) if curved else None,
        errors(Reference(given, others), released) if curved else None,
        tuple(
            (name, errors(unseen_by, network))
            for name, network in controls(released, real, parameters, declared)
        ),
        _inference(real, released, statement, declared),
        tuple(values_picture(name, *_pairs(real, released, name, declared)) for name in parameters),
        in_ac(None),
        None if outages is None else (secured(population), secured(others)),
        None if outages is None else in_ac(outages),
    )


def parameter_errors(
    real: Network,
    released: Network,
    parameters: Sequence[str],
    ranges: Mapping[str, Sequence[float]] | None = None,
    declared: Declared | None = None,
) -> tuple[ParameterError, ...]:
    """Errors of every released parameter; with public ranges, how many values were clipped."""
    found = []
    for name in parameters:
        ours, theirs = _pairs(real, released, name, declared or Declared())
        error = np.abs(theirs - ours)
        range = None if ranges is None else (float(ranges[name][0]), float(ranges[name][1]))
        found.append(
            ParameterError(
                name,
                PARAMETERS[name].unit,
                len(ours),
                float(error.mean()),
                float(error.max()),
                float(ours.sum()),
                float(theirs.sum()),
                None if range is None else int(((ours < range[0]) | (ours > range[1])).sum()),
                range,
            )
        )
    return tuple(found)


def _inference(
    real: Network, released: Network, statement: Statement, declared: Declared
) -> tuple[Inference, ...]:
    neighbours = statement.body["guarantee"]["neighbours"]
    names = statement.body["settings"]["parameters"]
    found = []
    for name, one in zip(names, neighbours, strict=True):
        ours, theirs = _pairs(real, released, name, declared)
        found.append(
            infer(
                name,
                one["unit"],
                ours,
                theirs,
                alpha=Fraction(one["alpha"]),
                epsilon=statement.epsilon,
                by_size=PARAMETERS[name].unit == "MW",
                steps=_steps(real, name, one.get("alpha_by_class"), declared),
            )
        )
    return tuple(found)


def _pairs(
    real: Network, released: Network, name: str, declared: Declared
) -> tuple[Floats, Floats]:
    """The private values of a parameter, and the released ones in their place."""
    masks = declared.support(real, name)
    ours, theirs = (
        np.concatenate([getattr(table, column)[mask] for column, mask in masks.items()])
        for table in (getattr(network, PARAMETERS[name].table) for network in (real, released))
    )
    entries = np.isfinite(ours)
    return ours[entries], theirs[entries]


def _steps(
    real: Network, name: str, by_class: Mapping[str, str] | None, declared: Declared
) -> list[Fraction] | None:
    """The step of every private entry, if steps differ by class."""
    if not by_class:
        return None
    support = declared.support(real, name)
    steps = [Fraction(step) for step in by_class.values()]
    return [steps[one] for one in classes_of(real, name, list(by_class), support).tolist()]


def _plain(errors: ModelErrors | None) -> dict[str, Any] | None:
    """The figures as JSON can hold them: None if there is none."""
    if errors is None:
        return None
    return {n: value if math.isfinite(value) else None for n, value in asdict(errors).items()}


def _check_same(real: Network, released: Network) -> None:
    remedy = "Give the network that the release was made from."
    for table in ("buses", "generators", "branches"):
        ours, theirs = len(getattr(real, table)), len(getattr(released, table))
        if ours != theirs:
            raise InputError(
                f"The network has {ours:,} {table} and the bundle has {theirs:,}.", remedy=remedy
            )
    for table, column in (("generators", "bus"), ("branches", "from_bus"), ("branches", "to_bus")):
        ends = (getattr(getattr(network, table), column) for network in (real, released))
        if not np.array_equal(*ends):
            raise InputError(
                f"The {table} of the network are at other buses than those of the bundle.",
                remedy=remedy,
            )


def _statement(folder: Path) -> Statement:
    statement = read_statement(folder)
    if statement.body["kind"] != KIND:
        raise InputError(
            f"The bundle at {folder} holds no network.",
            remedy="Name the folder of a grid release.",
        )
    return statement
