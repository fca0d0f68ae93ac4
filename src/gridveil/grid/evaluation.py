"""How good a release is, for the owner's eyes only: it compares with the real network.

Nothing here may be published, nor decide what is: choosing among releases by how close they come
to the real network would tell more about it than epsilon allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.bundle import OWNER_MARK, read_statement, write_owner_file
from gridveil.errors import InputError
from gridveil.grid.formats import read_case
from gridveil.grid.network import Network
from gridveil.grid.opf import Solutions, solve_population
from gridveil.grid.population import Population, sample_like
from gridveil.grid.public import PARAMETERS
from gridveil.grid.release import KIND, POPULATION_FILE
from gridveil.grid.requests import PENALTY
from gridveil.privacy.inference import Inference, infer
from gridveil.privacy.statement import Statement
from gridveil.report.charts import Chart
from gridveil.report.inference import inference_section
from gridveil.report.page import owner_page
from gridveil.report.parts import Picture, Section, Table

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_CONGESTED = 1e-4


@dataclass(frozen=True)
class ParameterError:
    """Errors of the released entries of one parameter, in its unit."""

    parameter: str
    unit: str
    entries: int
    mean: float
    largest: float
    real_total: float
    released_total: float


@dataclass(frozen=True)
class ModelErrors:
    """What some models do on the released network, beside the real one.

    Parameters
    ----------
    models
        How many have a solution on the real network: those are compared.
    infeasible
        The share of them without one on the released network, %.
    cost_error
        The paper's ``Delta C``: mean of ``|C(real) - C^R(released)| / C(real)``, %, over the
        models that cost something; nan where none does.
    bias
        The same with its sign: above 0 where the released network is dearer.
    price_error
        Mean error of nodal prices, $/MWh, over the models that both networks serve.
    missed, added
        Of the pairs of a model and a line that is congested in it on the real network, the share
        that is not on the released one, %; and the other way round.
    """

    models: int
    infeasible: float
    cost_error: float
    bias: float
    price_error: float
    missed: float
    added: float


@dataclass(frozen=True)
class Evaluation:
    """What the owner may know of a release, and nobody else."""

    parameters: tuple[ParameterError, ...]
    population: ModelErrors
    unseen: ModelErrors
    statement: Statement = field(repr=False)
    inference: tuple[Inference, ...] = ()
    pictures: tuple[Picture, ...] = field(repr=False, default=())

    def to_json(self) -> dict[str, Any]:
        """Everything, marked as the owner's."""
        return {
            "mark": OWNER_MARK,
            "parameters": [asdict(one) for one in self.parameters],
            "population": _plain(self.population),
            "unseen": _plain(self.unseen),
            "inference": [asdict(one) for one in self.inference],
        }

    def write_report(self, path: Path | str) -> Path:
        """Write the owner's report, readable by its owner alone.

        Raises
        ------
        InputError
            Where the file would be inside a bundle, or can't be written.
        """
        return write_owner_file(path, owner_page(self.statement, self._sections(), OWNER_MARK))

    def _sections(self) -> tuple[Section, ...]:
        values = Table(
            "Released values beside the real ones",
            ("parameter", "entries", "mean error", "largest error", "released total", "real total"),
            [
                (
                    one.parameter,
                    f"{one.entries:,}",
                    f"{one.mean:.3f} {one.unit}",
                    f"{one.largest:.2f} {one.unit}",
                    f"{one.released_total:,.1f}",
                    f"{one.real_total:,.1f}",
                )
                for one in self.parameters
            ],
        )
        both = (("population", self.population), ("models it never saw", self.unseen))
        models = Table(
            "Models on the released network beside the real one",
            (
                "models",
                "compared",
                "infeasible",
                "cost error",
                "bias of cost",
                "price error, $/MWh",
                "congestion missed",
                "congestion added",
            ),
            [
                (
                    name,
                    f"{one.models:,}",
                    f"{one.infeasible:.2f}%",
                    f"{one.cost_error:.4f}%",
                    f"{one.bias:+.4f}%",
                    f"{one.price_error:.3f}",
                    f"{one.missed:.1f}%",
                    f"{one.added:.1f}%",
                )
                for name, one in both
            ],
        )
        return (
            Section(
                "The released values",
                "How far they are from the real ones.",
                self.pictures,
                tables=(values,),
            ),
            Section("The models", "What they do on the released network.", tables=(models,)),
            inference_section(self.inference, self.statement),
        )


