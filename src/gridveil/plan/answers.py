"""What the page shows for a choice: the guarantee, the accuracy so far, the budget, the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from gridveil import __version__
from gridveil.errors import GridveilError, InputError, show_exact
from gridveil.plan.child import Child, MakeKinds, Worker
from gridveil.plan.kind import Choice, Kind, Metric, command_line
from gridveil.plan.runs import Results, Runner
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.budget import exact
from gridveil.privacy.ledger import (
    Ledger,
    Totals,
    checked_name,
    ledger_path,
    refuse_exposed,
    steps_to_reference,
)
from gridveil.privacy.statement import Statement
from gridveil.report.charts import Chart
from gridveil.report.page import certainty, factor

EPSILONS = ("0.1", "0.2", "0.5", "1", "2", "5", "10")
_LARGEST = 1000  # epsilon; more is a slip of the pen
_LONGEST = 400  # characters of a text field


class Planner:
    """Everything behind the page.

    Parameters
    ----------
    make
        Makes what can be planned, in the page's order.
    ledger
        The ledger's file; it is read, and never made or changed.
    worker
        What makes the runs: a process of its own by default.
    """

    def __init__(
        self,
        make: MakeKinds,
        ledger: Path | str | None = None,
        worker: Worker | None = None,
    ) -> None:
        self.kinds = {kind.name: kind for kind in make()}
        self._given = ledger
        self._runner = Runner(Child(make) if worker is None else worker)

    def start(self) -> dict[str, Any]:
        """What the page needs before anything is chosen."""
        return {
            "version": __version__,
            "ledger": str(ledger_path(self._given)),
            "epsilons": EPSILONS,
            "kinds": [kind.to_json() for kind in self.kinds.values()],
        }

    def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Everything that follows from a choice.

        Raises
        ------
        InputError
            Where the choice itself is not one; a bad text field is told in its own place.
        """
        kind, choice = self._choice(asked)
        fields = _texts(kind, asked.get("fields"))
        choice = replace(choice, limits=kind.limits(fields))
        adjacency = kind.adjacency(choice)
        dataset = _text(asked.get("dataset"))
        return {
            "guarantee": _guarantee(adjacency, choice.epsilon),
            "accuracy": self._accuracy(kind, choice),
            "budget": self._budget(kind, choice, fields, dataset),
            **self._command(kind, choice, fields, dataset),
        }

    def close(self) -> None:
        """End the background work."""
        self._runner.close()

    def _choice(self, asked: Mapping[str, Any]) -> tuple[Kind, Choice]:
        kind = self.kinds.get(_text(asked.get("kind")))
        if kind is None:
            raise InputError("There is no such kind of release.", remedy="Choose one of the list.")
        parameter = kind.parameter(_text(asked.get("parameter")))
        alpha = exact(f"{_text(asked.get('alpha'))}{'%' * (parameter.unit == '%')}", name="alpha")
        epsilon = exact(_text(asked.get("epsilon")), name="epsilon")
        if epsilon > _LARGEST:
            raise InputError(
                f"epsilon {show_exact(epsilon)} protects nothing.",
                remedy="Guarantees that mean something have an epsilon of a few, or less.",
            )
        counts, least, _, most = kind.size
        size = _text(asked.get("size"))
        if not (size.isascii() and size.isdigit() and least <= int(size) <= most):
            raise InputError(
                f"The number of {counts} must be between {least:,} and {most:,}.",
                remedy="The stand-in is there to see the accuracy, not to be as large as yours.",
            )
        method = kind.method(_text(asked.get("method"))).name
        return kind, Choice(kind.name, parameter.name, method, alpha, epsilon, int(size))

    def _accuracy(self, kind: Kind, choice: Choice) -> dict[str, Any]:
        runs, each = kind.effort(choice)
        metrics = kind.parameter(choice.parameter).metrics
        others = [replace(choice, epsilon=Fraction(text)) for text in EPSILONS if each]
        wanted = [(choice, runs), *((other, each) for other in others)]
        found = self._runner.want(wanted)
        here = found[0]
        sweep = {other.epsilon: one for other, one in zip(others, found[1:], strict=True)}
        return {
            "runs": len(here.runs),
            "of": runs,
            "problem": here.problem,
            "done": all(one.complete(n) for one, (_, n) in zip(found, wanted, strict=True)),
            "metrics": [_summary(metric, here.values(metric.name)) for metric in metrics],
            "shares": [vars(share) for share in here.runs[0].shares] if here.runs else [],
            "picture": vars(here.runs[0].picture) if here.runs else None,
            "sweep": _sweep(metrics[0], choice.epsilon, sweep),
        }

    def _budget(
        self, kind: Kind, choice: Choice, fields: Mapping[str, str], dataset: str
    ) -> dict[str, Any]:
        path = ledger_path(self._given)
        if not path.exists() or not path.stat().st_size:  # opening an empty file would make one
            text = f"There is no ledger at {path} yet: the first release makes it."
            return {"state": "none", "text": text}
        if not dataset:
            text = "Name the data to see what it has spent, and what this release would add."
            return {"state": "none", "text": text}
        try:
            totals = Ledger(path).totals(dataset)
            refuse_exposed(totals, *kind.exposure(choice, fields))
            steps = steps_to_reference(totals, kind.charged(choice, fields))
        except GridveilError as error:
            return {"state": "refused", "text": str(error)}
        return _outlook(totals, choice.epsilon, steps)

    def _command(
        self, kind: Kind, choice: Choice, fields: Mapping[str, str], dataset: str
    ) -> dict[str, Any]:
        try:
            empty = [one.title for one in kind.fields if not (one.optional or fields[one.name])]
            if empty:
                raise InputError(f"Fill in: {', '.join(empty).lower()}.")
            words = kind.command(choice, fields)
            if dataset:
                words = [*words, "--dataset", checked_name(dataset)]
        except InputError as error:
            return {"command": None, "command_problem": str(error)}
        if self._given is not None:
            words += ["--ledger", str(self._given)]
        return {"command": command_line(words), "command_problem": None}


