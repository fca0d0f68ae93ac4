"""The wind half of the report: released records, and the regression on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from gridveil.report.page import Section
from gridveil.report.pictures import scatter_with_curve
from gridveil.wind.fit import Fit
from gridveil.wind.records import Records

Vector = NDArray[np.float64]

_DOTS = 4000


def wind_section(released: Callable[[], Iterator[Vector]], fit: Fit, records: Records) -> Section:
    """Released records of one turbine over wind speed, with their regression."""
    beta, loss = fit.ridge.weights_and_loss(fit.with_blocks(released))
    speed, power, fitted = _thinned(released, fit, beta)
    order = np.argsort(speed)
    picture = scatter_with_curve(
        speed[order],
        power[order] * fit.group.capacity,
        speed[order],
        np.clip(fitted[order], 0.0, 1.0) * fit.group.capacity,
        x_label=f"wind speed, column {records.speed} (m/s)",
        y_label=f"released power ({records.unit})",
    )
    several = len(records.groups) > 1
    of = f" of {fit.group.name}, one of {len(records.groups)} turbines" if several else ""
    dots = f", {len(speed):,} of them shown" if len(speed) < fit.rows else ""
    return Section(
        "The released records",
        f"{fit.rows:,} records{of}{dots}. Their regression was made to agree with that of the "
        "real records.",
        picture,
        f"Scatter plot of released power over wind speed from {speed.min():.3g} to "
        f"{speed.max():.3g} metres a second, with the fitted power curve.",
        (
            ("loss of the regression, root of the sum of squares", f"{loss:.4g}"),
            ("typical residual, of capacity", f"{loss / fit.rows**0.5:.4f}"),
            ("weights", ", ".join(f"{weight:.4g}" for weight in beta)),
        ),
    )


def _thinned(
    released: Callable[[], Iterator[Vector]], fit: Fit, beta: Vector
) -> tuple[Vector, Vector, Vector]:
    """Speed, released power and the regression's power of evenly spaced records."""
    step = max(fit.rows // _DOTS, 1)
    parts = []
    start = 0
    for speed, X, y in fit.speed_and_rows(released):
        some = slice(-start % step, None, step)
        parts.append(np.stack([speed[some], y[some], X[some] @ beta]))
        start += len(y)
    speed, power, fitted = np.hstack(parts)
    return speed, power, fitted
