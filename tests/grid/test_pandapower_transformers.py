"""Three-winding transformers whose ratings are private: what their published impedances tell."""

import numpy as np
import pandas as pd
import pytest

from gridveil.grid.io.pandapower import transformers

BASE, RATING = 100.0, 37.3
RATINGS = np.round(np.arange(5.0, 200.05, 0.1), 1)
# As makers give them, in percent: one decimal, and two for the part that is lost.
SHORT, LOSSY = np.round(np.arange(4.0, 20.05, 0.1), 1), np.round(np.arange(0.1, 1.005, 0.01), 2)


def published(seed):
    """What is published of a transformer with the same rating of all windings."""
    draws = np.random.default_rng(seed)
    row = {f"sn_{side}_mva": RATING for side in transformers.SIDES} | {"i0_percent": 0.1}
    for side in transformers.SIDES:
        row[f"vk_{side}_percent"] = draws.choice(SHORT)
        row[f"vkr_{side}_percent"] = draws.choice(LOSSY)
    frame = pd.DataFrame([row])
    bare = pd.DataFrame(index=frame.index)
    transformers.stars_on_base(frame, bare, BASE)
    return bare.iloc[0]


def ratings_that_fit(found, digits):
    """Ratings on which some maker's numbers become those published of all three pairs."""
    left = np.ones(len(RATINGS), dtype=bool)
    for side in transformers.SIDES:
        lossy = found[f"vkr_{side}_percent"]
        through = np.sqrt(found[f"vk_{side}_percent"] ** 2 - lossy**2)
        for at in np.flatnonzero(left):
            factor = BASE / RATINGS[at]
            some = LOSSY[rounds_to(LOSSY * factor, lossy, digits[0])]
            reactance = np.sqrt(SHORT[:, None] ** 2 - some**2) * factor
            left[at] = rounds_to(reactance, through, digits[1]).any()
    return RATINGS[left]


def rounds_to(values, wanted, digits):
    """Which values become this number with so many digits, on either side of a tie."""
    half = 0.5 * 10.0 ** (np.floor(np.log10(wanted)) - digits + 1)
    return np.abs(values - wanted) <= half * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_rating_of_a_transformer_can_not_be_worked_out(seed, monkeypatch):
    ratings = ratings_that_fit(published(seed), (1, 2))
    assert RATING in ratings
    assert len(ratings) > 40
    assert ratings.max() > 1.2 * ratings.min()
    # The control: with three digits each, as for two windings, few are left.
    three = transformers.coarse
    monkeypatch.setattr(transformers, "coarse", lambda values, digits=3: three(values, 3))
    assert len(ratings_that_fit(published(seed), (3, 3))) < 40