class Reference:
    """The real network's answers to a population, computed once for all releases.

    Parameters
    ----------
    network
        The real network.
    models
        Models to compare on; those without a solution on the real network are left out.
    """

    def __init__(self, network: Network, models: Population) -> None:
        self.models = models
        self._found = _solve(network, models)
        self.served: Bools = np.isfinite(self._found.cost)
        if not self.served.any():
            raise InputError(
                "No model of the population has a solution on the real network.",
                remedy="Compare on other models: --unseen FILE.",
            )

    def errors(self, released: Network, *, penalty: float, adequate: bool = True) -> ModelErrors:
        """How far a released network's answers are from them."""
        ok, real = self.served, self._found
        found = _solve(released, self.models)
        relaxed = solve_population(
            released,
            self.models,
            model="relaxed" if adequate else ("relaxed", "shed"),
            slack_price=penalty,
        )
        priced = ok & (real.cost != 0)
        change = (relaxed.cost - real.cost)[priced] / np.abs(real.cost[priced])
        both = ok & np.isfinite(found.cost)
        prices = np.abs(_kept(found.nodal_price)[both] - _kept(real.nodal_price)[both])
        was = _kept(real.line_price)[both] > _CONGESTED
        now = _kept(found.line_price)[both] > _CONGESTED
        return ModelErrors(
            models=int(ok.sum()),
            infeasible=100 * float(np.isinf(found.cost[ok]).mean()),
            cost_error=100 * _mean(np.abs(change)),
            bias=100 * _mean(change),
            price_error=_mean(prices[np.isfinite(prices)]),
            missed=_share(was & ~now, was),
            added=_share(now & ~was, now),
        )


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
        Where the bundle is no grid release, or the network is not the one it was made from.
    """
    folder = Path(bundle)
    statement = _statement(folder)
    parameters = statement.body["settings"]["parameters"]
    (data,) = [one["name"] for one in statement.body["files"] if one["name"].startswith("network.")]
    real = against if isinstance(against, Network) else read_case(against)
    if "cost" in parameters:
        real = real.linearised()
    released = read_case(folder / data)
    _check_same(real, released)
    population = Population.read(folder / POPULATION_FILE, released)
    others = (
        sample_like(population, released, population.size, seed=seed) if unseen is None else unseen
    )
    others.check_shapes(released)
    adequate = not {"load", "generator_limit"} & set(parameters)
    return Evaluation(
        parameter_errors(real, released, parameters),
        Reference(real, population).errors(released, penalty=penalty, adequate=adequate),
        Reference(real, others).errors(released, penalty=penalty, adequate=adequate),
        statement,
        _inference(real, released, statement),
        tuple(_picture(real, released, name) for name in parameters),
    )


def parameter_errors(
    real: Network, released: Network, parameters: Sequence[str]
) -> tuple[ParameterError, ...]:
    """Errors of every released parameter."""
    found = []
    for name in parameters:
        ours, theirs = _entries(real, released, name)
        error = np.abs(theirs - ours)
        found.append(
            ParameterError(
                name,
                PARAMETERS[name][2],
                len(ours),
                float(error.mean()),
                float(error.max()),
                float(ours.sum()),
                float(theirs.sum()),
            )
        )
    return tuple(found)


def _entries(real: Network, released: Network, name: str) -> tuple[Floats, Floats]:
    table, columns, _ = PARAMETERS[name]
    ours, theirs = (
        np.concatenate([getattr(getattr(network, table), column) for column in columns])
        for network in (real, released)
    )
    entries = np.isfinite(ours) & (ours != 0)
    return ours[entries], theirs[entries]


def _inference(real: Network, released: Network, statement: Statement) -> tuple[Inference, ...]:
    neighbours = statement.body["guarantee"]["neighbours"]
    names = statement.body["settings"]["parameters"]
    found = []
    for name, one in zip(names, neighbours, strict=True):
        ours, theirs = _entries(real, released, name)
        found.append(
            infer(
                name,
                one["unit"],
                ours,
                theirs,
                alpha=Fraction(one["alpha"]),
                epsilon=statement.epsilon,
            )
        )
    return tuple(found)


def _picture(real: Network, released: Network, name: str) -> Picture:
    ours, theirs = _entries(real, released, name)
    unit = PARAMETERS[name][2]
    ends = float(min(ours.min(), theirs.min())), float(max(ours.max(), theirs.max()))
    chart = Chart(
        f"real {name.replace('_', ' ')} ({unit})", f"released ({unit})", x_range=ends, y_range=ends
    )
    chart.line(ends, ends, "c0", dashed=True)
    chart.dots(ours, theirs, "c1", size=5.0)
    return Picture(
        chart.svg(),
        f"Released values of {name} over the real ones; on the dashed line they agree.",
        legend=(("c1", "entries"), ("c0", "no error")),
    )


def _plain(errors: ModelErrors) -> dict[str, Any]:
    """The figures as JSON can hold them: None where there is none."""
    return {name: value if value == value else None for name, value in asdict(errors).items()}


def _solve(network: Network, models: Population) -> Solutions:
    return solve_population(network, models, keep=("cost", "line_price", "nodal_price"))


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


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else float("nan")


def _share(part: Bools, whole: Bools) -> float:
    return 100 * float(part.sum() / whole.sum()) if whole.any() else 0.0


def _kept(values: Floats | None) -> Floats:
    assert values is not None
    return values