def _outlook(totals: Totals, epsilon: Fraction, steps: int) -> dict[str, Any]:
    """What the ledger would make of a release."""
    charge = epsilon * steps
    counted = (
        f": its alpha is smaller than the one that the ledger counts in, so epsilon counts {steps} "
        "times."
        if steps > 1
        else "."
    )
    text = (
        f"{totals.dataset!r} has spent {show_exact(totals.spent)} so far. This release would "
        f"be charged {show_exact(charge)}{counted} "
    )
    if totals.cap is None or totals.remaining is None:
        text += f"Then {show_exact(totals.spent + charge)} is spent; no cap is set."
    elif charge > totals.remaining:
        text += (
            f"Only {show_exact(totals.remaining)} is left of its cap {show_exact(totals.cap)}: "
            "the ledger would refuse it."
        )
        return {"state": "refused", "text": text}
    else:
        left = show_exact(totals.remaining - charge)
        text += f"Then {left} is left of its cap {show_exact(totals.cap)}."
    return {"state": "good", "text": text}


def _text(given: Any) -> str:
    return str(given).strip()[:_LONGEST] if isinstance(given, str | int | float) else ""


def _texts(kind: Kind, given: Any) -> dict[str, str]:
    values = given if isinstance(given, Mapping) else {}
    return {one.name: _text(values.get(one.name)) for one in kind.fields}


def _guarantee(adjacency: Adjacency, epsilon: Fraction) -> dict[str, Any]:
    """The words of the statement that the release would have, and what they mean for odds."""
    neighbour = adjacency.to_json(epsilon)
    body = {
        "dp_valid": True,
        "guarantee": {"epsilon": str(epsilon), "neighbours": [neighbour]},
    }
    whole = Fraction(neighbour["epsilon_over_whole_range"])
    step = f"{show_exact(adjacency.alpha)} {adjacency.unit}"
    low, high = adjacency.limits.low, adjacency.limits.high
    changes = [
        (f"one entry, by {step}", epsilon),
        ("10 entries, each by that much", 10 * epsilon),
        (f"one entry, anywhere in [{low:.10g}, {high:.10g}] {adjacency.unit}", whole),
    ]
    return {
        "words": Statement(body).in_words,
        "changes": [
            {
                "change": words,
                "epsilon": show_exact(amount),
                "factor": factor(amount),
                "certainty": certainty(amount),
            }
            for words, amount in sorted(changes, key=lambda change: change[1])
        ],
    }


def _summary(metric: Metric, values: Sequence[float]) -> dict[str, Any]:
    if not values:
        return {"name": metric.name, "mean": None, "low": None, "high": None}
    mean = sum(values) / len(values)
    return {"name": metric.name, "mean": mean, "low": min(values), "high": max(values)}


def _sweep(metric: Metric, chosen: Fraction, sweep: Mapping[Fraction, Results]) -> str | None:
    """The first metric over epsilon: mean, lowest and highest of the runs so far."""
    found = {eps: values for eps, one in sweep.items() if (values := one.values(metric.name))}
    if len(found) < 2:
        return None
    x = [float(epsilon) for epsilon in found]
    means = [sum(values) / len(values) for values in found.values()]
    highest = [max(values) for values in found.values()]
    chart = Chart(
        "epsilon",
        f"{metric.title.lower()} ({metric.unit})",
        x_range=(float(EPSILONS[0]), float(EPSILONS[-1])),
        y_range=(0.0, 1.05 * max(highest)),
        log_x=True,
        height=300,
    )
    chart.band(x, [min(values) for values in found.values()], highest, "c1")
    chart.line(x, means, "c1")
    chart.dots(x, means, "c1", size=8)
    if x[0] <= float(chosen) <= float(EPSILONS[-1]):
        chart.rule(float(chosen), "c2")
    return chart.svg()
