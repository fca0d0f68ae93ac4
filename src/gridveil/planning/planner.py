"""What the page shows for a choice: the guarantee, the accuracy so far, the budget, the command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from gridveil import __version__
from gridveil.cli.release_toml import file_text, values_of
from gridveil.errors import GridveilError, InputError, LedgerRefused, show_exact
from gridveil.planning.child_process import Child, MakeKinds, Worker
from gridveil.planning.choice import Choice
from gridveil.planning.page_input import Faults, numbers_read, read_choice, read_fields, text_of
from gridveil.planning.release_kind import Kind, Metric, command_line
from gridveil.planning.stand_in_runs import Results, Runner
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.guarantee_words import (
    certainty,
    largest_factor,
    neighbour_json,
    range_unit,
    show_certainty,
    show_groups,
    show_step,
)
from gridveil.privacy.ledger import (
    Ledger,
    Totals,
    checked_name,
    ledger_place,
    refuse_exposed,
    steps_to_reference,
)
from gridveil.privacy.statement import Statement
from gridveil.report.charts import Chart

EPSILONS = ("0.1", "0.2", "0.5", "1", "2", "5", "10")


class Planner:
    """Everything behind the page.

    Parameters
    ----------
    make
        Makes what can be planned, in the page's order.
    ledger
        The ledger's file or address; it is read, and never made or changed.
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
            "ledger": str(ledger_place(self._given)),
            "epsilons": EPSILONS,
            "kinds": [kind.to_json() for kind in self.kinds.values()],
        }

    def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Everything that follows from a choice, and what is wrong with it, field by field.

        A choice with a fault has no guarantee, accuracy, budget, command or file. With a fault in a
        text for the command alone, what does not depend on these texts is told.

        Raises
        ------
        InputError
            If there is no such kind of release.
        """
        kind = self.kinds.get(text_of(asked.get("kind")))
        if kind is None:
            raise InputError("There is no such kind of release.", remedy="Choose one of the list.")
        faults = Faults()
        choice = read_choice(kind, asked, faults)
        fields = read_fields(kind, asked, choice, faults)
        dataset = text_of(asked.get("dataset"))
        with faults.at("dataset"):
            if not dataset:
                raise InputError(
                    "The ledger needs a name for the data.",
                    remedy="Give one, the same for every release of it.",
                )
            dataset = checked_name(dataset)
        told: dict[str, Any] = {
            "faults": faults.found,
            "read": {} if choice is None else numbers_read(kind, choice),
            **dict.fromkeys(("guarantee", "sizes", "accuracy", "budget", "command", "file")),
        }
        if choice is None:
            return told
        told["guarantee"] = _guarantee(kind.neighbours(choice), choice.epsilon)
        told["sizes"] = [vars(one) for one in kind.sizes(choice)]
        told["accuracy"] = self._accuracy(kind, choice)
        if not faults.found:
            told["budget"] = self._budget(kind, choice, fields, dataset)
            words = self._words(kind, choice, fields, dataset)
            told["command"] = command_line(words)
            told["file"] = file_text(kind.name, values_of(kind.name, words[3:]))
        return told

    def close(self) -> None:
        """End the background work."""
        self._runner.close()

    def _accuracy(self, kind: Kind, choice: Choice) -> dict[str, Any]:
        runs, each = kind.effort(choice)
        metrics = kind.metrics(choice)
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
            "pictures": [vars(one) for one in here.runs[0].pictures] if here.runs else [],
            "sweep": _sweep(metrics[0], choice.epsilon, sweep),
        }

    def _budget(
        self, kind: Kind, choice: Choice, fields: Mapping[str, str], dataset: str
    ) -> dict[str, Any]:
        place = ledger_place(self._given)
        if isinstance(place, Path) and not os.path.exists(place):  # opening it would make one
            text = f"There is no ledger at {place} yet: the first release makes it."
            return {"state": "none", "text": text}
        try:
            totals = Ledger(place).totals(dataset)
            refuse_exposed(totals, *kind.exposure(choice, fields))
            charged = kind.charged(choice, fields)
            steps = max(steps_to_reference(totals, one) for one in charged)
            totals = totals.facing(charged)
        except LedgerRefused as error:
            # A kind with one parameter can't make another one private, nor change its unit.
            can = len(kind.parameters) > 1
            return {"state": "refused", "text": str(error) if can else error.what}
        except GridveilError as error:
            return {"state": "refused", "text": str(error)}
        return _outlook(totals, choice.epsilon, steps)

    def _words(
        self, kind: Kind, choice: Choice, fields: Mapping[str, str], dataset: str
    ) -> list[str]:
        words = [*kind.command(choice, fields), "--dataset", dataset]
        if self._given is not None:
            words += ["--ledger", str(ledger_place(self._given))]
        return words


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


def _guarantee(neighbours: Sequence[Adjacency], epsilon: Fraction) -> dict[str, Any]:
    """The words of the statement that the release would have, and what they mean for odds."""
    statement = Statement(
        {
            "dp_valid": True,
            "guarantee": {
                "epsilon": str(epsilon),
                "neighbours": [neighbour_json(one, epsilon) for one in neighbours],
            },
            "ledger": None,
        }
    )
    groups = show_groups(statement.body["guarantee"])
    changes = [(f"{words}, each by that much", total) for words, total in groups]
    changes = changes or [("10 entries, each by that much", 10 * epsilon)]
    for one in neighbours:
        what = f"one entry{f' of {one.parameter}' * (len(neighbours) > 1)}"
        low, high = one.range.low, one.range.high
        where = f"anywhere in [{low:.10g}, {high:.10g}] {range_unit(one.unit)}"
        changes.append((f"{what}, by {show_step(one.alpha, one.unit)}", epsilon))
        changes.append((f"{what}, {where}", epsilon * one.steps_over_range))
    strength = statement.strength
    return {
        "words": statement.in_words,
        "strength": {
            "level": strength.level,
            "name": strength.name,
            "headline": strength.headline,
            "reason": strength.reason,
        },
        "changes": [
            {
                "change": words,
                "epsilon": show_exact(amount),
                "factor": f"{largest_factor(amount)} times",
                "certainty": show_certainty(certainty(amount)),
            }
            for words, amount in sorted(changes, key=lambda change: change[1])
        ],
    }


def _summary(metric: Metric, values: Sequence[float]) -> dict[str, Any]:
    if not values:
        return {**vars(metric), "mean": None, "low": None, "high": None}
    mean = sum(values) / len(values)
    return {**vars(metric), "mean": mean, "low": min(values), "high": max(values)}


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
