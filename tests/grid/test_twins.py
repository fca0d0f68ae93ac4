"""Twins: files with the same public part and other private values, in other types and spellings.

With the same released values they must leave the same bytes. How a private number was written
(whole or not, in which type, with which exponent, how wide) is often decided by private values.
Formats of optional libraries run where those are installed (tests/optional/run).
"""

import warnings
from itertools import combinations

import numpy as np
import pytest
from grid.making import NAMES, tables

from gridveil.grid import read_case

PARAMETERS = ("capacity", "load", "generator_limit", "cost")
FEW = [*((name,) for name in PARAMETERS), PARAMETERS, ("load", "reactive_load")]
SETS = [*FEW, *combinations(PARAMETERS, 2)]
RANGE = (0.5, 9e5)

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def published(path, names, folder):
    """The bytes of a release with public numbers in place of the private ones, and its tables."""
    _, public = read_case(path).split(names, dict.fromkeys(names, RANGE))
    network = public.with_values(
        np.where(public.signs > 0, 7.25, -7.25) + np.arange(public.entries)
    )
    target = folder / f"released{path.suffix}"
    network.write(target)
    rows = [getattr(network, table) for table in ("buses", "generators", "branches")]
    kept = [repr(getattr(row, column)) for row in rows for column in vars(row)]
    return target.read_bytes(), (network.name, network.notes, *kept)


def check(files, names, folder):
    """Files that all differ are published as one."""
    assert len({path.read_bytes() for path in files}) == len(files)
    assert len({published(path, names, folder) for path in files}) == 1
    if names == ("load",):
        # The control: loads that are public are told apart.
        assert published(files[0], ("capacity",), folder) != published(
            files[-1], ("capacity",), folder
        )


def drawn(rng, count, kind):
    """Values of one kind: what a reader or a table library makes of them differs."""
    whole = rng.integers(1, 400, count).astype(float)
    return {"whole": whole, "large": whole * 200, "digits": whole + rng.uniform(0.01, 0.9, count)}[
        kind
    ]


# --- MATPOWER ------------------------------------------------------------------------------------

SPELLINGS = {
    "plain": lambda value: f"{value:.12g}",
    "float": lambda value: repr(float(value)),
    "exponent": lambda value: f"{value:+.15E}",
    "wide": lambda value: f"{value:>40.10f}",
}
# Private columns, with those that copy or bound them; PMIN first, which is below PMAX.
MATPOWER = {
    "capacity": [("branch", 5, 0.0), ("branch", 6, 0.0), ("branch", 7, 0.0)],
    "load": [("bus", 2, 0.0), ("bus", 3, 0.0)],
    "generator_limit": [("gen", 9, 0.0), ("gen", 8, 1e6)],
    "cost": [("gencost", 5, 0.0)],
    "reactive_load": [],  # with the loads
}
RESULTS = [("gen", 1), ("gen", 2), ("bus", 7), ("bus", 8), ("branch", 13), ("branch", 14)]


def matpower(folder, names, kind, spelling, seed):
    """A case with private values of a kind, spelt in one way; results follow from them."""
    rng, parts = np.random.default_rng(seed), tables()
    parts["gen"][2, 8:10] = 5, 1
    parts["gencost"][:, 4:] = 0
    parts["gencost"][:3, 4], parts["gencost"][:3, 5] = 0 if "cost" in names else 0.02, 30
    parts["gencost"][:, 0], parts["gencost"][:, 3] = 2, 3
    spelt = set()
    for name in names:
        for table, column, above in MATPOWER[name]:
            there = np.flatnonzero(parts[table][:3, column])
            parts[table][there, column] = drawn(rng, len(there), kind) + above
            spelt |= {(table, column)}
    for table, column in RESULTS:
        parts[table][:, column] = drawn(rng, len(parts[table]), kind)
    write = SPELLINGS[spelling]
    text = [
        "function mpc = twin",
        f"% {kind} {spelling}",
        "mpc.version = '2';",
        "mpc.baseMVA = 100;",
    ]
    for table in NAMES:
        text += [f"mpc.{table} = ["]
        text += [
            "\t".join(
                write(value) if {(table, at)} & {*spelt, *RESULTS} else repr(float(value))
                for at, value in enumerate(row)
            )
            + ";"
            for row in parts[table]
        ]
        text += ["];"]
    path = folder / f"{kind}-{spelling}" / "twin.m"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(text))
    return path


@pytest.mark.parametrize("names", SETS)
def test_a_released_case_is_the_same_however_private_numbers_were_written(names, tmp_path):
    files = [
        matpower(tmp_path, names, kind, spelling, seed)
        for seed, kind in enumerate(("whole", "large", "digits"))
        for spelling in SPELLINGS
    ]
    check(files, names, tmp_path)


# --- pandapower ----------------------------------------------------------------------------------

# Kinds of values, each with the types of columns that tables of them have.
TYPES = {"whole": ("int64", "object", "Int64"), "large": ("float32",), "digits": ("Float64",)}
PANDAPOWER = {
    "capacity": [
        *(("line", name) for name in ("max_i_ka", "max_loading_percent")),
        ("trafo", "max_loading_percent"),
    ],
    "load": [("load", name) for name in ("p_mw", "q_mvar", "scaling", "sn_mva")],
    "generator_limit": [
        *(("ext_grid", name) for name in ("min_p_mw", "max_p_mw")),
        *(("gen", name) for name in ("min_p_mw", "max_p_mw", "sn_mva")),
        *(("sgen", name) for name in ("min_p_mw", "max_p_mw", "p_mw", "sn_mva")),
        *(("load", name) for name in ("min_p_mw", "max_p_mw")),
    ],
    "cost": [("poly_cost", name) for name in ("cp1_eur_per_mw",)],
    "reactive_load": [],
}


