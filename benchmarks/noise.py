"""Secure Laplace noise against numpy's: a million draws each, time and memory, one table.

Both add Laplace noise of the same scale to the same million numbers. numpy's is what one would
otherwise write; it is not private (its low bits give values away, and its generator is not
secure). The two samples are checked to have the same distribution.
"""

from __future__ import annotations

import resource
import time

import numpy as np

from gridveil.privacy.noise import SecureNoise, laplace_epsilon

DRAWS = 1_000_000
SCALE = 1500.0  # steps: a sensitivity of 1500 grid steps at epsilon 1


def main() -> None:
    """Print the table."""
    laplace_epsilon(SCALE, 1)  # loads OpenDP
    values = np.zeros(DRAWS, dtype=np.int64)
    before = _peak()
    secure, secure_time = _timed(lambda: SecureNoise().laplace(values, SCALE))
    memory = _peak() - before
    plain, plain_time = _timed(lambda: np.random.default_rng(1).laplace(0.0, SCALE, DRAWS))
    distance = _largest_gap(secure, plain)
    print(f"{DRAWS:,} Laplace draws of scale {SCALE:g} steps")
    print(f"{'':22}{'time':>10}{'a draw':>12}{'extra memory':>15}")
    print(f"{'OpenDP, secure':22}{secure_time:>9.2f}s{_each(secure_time):>12}{memory:>12.0f} MB")
    print(f"{'numpy, not private':22}{plain_time:>9.2f}s{_each(plain_time):>12}")
    print(
        f"ratio {secure_time / plain_time:.0f}; largest gap of the two distributions {distance:.5f}"
    )
    if distance > 0.005:  # 1e-21 by chance for two samples of a million
        raise SystemExit("the two samples differ in distribution")


def _timed(draw):  # type: ignore[no-untyped-def]
    begun = time.perf_counter()
    sample = draw()
    return sample, time.perf_counter() - begun


def _each(seconds: float) -> str:
    return f"{seconds / DRAWS * 1e6:.2f} us"


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _largest_gap(one: np.ndarray, two: np.ndarray) -> float:
    points = np.linspace(-5 * SCALE, 5 * SCALE, 2001)
    shares = [np.searchsorted(np.sort(x), points) / len(x) for x in (one, two)]
    return float(np.abs(shares[0] - shares[1]).max())


if __name__ == "__main__":
    main()
