"""The datasets that releases are audited on: are neighbours neighbours, and copies there?"""

import numpy as np
import pytest

from gridveil.auditing import wind
from gridveil.auditing.bundle_bytes import bundle_parts
from gridveil.auditing.grid import _release
from gridveil.auditing.triangle_network import triangle_text
from gridveil.auditing.triangle_secrets import SECRETS, triangle
from gridveil.grid.model.alphas_by_class import steps_of
from gridveil.grid.model.release_problem import neighbours
from gridveil.privacy.noise import SecureNoise


def test_wind_records_move_by_alpha_inside_their_range():
    pairs = wind._neighbours()
    assert len(pairs) == 2 * len(wind.SPEED)
    for one, other in pairs:
        moved = np.abs(np.array(one) - np.array(other))
        assert sorted(moved)[-2:] == [0, float(wind.ALPHA)]
        assert min(*one, *other) >= 0
        assert max(*one, *other) <= 1


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_networks_move_one_entry_by_alpha_or_two_under_a_public_total(secret):
    request = secret.request
    for one, other in secret.neighbours():
        networks = [triangle(secret.name, values) for values in (one, other)]
        parts = [network.split(secret.parameters, request["range"]) for network in networks]
        low, high = parts[0][1].low, parts[0][1].high
        moved = np.array(other) - np.array(one)
        assert np.count_nonzero(moved) == (2 if secret.total else 1)
        if secret.share is None:
            public = parts[0][1]
            moves = neighbours(public, request["alpha"], published=False)
            steps = [steps_of(public, m) if m.classes else [m.alpha] * m.entries for m in moves]
            assert (np.abs(moved) <= np.concatenate(steps).astype(float)).all()
        else:
            factor = max(max(a / b, b / a) for a, b in zip(one, other, strict=True))
            assert factor == pytest.approx(1 + float(secret.share), rel=1e-12)
        assert (np.array(other) > low).all()
        assert (np.array(other) < high).all()
        if secret.total:
            assert moved.sum() == 0
            assert sum(one) == secret.options["published_total"]


def test_the_case_is_full_of_copies_and_the_bundle_has_none():
    values = (31.2509173, 41.5027319, 36.7508461)  # digits that no picture has by chance
    text = triangle_text({"capacity": values})
    assert all(text.count(str(value)) >= 4 for value in values)
    made = _release("capacity", "laplace", values, SecureNoise())
    shown = b"".join(bundle_parts(made).values())
    released = set(made.values)
    assert not any(str(value).encode() in shown for value in values if value not in released)
