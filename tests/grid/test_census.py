"""The census: every column of a source is in its release as it was, or in the list of changes.

pandapower's networks and PyPSA's run where the library is installed (tests/optional/run).
"""

import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import FULL
from grid.making import pglib as pglib_path
from grid.making import pglib_names
from pandas import isna
from pandas.api.types import is_scalar

from gridveil import grid
from gridveil.errors import InputError
from gridveil.grid.formats.fate_table import EVERY, KEPT, RULES
from gridveil.grid.formats.fates import changes, copied, fate_of
from gridveil.grid.formats.matpower import tables_of
from gridveil.grid.formats.matpower_tables import COLUMNS
from gridveil.grid.public import split_parts

PARAMETERS = ("capacity", "load", "generator_limit", "cost")
RANGES = {"capacity": (0.001, 1e6), "load": (-5e4, 5e4)}
RANGES |= {"generator_limit": (-2e9, 2e9), "cost": (-1e6, 1e6)}

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def released(network, parameter, folder, suffix):
    """A release with other values, and what its statement lists; None if there are none of it."""
    if parameter == "cost":
        network = network.linearised()
    _, public = split_parts(network, parameter, RANGES[parameter], public_curves=True)
    if not public.entries:
        return None, None
    signs = np.where(public.signs > 0, 1.0, -1.0)
    path = folder / f"released{suffix}"
    public.with_values(np.clip(signs * 11.25, public.low, public.high)).write(path)
    listed = {(one.table, name): one for one in public.changes for name in one.columns}
    assert all(one.reason for one in public.changes)
    return path, listed


class Census:
    """Columns that changed and that no list speaks of."""

    def __init__(self, listed):
        self.listed, self.missed = listed, []

    def count(self, table, column, same):
        if not same and (table, column) not in self.listed:
            self.missed.append(f"{table} {column}")


# --- MATPOWER -------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameter", PARAMETERS)
@pytest.mark.parametrize("case", [*pglib_names(120), "rts96"])
def test_every_column_of_a_case_is_kept_or_listed(case, parameter, tmp_path):
    network = grid.cases.rts96() if case == "rts96" else grid.read_case(pglib_path(case))
    path, listed = released(network, parameter, tmp_path, ".m")
    if path is None:
        pytest.skip(f"{case} has no {parameter}")
    census = Census(listed)
    before, after = tables_of(network.source.data), tables_of(grid.read_case(path).source.data)
    for table in ("bus", "gen", "branch"):
        old, new = getattr(before, table), getattr(after, table)
        for at, column in enumerate(COLUMNS[table][: old.shape[1]]):
            same = at < new.shape[1] and np.array_equal(old[:, at], new[:, at])
            census.count(table, column, same)
    costs = [one.gencost[:, :9].copy() for one in (before, after)]
    same = costs[0].shape == costs[1].shape and np.array_equal(*costs)
    census.count("gencost", "COST", same)
    for field in getattr(network.source.data, "fields", ()):
        census.count("mpc", field, field in ("version", "baseMVA", *COLUMNS))
    assert census.missed == []


# --- pandapower -----------------------------------------------------------------------------------

NETS = ("case9", "case14", "case24_ieee_rts", "case39", "case118", "create_cigre_network_mv")
MORE_NETS = (
    *("case4gs", "case5", "case6ww", "case11_iwamoto", "case30", "case_ieee30", "case33bw"),
    *("case57", "case89pegase", "case145", "case_illinois200", "case300", "iceland"),
    *("GBreducednetwork", "create_cigre_network_hv", "create_cigre_network_lv", "mv_oberrhein"),
    *("example_simple", "simple_four_bus_system", "panda_four_load_branch", "GBnetwork"),
    *("simple_mv_open_ring_net", "create_kerber_landnetz_freileitung_1", "case1888rte"),
    *("create_kerber_dorfnetz", "lv_schutterwald", "case1354pegase", "case2848rte"),
)


