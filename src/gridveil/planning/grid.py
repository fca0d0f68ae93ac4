"""Networks on the page. The stand-in: RTS-96 as in the paper, or a network that is public."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gridveil.cli import parsing
from gridveil.errors import InputError, show_exact
from gridveil.grid import cases, plan
from gridveil.grid.evaluation import parameter_errors
from gridveil.grid.io import OPTIONS, SUFFIXES
from gridveil.grid.methods import METHODS, PENALTY
from gridveil.grid.model.alphas_by_class import steps_of
from gridveil.grid.model.default_ranges import ranges_of
from gridveil.grid.model.network import Network
from gridveil.grid.model.parameters import PARAMETERS, public_beside
from gridveil.grid.model.population import Population
from gridveil.grid.model.public_network import PublicNetwork, check_ranges, split_parts
from gridveil.grid.model.release_problem import neighbours
from gridveil.grid.model.sampling import default_models, own_models, sample_like, sample_population
from gridveil.grid.model_comparison import Reference, unlimited
from gridveil.planning.choice import Choice
from gridveil.planning.release_kind import (
    Field,
    Kind,
    Metric,
    Parameter,
    Run,
    Session,
    Share,
    SizeTable,
    Steps,
    file_word,
    method_options,
    percent,
)
from gridveil.privacy.adjacency import RELATIVE, Adjacency
from gridveil.privacy.exact_numbers import exact
from gridveil.report.certainty_by_size import misfit, sizes
from gridveil.report.charts import scatter
from gridveil.report.page import Picture

_SHARES = ("1%", "2%", "5%", "10%", "15%", "20%", "30%", "50%", "100%")
_UNSEEN = 200  # models that accuracy is measured on
_MEGAWATTS = ("1", "2", "5", "10", "15", "20", "30", "40", "50", "75", "100")
_WORDS = {
    "capacity": "line capacities",
    "load": "loads",
    "generator_limit": "generator limits",
    "cost": "costs",
    "reactive_load": "reactive loads",
}
_ENTRIES = {
    "capacity": "a line's capacity",
    "load": "a bus's load",
    "generator_limit": "a generator's limit",
    "cost": "a generator's cost",
    "reactive_load": "a bus's reactive load",
}
_UNLIMITED = Metric(
    "unlimited",
    "Cost without limits",
    "%",
    "error of the cost if no line had a limit: a release should stay below it",
)


def _parameter(name: str, alphas: tuple[str, ...], alpha: str, example: str) -> Parameter:
    unit = PARAMETERS[name].unit
    kinds = (
        Steps("amount", f"in {unit}", alphas, alpha, unit),
        Steps("share", "in % of each value", _SHARES, "20%", ""),
        Steps("class", "by public class", (), f"230kV:{alpha},others:10", unit),
    )
    return Parameter(
        name,
        _WORDS[name],
        unit,
        alphas,
        alpha,
        f"How far {_ENTRIES[name]} may move and still be hidden among the "
        "possibilities. Below the spacing of values that are plausible it protects little.",
        f"The public range: where such values lie, whoever's they are, as {example}. From public "
        "facts of your network if left out.",
        kinds if unit == "MW" else (),
    )


_METRICS = (
    Metric("cost", "Cost", "%", "error of what an optimal power flow costs"),
    Metric("infeasible", "Infeasible", "%", "models that the released network can't serve"),
    Metric("price", "Nodal prices", "$/MWh", "typical error of a price"),
)


class Grid(Kind):
    """Release parameters of a network.

    Parameters
    ----------
    public
        A network that its owner declared public, in place of the built-in one.
    """

    name = "grid"
    title = "Parameters of a network"
    parameters = (
        _parameter("capacity", _MEGAWATTS, "30", "50:1000"),
        _parameter("load", _MEGAWATTS, "15", "0:500"),
        _parameter("generator_limit", _MEGAWATTS, "15", "0:1000"),
        _parameter("cost", ("0.1", "0.2", "0.5", "1", "2", "5", "10"), "1", "0:150"),
        _parameter("reactive_load", _MEGAWATTS, "5", "-100:100"),
    )
    methods = method_options(METHODS)
    fields = (
        Field(
            "file",
            "Your case",
            "case.m",
            "MATPOWER, PSS/E, pandapower, PyPSA, XIIDM. It is not opened here.",
        ),
        Field(
            "population",
            "Models to serve",
            "",
            "From gridveil grid population; sampled if left out.",
            optional=True,
        ),
        Field(
            "snapshots",
            "Snapshots as models",
            "",
            "PyPSA, or pandapower with profiles: all, or every 24h.",
            optional=True,
        ),
        Field("output", "Folder for the release", "release", "Made by the command."),
    )
    size = ("models", 20, 300, 1000)

    def __init__(self, public: Network | None = None) -> None:
        self._public = public
        own = None if public is None else own_models(public)
        self._snapshots = 0 if own is None else own.size
        if self._snapshots:
            self.size = ("snapshots", *(self._snapshots,) * 3)
        self._parts = lru_cache(self._split)
        self._references = lru_cache(maxsize=8)(self._reference)

    @property
    def stand_in(self) -> str:
        """The public data that accuracy is measured on, in a sentence."""
        if self._public is not None:
            where = f"{self._public.name}, which you named public"
        else:
            where = "The 73-bus RTS-96 with 108 lines at 60% of their capacity"
        if self._snapshots:
            return (
                f"{where}. Each run serves its {self._snapshots:,} snapshots, and is measured on "
                "mixtures of two of them."
            )
        return (
            f"{where}. Each run serves so many models (a release: 1,000 by default), and is "
            "measured on others that it never saw."
        )

    def effort(self, choice: Choice) -> tuple[int, int]:
        """The paper's method takes seconds per run, the others tenths."""
        return (4, 0) if choice.method == "paper" else (10, 2)

    def metrics(self, choice: Choice) -> tuple[Metric, ...]:
        """What the models do, and one value of every private parameter."""
        values = (
            Metric(
                f"value-{name}",
                f"One of the {_WORDS[name]}",
                PARAMETERS[name].unit,
                "typical error of a released value",
            )
            for name in choice.parameters
        )
        controls = (_UNLIMITED,) if "capacity" in choice.parameters else ()
        return (*_METRICS, *values, *controls)

    def ranges(self, name: str, text: str) -> tuple[float, float]:
        """The public range, as the command line reads it."""
        found = parsing.ranges([f"{name}={text}"])
        if set(found) != {name}:
            raise InputError(
                f"The range {text[:40]!r} can't be used.", remedy="Write two numbers, as 50:1000."
            )
        ends = check_ranges((name,), found)[name]
        return ends.low, ends.high

    def alpha(self, parameter: Parameter, text: str) -> Any:
        """An amount, a share of each value, or one of these for each public class."""
        given = parsing.steps(text) if ":" in text else text
        if isinstance(given, str):
            return _step(parameter, given)
        return tuple((name, _step(parameter, one)) for name, one in given.items())

    def check_method(self, choice: Choice) -> None:
        """Raise `InputError` for the paper's method on costs and more, or with shares."""
        method = METHODS[choice.method]()
        method.check_parameters(choice.parameters)
        method.check_steps([name for name, one in choice.private if "%" in _shown(one)])

    def check_field(self, name: str, fields: Mapping[str, str], choice: Choice | None) -> None:
        """Raise `InputError` for snapshots of a file that has none, or that tell private loads."""
        if name != "snapshots" or not fields[name]:
            return
        ending = Path(fields["file"]).suffix.lower()
        kind = SUFFIXES.get(ending)
        if kind is not None and kind not in OPTIONS[name]:
            raise InputError(
                f"A {ending} file has no snapshots.", remedy="Leave this out, or name another case."
            )
        if choice is not None and "load" in choice.parameters:
            raise InputError(
                "Loads are private, and they vary over the snapshots.",
                remedy="Release them as series, on the command line alone: gridveil grid release "
                "--parameter load --series FILE.",
            )

    def neighbours(self, choice: Choice) -> Sequence[Adjacency]:
        """One value of one private parameter moves by its alpha."""
        if len(choice.private) > 1 and any(isinstance(one, tuple) for _, one in choice.private):
            raise InputError(
                "Commands take steps by class for one private parameter alone.",
                remedy="Give one alpha for each parameter, or release in Python.",
            )
        _, public = self._parts(choice.parameters, choice.ranges)
        return neighbours(public, choice.alphas, published=False)

    def sizes(self, choice: Choice) -> Sequence[SizeTable]:
        """By the entries of the stand-in, which are public."""
        network, public = self._parts(choice.parameters, choice.ranges)
        found = []
        for one in self.neighbours(choice):
            kind = PARAMETERS[one.key]
            if kind.unit != "MW":
                continue
            table, held = getattr(network, kind.table), public.support
            values = np.concatenate([getattr(table, name)[held[name]] for name in kind.columns])
            steps = steps_of(public, one) if one.classes else (one.alpha,) * len(values)
            three = sizes(values, steps, choice.epsilon, relative=one.unit == RELATIVE)
            wrong = None if one.classes else misfit(three, one.key, one.unit)
            rows = [size.row("MW") for size in three]
            found.append(SizeTable(_WORDS[one.key].capitalize(), rows, wrong))
        return found

    def session(self, choice: Choice) -> Session:
        """Sample the models, and solve others on the stand-in, which all runs share."""
        network, _ = self._parts(choice.parameters, choice.ranges)
        shared = self._references(choice.parameters, choice.ranges, choice.size)
        return GridSession(network, choice, *shared)

    def command(self, choice: Choice, fields: Mapping[str, str]) -> list[str]:
        """``gridveil grid release`` with everything that was chosen."""
        several = len(choice.private) > 1
        words = ["gridveil", "grid", "release", file_word(fields["file"])]
        words += ["--parameter", ",".join(choice.parameters)]
        alphas = (f"{f'{name}=' * several}{_shown(alpha)}" for name, alpha in choice.private)
        words += ["--alpha", ",".join(alphas), "--epsilon", show_exact(choice.epsilon)]
        if choice.method != self.methods[0].name:
            words += ["--method", choice.method]
        for name, (low, high) in choice.ranges:
            words += ["--range", f"{f'{name}=' * several}{_number(low)}:{_number(high)}"]
        for name in ("population", "snapshots"):
            words += [f"--{name}", file_word(fields[name])] if fields[name] else []
        return [*words, "-o", file_word(fields["output"])]

    def exposure(self, choice: Choice, fields: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """A release publishes every parameter in clear but those that are private."""
        hidden = [*choice.parameters, *["total load"] * ("load" in choice.parameters)]
        return hidden, public_beside(choice.parameters)

    def _split(
        self, parameters: tuple[str, ...], ranges: tuple[tuple[str, tuple[float, float]], ...]
    ) -> tuple[Network, PublicNetwork]:
        network = cases.rts96(variant="paper") if self._public is None else self._public
        if "cost" in parameters:
            network = network.linearised(private_limits="generator_limit" in parameters)
        some = {name: ends for name, ends in ranges if name in parameters}
        return network, split_parts(network, parameters, ranges_of(network, parameters, some))[1]

    def _reference(
        self,
        parameters: tuple[str, ...],
        ranges: tuple[tuple[str, tuple[float, float]], ...],
        size: int,
    ) -> tuple[Population, Reference, dict[str, float]]:
        network, public = self._parts(parameters, ranges)
        if self._public is None and "cost" not in parameters:
            models = sample_population(public, size, costs=(80.0, 100.0), private=parameters)
        else:
            models = default_models(public, size)
        reference = Reference(network, sample_like(models, public, min(size, _UNSEEN), seed=1))
        if "capacity" not in parameters:
            return models, reference, {}
        control = reference.errors(unlimited(network), penalty=PENALTY)
        return models, reference, {_UNLIMITED.name: control.cost_error}


def _step(parameter: Parameter, text: str) -> Fraction | str:
    """An amount, or a share of each value as releases take it."""
    if text.strip().endswith("%"):
        return percent(exact(text, name="alpha"))
    return exact(text, name="alpha", unit=parameter.unit)


def _shown(alpha: Any) -> str:
    """Alpha as the command line takes it."""
    if isinstance(alpha, tuple):
        return ",".join(f"{name}:{_shown(one)}" for name, one in alpha)
    return alpha if isinstance(alpha, str) else show_exact(alpha)


def _number(value: float) -> str:
    """A number as the command line reads it back, without a needless decimal."""
    return repr(value).removesuffix(".0")


class GridSession(Session):
    """Seeded releases of the stand-in."""

    def __init__(
        self,
        network: Network,
        choice: Choice,
        models: Population,
        reference: Reference,
        controls: Mapping[str, float],
    ) -> None:
        self._network, self._choice = network, choice
        self._reference, self._controls = reference, controls
        made = plan(
            network,
            models,
            parameter=choice.parameters,
            epsilon=choice.epsilon,
            alpha=choice.alphas,
            method=choice.method,
            range=dict(choice.ranges),
        )
        # The stand-in is public: costs without limits are known, and no look for them is needed.
        self._plan = made.without_warning()

    def run(self, seed: int) -> Run:
        """Make a seeded release of the stand-in, and measure it on models that it never saw."""
        choice = self._choice
        made = self._plan.run(self._plan.study(seed))
        adequate = not {"load", "generator_limit"} & set(choice.parameters)
        errors = self._reference.errors(made.data, penalty=PENALTY, adequate=adequate)
        values = {
            "cost": errors.cost_error,
            "infeasible": errors.infeasible,
            "price": errors.price_error,
            **self._controls,
        }
        for one in parameter_errors(self._network, made.data, choice.parameters):
            values[f"value-{one.parameter}"] = one.mean
        shares = [
            Share(record.query, float(100 * record.epsilon / choice.epsilon))
            for record in made.account.records
        ]
        found = {name: value for name, value in values.items() if math.isfinite(value)}
        pictures = [self._picture(name, made.data) for name in choice.parameters]
        return Run(found, shares, pictures)

    def _picture(self, name: str, released: Network) -> Picture:
        kind = PARAMETERS[name]
        table, columns, unit = kind.table, kind.columns, kind.unit
        real, noisy = (
            [float(v) for c in columns for v in getattr(getattr(network, table), c)]
            for network in (self._network, released)
        )
        pairs = [(x, y) for x, y in zip(real, noisy, strict=True) if math.isfinite(x) and x != 0]
        x, y = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        return Picture(
            scatter(x, y, f"stand-in: {_WORDS[name]} ({unit})", f"released ({unit})"),
            f"Released {_WORDS[name]} over those of the stand-in; on the dashed line they agree.",
            legend=(("c1", _WORDS[name]), ("c0", "no error")),
        )
