"""Estimate noisy entries with the help of their public covariates.

A line of 380 kV with a low reactance carries more than one of 110 kV: the public data of an entry
says much about its value. How much is learned here from the noisy values themselves, so it costs no
epsilon. Several experts each make a prior for every entry:

- ``even``: all cells are equally likely;
- ``all``: the distribution of all entries, as in `learned_prior`;
- ``class``: the distribution of the entries of its class (kind and voltage);
- ``line``: a robust linear regression on covariates, with the learned distribution of its
  residuals;
- ``trend``: the same with squares, products and classes, which fits more closely and has less data
  for each coefficient;
- ``near``: the likely values of the entries with the nearest covariates, at three widths.

**No entry predicts itself.** Entries are divided into folds, and the priors of a fold are learned
from the other folds only: an entry that helped to predict itself would be pulled towards its own
noise. The weight of each expert is learned by expectation maximisation, from how likely it makes
the noisy values of folds that it did not learn from. If covariates say nothing, ``all`` gets the
weight, and the estimates are nearly those of `learned_prior`.

Folds follow the order of the entries and not chance, so nothing here draws random numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gridveil.grid.model.covariates import Covariates
from gridveil.grid.restoration.learned_prior import Blocks, Estimate, doubtful, estimate, learned
from gridveil.grid.restoration.likelihood_cells import Cells, Noisy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# With fewer entries than this nothing is learned from covariates; the smallest size of a class.
_FEW, _CLASS = 12, 3
# The most numbers in a matrix of entries by cells, and the most cells.
_ROOM, _MOST_CELLS = 1_000_000, 300
_ROUNDS, _ENOUGH = 150, 1e-6
# Widths of neighbourhoods, in standard deviations of the covariates; and the most neighbours.
_NEAR, _NEIGHBOURS = (0.02, 0.1, 0.3), 40
_RIDGE, _HUBER = 1e-3, 1.5
_TURNS = 2
# Widths by which a prior is blurred for error bars, in cells.
_BLURS = (1.0, 3.0, 8.0, 20.0)


@dataclass(frozen=True, eq=False)
class Learned:
    """Estimates of the entries, and the weight that each expert got."""

    estimate: Estimate
    weights: dict[str, float]


def learn(noisy: Noisy, known: Covariates, catalogue: Sequence[float] = ()) -> Learned:
    """Estimate mean and variance (MW) of every entry from noisy values and public covariates.

    If there is a `catalogue`, entries have only its values.
    """
    count = len(noisy)
    if count < _FEW:
        return Learned(_alone(noisy, catalogue), {"all": 1.0})
    cells = Cells(noisy, min(_MOST_CELLS, _ROOM // max(count, 1)))
    likely = cells.likelihood()
    prior, weights = foretell(cells, likely, known)
    if len(catalogue):
        return Learned(_among(cells, prior, noisy, catalogue), weights)
    mean, variance = cells.moments(_posterior(likely, prior))
    noise = 2 * (noisy.scale * (mean if noisy.logarithms else 1.0)) ** 2
    # Learned priors have spikes where real ones are smooth. Means do not suffer from that, but
    # variances come out too small: those for error bars use blurred priors.
    other, wide = cells.moments(_posterior(likely, _blurred(likely, prior)))
    found = Estimate(
        np.clip(mean, noisy.low, noisy.high),
        np.maximum(variance, noise / 100),
        doubtful(np.maximum(wide + (other - mean) ** 2, noise / 100), noise),
    )
    return Learned(found, weights)


def _among(cells: Cells, prior: Floats, noisy: Noisy, catalogue: Sequence[float]) -> Estimate:
    """Estimate entries that only have a catalogue's values; cells pass their prior to the nearest.

    A value of the catalogue is as likely as the cells that are nearest to it.
    """
    points = np.unique(np.asarray(catalogue, dtype=np.float64))
    places = np.log(points + cells.shift)
    nearest = np.searchsorted((places[1:] + places[:-1]) / 2, cells.middle)
    common = prior @ np.eye(len(points))[nearest] + 1e-9
    away = np.abs(noisy.values[:, None] - points) / noisy.scale[:, None]
    chance = _posterior(np.exp(away.min(axis=1, keepdims=True) - away), common)
    mean = chance @ points
    variance = (chance * (points - mean[:, None]) ** 2).sum(axis=1)
    variance = np.maximum(variance, 2 * noisy.scale**2 / 100)
    return Estimate(mean, variance, variance)


def _posterior(likely: Floats, prior: Floats) -> Floats:
    found = likely * prior
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _blurred(likely: Floats, prior: Floats) -> Floats:
    """Mix a prior with blurred copies of it, by the weights that make the entries most likely."""
    away = np.arange(prior.shape[1]) - np.arange(prior.shape[1])[:, None]
    some = [prior]
    for width in _BLURS:
        kernel = np.exp(-0.5 * (away / width) ** 2)
        some.append(prior @ (kernel / kernel.sum(axis=1, keepdims=True)))
    return _mixed(_weights(np.column_stack([(likely * one).sum(axis=1) for one in some])), some)


def foretell(cells: Cells, likely: Floats, known: Covariates) -> tuple[Floats, dict[str, float]]:
    """Compute a prior over the cells for each entry, learned from others, and the experts' weights.

    Parameters
    ----------
    cells
        The cells of possible values.
    likely
        The likelihood of each entry's noisy value in each cell: ``(entries, cells)``.
    known
        The public covariates of the entries.
    """
    folds = _deal(known)
    experts = _Experts(cells, likely, known)
    priors: dict[str, Floats] = {}
    for fold in range(int(folds.max()) + 1):
        held = folds == fold
        for name, prior in experts.about(held).items():
            priors.setdefault(name, np.empty_like(likely))[held] = prior
    evidence = np.column_stack([(likely * prior).sum(axis=1) for prior in priors.values()])
    weights = _weights(evidence)
    mixed = _mixed(weights, list(priors.values()))
    return mixed, dict(zip(priors, weights.tolist(), strict=True))


def _alone(noisy: Noisy, catalogue: Sequence[float]) -> Estimate:
    """Estimate too few entries for experts with `learned_prior` alone."""
    if not noisy.logarithms:
        return estimate(noisy.values, float(noisy.scale.max()), noisy.low, noisy.high, catalogue)
    low, high = np.log(noisy.low), np.log(noisy.high)
    found = estimate(noisy.values, float(noisy.scale.max()), float(low), float(high))
    mean = np.exp(found.mean)
    return Estimate(mean, found.variance * mean**2, found.doubt * mean**2)


def _deal(known: Covariates) -> Ints:
    """Assign entries to folds by class and position in the network's order, which is public."""
    count = len(known.classes)
    folds = 10 if count <= 1000 else 5
    order = np.lexsort((np.arange(count), known.classes.astype(str)))
    found = np.empty(count, dtype=np.int64)
    # A stride that shares no factor with the number of folds separates neighbouring twins.
    found[order] = (np.arange(count) * 3) % folds
    return found


