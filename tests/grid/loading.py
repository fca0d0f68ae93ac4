"""Read a PGLib case into a Network, for the engine's own tests and benchmarks."""

import warnings
from pathlib import Path

import numpy as np
from matpowercaseframes import CaseFrames

from gridveil.grid.model.network import Branches, Buses, Generators, Network


def load_case(path):
    """Read one MATPOWER case with matpowercaseframes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = CaseFrames(str(path))
    bus, gen, branch = (np.asarray(t, float) for t in (case.bus, case.gen, case.branch))
    place = {int(number): k for k, number in enumerate(bus[:, 0])}
    at = np.vectorize(place.__getitem__, otypes=[np.int64])
    names = tuple(str(int(number)) for number in bus[:, 0])
    buses = Buses(names, bus[:, 2], bus[:, 4], bus[:, 1] == 3, bus[:, 1] != 4)
    return Network(
        name=Path(path).stem,
        base_mva=float(case.baseMVA),
        buses=buses,
        generators=_generators(gen, np.asarray(case.gencost, float), at),
        branches=_branches(branch, at),
    )


def _generators(gen, costs, at):
    quadratic, linear, constant, points = [], [], [], []
    for row in costs[: len(gen)]:
        count = int(row[3])
        values = row[4:]
        if row[0] == 1:
            points.append(values[: 2 * count].reshape(count, 2))
            poly = np.zeros(3)
        else:
            points.append(None)
            poly = np.concatenate([np.zeros(3), values[:count]])[-3:]
        for column, value in zip((quadratic, linear, constant), poly, strict=True):
            column.append(value)
    return Generators(
        name=tuple(f"g{k}" for k in range(len(gen))),
        bus=at(gen[:, 0]),
        p_min=gen[:, 9],
        p_max=gen[:, 8],
        in_service=gen[:, 7] > 0,
        quadratic=np.array(quadratic),
        linear=np.array(linear),
        constant=np.array(constant),
        points=tuple(points),
    )


def _branches(branch, at):
    tap = np.where(branch[:, 8] == 0, 1.0, branch[:, 8])
    low, high = branch[:, 11].copy(), branch[:, 12].copy()
    free = (low == 0) & (high == 0)
    low[free | (low <= -360)] = -np.inf
    high[free | (high >= 360)] = np.inf
    return Branches(
        name=tuple(f"l{k}" for k in range(len(branch))),
        from_bus=at(branch[:, 0]),
        to_bus=at(branch[:, 1]),
        resistance=branch[:, 2],
        reactance=branch[:, 3],
        tap=tap,
        shift=branch[:, 9],
        capacity=np.where(branch[:, 5] == 0, np.inf, branch[:, 5]),
        angle_min=low,
        angle_max=high,
        in_service=branch[:, 10] > 0,
    )
