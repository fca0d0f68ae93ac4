"""What a mechanism should do, from its definition."""

import itertools

import numpy as np
from scipy import integrate


def theory(scores, scale) -> list[float]:
    """Choice probabilities of the maximum after exponential noise."""

    def wins(i):
        others = np.delete(scores, i)

        def density(x):
            return np.exp(-x) * np.prod(-np.expm1(-np.maximum(x + (scores[i] - others) / scale, 0)))

        kinks = sorted({max(0.0, float(-(scores[i] - o) / scale)) for o in others})
        edges = [0.0, *kinks, max(kinks, default=0.0) + 40]
        return sum(integrate.quad(density, a, b)[0] for a, b in itertools.pairwise(edges) if b > a)

    return [wins(i) for i in range(len(scores))]