class _Experts:
    """The experts: priors for the entries of a fold, learned from the entries outside it."""

    def __init__(self, cells: Cells, likely: Floats, known: Covariates) -> None:
        from scipy.spatial import cKDTree

        self._cells = cells
        self._likely = likely
        names, self._class, size = np.unique(
            known.classes.astype(str), return_inverse=True, return_counts=True
        )
        self._classes = [place for place in range(len(names)) if size[place] >= _CLASS]
        own = [(self._class == place).astype(np.float64) for place in self._classes]
        standard = _standard(known.numbers)
        self._line, self._basis = _bases(standard, own)
        reach = min(_NEIGHBOURS + 1, len(likely))
        found = cKDTree(standard).query(standard, k=reach)
        self._distance, self._neighbour = (np.asarray(one).reshape(-1, reach) for one in found)

    def about(self, held: Bools) -> dict[str, Floats]:
        """Compute the priors of the held-out entries, by expert."""
        count = self._cells.count
        others, here = np.flatnonzero(~held), np.flatnonzero(held)
        even = np.full((1, count), 1 / count)
        common = _density(self._likely[others])[None, :]
        known = {
            "even": even,
            "all": common,
            "class": self._by_class(others, common),
            "line": self._trend(self._line, others, common),
            "trend": self._trend(self._basis, others, common),
        }
        posterior = self._settled(others, known)
        found = {name: self._rows(prior, here) for name, prior in known.items()}
        found |= {f"near {w:g}": self._near(here, others, posterior, w) for w in _NEAR}
        return found

    def _settled(self, others: Ints, known: Mapping[str, Floats]) -> Floats:
        """Compute the posteriors of the other entries under all experts, "near" included."""
        likely = self._likely[others]
        priors = [self._rows(prior, others) for prior in known.values()]
        near: list[Floats] = []
        posterior = likely
        for _ in range(_TURNS):
            some = [*priors, *near]
            weights = _weights(np.column_stack([(likely * prior).sum(axis=1) for prior in some]))
            posterior = likely * _mixed(weights, some)
            posterior /= posterior.sum(axis=1, keepdims=True)
            near = [self._near(others, others, posterior, width) for width in _NEAR]
        return posterior

    def _rows(self, prior: Floats, places: Ints) -> Floats:
        return prior if len(prior) == 1 else prior[places]

    def _by_class(self, others: Ints, common: Floats) -> Floats:
        """Learn the distribution of each class; small classes get that of all entries."""
        found = np.repeat(common, len(self._likely), axis=0)
        for place in self._classes:
            some = others[self._class[others] == place]
            if len(some) >= _CLASS - 1:
                found[self._class == place] = _density(self._likely[some])
        return found

    def _trend(self, basis: Floats, others: Ints, prior: Floats) -> Floats:
        """Predict every entry by regression, with the learned distribution of the residuals."""
        middle, likely = self._cells.middle, self._likely[others]
        posterior = likely * prior
        shifted = np.empty(0)
        for _ in range(_TURNS):
            posterior /= posterior.sum(axis=1, keepdims=True)
            mean = posterior @ middle
            doubt = np.maximum(posterior @ middle**2 - mean**2, 0.0)
            slope = _robust(basis[others], mean, doubt)
            predicted = np.clip(basis @ slope, middle[0], middle[-1])
            shifted = self._shifted(others, predicted)
            posterior = likely * shifted[others]
        return shifted

    def _shifted(self, others: Ints, predicted: Floats) -> Floats:
        """Centre the distribution of residuals, learned from the others, at each prediction."""
        cells, count = self._cells, self._cells.count
        at = np.rint((predicted - cells.middle[0]) / cells.width).astype(np.int64)
        offsets = np.arange(-count + 1, count)
        where = at[others, None] + offsets
        inside = (where >= 0) & (where < count)
        rows = np.take_along_axis(self._likely[others], np.clip(where, 0, count - 1), axis=1)
        residual = _density(np.where(inside, rows, 0.0) + 1e-12)
        found = residual[np.arange(count) - at[:, None] + count - 1]
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def _near(self, asked: Ints, others: Ints, posterior: Floats, width: float) -> Floats:
        """Average the posteriors of the nearest other entries, without the entry itself."""
        count, row_of = self._cells.count, np.full(len(self._likely), -1)
        row_of[others] = np.arange(len(others))
        neighbour, distance = row_of[self._neighbour[asked]], self._distance[asked]
        weight = np.exp(-0.5 * (distance / width) ** 2)
        weight[(neighbour < 0) | (self._neighbour[asked] == asked[:, None])] = 0.0
        weight[weight < 1e-3] = 0.0
        total = weight.sum(axis=1)
        there = weight > 0
        share = (weight / np.maximum(total, 1e-3)[:, None])[there]
        starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        matrix = sparse.csr_array(
            (share, neighbour[there], starts), shape=(len(asked), len(others))
        )
        # The rest of the probability is uniform; for an entry without neighbours, all of it.
        found = 0.98 * (matrix @ posterior)
        return np.asarray(found + (1 - found.sum(axis=1, keepdims=True)) / count)