def pandapower_net():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pp = pytest.importorskip("pandapower", reason="pandapower is not installed")
    net = pp.create_empty_network(name="twin", sn_mva=100.0)
    for _ in range(3):
        pp.create_bus(net, 110.0)
    pp.create_bus(net, 20.0)
    for a, b in ((0, 1), (1, 2), (2, 0)):
        pp.create_line_from_parameters(
            net, a, b, 10.0, 0.06, 0.4, 9.0, 0.3, max_loading_percent=80.0, df=0.9
        )
    pp.create_transformer_from_parameters(
        net, 2, 3, 64.0, 110.0, 20.0, 0.4, 11.0, 17.0, 0.2, max_loading_percent=80.0, df=0.9
    )
    for bus in (1, 3):
        pp.create_load(net, bus, 30.0, 5.0, scaling=0.9, sn_mva=40.0)
    pp.create_load(net, 2, 20.0, 3.0, controllable=True, min_p_mw=1.0, max_p_mw=50.0, sn_mva=50.0)
    pp.create_ext_grid(net, 0, min_p_mw=1.0, max_p_mw=900.0)
    pp.create_gen(net, 1, 20.0, vm_pu=1.02, min_p_mw=1.0, max_p_mw=90.0, sn_mva=90.0)
    pp.create_sgen(net, 2, 9.0, 1.0, controllable=True, min_p_mw=1.0, max_p_mw=90.0, sn_mva=90.0)
    for kind in ("ext_grid", "gen", "sgen"):
        pp.create_poly_cost(net, 0, kind, cp1_eur_per_mw=20.0)
    return pp, net


def pandapower_twin(folder, names, kind, form, seed):
    """A net whose private columns hold values of a kind, in one type."""
    pp, net = pandapower_net()
    rng = np.random.default_rng(seed)
    for table, column in (place for name in names for place in PANDAPOWER[name]):
        # A current at so many percent would be no limit at all.
        usual = kind if column != "max_loading_percent" or kind != "large" else "whole"
        values = drawn(rng, len(net[table]), usual) + (1e6 if column == "max_p_mw" else 0.0)
        net[table][column] = values.astype(object) if form == "object" else values
        net[table] = net[table].astype({column: form})
    path = folder / f"{kind}-{form}" / "twin.json"
    path.parent.mkdir(exist_ok=True)
    pp.to_json(net, str(path))
    return path


@pytest.mark.parametrize("names", FEW)
def test_a_released_net_is_the_same_whatever_types_private_columns_had(names, tmp_path):
    files = [
        pandapower_twin(tmp_path, names, kind, form, seed)
        for seed, kind in enumerate(TYPES)
        for form in TYPES[kind]
    ]
    check(files, names, tmp_path)


# --- PyPSA ---------------------------------------------------------------------------------------

PYPSA = {
    "capacity": [("Line", "s_nom"), ("Line", "s_max_pu"), ("Transformer", "s_max_pu")],
    "load": [("Load", "p_set"), ("Load", "q_set")],
    "generator_limit": [("Generator", "p_nom"), ("Generator", "p_nom_max")],
    "cost": [("Generator", "marginal_cost")],
    "reactive_load": [],
}


def pypsa_network():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pypsa = pytest.importorskip("pypsa", reason="PyPSA is not installed")
    n = pypsa.Network(name="twin")
    for name in "abcd":
        n.add("Bus", name, v_nom=110.0)
    for a, b in ("ab", "bc", "ca"):
        n.add("Line", a + b, bus0=a, bus1=b, x=4.0, r=0.5, b=1e-4, s_nom=70.0, s_max_pu=0.8)
    n.add("Transformer", "cd", bus0="c", bus1="d", x=0.125, r=0.01, s_nom=64.0, s_max_pu=0.8)
    for bus in "bd":
        n.add("Load", f"at {bus}", bus=bus, p_set=30.0, q_set=5.0)
    for bus in "ac":
        n.add("Generator", f"at {bus}", bus=bus, p_nom=90.0, p_min_pu=0.125, marginal_cost=20.0)
    return n


def pypsa_twin(folder, names, kind, form, seed):
    n = pypsa_network()
    rng = np.random.default_rng(seed)
    for component, column in (place for name in names for place in PYPSA[name]):
        frame = n.c[component].static
        values = drawn(rng, len(frame), kind)
        frame[column] = values
        frame[column] = frame[column].astype(form)
    path = folder / f"{kind}-{form}" / "twin.nc"
    path.parent.mkdir(exist_ok=True)
    n.export_to_netcdf(str(path))
    return path


@pytest.mark.parametrize("names", FEW)
def test_a_released_pypsa_network_is_the_same_whatever_types_attributes_had(names, tmp_path):
    files = [
        pypsa_twin(tmp_path, names, kind, form, seed)
        for seed, (kind, form) in enumerate(
            [("whole", "int64"), ("large", "float32"), ("digits", "float64")]
        )
    ]
    check(files, names, tmp_path)
