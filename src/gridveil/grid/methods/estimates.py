"""Estimate every entry, with a variance, from noisy entries and public facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gridveil.grid.methods.base import Ints, Prepared
from gridveil.grid.methods.noisy import NoisyEntries
from gridveil.grid.model.covariates import Covariates
from gridveil.grid.model.parameters import Parameter
from gridveil.grid.model.problem import ReleaseProblem
from gridveil.grid.model.public import PublicNetwork
from gridveil.grid.restoration.covariate_prior import learn
from gridveil.grid.restoration.prior import Estimate
from gridveil.grid.restoration.value_cells import Noisy


def estimates(
    problem: ReleaseProblem, prepared: Prepared, noisy: NoisyEntries, catalogue: Sequence[float]
) -> Estimate:
    """Estimate mean and variance of every entry, one group of similar entries at a time.

    Parameters
    ----------
    problem, prepared
        What is released, in the units of `prepared`.
    noisy
        The noisy entries, in the same units.
    catalogue
        For capacities: the only possible ratings in MW; empty if any rating is possible.
    """
    public = problem.public
    mean, variance, doubt = (np.empty(public.entries) for _ in range(3))
    for kind, places in _alike(problem):
        if not kind.alike:
            mean[places] = np.clip(noisy.values, public.low, public.high)[places]
            variance[places] = doubt[places] = 2 * noisy.scale[places] ** 2
            continue
        known = prepared.covariates[kind.name].of(places - public.parts[kind.name].start)
        ratings = catalogue if kind.name == "capacity" else ()
        found = _estimate(public, places, noisy, known, [one / prepared.unit for one in ratings])
        mean[places], variance[places], doubt[places] = found.mean, found.variance, found.doubt
    return Estimate(mean, variance, doubt)


def _estimate(
    public: PublicNetwork,
    places: Ints,
    noisy: NoisyEntries,
    known: Covariates,
    catalogue: Sequence[float],
) -> Estimate:
    """Estimate mean and variance of the entries of one column and one sign."""
    first = places[0]
    sign = float(public.signs[first])
    low, high = sorted((sign * float(public.low[first]), sign * float(public.high[first])))
    logs = bool(noisy.logarithms[first])
    sizes = Noisy(sign * noisy.values[places], noisy.scale[places], low, high, logs)
    found = learn(sizes, known, catalogue).estimate
    return Estimate(sign * found.mean, found.variance, found.doubt)


def _alike(problem: ReleaseProblem) -> list[tuple[Parameter, Ints]]:
    """Group the entries by column and sign: those of a group may have something in common."""
    groups: list[tuple[Parameter, Any]] = []
    start = 0
    for kind in problem.kinds:
        for column in kind.columns:
            count = int(problem.public.support[column].sum())
            places = np.arange(start, start + count)
            signs = problem.public.signs[places]
            groups += [(kind, places[signs == sign]) for sign in (-1.0, 1.0)]
            start += count
    return [(kind, places) for kind, places in groups if len(places)]
