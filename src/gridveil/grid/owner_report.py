"""The owner's evaluation in words and tables, the same on the screen and in the owner's report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gridveil.grid.model.parameters import PARAMETERS
from gridveil.report.attack_section import inference_section
from gridveil.report.charts import scatter
from gridveil.report.page import Picture, Section, Table, shown

if TYPE_CHECKING:
    from gridveil.grid.evaluation import Evaluation, ParameterError
    from gridveil.grid.model.network import Floats
    from gridveil.grid.model_comparison import ModelErrors

_VALUES = "parameter", "entries", "mean error", "largest error", "released total", "real total"
_MODELS = (
    "models",
    "compared",
    "infeasible",
    "cost error",
    "bias of cost",
    "price error, $/MWh",
    "congestion missed",
    "congestion added",
)
AC_COLUMNS = (
    "models in AC",
    "compared",
    "not served",
    "cost error",
    "voltage error, p.u.",
    "error of losses",
)
"""Of the table of errors in AC."""
_CURVES = (
    "Linear costs: against the mean slopes of the real curves, which is what the noise did. Real "
    "curves: against the real network with its curves and constants, which is what a user of the "
    "data sees."
)
_CONTROLS = (
    "{}: the models never seen, on networks that tell nothing of a single entry. A release should "
    "come closer than that."
)


def owner_sections(found: Evaluation) -> tuple[Section, ...]:
    """What the owner's report shows."""
    values = Table(
        "Released values beside the real ones",
        _VALUES,
        [value_row(one) for one in found.parameters],
    )
    models = Table(
        "Models on the released network beside the real one",
        _MODELS,
        [
            (
                name,
                f"{one.models:,}",
                figure(one.infeasible, ".2f", "%"),
                figure(one.cost_error, ".4f", "%"),
                figure(one.bias, "+.4f", "%"),
                figure(one.price_error, ".3f"),
                figure(one.missed, ".1f", "%"),
                figure(one.added, ".1f", "%"),
            )
            for name, one in model_rows(found)
        ],
    )
    rows = ac_rows(found)
    in_ac = [Table("Models in AC power flow", AC_COLUMNS, rows)] if rows else []
    return (
        Section(
            "The released values",
            ("How far they are from the real ones.", *clipped_words(found)),
            found.pictures,
            tables=(values,),
        ),
        Section(
            "The models",
            ("What they do on the released network.", *model_words(found)),
            tables=(models, *in_ac),
        ),
        inference_section(found.inference, found.statement),
    )


def value_row(one: ParameterError) -> tuple[str, ...]:
    """A parameter's errors, in the order of the table's columns."""
    return (
        one.parameter,
        f"{one.entries:,}",
        f"{shown(one.mean)} {one.unit}",
        f"{shown(one.largest)} {one.unit}",
        shown(one.released_total),
        shown(one.real_total),
    )


def values_picture(name: str, real: Floats, released: Floats) -> Picture:
    """Released entries of a parameter over the real ones."""
    unit = PARAMETERS[name].unit
    return Picture(
        scatter(real, released, f"real {name.replace('_', ' ')} ({unit})", f"released ({unit})"),
        f"Released values of {name} over the real ones; on the dashed line they agree.",
        legend=(("c1", "entries"), ("c0", "no error")),
    )


def figure(value: float, form: str, unit: str = "") -> str:
    """A figure with its unit, or a dash if there is none.

    >>> figure(1.25, ".1f", "%"), figure(float("nan"), ".1f", "%")
    ('1.2%', '-')
    """
    return f"{value:{form}}{unit}" if math.isfinite(value) else "-"


def model_rows(found: Evaluation) -> list[tuple[str, ModelErrors]]:
    """The errors on models, each with its name."""
    beside = list(found.controls)
    if found.secured is not None:
        names = (f"population, {_after(found)}", f"never seen, {_after(found)}")
        beside = [*zip(names, found.secured, strict=True), *beside]
    if found.population_with_curves is None or found.unseen_with_curves is None:
        return [("population", found.population), ("never seen", found.unseen), *beside]
    return [
        ("population, linear costs", found.population),
        ("population, real curves", found.population_with_curves),
        ("never seen, linear costs", found.unseen),
        ("never seen, real curves", found.unseen_with_curves),
        *beside,
    ]


def _after(found: Evaluation) -> str:
    return f"after {found.statement.body['settings']['outages']:,} outages"


def ac_rows(found: Evaluation) -> list[tuple[str, ...]]:
    """The errors in AC, in the order of `AC_COLUMNS`; none if it was not certified in AC."""
    names = ["population", "never seen"]
    if found.secured_in_ac is not None:
        names += [f"{name}, {_after(found)}" for name in names]
    return [
        (
            name,
            f"{one.models:,}",
            figure(one.not_served, ".2f", "%"),
            figure(one.cost_error, ".4f", "%"),
            figure(one.voltage_error, ".4f"),
            figure(one.loss_error, ".2f", "%"),
        )
        for name, one in zip(names, (*(found.ac or ()), *(found.secured_in_ac or ())), strict=False)
    ]


def clipped_words(found: Evaluation) -> list[str]:
    """How many real values lay outside their public range."""
    return [_clipped(one) for one in found.parameters if one.clipped is not None]


def _clipped(one: ParameterError) -> str:
    assert one.range is not None
    low, high = one.range
    return (
        f"{one.clipped:,} of {one.entries:,} real values of {one.parameter} lay outside "
        f"[{low:.10g}, {high:.10g}] {one.unit} and were clipped."
    )


def model_words(found: Evaluation) -> list[str]:
    """What must be known to read the errors on models."""
    said = [] if found.population_with_curves is None else [_CURVES]
    if found.controls:
        better = [name for name, one in found.controls if one.cost_error < found.unseen.cost_error]
        said.append(_CONTROLS.format(" and ".join(name for name, _ in found.controls).capitalize()))
        said[-1] += f" By cost error it is worse than {' and '.join(better)}." if better else ""
    for name, one in (("Population", found.population), ("Never seen", found.unseen)):
        if one.models < one.size:
            said.append(
                f"{name}: compared {one.models:,} of {one.size:,}: {one.size - one.models:,} have "
                "no solution on the real network."
            )
        if one.penalised:
            said.append(
                f"{name}: the cost error holds penalties of {found.penalty:,.10g} $/MWh for limits "
                f"that are broken on the released network, in {one.penalised:,} models."
            )
    return said
