"""Networks and populations of optimal power flow models on them."""

from __future__ import annotations

from gridveil.grid import cases
from gridveil.grid.checks import Problem, check, problems
from gridveil.grid.formats import read_case
from gridveil.grid.network import Branches, Buses, Generators, Network
from gridveil.grid.opf import Engine, Solutions, Status, solve_population
from gridveil.grid.population import Population, sample_population
from gridveil.grid.public import PublicNetwork
from gridveil.grid.release import GridPlan, GridRelease, plan, release

__all__ = [
    "Branches",
    "Buses",
    "Engine",
    "Generators",
    "GridPlan",
    "GridRelease",
    "Network",
    "Population",
    "Problem",
    "PublicNetwork",
    "Solutions",
    "Status",
    "cases",
    "check",
    "plan",
    "problems",
    "read_case",
    "release",
    "sample_population",
    "solve_population",
]
