"""The certified method: spend all epsilon on the data, and project onto what serves every model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.methods.base import (
    Floats,
    Method,
    Outcome,
    Prepared,
    Task,
    decimals_of,
    estimates,
    failed,
    in_units,
    prepared_for,
)
from gridveil.grid.methods.entries_query import EntriesQuery, NoisyEntries
from gridveil.grid.model.network import Network
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.opf.ac.numbers import ac_numbers
from gridveil.grid.opf.ac.programme import casadi
from gridveil.grid.opf.outages import (
    Contingencies,
    check_contingencies,
    contingencies,
    read_contingencies,
)
from gridveil.grid.restoration.ac_serving import serve_in_ac
from gridveil.grid.restoration.congestion_relief import LEAST, relieve
from gridveil.grid.restoration.learned_prior import Estimate
from gridveil.grid.restoration.master import Aim, Total, Unsolved
from gridveil.grid.restoration.oracle import LARGE
from gridveil.grid.restoration.project import Drawn, in_dc
from gridveil.privacy.exact_numbers import Exact, exact
from gridveil.release.options import Within, flag, flagged, numbers, option, share

_EMERGENCY = 1.2


def _share(name: str, given: Exact) -> Fraction:
    """Check a share of epsilon: 0 or more, and below 1."""
    if str(given).strip() in ("0", "0.0", "0%"):
        return Fraction(0)
    wanted = exact(given, name=name)
    if wanted >= 1:
        raise InputError(
            f"{name} is {str(given)[:40]}, which leaves nothing for the entries.",
            remedy="It must be below 1: 40%, for example.",
        )
    return wanted


def _ratings(name: str, given: Sequence[float]) -> tuple[float, ...]:
    try:
        values = np.unique(np.asarray(list(given), dtype=np.float64))
    except (TypeError, ValueError):
        values = np.zeros(0)
    if len(values) == 0 or not (np.isfinite(values).all() and (values > 0).all()):
        raise InputError(
            f"The {name} must be a list of ratings in MW, all above 0.",
            remedy=f"For example {name}=[105, 240, 300, 600].",
        )
    return tuple(float(value) for value in values)


@dataclass(frozen=True)
class Certified(Method):
    """Spend all epsilon on the data; released values serve every model of the population.

    Parameters
    ----------
    margin
        The share of every capacity that is kept in reserve, so that models outside the population
        are served too.
    total_share
        For loads and costs: the share of epsilon spent on their sum (the total load; the cost of
        all units at full output). By default 0.4 for loads and 0.55 for costs; 0 for no sum.
    published_total
        For loads: the total load in MW, if it is published anyway. Neighbours then have the same
        total and differ in two loads, which takes twice the noise.
    catalogue
        For capacities: the public ratings in MW; every capacity must be one of them.
    ac
        Serve every model in AC power flow too; capacities are then limits of MVA.
    contingencies
        Serve every model with a dispatch that survives the outage of each of these branches, one at
        a time: ``"all"``, or their names. Outages that split the network are left out.
    emergency
        Ratings after an outage, as a public multiple of the normal ones.
    """

    method: ClassVar[str] = "certified"

    margin: float = option(
        0.04,
        help="share of every capacity kept in reserve",
        check=Within(0.0, 0.5),
        read=share,
        example="4%",
        default="4%",
    )
    total_share: Fraction | None = option(
        None,
        help="share of epsilon for a sum",
        check=_share,
        read=str,
        example="40%",
        default="load 40%, cost 55%",
        parameters=("load", "cost"),
    )
    published_total: float | None = option(
        None,
        help="the total load in MW, if it is public anyway",
        check=Within(-1e9, 1e9),
        example="2850",
        default="not published",
        parameters=("load",),
    )
    catalogue: tuple[float, ...] | None = option(
        None,
        help="the public ratings in MW, as in 105,240,300",
        check=_ratings,
        read=numbers,
        example="105,240,300",
        default="any rating",
        parameters=("capacity",),
    )

    ac: bool = option(
        False,
        help="serve every model in AC power flow too",
        check=flag,
        read=flagged,
        example="yes",
        default="DC alone",
    )
    contingencies: str | tuple[str | int, ...] | None = option(
        None,
        help="outages to survive: all, or a file with one branch in each line",
        check=check_contingencies,
        read=read_contingencies,
        example="all",
        default="none",
    )
    emergency: float | None = option(
        None,
        help="ratings after an outage, as a multiple of the normal ones",
        check=Within(1.0, 10.0),
        example="1.2",
        default=f"{_EMERGENCY:g} with contingencies",
    )

    def _check_together(self) -> None:
        if self.published_total is not None and self.total_share:
            raise InputError(
                "A total that is published need not be bought.", remedy="Leave total_share out."
            )
        if self.emergency is not None and self.contingencies is None:
            raise InputError(
                "Emergency ratings are for outages, and none are listed.",
                remedy="Give contingencies, or leave emergency out.",
            )

    @property
    def known_total(self) -> float | None:
        """The total load in MW, if it is published."""
        return self.published_total

    def outages(self, network: Network) -> Contingencies | None:
        """Return the outages that a network's models must survive; reads no private values."""
        if self.contingencies is None:
            return None
        return contingencies(network, self.contingencies, self.emergency or _EMERGENCY)

    def assumed(self, problem: ReleaseProblem) -> dict[str, str]:
        """See `Method.assumed`: the number of outages, and those that are left out."""
        public = problem.public
        given = self.outages(public.with_values(public.low))
        if given is None:
            return {}
        # By number, like in the statement: a plan is public, and names may contain ratings.
        names = [f"branch {place + 1}" for place in given.left_out]
        apart = f"; {', '.join(names)} left out, which cut the network apart" if names else ""
        return {
            "outages": f"{len(given.lines):,}, one at a time, each survived by every model's "
            f"dispatch at {given.emergency:g} times the ratings{apart}"
        }

    def settle(self, problem: ReleaseProblem) -> Self:
        """Check the options for this problem, and set the share of epsilon for a sum."""
        if self.published_total is not None:
            _check_total(problem, self.published_total)
        if self.catalogue and ("capacity" in problem.relative or "capacity" in problem.steps):
            raise InputError(
                "A catalogue goes with one step in MW for all lines: others leave some ratings of "
                "it open and hide the rest.",
                remedy="Leave the catalogue out, or give one alpha in MW.",
            )
        if self.ac:
            _check_ac(problem)
        given = self.outages(problem.public.with_values(problem.public.low))
        if given is not None:
            # Record branches by number: names may contain ratings.
            some = self.contingencies if isinstance(self.contingencies, str) else _numbers(given)
            return replace(self, contingencies=some, emergency=given.emergency)._settle(problem)
        return self._settle(problem)

    def _settle(self, problem: ReleaseProblem) -> Self:
        summed = problem.summed
        if summed is None or self.published_total is not None:
            return replace(self, total_share=Fraction(0))
        if summed.name in problem.relative:
            if self.total_share:
                raise InputError(
                    f"alpha of {summed.name} is a share of each value, so {summed.summed} moves by "
                    "that share of the upper end of the range: nothing worth its epsilon is left "
                    "of it.",
                    remedy="Leave total_share out, or give alpha in MW.",
                )
            return replace(self, total_share=Fraction(0))
        return self if self.total_share is not None else replace(self, total_share=summed.share)

    def prepare(
        self, problem: ReleaseProblem, alphas: Mapping[str, Fraction], epsilon: Fraction
    ) -> Prepared:
        """Spend all epsilon on the entries and their sum."""
        entries = EntriesQuery(
            problem,
            alphas,
            total_share=self.total_share or Fraction(0),
            published_total=self.published_total is not None,
        )
        return prepared_for(problem, alphas, entries, {"entries": epsilon})

    def steps(self, task: Task, prepared: Prepared, noisy: NoisyEntries) -> Outcome:
        """Restore the noisy entries; this reads noisy and public data, so it costs no epsilon."""
        # Step 2: estimate the entries from what they have in common and from public facts.
        task.progress("learning what the entries have in common")
        learned = estimates(task.problem, prepared, noisy, self.catalogue or ())
        totals = self._totals(task.problem, noisy, prepared.unit)
        return self._projected(task, prepared, noisy, learned, totals)

    def imagine(
        self,
        task: Task,
        prepared: Prepared,
        values: Floats,
        deviations: Floats,
        draw: Callable[[Floats], Floats],
    ) -> Floats:
        """See `Method.imagine`.

        On a large network nothing is learned again: estimates are drawn with the error bars, and
        congestion has its least scale. On a small network the error bars are too wide for that.
        """
        if not self.imagines_roughly(task.problem):
            return super().imagine(task, prepared, values, deviations, draw)
        scale = deviations / np.sqrt(2)
        off = NoisyEntries(values + draw(scale), scale)
        return in_units(self._from_estimates, task, prepared, off).values

    def imagines_roughly(self, problem: ReleaseProblem) -> bool:
        """See `Method.imagines_roughly`."""
        return self._relieves(problem) and len(problem.public.buses) > LARGE

    def _from_estimates(self, task: Task, prepared: Prepared, noisy: NoisyEntries) -> Outcome:
        inside = np.clip(noisy.values, task.problem.public.low, task.problem.public.high)
        learned = Estimate(inside, noisy.deviations**2, noisy.deviations**2)
        return self._projected(task, prepared, noisy, learned, (), congested=LEAST)

    def _relieves(self, problem: ReleaseProblem) -> bool:
        """Say whether to remove unlikely congestion: for capacities alone, without a catalogue."""
        return problem.public.parameters == ("capacity",) and not self.catalogue

    def _projected(
        self,
        task: Task,
        prepared: Prepared,
        noisy: NoisyEntries,
        learned: Estimate,
        totals: tuple[Total, ...],
        congested: float | None = None,
    ) -> Outcome:
        """Turn estimates into released values; `congested` is the scale of congestion, if known."""
        public = task.problem.public
        aim = Aim(learned.mean, 1 / learned.variance, public.low, public.high, totals)
        lines = self._relieves(task.problem)
        if lines:
            # Remove congestion that is more likely noise than real.
            task.progress("taking out unlikely congestion")
            with suppress(Unsolved):
                penalty = self.penalty_for(task.problem)
                aim = relieve(aim, task.problem, penalty, scale=congested).aim
        # Step 3: find the nearest values that serve every model and models like them.
        given = self.outages(public.with_values(public.low))
        trouble_in_ac = {}
        try:
            found = in_dc(
                aim,
                task.problem,
                margin=self.margin,
                decimals=decimals_of(task.problem, prepared),
                unit=task.problem.units(prepared.unit),
                deep=lines,
                contingencies=given,
                progress=task.progress,
            )
            served = found.served
            if self.ac:
                try:
                    served = serve_in_ac(found, noisy.deviations / np.sqrt(2))
                except Unsolved as trouble:
                    trouble_in_ac = {"ac_failed": trouble.what}
        except Unsolved as trouble:
            # The estimates of step 2 are better than the noisy entries.
            return failed(task, prepared, aim.centre, trouble.what)
        return Outcome(
            served.values,
            "cutting planes with Clarabel and HiGHS" + (" and IPOPT" if self.ac else ""),
            # AC power flow is not convex, so the gap to the nearest possible values is unknown.
            None if self.ac else 0.0,
            {
                **trouble_in_ac,
                **({} if given is None else _facts(given, ac=self.ac and not trouble_in_ac)),
                **({"capacity_is": "MVA" if self.ac else "MW"} if lines_in(task.problem) else {}),
                "models_not_served": len(served.unserved),
                "models_served_without_margin": served.without_margin,
                **({} if served.drawn is None else _drawn(served.drawn)),
                "rounds_of_cuts": served.rounds,
                "cuts": served.cuts,
            },
            # Deviations about the released value, which the projection may have moved.
            np.sqrt(learned.doubt + (served.values - learned.mean) ** 2),
        )

    def _totals(
        self, problem: ReleaseProblem, noisy: NoisyEntries, unit: float
    ) -> tuple[Total, ...]:
        summed = problem.summed
        if summed is None:
            return ()
        row = np.zeros(problem.public.entries)
        row[problem.public.parts[summed.name]] = summed.weights(problem.public)
        if self.published_total is not None:
            return (Total(row, self.published_total / unit, None),)
        if noisy.total is not None:
            return (Total(row, noisy.total, 1 / (2 * noisy.total_scale**2)),)
        return ()


