"""Release parameters of networks, and measure what optimal power flow models do on them.

Data walks through the packages in this order: `model` (what a network, a population and a private
parameter are), `io` (files), `opf` (the engine), `restoration` (repairs noisy values), `methods`
(what is asked, and the steps), `release` (plan, charge, run), `series` (the same for loads over
time), `evaluation` (for the owner).
"""

from __future__ import annotations

from gridveil.grid import cases
from gridveil.grid.evaluation import evaluate
from gridveil.grid.io import read_case
from gridveil.grid.methods import Certified, Laplace, Paper
from gridveil.grid.model.checks import Problem, check, problems
from gridveil.grid.model.network import Branches, Buses, Generators, Network
from gridveil.grid.model.population import Population
from gridveil.grid.model.public_network import PublicNetwork
from gridveil.grid.model.sampling import sample_population
from gridveil.grid.opf.ac.engine import AcSolutions, AcStatus, solve_ac
from gridveil.grid.opf.engine import Engine, Solutions, Status, solve_population
from gridveil.grid.opf.outages import Contingencies, contingencies
from gridveil.grid.release import GridPlan, GridRelease, plan, release
from gridveil.grid.series.evaluation import SeriesEvaluation, evaluate_series
from gridveil.grid.series.load_table import LoadSeries, read_series
from gridveil.grid.series.options import Series
from gridveil.grid.series.plan import SeriesPlan, plan_series, release_series
from gridveil.grid.series.released import SeriesRelease

__all__ = [
    "AcSolutions",
    "AcStatus",
    "Branches",
    "Buses",
    "Certified",
    "Contingencies",
    "Engine",
    "Generators",
    "GridPlan",
    "GridRelease",
    "Laplace",
    "LoadSeries",
    "Network",
    "Paper",
    "Population",
    "Problem",
    "PublicNetwork",
    "Series",
    "SeriesEvaluation",
    "SeriesPlan",
    "SeriesRelease",
    "Solutions",
    "Status",
    "cases",
    "check",
    "contingencies",
    "evaluate",
    "evaluate_series",
    "plan",
    "plan_series",
    "problems",
    "read_case",
    "read_series",
    "release",
    "release_series",
    "sample_population",
    "solve_ac",
    "solve_population",
]
