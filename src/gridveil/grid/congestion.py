"""Check whether the congestion of a released network may come from noise alone.

Noise on the capacity of a small line creates congestion that is not real. If alpha is large
compared to the ratings, a network without any limit can be nearer to the real one than the release.
Whether that may be so is computed from released and public data, which costs no epsilon.

**How.** Limits make the released network more expensive than the same network without them. If the
difference is below `MATERIAL`, its limits do little harm. Otherwise suppose that no line limits
anything on the real network: take a network like the released one, with capacities that are enough
for every model; simulate releases of it (`Method.imagine`), and compute how much more expensive
these make the models. If noise alone costs as much as the limits of the release, nothing in the
release distinguishes its congestion from false congestion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import GridveilError
from gridveil.grid.methods.base import TROUBLE, Outcome, Prepared, Task, slack_of
from gridveil.grid.methods.certified import Certified
from gridveil.grid.model.population import take
from gridveil.grid.opf.engine import Engine, Solutions
from gridveil.grid.restoration.congestion_relief import pieces_for
from gridveil.grid.restoration.oracle import LARGE

Floats = NDArray[np.float64]

MATERIAL = 0.5
"""Limits matter if they add at least this much (% of cost)."""
# How many models are solved on how many simulated releases; fewer on a large network, whose many
# lines make models and draws similar.
_LOOK, _LARGE_LOOK = (40, 5), (10, 2)
# If two draws of noise cost less than the limits by this factor, no more are needed. The look at a
# large network is rough: nothing is learned again from imagined noise, and it may do so much more.
_FAR = 3.0


@dataclass(frozen=True)
class Congestion:
    """What the limits of a released network cost, from released and public data.

    Parameters
    ----------
    cost
        How much more expensive they make the models, mean in %.
    noise
        The same for noise on limits that are wide enough: the least and the most of some draws,
        which stop once the result is clear; None if `cost` is too small to matter.
    rough
        Whether this was a rough look, as at a large network.
    """

    cost: float
    noise: tuple[float, float] | None = None
    rough: bool = False

    @property
    def doubtful(self) -> bool:
        """Whether noise alone may have made the limits as expensive."""
        return self.noise is not None and self.cost <= self._may_be(self.noise[1])

    def _may_be(self, seen: float) -> float:
        return _FAR * seen if self.rough else seen

    @property
    def words(self) -> str:
        """The warning, in a sentence or two."""
        assert self.noise is not None
        low, high = (f"{one:.2g}" for one in self.noise)
        alone = high if low == high else f"{low} to {high}"
        about = f"{alone}% (a rough look: up to {_FAR:g} times)" if self.rough else f"{alone}%"
        return (
            f"The congestion of the released network may be false: its limits make the models "
            f"{self.cost:.2g}% dearer, and noise of this scale alone would make them {about} "
            "dearer if no line limited anything. The network without line limits may "
            "be nearer to the real one than the release; a smaller alpha helps."
        )


def congestion(task: Task, prepared: Prepared, outcome: Outcome) -> Congestion | None:
    """Compute what released limits cost; None if capacities are public, or if it is unknown.

    Parameters
    ----------
    task, prepared
        Those of the release; the sealed values are not opened.
    outcome
        The released values and their error bars.
    """
    problem = task.problem
    if "capacity" not in problem.public.parts:
        return None
    count, draws = _LARGE_LOOK if len(problem.public.buses) > LARGE else _LOOK
    some = take(problem.models, np.arange(min(problem.models.size, count)))
    # Only costs in DC are compared: AC would take most of a release's time again.
    options = task.options
    plain = replace(options, ac=False) if isinstance(options, Certified) else options
    fewer = replace(
        task, problem=problem.with_models(some), options=plain, progress=lambda words: None
    )
    try:
        return _congestion(fewer, prepared, outcome, draws)
    except (GridveilError, *TROUBLE):
        # The epsilon is spent: trouble with this check must not lose the release.
        return None


def _congestion(task: Task, prepared: Prepared, outcome: Outcome, draws: int) -> Congestion | None:
    public, values = task.problem.public, outcome.values
    part = public.parts["capacity"]
    models = _Models(task, values)
    without = models.at(_with(values, part, np.inf))
    assert without.flow is not None
    assert outcome.deviations is not None
    dearer = _dearer(models.at(values), without)
    if dearer is None:
        return None
    if dearer < MATERIAL:
        return Congestion(dearer)
    wanted = np.nan_to_num(np.abs(without.flow)).max(axis=0)[public.support["capacity"]]
    if task.problem.models.capacity is not None:
        wanted = wanted / task.problem.models.capacity[:, public.support["capacity"]].min(axis=0)
    wide = _with(values, part, np.maximum(values[part], wanted))
    # The noise is about released values, so a public seed is fine.
    draw = partial(_draw, np.random.default_rng(0), part)
    rough = task.options.imagines_roughly(task.problem)
    known: list[float] = []
    seen = None
    for _ in range(draws):
        made = task.options.imagine(task, prepared, wide, outcome.deviations, draw)
        found = _dearer(models.at(_with(values, part, made[part])), without)
        if found is not None:
            known.append(found)
            # Noise alone may cost as much, or costs far less: more draws would not change that.
            seen = Congestion(dearer, (min(known), max(known)), rough)
            if seen.doubtful or (len(known) > 1 and _FAR * max(known) < dearer):
                break
    return seen


def _draw(rng: np.random.Generator, part: slice, scale: Floats) -> Floats:
    """Draw noise on the capacities alone."""
    found = np.zeros(len(scale))
    found[part] = rng.laplace(0.0, scale[part])
    return found


def _with(values: Floats, part: slice, others: Floats | float) -> Floats:
    found = values.copy()
    found[part] = others
    return found


class _Models:
    """Solves the models on networks that differ in capacities, with broken limits at a penalty."""

    def __init__(self, task: Task, values: Floats) -> None:
        self._problem = task.problem
        self._engine = Engine(
            task.problem.public.with_values(values),
            model=slack_of(task.problem),
            slack_price=task.options.penalty_for(task.problem),
            quadratic=pieces_for(task.problem) or "exact",
        )

    def at(self, values: Floats) -> Solutions:
        capacity = self._problem.public.with_values(values).branches.capacity
        return self._engine.solve(self._problem.models, capacity=capacity, keep=("flow",))


def _dearer(one: Solutions, without: Solutions) -> float | None:
    """Compute how much more expensive models are, mean in %; None if none has both costs."""
    known = np.isfinite(one.cost) & np.isfinite(without.cost) & (without.cost != 0)
    if not known.any():
        return None
    more = (one.cost - without.cost)[known] / np.abs(without.cost[known])
    return 100 * float(np.maximum(more, 0.0).mean())
