"""Whether the congestion of a released network may be the noise's own.

Noise on the capacity of a small line makes congestion that is not there. If alpha is large beside
the ratings, a network without any limit can be nearer to the real one than the release. Whether
that may be so is asked of released and public data, which costs no epsilon.

**How.** Limits make the released network dearer than the same network without them. If that is by
less than `MATERIAL`, its limits do little harm. Otherwise suppose that no line limits anything on
the real network: take a network that is like the released one, with capacities that are enough for
every model; draw noise of the release's own scale on them, restore the noisy values as the release
did, and see how much dearer that alone makes the models. If noise alone does as much as the limits
of the release do, nothing in the release tells its congestion from false congestion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import GridveilError
from gridveil.grid.methods.certified import Certified
from gridveil.grid.methods.method import TROUBLE, Prepared, Task, restore, slack_of
from gridveil.grid.model.population import take
from gridveil.grid.opf.engine import Solutions, solve_population

Floats = NDArray[np.float64]

MATERIAL = 0.5
"""From here on (% of cost) it matters whether limits are there."""
_MODELS, _DRAWS = 40, 5


@dataclass(frozen=True)
class Congestion:
    """What the limits of a released network cost, from released and public data.

    Parameters
    ----------
    cost
        How much dearer they make the models, mean in %.
    noise
        The same for noise on limits that are wide enough: the least and the most of some draws,
        which end with the first that does as much; None where `cost` is too little to matter.
    """

    cost: float
    noise: tuple[float, float] | None = None

    @property
    def doubtful(self) -> bool:
        """Whether noise alone may have made the limits as dear."""
        return self.noise is not None and self.cost <= self.noise[1]

    @property
    def words(self) -> str:
        """The warning, in a sentence or two."""
        assert self.noise is not None
        low, high = (f"{one:.2g}" for one in self.noise)
        alone = high if low == high else f"{low} to {high}"
        return (
            f"The congestion of the released network may be false: its limits make the models "
            f"{self.cost:.2g}% dearer, and noise of this scale alone would make them {alone}% "
            "dearer if no line limited anything. The network without line limits may "
            "be nearer to the real one than the release; a smaller alpha helps."
        )


def congestion(task: Task, prepared: Prepared, values: Floats) -> Congestion | None:
    """Look at what released limits do; None where capacities are public, or it can't be told.

    Parameters
    ----------
    task, prepared
        As of the release; the sealed values are not looked at.
    values
        The released values.
    """
    if "capacity" not in task.problem.public.parts:
        return None
    some = take(task.problem.models, np.arange(min(task.problem.models.size, _MODELS)))
    # What noise does to costs in DC is looked at, and AC would take most of a release's time again.
    options = task.options
    plain = replace(options, ac=False) if isinstance(options, Certified) else options
    fewer = replace(task, problem=task.problem.with_models(some), options=plain)
    try:
        return _congestion(fewer, prepared, values)
    except (GridveilError, *TROUBLE):
        # The epsilon is spent: trouble with this look may not cost the release.
        return None


def _congestion(task: Task, prepared: Prepared, values: Floats) -> Congestion | None:
    public = task.problem.public
    part = public.parts["capacity"]
    without = _solve(task, _with(values, part, np.inf))
    assert without.flow is not None
    dearer = _dearer(_solve(task, values), without)
    if dearer is None:
        return None
    if dearer < MATERIAL:
        return Congestion(dearer)
    wanted = np.nan_to_num(np.abs(without.flow)).max(axis=0)[public.support["capacity"]]
    if task.problem.models.capacity is not None:
        wanted = wanted / task.problem.models.capacity[:, public.support["capacity"]].min(axis=0)
    wide = _with(values, part, np.maximum(values[part], wanted))
    known: list[float] = []
    for one in _noisy(task, prepared, wide, part):
        draw = _dearer(_solve(task, one), without)
        if draw is not None:
            known.append(draw)
            if draw >= dearer:  # noise alone may do it: more draws would say no more
                break
    return Congestion(dearer, (min(known), max(known))) if known else None


def _noisy(task: Task, prepared: Prepared, values: Floats, part: slice) -> Iterator[Floats]:
    """Some releases of capacities, if these were the real ones."""
    scale = prepared.entries.scale(prepared.epsilons["entries"])
    # Of released values, by a seed that hides nothing.
    rng = np.random.default_rng(0)
    for _ in range(_DRAWS):
        noisy = prepared.entries.noisy(values, scale, partial(_draw, rng, part))
        made = restore(task, prepared, noisy).values
        yield _with(values, part, made[part])


def _draw(rng: np.random.Generator, part: slice, scale: Floats) -> Floats:
    """Noise on the capacities alone."""
    found = np.zeros(len(scale))
    found[part] = rng.laplace(0.0, scale[part])
    return found


def _with(values: Floats, part: slice, others: Floats | float) -> Floats:
    found = values.copy()
    found[part] = others
    return found


def _solve(task: Task, values: Floats) -> Solutions:
    """The models on a network with these values, broken limits at a penalty."""
    return solve_population(
        task.problem.public.with_values(values),
        task.problem.models,
        model=slack_of(task.problem),
        slack_price=task.options.penalty_for(task.problem),
        keep=("flow",),
    )


def _dearer(one: Solutions, without: Solutions) -> float | None:
    """How much dearer the models are, mean in %; None where no model tells."""
    known = np.isfinite(one.cost) & np.isfinite(without.cost) & (without.cost != 0)
    if not known.any():
        return None
    more = (one.cost - without.cost)[known] / np.abs(without.cost[known])
    return 100 * float(np.maximum(more, 0.0).mean())
