"""Made-up wind power records about a real turbine's curve: the paper's setting.

The curve is that of the GE 2.75-103 as windpowerlib has it. The records are public.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

TURBINE = "GE103/2750"
CAPACITY = 2750.0

Vector = NDArray[np.float64]


@cache
def power_curve(turbine_type: str = TURBINE) -> tuple[Vector, Vector]:
    """Wind speeds (m/s) and power (share of capacity) of a turbine's curve, by windpowerlib's name.

    Read once for each turbine; the arrays can't be written to.

    Raises
    ------
    InputError
        If windpowerlib has no curve of such a turbine.
    """
    with warnings.catch_warnings():
        # windpowerlib calls pandas in ways that newer versions of it deprecate.
        warnings.simplefilter("ignore")
        from windpowerlib import WindTurbine

        turbine = WindTurbine(turbine_type=turbine_type, hub_height=100)
    curve = turbine.power_curve
    if curve is None:
        raise InputError(
            f"windpowerlib has no power curve of a turbine {turbine_type!r}.",
            remedy=f"Name one of its types, such as {TURBINE} or E-126/4200.",
        )
    speed = curve["wind_speed"].to_numpy(dtype=np.float64, copy=True)
    power = curve["value"].to_numpy(dtype=np.float64) / turbine.nominal_power
    for values in (speed, power):
        values.flags.writeable = False
    return speed, power


def demo_records(rows: int = 1000, *, seed: int = 0, noise: float = 0.1) -> pa.Table:
    """The paper's records: speeds from 2.5 to 12.5 m/s, the curve, and normal noise, clipped.

    Columns ``wind_speed`` (m/s) and ``power`` (kW, of 2,750).
    """
    import pyarrow as pa

    speed, power = made_up(rows, seed=seed, noise=noise)
    return pa.table({"wind_speed": speed, "power": power * CAPACITY})


def made_up(
    rows: int, *, seed: int, noise: float, turbine_type: str = TURBINE
) -> tuple[Vector, Vector]:
    """Wind speeds from 2.5 to 12.5 m/s, and power about a turbine's curve in shares of capacity."""
    generator = np.random.default_rng(seed)
    speed = generator.uniform(2.5, 12.5, rows)
    mean = np.interp(speed, *power_curve(turbine_type))
    return speed, np.clip(mean + generator.normal(0.0, noise, rows), 0.0, 1.0)
