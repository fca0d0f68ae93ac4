"""Networks that come with the package.

>>> from gridveil.grid import cases
>>> print(cases.rts96())
Network 'rts96' on 100 MVA
  buses       73, load 8,550.0 MW on 51
  branches    120, 120 of them limited
  generators  99, capacity 10,215.0 MW
"""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.io import Source
from gridveil.grid.io.matpower import tables as mt
from gridveil.grid.io.matpower import to_network
from gridveil.grid.io.matpower.text import CORE
from gridveil.grid.model.checks import check
from gridveil.grid.model.network import Floats, Network

__all__ = ["rts96"]


PAPER_SHARE = 0.6
"""The paper's share of every line's capacity."""


def rts96(variant: str | None = None) -> Network:
    """The 73-bus system of PGLib-OPF v23.07 (see ``cases/rts96/ATTRIBUTION``).

    Parameters
    ----------
    variant
        None: 120 branches, as published. ``"paper"``: parallel lines merged, which leaves 108
        branches (susceptances and capacities both summed), and capacities at 60%, as in the paper
        on private capacities.

    Raises
    ------
    InputError
        If there is no such variant.
    """
    if variant not in (None, "paper"):
        raise InputError(
            f"There is no variant {variant!r} of RTS-96.", remedy='Use None or "paper".'
        )
    tables = mt.CaseTables("rts96", 100.0, **{table: _table(table) for table in CORE})
    if variant == "paper":
        branch = merge_parallel(tables.branch)
        branch[:, [mt.RATE_A, mt.RATE_B, mt.RATE_C]] *= PAPER_SHARE
        tables = replace(tables, name="rts96 (paper)", branch=branch)
    network = to_network(tables, tables.name)
    return check(replace(network, source=Source("matpower", tables)))


def merge_parallel(branch: Floats) -> Floats:
    """Rows of ``mpc.branch`` with parallel ones merged into the first of them.

    Admittances add up, so that series susceptances do; ratings and charging add up too. Branches
    with unlike taps or shifts are not parallel.
    """
    kept: dict[tuple[float, ...], Floats] = {}
    for row in branch:
        ends = row[[mt.F_BUS, mt.T_BUS]].tolist()
        if not row[[mt.TAP, mt.SHIFT]].any():
            ends.sort()
        key = (*ends, row[mt.TAP], row[mt.SHIFT], row[mt.BR_STATUS])
        first = kept.get(key)
        if first is None:
            kept[key] = row.copy()
            continue
        total = 1 / complex(*first[[mt.BR_R, mt.BR_X]]) + 1 / complex(*row[[mt.BR_R, mt.BR_X]])
        first[[mt.BR_R, mt.BR_X]] = (1 / total).real, (1 / total).imag
        first[[mt.BR_B, mt.RATE_A, mt.RATE_B, mt.RATE_C]] += row[
            [mt.BR_B, mt.RATE_A, mt.RATE_B, mt.RATE_C]
        ]
    return np.array(list(kept.values()))


def _table(name: str) -> Floats:
    text = files("gridveil.grid.cases").joinpath("rts96", f"{name}.csv").read_text("utf-8")
    return np.loadtxt(text.splitlines(), delimiter=",", skiprows=1, ndmin=2)