def lines_in(problem: ReleaseProblem) -> bool:
    """Say whether capacities are among the private parameters."""
    return "capacity" in problem.public.parameters


def _numbers(given: Contingencies) -> tuple[int, ...]:
    return tuple(place + 1 for place in sorted((*given.lines, *given.left_out)))


def _facts(given: Contingencies, *, ac: bool) -> dict[str, Any]:
    """Return the statement's entries about outages; branches by their number in the network."""
    return {
        "outages": len(given.lines),
        "outages_left_out": [place + 1 for place in given.left_out],
        "outages_are_in": "DC and AC" if ac else "DC",
    }


def _drawn(found: Drawn) -> dict[str, Any]:
    return {"drawn_models": found.models, "drawn_models_not_served": found.not_served}


def _check_ac(problem: ReleaseProblem) -> None:
    """Raise `InputError` if public facts rule out solving AC power flow later."""
    casadi()
    public = problem.public
    ac_numbers(public.with_values((public.low + public.high) / 2))


def _check_total(problem: ReleaseProblem, total: float) -> None:
    part = problem.public.parts["load"]
    if not problem.public.low[part].sum() <= total <= problem.public.high[part].sum():
        raise InputError(
            f"No loads in their range add up to the published total of {total:g} MW.",
            remedy="Check the total and the range; both are public.",
        )
