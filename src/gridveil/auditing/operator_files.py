"""Write the small network of the replays as XIIDM and PSS/E, with copies of its private values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from gridveil.auditing.transcript import Values
from gridveil.auditing.triangle import LINES, VALUES, reactive_loads

_VOLTAGE = 230.0
_SCHEMA = "http://www.powsybl.org/schema/iidm/1_14"

SPELLINGS: dict[str, Callable[[float], str]] = {
    "100.0": str,
    "1.00E+02": lambda value: f"{value:.17E}",
    "100": lambda value: f"{value:.12g}",
    "1e2": lambda value: f"{value:.3e}",
    "+100": lambda value: f"{value:+g}",
}


def write_xiidm(path: Path, parts: Mapping[str, Values], show: Callable[[float], str]) -> None:
    """Write the triangle as XIIDM; properties, aliases, names and results copy private values."""
    found = {**VALUES, **parts}
    draw, unit, line = (
        show if name in parts else str for name in ("load", "generator_limit", "capacity")
    )
    everything = " ".join(show(value) for values in parts.values() for value in values)
    note = f'<iidm:property name="note" value="{everything}"/>'
    limits, ohms = found["generator_limit"], _VOLTAGE**2 / 100
    units: dict[int, list[str]] = {1: [], 2: [], 3: []}
    for at, low, high in ((1, limits[0], limits[2]), (3, limits[1], limits[3])):
        units[at].append(
            f'<iidm:generator id="unit {unit(high)} {at}" energySource="OTHER" '
            f'minP="{unit(low)}" maxP="{unit(high)}" ratedS="{unit(high)}" '
            f'voltageRegulatorOn="true" targetP="{unit(low)}" targetV="{_VOLTAGE}" '
            f'bus="bus {at}" connectableBus="bus {at}" p="{unit(-low)}">{note}'
            f'<iidm:minMaxReactiveLimits minQ="{unit(-0.3 * high)}" maxQ="{unit(0.3 * high)}"/>'
            "</iidm:generator>"
        )
    for at, load, reactive in zip((2, 3), found["load"], reactive_loads(parts), strict=True):
        units[at].append(
            f'<iidm:load id="load {draw(load)} {at}" loadType="UNDEFINED" p0="{draw(load)}" '
            f'q0="{draw(reactive)}" bus="bus {at}" connectableBus="bus {at}" '
            f'p="{draw(load)}">{note}</iidm:load>'
        )
    stations = [
        f'<iidm:substation id="station {at}"><iidm:voltageLevel id="level {at}" '
        f'nominalV="{_VOLTAGE}" topologyKind="BUS_BREAKER"><iidm:busBreakerTopology>'
        f'<iidm:bus id="bus {at}" v="{_VOLTAGE}" angle="0.0"/></iidm:busBreakerTopology>'
        f"{''.join(inside)}</iidm:voltageLevel></iidm:substation>"
        for at, inside in units.items()
    ]
    lines = []
    for (a, b, x), rating in zip(LINES, found["capacity"], strict=True):
        group = "".join(
            f'<iidm:operationalLimitsGroup{side} id="DEFAULT"><iidm:apparentPowerLimits '
            f'permanentLimit="{line(rating)}"><iidm:temporaryLimit name="{line(rating)}" '
            f'acceptableDuration="600" value="{line(1.25 * rating)}"/></iidm:apparentPowerLimits>'
            f"</iidm:operationalLimitsGroup{side}>"
            for side in (1, 2)
        )
        ends = "".join(
            f'voltageLevelId{side} ="level {at}" bus{side}="bus {at}" '
            f'connectableBus{side}="bus {at}" selectedOperationalLimitsGroupId{side}="DEFAULT" '
            for side, at in ((1, a), (2, b))
        )
        lines.append(
            f'<iidm:line id="line {line(rating)} {a}-{b}" r="{0.01 * ohms}" x="{x * ohms}" '
            f'g1="0.0" b1="0.0" g2="0.0" b2="0.0" {ends} p1="{line(rating)}">{note}{group}'
            "</iidm:line>"
        )
    path.write_text(
        f'<?xml version="1.0" encoding="UTF-8"?>\n<iidm:network xmlns:iidm="{_SCHEMA}" '
        'id="triangle" caseDate="2030-01-01T00:00:00.000Z" forecastDistance="0" '
        'sourceFormat="test" minimumValidationLevel="STEADY_STATE_HYPOTHESIS">'
        f"{''.join(stations)}{''.join(lines)}</iidm:network>\n",
        encoding="utf-8",
    )


def write_raw(path: Path, parts: Mapping[str, Values], show: Callable[[float], str]) -> None:
    """Write the triangle as a PSS/E case; ratings, names and comments copy private values."""
    found = {**VALUES, **parts}
    draw, unit, line = (
        show if name in parts else str for name in ("load", "generator_limit", "capacity")
    )
    note = " ".join(show(value) for values in parts.values() for value in values)
    limits = found["generator_limit"]
    lines = [f"0, 100.0, 33, 0, 0, 60.0 / {note}", note, note]
    lines += [
        f"{at}, 'BUS {at}', {_VOLTAGE}, {kind}, 1, 1, 1, 1.0, 0.0"
        for at, kind in ((1, 3), (2, 1), (3, 2))
    ]
    lines += ["0 / END OF BUS"]
    lines += [
        f"{at}, '1', 1, 1, 1, {draw(load)}, {draw(reactive)}, 0, 0, 0, 0 / {note}"
        for at, load, reactive in zip((2, 3), found["load"], reactive_loads(parts), strict=True)
    ]
    lines += ["0 / END OF LOAD", "0 / END OF FIXED SHUNT"]
    lines += [
        f"{at}, '1', {unit(low)}, 0, {unit(0.3 * high)}, {unit(-0.3 * high)}, 1.0, 0, "
        f"{unit(high)}, 0, 1, 0, 0, 1, 1, 100, {unit(high)}, {unit(low)}"
        for at, low, high in ((1, limits[0], limits[2]), (3, limits[1], limits[3]))
    ]
    lines += ["0 / END OF GENERATOR"]
    lines += [
        f"{a}, {b}, '1', 0.01, {x}, 0, {line(rating)}, {line(rating)}, {line(1.25 * rating)}, "
        f"0, 0, 0, 0, 1 / {note}"
        for (a, b, x), rating in zip(LINES, found["capacity"], strict=True)
    ]
    # A rating of 0 means no limit.
    lines += ["1, 3, '2', 0.1, 9.0, 0, 0, 0, 0, 0, 0, 0, 0, 1", "0 / END OF BRANCH"]
    path.write_text("\n".join([*lines, "0 / END OF TRANSFORMER", "Q", ""]), encoding="utf-8")