def pandapower_net(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pp = pytest.importorskip("pandapower", reason="pandapower is not installed")
        import pandapower.networks as nw
    net = getattr(nw, name)()
    return pp, net[0] if isinstance(net, tuple) else net


def converges(pp, net):
    """Whether a power flow has a solution, from a flat start or from one of the DC model."""
    for start in ("auto", "flat", "dc"):
        try:
            pp.runpp(net, init=start, numba=False)
        except pp.LoadflowNotConverged:
            continue
        return bool(net.converged)
    return False


def same_columns(old, new):
    """Whether two columns say the same; types may differ, and a missing text is none."""
    if len(old) != len(new):
        return False
    one, two = ([None if is_scalar(v) and isna(v) else v for v in part] for part in (old, new))
    try:
        return np.array_equal(np.array(one, float), np.array(two, float), equal_nan=True)
    except (TypeError, ValueError):
        return str(one) == str(two)


@pytest.mark.parametrize("parameter", PARAMETERS)
@pytest.mark.parametrize("name", [*NETS, *(MORE_NETS if FULL else ())])
def test_every_column_of_a_net_is_kept_or_listed(name, parameter, tmp_path):
    pp, net = pandapower_net(name)
    try:
        network = grid.read_case(net, max_loading=100 if parameter == "capacity" else None)
    except InputError as problem:
        pytest.skip(f"{name} can't be read: {problem.what[:90]}")
    path, listed = released(network, parameter, tmp_path, ".json")
    if path is None:
        pytest.skip(f"{name} has no {parameter}")
    census, again = Census(listed), pp.from_json(str(path))
    for table in KEPT["pandapower"]:
        if table == "net" or not len(net[table]):
            continue
        for column in net[table].columns:
            kept = column in again[table].columns
            same = kept and same_columns(net[table][column].tolist(), again[table][column].tolist())
            census.count(table, column, same)
    assert census.missed == []
    if parameter == "capacity" and converges(pp, net):
        assert converges(pp, again)


# --- PyPSA ----------------------------------------------------------------------------------------


def pypsa_network():
    """Every component that is read, solved, with series at two snapshots."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pypsa = pytest.importorskip("pypsa", reason="PyPSA is not installed")
    n = pypsa.Network(snapshots=["night", "noon"], name="census")
    n.add("Carrier", ["AC", "solar", "gas"], co2_emissions=[0.0, 0.0, 0.2])
    for place, name in enumerate("abcd"):
        n.add("Bus", name, v_nom=110.0, x=float(place), y=1.0, carrier="AC", v_mag_pu_set=1.02)
    for a, b in ("ab", "bc", "ca"):
        n.add(
            *("Line", a + b), bus0=a, bus1=b, x=4.0, r=0.5, b=1e-4, s_nom=70.0, s_max_pu=0.8,
            length=12.0, capital_cost=9.0, carrier="AC", v_ang_max=30.0,
        )  # fmt: skip
    n.add("Transformer", "cd", bus0="c", bus1="d", x=0.125, r=0.01, b=0.002, s_nom=64.0, tap_side=1)
    for bus in "bd":
        n.add("Load", f"at {bus}", bus=bus, p_set=[20.0, 30.0], q_set=5.0)
    n.add(
        *("Generator", "gas"), bus="a", p_nom=90.0, p_min_pu=0.125, marginal_cost=20.0, q_set=1.0,
        carrier="gas", efficiency=0.4, capital_cost=5.0, ramp_limit_up=0.5, control="PV",
    )  # fmt: skip
    n.add("Generator", "solar", bus="c", p_nom=1000.0, p_max_pu=[0.0, 0.7], carrier="solar")
    n.add("ShuntImpedance", "bank", bus="b", b=1e-4)
    return pypsa, n


@pytest.mark.parametrize("snapshot", ["night", "noon"])
@pytest.mark.parametrize("parameter", PARAMETERS)
def test_every_attribute_of_a_pypsa_network_is_kept_or_listed(parameter, snapshot, tmp_path):
    pypsa, n = pypsa_network()
    network = grid.read_case(n, snapshot=snapshot, full_availability=True)
    path, listed = released(network, parameter, tmp_path, ".nc")
    census, again = Census(listed), pypsa.Network(str(path))
    for component in KEPT["pypsa"]:
        if component == "network":
            continue
        old, new = n.c[component], again.c[component]
        census.count(component, "name", list(old.static.index) == list(new.static.index))
        for column in old.static.columns:
            same = column in new.static.columns
            series = old.dynamic.get(column)
            if series is not None and len(series.columns):
                continue
            same = same and same_columns(old.static[column].tolist(), new.static[column].tolist())
            census.count(component, column, same)
    assert census.missed == []
    assert list(again.snapshots) == [snapshot]
    assert ("series", "inputs") in listed
    share = again.get_switchable_as_dense("Generator", "p_max_pu").iloc[0, 1]
    assert share == pytest.approx(n.generators_t.p_max_pu.loc[snapshot, "solar"])


# --- the documentation ----------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "released-columns.md"
FORMATS = {"matpower": "MATPOWER", "pandapower": "pandapower", "pypsa": "PyPSA"}


HEAD = """# What a released network keeps

Everything that is neither private nor computed from private values, in every format alike. The list
of what is not as in the source, with the reason, is in the statement (`settings`, `changed
columns`), in the report and on the screen. A column that is not on this page is dropped, since it
may copy a private value, and listed too. This page is made from the table that the writers follow
(`gridveil.grid.formats.fate_table`).

- *released*: with noise. *rewritten*: made from public and released data. *dropped*: not in the
  file, or a neutral number.
- Names are kept but of elements that have a private number.
- Voltage set points, shunts and charging are public. If yours were computed from a private
  parameter, take them out of the file before the release.
"""


def page():
    """The page of the documentation that lists the table."""
    lines = HEAD.splitlines()
    for kind, title in FORMATS.items():
        lines += ["", f"## {title}", "", "| table | kept |", "|---|---|"]
        lines += [
            f"| {table} | {', '.join(names.split())} |" for table, names in KEPT[kind].items()
        ]
        lines += ["", "| private | table | columns | fate | why |", "|---|---|---|---|---|"]
        for rule in RULES[kind]:
            private = "any" if rule.parameters == EVERY else ", ".join(rule.parameters.split())
            which = ", ".join(rule.tables.split()), ", ".join(rule.columns.split())
            lines.append(f"| {private} | {which[0]} | {which[1]} | {rule.fate} | {rule.reason} |")
    return "\n".join(lines) + "\n"


def test_the_page_of_the_documentation_is_the_table():
    assert PAGE.read_text(encoding="utf-8") == page()


# --- the table ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KEPT)
def test_a_rule_speaks_of_known_columns_and_parameters(kind):
    for rule in RULES[kind]:
        assert {*rule.parameters.split()} <= {*EVERY.split()}
        assert rule.reason.endswith(".")
        for table in rule.tables.split():
            for column in rule.columns.split():
                found = fate_of(kind, table, column, rule.parameters.split())
                assert found is not None
                if not rule.some:
                    assert column not in copied(kind, table, rule.parameters.split())


def test_the_strongest_fate_of_several_parameters_counts():
    (one,) = changes("matpower", {"gencost": ["COST"]}, ("generator_limit", "cost"))
    assert one.fate == "released"
    (one,) = changes("pandapower", {"pwl_cost": ["points"]}, ("generator_limit", "cost"))
    assert one.fate == "dropped"


def test_columns_that_nobody_knows_are_dropped_and_listed():
    found = changes("pandapower", {"line": ["max_i_ka", "rate_b", "300 MVA"]}, ["load"])
    (one,) = found
    assert (one.columns, one.fate) == (("rate_b", "(other)"), "dropped")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