def _density(likely: Floats) -> Floats:
    """Find the distribution over cells under which some entries are most likely."""
    entries, count = likely.shape
    return learned(Blocks(likely), entries, count, _ROUNDS, _ENOUGH)


def _weights(evidence: Floats) -> Floats:
    """Learn the experts' weights from how likely each makes every entry."""
    count = evidence.shape[1]
    found = np.full(count, 1 / count)
    blocks = Blocks(evidence)
    for _ in range(300):
        new = found * blocks.under(1 / blocks.times(found)) + 0.2
        new /= new.sum()
        if np.abs(new - found).max() < 1e-6:
            break
        found = new
    return found


def _mixed(weights: Floats, priors: Sequence[Floats]) -> Floats:
    found = np.zeros_like(max(priors, key=len))
    for weight, prior in zip(weights, priors, strict=True):
        found += weight * prior
    return found


def _standard(numbers: Floats) -> Floats:
    """Scale the columns to mean 0 and deviation 1, and leave out constant ones."""
    spread = numbers.std(axis=0)
    kept = spread > 1e-9 * (1 + np.abs(numbers).max(axis=0, initial=0.0))
    if not kept.any():
        return np.zeros((len(numbers), 1))
    return np.asarray((numbers[:, kept] - numbers[:, kept].mean(axis=0)) / spread[kept])


def _bases(standard: Floats, classes: list[Floats]) -> tuple[Floats, Floats]:
    """Build two bases: constant and covariates; and these with squares, products and classes."""
    width = standard.shape[1]
    pairs = [(a, b) for a in range(width) for b in range(a, width)]
    products = [standard[:, a] * standard[:, b] for a, b in pairs]
    curved = _standard(np.column_stack(products))
    line = np.column_stack([np.ones(len(standard)), standard])
    return line, np.column_stack([line, curved, *classes])


def _robust(basis: Floats, goal: Floats, doubt: Floats) -> Floats:
    """Fit Huber's regression with a ridge; goals with a large variance (`doubt`) count less."""
    known = 1 / (np.median(doubt) + doubt + 1e-6)
    known /= known.mean()
    ridge = np.eye(basis.shape[1]) * _RIDGE * len(goal)
    ridge[0, 0] = 1e-9
    weight: Floats = known
    slope: Floats = np.zeros(basis.shape[1])
    blocks = Blocks(basis)
    for _ in range(20):
        right = blocks.under(weight * goal)
        new = np.asarray(np.linalg.solve(blocks.weighed(weight) + ridge, right))
        settled = np.abs(new - slope).max() < 1e-6
        slope = new
        if settled:
            break
        away = np.abs(goal - blocks.times(slope))
        bound = _HUBER * max(1.48 * float(np.median(away)), 1e-6)
        weight = known * np.minimum(1.0, bound / np.maximum(away, 1e-9))
    return slope
