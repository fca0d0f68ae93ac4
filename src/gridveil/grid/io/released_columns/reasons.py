"""The `Rule` class of `table`, and the reasons that its rules give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Fate = Literal["released", "rewritten", "dropped"]

EVERY = "capacity load generator_limit cost"
"""Marks a rule that applies to all elements, whichever parameters are private."""


@dataclass(frozen=True)
class Rule:
    """What happens to some columns if one of these parameters is private, and why.

    With `some` it happens to some elements only: for the others the column is copied.
    """

    tables: str
    columns: str
    parameters: str
    fate: Fate
    reason: str
    some: bool = False


NOISE = "released with noise."
LOADS = "released with noise: the sum of a bus, in the first of its loads in service; others are 0."
NAMES = "people write ratings and sizes into names; elements keep their order."
TEXT = "free text may hold private numbers."
TYPES = "a type of a catalogue tells the rating, and the file does not bring the catalogue along."
RESULTS = "a result, computed from private values among others."
DISPATCH = (
    "set points of units that can move are results; a dispatch with the least losses between "
    "public or released limits is in their place."
)
STATE = "a state of the network is a result; a flat start is in its place."
FACTOR = "reactive load is near a multiple of the private active load: it follows from the "
FACTOR += "released one by a public power factor, and is 0 without one."
SCALING = "it is part of the private value, and 1 in the release."
SIZE = "a size of the unit, which bounds or copies its private limits."
MADE = "made from the private limits in most files."
COSTS = "another part of a private cost."
REACH = (
    "a share of the private limits in many files; three quarters of the largest released output, "
    "on the side of 0 that it was on."
)
CURVES = "curves go on to the released limits; their inner points are kept."
ENDS = "curves of reactive power end at reactive limits, which tell about the private ones."
CIRCUITS = "lengths and circuits tell the rating of a known type; the totals of the line are kept."
TOTALS = "the total of the line, on a length of 1 km and one circuit."
RATED = "given on the private rating: on another base, series impedances with three digits, shunt "
RATED += "ones with two."
RATED_A = "as the released RATE_A."
RATED_AS = "as the released first rating."
COPIES = "copies or bounds the private rating."
OF_TYPE = "those of its type, if it has one from PyPSA's catalogue."
UNREAD = "GridVeil does not read it, and it may copy a private value."
AT_SNAPSHOT = "their values at the one snapshot that is released."

FREED = "True if a unit with a set power is released with two limits that differ."
TABLES = "characteristics are tables that GridVeil does not read."
CHARACTERISTICS = "id_q_capability_characteristic reactive_capability_curve curve_style "
CHARACTERISTICS += "id_characteristic_table step_dependency_table tap_dependency_table"
EXTENDABLE = "False of every active element, or the network is refused."
