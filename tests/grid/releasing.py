"""Small networks and requests for the tests of grid releases."""

from itertools import combinations

import numpy as np
from grid.making import tables, write_case

from gridveil import grid
from gridveil.grid import read_case

PARAMETERS = ("capacity", "load", "generator_limit", "cost")
SINGLE = [(name,) for name in PARAMETERS]
SETS = [names for count in (1, 2, 3, 4) for names in combinations(PARAMETERS, count)]
METHODS = ("certified", "paper", "laplace")
ALPHA = {"capacity": 5, "load": 4, "generator_limit": 2, "cost": 1}
LIMITS = {"capacity": (1, 500), "load": (-50, 300), "generator_limit": (-50, 500), "cost": (0, 200)}
COLUMNS = {
    "capacity": ("branches", ("capacity",)),
    "load": ("buses", ("load",)),
    "generator_limit": ("generators", ("p_min", "p_max")),
    "cost": ("generators", ("linear",)),
}
ENTRIES = {"capacity": 2, "load": 2, "generator_limit": 6, "cost": 3}
"""How many values of each are private in the tiny network."""


def linear_tables():
    """The three buses of `making` with linear costs alone, and a dispatchable load."""
    parts = tables()
    parts["gencost"][:, 4:] = 0
    parts["gencost"][:, 0], parts["gencost"][:, 3] = 2, 3
    parts["gencost"][:3, 5] = 20, 30, 40
    return parts


def tiny_case(folder):
    """The path of a case of three buses with linear costs."""
    return write_case(folder, linear_tables())


def tiny(folder):
    return read_case(tiny_case(folder))


def models_for(network, names, size=4, **options):
    """Models whose costs vary with the network's own, so that any parameter may be private."""
    given = {"spread": 0.05, "costs": 0.1, "seed": 1, **options}
    return grid.sample_population(network, size, private=names, **given)


def request(names, **options):
    """The settings of a release of these parameters on the tiny network."""
    return {
        "parameter": names,
        "epsilon": 1,
        "alpha": {name: ALPHA[name] for name in names},
        "range": {name: LIMITS[name] for name in names},
        "dataset": "tiny",
        **options,
    }


def possible(names, method):
    """Whether a method can release these together: the paper's takes costs alone."""
    return method != "paper" or "cost" not in names or names == ("cost",)


def with_values(network, name, values):
    """The network with other private values of one parameter, entry by entry of its support."""
    table, columns = COLUMNS[name]
    owner = getattr(network, table)
    filled, start = {}, 0
    for column in columns:
        old = getattr(owner, column)
        mask = np.isfinite(old) if column == "capacity" else old != 0
        new = old.copy()
        new[mask] = values[start : start + mask.sum()]
        filled[column] = new
        start += mask.sum()
    make = {
        "capacity": lambda: network.with_capacity(filled["capacity"]),
        "load": lambda: network.with_load(filled["load"]),
        "generator_limit": lambda: network.with_limits(filled["p_min"], filled["p_max"]),
        "cost": lambda: network.with_linear_costs(filled["linear"]),
    }
    return make[name]()


def entries_of(network, name):
    """The values of one parameter that are private, in the order of a release."""
    table, columns = COLUMNS[name]
    found = [getattr(getattr(network, table), column) for column in columns]
    return np.concatenate([v[np.isfinite(v) & (v != 0)] for v in found])
