"""The census: release a network, and compare source and release column by column.

Every column of the source is in the released file as it was, or its statement lists it with a
reason. The tests run some networks; ``make census`` runs all of them and writes docs/census.md::

    python tests/grid/census.py run matpower build/census-matpower.json
    python tests/grid/census.py page build docs/census.md
"""

import argparse
import copy
import inspect
import json
import re
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from grid.making import pglib_folder, pglib_names
from pandas import DataFrame, isna
from pandas.api.types import is_scalar

from gridveil import grid
from gridveil.errors import InputError
from gridveil.grid.io.matpower import tables_of
from gridveil.grid.io.matpower.tables import COLUMNS
from gridveil.grid.io.released_columns.table import KEPT

PARAMETERS = ("capacity", "load", "generator_limit", "cost")
RANGES = {"capacity": (0.001, 1e6), "load": (-5e4, 5e4)}
RANGES |= {"generator_limit": (-2e9, 2e9), "cost": (-1e6, 1e6)}
READ_ONLY = 3000
"""From this many buses on a case is read and written back, and not released."""
SUFFIX = {"matpower": ".m", "pandapower": ".json", "pypsa": ".nc"}


@dataclass(frozen=True)
class Result:
    """What came of one network and one private parameter."""

    kind: str
    network: str
    parameter: str
    outcome: str  # passed, refused, none (there is no value of it) or failed
    why: str = ""
    buses: int = 0


class Census:
    """Columns that changed and that no list speaks of."""

    def __init__(self, listed):
        self.listed, self.missed = listed, []

    def count(self, table, column, same):
        if not same and (table, column) not in self.listed:
            self.missed.append(f"{table} {column}")


def examine(kind, name, parameter, folder, damage=None):
    """Release one parameter of one network with noise, and compare.

    `damage` may change the released file before it is compared: a control.
    """
    source = source_of(kind, name)
    try:
        network = read(kind, source, parameter)
    except InputError as problem:
        return Result(kind, name, parameter, "refused", problem.what)
    said = kind, name, parameter
    size = len(network.buses)
    try:
        released = release(network, parameter)
    except InputError as problem:
        outcome = "none" if "no values of" in problem.what else "refused"
        return Result(*said, outcome, problem.what, size)
    path = Path(folder) / f"released{SUFFIX[kind]}"
    released.data.write_release(path, parameter)
    if damage is not None:
        damage(path)
    listed = {
        (one.table, name): one.reason for one in released.public.changes for name in one.columns
    }
    census = Census(listed)
    again = LOAD[kind](path)
    COMPARE[kind](census, network, source, again, parameter)
    missed = [*census.missed, *unread(released.data, again)]
    if not all(listed.values()):
        missed.append("a column without a reason")
    why = "; ".join(dict.fromkeys(missed))
    return Result(*said, "failed" if missed else "passed", why, size)


@lru_cache(maxsize=1)
def source_of(kind, name):
    """The source, kept for the next parameter: readers copy it."""
    return SOURCES[kind](name)


def read(kind, source, parameter):
    """The network, with what an owner has to say about it to release this parameter."""
    if kind == "pandapower":
        return grid.read_case(source, max_loading=100 if parameter == "capacity" else None)
    if kind == "pypsa":
        several = len(source.snapshots) > 1
        return grid.read_case(
            source,
            snapshot=source.snapshots[-1] if several else None,
            full_availability=parameter == "generator_limit",
        )
    return grid.cases.rts96() if source == "rts96" else grid.read_case(source)


def release(network, parameter):
    """Noise and clipping alone: the census is about columns."""
    spread = {"costs": 0.1} if parameter == "cost" else {}
    models = grid.sample_population(network, 1, private=parameter, seed=1, **spread)
    plan = grid.plan(
        *(network, models), parameter=parameter, epsilon=1, alpha="0.5", method="laplace",
        range=RANGES[parameter], public_curves=True,
    )  # fmt: skip
    return plan.without_warning().run(plan.study(1))


def unread(released, file):
    """What of the released network its file does not say."""
    again = file if isinstance(file, grid.Network) else grid.read_case(file)
    found = []
    for table, columns in (
        ("buses", ("load", "shunt", "reference", "in_service")),
        ("generators", ("bus", "p_min", "p_max", "linear", "in_service")),
        ("branches", ("from_bus", "to_bus", "reactance", "tap", "shift", "capacity")),
    ):
        for column in columns:
            ours, theirs = (getattr(getattr(n, table), column) for n in (released, again))
            if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=1e-9, atol=1e-9):
                found.append(f"{table} {column} reads as something else")
    return found


def same_columns(old, new):
    """Whether two columns say the same; types may differ, and a missing text is none."""
    if len(old) != len(new):
        return False
    one, two = ([None if is_scalar(v) and isna(v) else v for v in part] for part in (old, new))
    try:
        return np.array_equal(np.array(one, float), np.array(two, float), equal_nan=True)
    except (TypeError, ValueError):
        return str(one) == str(two)


# --- MATPOWER -------------------------------------------------------------------------------------


def matpower_case(name):
    return name if name == "rts96" else pglib_folder() / f"{name}.m"


def compare_matpower(census, network, source, again, parameter):
    before, after = tables_of(network.source.data), tables_of(again.source.data)
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


def same_bytes(source, path):
    return path.read_bytes() == source.read_bytes()


# --- pandapower -----------------------------------------------------------------------------------


def pandapower_names():
    """Every function of pandapower.networks that makes a net without arguments or downloads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pandapower.networks as nw
    return sorted(name for name, make in vars(nw).items() if _makes_a_net(name, make))


def _makes_a_net(name, make):
    if name.startswith("_") or not inspect.isfunction(make):
        return False
    if not make.__module__.startswith("pandapower.networks"):
        return False
    needed = inspect.signature(make).parameters.values()
    plain = all(
        one.default is not one.empty or one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        for one in needed
    )
    return plain and name not in HELPERS


LARGE = ["case1354pegase", "case1888rte", "case2848rte", "case2869pegase", "lv_schutterwald"]
LARGE += ["GBnetwork"]
"""Those of more than a thousand buses come last."""
HELPERS = ("cigre_network_mv", "get_all_cases")


def pandapower_net(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pandapower.networks as nw

        net = getattr(nw, name)()
    return net[0] if isinstance(net, tuple) else net


def converges(net):
    """Whether a power flow has a solution, from a flat start or from one of the DC model."""
    import pandapower as pp

    for start in ("auto", "flat", "dc"):
        try:
            pp.runpp(net, init=start, numba=False)
        except pp.LoadflowNotConverged:
            continue
        except Exception:  # noqa: BLE001 - nets that no power flow takes, whatever it says of them
            return False
        return bool(net.converged)
    return False


def pandapower_file(path):
    import pandapower as pp

    return pp.from_json(str(path))


def compare_pandapower(census, network, net, again, parameter):
    for table, frame in net.items():
        if table.startswith("_") or not isinstance(frame, DataFrame) or not len(frame):
            continue
        if table not in KEPT["pandapower"]:
            census.count("net", "res_*" if table.startswith("res_") else table, False)
            continue
        for column in frame.columns:
            kept = column in again[table].columns
            same = kept and same_columns(frame[column].tolist(), again[table][column].tolist())
            census.count(table, column, same)
    for name in ("f_hz", "sn_mva"):
        census.count("net", name, net[name] == again[name])
    if parameter == "capacity" and converges(copy.deepcopy(net)) and not converges(again):
        census.missed.append("runpp converged on the source, and not on the release")


def same_tables(net, path):
    again = pandapower_file(path)
    return all(
        same_columns(frame[column].tolist(), again[table][column].tolist())
        for table, frame in net.items()
        if table in KEPT["pandapower"] and table != "net"
        for column in frame.columns
    )


# --- PyPSA ----------------------------------------------------------------------------------------


def _triangle(pypsa, snapshots=("now",)):
    n = pypsa.Network(snapshots=list(snapshots), name="census")
    n.add("Carrier", ["AC", "solar", "gas"], co2_emissions=[0.0, 0.0, 0.2])
    for place, name in enumerate("abcd"):
        n.add("Bus", name, v_nom=110.0, x=float(place), y=1.0, carrier="AC", v_mag_pu_set=1.02)
    for a, b in ("ab", "bc", "ca"):
        n.add(
            *("Line", a + b), bus0=a, bus1=b, x=4.0, r=0.5, b=1e-4, s_nom=70.0, s_max_pu=0.8,
            length=12.0, capital_cost=9.0, carrier="AC", v_ang_max=30.0,
        )  # fmt: skip
    n.add("Transformer", "cd", bus0="c", bus1="d", x=0.125, r=0.01, b=0.002, s_nom=64.0, tap_side=1)
    n.add(
        *("Generator", "gas"), bus="a", p_nom=90.0, p_min_pu=0.125, marginal_cost=20.0, q_set=1.0,
        carrier="gas", efficiency=0.4, capital_cost=5.0, ramp_limit_up=0.5, control="PV",
    )  # fmt: skip
    for bus in "bd":
        n.add("Load", f"at {bus}", bus=bus, p_set=20.0, q_set=5.0)
    return n


def _series(pypsa):
    """Every component that is read, with series at two snapshots."""
    n = _triangle(pypsa, ("night", "noon"))
    n.loads_t.p_set["at b"] = [20.0, 30.0]
    n.add("Generator", "solar", bus="c", p_nom=1000.0, p_max_pu=[0.0, 0.7], carrier="solar")
    n.add("ShuntImpedance", "bank", bus="b", b=1e-4)
    return n


def _typed(pypsa):
    """Lines and transformers of PyPSA's catalogue, several in parallel."""
    n = _triangle(pypsa)
    n.add(
        *("Line", "typed"), bus0="a", bus1="b", length=20.0, num_parallel=2,
        type="Al/St 240/40 4-bundle 380.0", s_nom=300.0,
    )  # fmt: skip
    n.add("Bus", "low", v_nom=20.0, carrier="AC")
    n.add("Transformer", "station", bus0="a", bus1="low", type="40 MVA 110/20 kV", s_nom=40.0)
    n.add("Load", "town", bus="low", p_set=12.0, q_set=2.0)
    return n


def _shifted(pypsa):
    """Taps, a phase shifter, units in and out of service, negative loads, costs with a square."""
    n = _triangle(pypsa)
    n.add("Transformer", "shifter", bus0="a", bus1="d", x=0.2, s_nom=30.0, phase_shift=10.0)
    n.add("Transformer", "tap", bus0="b", bus1="d", x=0.2, s_nom=30.0, tap_ratio=1.05)
    n.add("Line", "off", bus0="a", bus1="d", x=9.0, s_nom=10.0, active=False)
    n.add("Generator", "coal", bus="d", p_nom=50.0, marginal_cost=9, marginal_cost_quadratic=0.01)
    n.add("Generator", "idle", bus="d", p_nom=50.0, active=False)
    n.add("Generator", "fixed", bus="c", p_nom=50.0, p_set=7.0)
    n.add("Load", "feeds in", bus="c", p_set=-3.0)
    n.add("Load", "of the other sign", bus="c", p_set=3.0, sign=1.0)
    return n


def _islands(pypsa):
    """Two islands, unlimited lines, buses without anything, names that say ratings."""
    n = _triangle(pypsa)
    for name in "xyz":
        n.add("Bus", name, v_nom=380.0)
    n.add("Line", "380 kV 1700 MVA", bus0="x", bus1="y", x=8.0, s_nom=np.inf)
    n.add("Line", "yz", bus0="y", bus1="z", x=8.0, s_nom=500.0, num_parallel=2.0)
    n.add("Generator", "600 MW", bus="x", p_nom=600.0, marginal_cost=30.0, p_min_pu=-0.5)
    n.add("Load", "city", bus="z", p_set=350.0, q_set=80.0)
    return n


def _solved(pypsa):
    """A network with results in it: what an owner exports after an optimisation."""
    n = _series(pypsa)
    n.optimize(log_to_console=False)
    n.pf()
    return n


def _ring(pypsa):
    """A ring of 40 buses with a year's worth of labels, read at one hour."""
    import pandas as pd

    hours = pd.date_range("2030-01-01", periods=48, freq="h")
    n = pypsa.Network(snapshots=hours)
    for at in range(40):
        n.add("Bus", f"{at}", v_nom=220.0, x=np.cos(at), y=np.sin(at))
    for at in range(40):
        n.add("Line", f"l{at}", bus0=f"{at}", bus1=f"{(at + 1) % 40}", x=5.0, r=1.0, s_nom=200.0)
        n.add("Load", f"d{at}", bus=f"{at}", p_set=5 + np.sin(np.arange(48) / 8 + at))
    for at in range(0, 40, 8):
        n.add("Generator", f"g{at}", bus=f"{at}", p_nom=90.0, marginal_cost=20.0 + at)
    return n


def _stored(pypsa):
    """Links, storage units, stores, a bus of another carrier, series in all of them."""
    n = _triangle(pypsa, ("night", "noon"))
    n.add("Carrier", ["DC", "hydro", "battery"])
    n.add("Bus", "heat", carrier="heat", x=9.0, y=9.0)
    n.add("Link", "cable", bus0="a", bus1="d", p_nom=15.0, p_min_pu=-1.0, efficiency=0.97,
          carrier="DC", marginal_cost=0.3, p_set=4.0, length=80.0)  # fmt: skip
    n.add("Link", "pump", bus0="b", bus1="heat", p_nom=9.0, efficiency=3.1, ramp_limit_up=0.25)
    n.add("StorageUnit", "dam", bus="c", p_nom=12.0, max_hours=6.0, carrier="hydro",
          efficiency_dispatch=0.9, inflow=[1.0, 2.5], state_of_charge_initial=7.0,
          marginal_cost=1.5, p_set=[2.0, 3.0], standing_loss=0.01)  # fmt: skip
    n.add("Store", "tank", bus="heat", e_nom=40.0, e_initial=11.0, e_cyclic=True,
          standing_loss=0.02, marginal_cost=0.1, carrier="battery")  # fmt: skip
    n.add("Load", "houses", bus="heat", p_set=2.0)
    return n


WIDTHS = {"bus": 13, "gen": 21, "branch": 13}


def _wide(frame, width):
    """A table with all columns of the format."""
    values = np.zeros((len(frame), width))
    values[:, : frame.shape[1]] = frame.to_numpy(float)[:, :width]
    return values


def _of_matpower(pypsa, name):
    """A PGLib case, as PyPSA imports it."""
    from matpowercaseframes import CaseFrames

    frames = CaseFrames(str(matpower_case(name)))
    n = pypsa.Network()
    n.import_from_pypower_ppc(
        {
            "version": "2",
            "baseMVA": frames.baseMVA,
            **{t: _wide(getattr(frames, t), width) for t, width in WIDTHS.items()},
        },
        overwrite_zero_s_nom=1000.0,
    )
    n.generators["marginal_cost"] = 10.0 + np.arange(len(n.generators))
    n.generators["p_set"] = np.nan  # else they are set points, which do not cover the load
    return n


PYPSA = {
    "triangle": _triangle,
    "series": _series,
    "types": _typed,
    "taps and shifts": _shifted,
    "two islands": _islands,
    "solved": _solved,
    "ring of 40": _ring,
    "links and storage": _stored,
}
PYPSA_CASES = ("pglib_opf_case14_ieee", "pglib_opf_case118_ieee", "pglib_opf_case300_ieee")


def pypsa_network(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import logging

        import pypsa

        logging.getLogger("pypsa").setLevel(logging.ERROR)
        return PYPSA[name](pypsa) if name in PYPSA else _of_matpower(pypsa, name)


def pypsa_file(path):
    import pypsa

    return pypsa.Network(str(path))


def compare_pypsa(census, network, n, again, parameter):
    label = network.source.data.label
    for component in n.components:
        if not len(component.static) or component.name in ("LineType", "TransformerType"):
            continue
        if component.name not in KEPT["pypsa"]:
            census.count("network", component.name, False)
            continue
        old, new = component, again.c[component.name]
        census.count(old.name, "name", list(old.static.index) == list(new.static.index))
        for column in old.static.columns:
            series = old.dynamic.get(column)
            now = old.static[column]
            if series is not None and len(series.columns):
                census.count("series", "inputs", False)
                now = now.copy()
                now.loc[series.columns] = series.loc[label]
                same = column in new.static.columns and same_columns(
                    now.tolist(),
                    again.get_switchable_as_dense(old.name, column).iloc[0].tolist(),
                )
            else:
                same = column in new.static.columns and same_columns(
                    now.tolist(), new.static[column].tolist()
                )
            census.count(old.name, column, same)
    if list(again.snapshots) != [label]:
        census.missed.append("the snapshot")


SOURCES = {"matpower": matpower_case, "pandapower": pandapower_net, "pypsa": pypsa_network}
LOAD = {"matpower": grid.read_case, "pandapower": pandapower_file, "pypsa": pypsa_file}
COMPARE = {
    "matpower": compare_matpower,
    "pandapower": compare_pandapower,
    "pypsa": compare_pypsa,
}


def names_of(kind):
    """Every network of the full census."""
    if kind == "matpower":
        return [*pglib_names(10**6), "rts96"]
    if kind == "pandapower":
        return sorted(pandapower_names(), key=LARGE.count)
    return [*PYPSA, *PYPSA_CASES]


def big(kind, name):
    """Whether a network is read and written back only; of PyPSA none is."""
    number = re.search(r"case(\d+)", name)
    return kind != "pypsa" and number is not None and int(number[1]) > READ_ONLY


def written_back(kind, name, folder):
    """A big network, read and written: it is as it was."""
    source, path = source_of(kind, name), Path(folder) / f"written{SUFFIX[kind]}"
    try:
        network = grid.read_case(source)
    except InputError as problem:
        return Result(kind, name, "as it was", "refused", problem.what)
    network.write(path)
    same = {"matpower": same_bytes, "pandapower": same_tables}[kind](source, path)
    outcome = ("passed", "") if same else ("failed", "it is not written as it was")
    return Result(kind, name, "as it was", *outcome, len(network.buses))


# --- the command ----------------------------------------------------------------------------------


def run(kind, path, only):
    """Networks of a format, all by default; the results as JSON, after each of them.

    Results of other networks that the file has stay.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    for name in only or sorted(names_of(kind), key=lambda name: big(kind, name)):
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if big(kind, name):
                mine = [written_back(kind, name, folder)]
            else:
                mine = [_examined(kind, name, parameter, folder) for parameter in PARAMETERS]
        results = [one for one in results if one["network"] != name]
        results += [asdict(one) for one in mine]
        path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        took = time.perf_counter() - start
        print(f"{name}: {', '.join(r.outcome for r in mine)} ({took:.0f} s)", flush=True)
        for text in dict.fromkeys(r.why for r in mine if r.why):
            print(f"    {text}", flush=True)
    return any(one["outcome"] == "failed" for one in results)


def _examined(kind, name, parameter, folder):
    try:
        return examine(kind, name, parameter, folder)
    except Exception as error:  # noqa: BLE001 - the census goes on, and lists it
        return Result(kind, name, parameter, "failed", f"{type(error).__name__}: {error}")


HEAD = """# The census of released networks

Every network below was released once for every private parameter, with noise, and source and
release were compared column by column. *passed*: every column is in the release as it was, or its
statement lists it with a reason ([the list](released-columns.md)), and the file reads as what was
released; of pandapower, with capacities private, `runpp` converges on the release if it did on the
source. *refused*: GridVeil says why and releases nothing. *none*: the network has no value of it.
Networks of more than 3,000 buses are read and written back only (*as it was*).

This page is written by `make census`.
"""
TITLES = {"matpower": "MATPOWER (PGLib-OPF)", "pandapower": "pandapower", "pypsa": "PyPSA"}


def page(folder):
    """The page of the documentation: networks and parameters, and the reasons of refusals."""
    lines = HEAD.splitlines()
    for kind, title in TITLES.items():
        path = folder / f"census-{kind}.json"
        results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        if not results:
            continue
        counts = Counter(one["outcome"] for one in results)
        said = ", ".join(f"{counts[o]:,} {o}" for o in ("passed", "refused", "none", "failed"))
        rows = {}
        for one in results:
            row = rows.setdefault(one["network"], {})
            row[one["parameter"]] = one["outcome"]
            row["buses"] = max(row.get("buses", 0), one["buses"])
        lines += ["", f"## {title}", "", f"{len(rows)} networks: {said}.", ""]
        heads = ("network", "buses", *PARAMETERS)
        lines += [f"| {' | '.join(heads)} |", "|---|---:|" + "---|" * len(PARAMETERS)]
        for name, row in sorted(rows.items(), key=lambda item: (item[1]["buses"], item[0])):
            whole = row.get("as it was")
            cells = ["as it was: " + whole, "", "", ""] if whole else [row[p] for p in PARAMETERS]
            size = f"{row['buses']:,}" if row["buses"] else ""
            lines.append(f"| {name.removeprefix('pglib_opf_')} | {size} | {' | '.join(cells)} |")
        reasons = {}
        for one in results:
            if one["outcome"] in ("refused", "failed"):
                found = reasons.setdefault((one["outcome"], " ".join(one["why"].split())), {})
                found[one["network"]] = None
        for (outcome, why), names in reasons.items():
            lines += ["", f"- {outcome}, {', '.join(names)}: {why}"]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run")
    one.add_argument("kind", choices=SOURCES)
    one.add_argument("output")
    one.add_argument("--only", nargs="*")
    two = commands.add_parser("page")
    two.add_argument("folder")
    two.add_argument("output")
    given = parser.parse_args()
    if given.command == "run":
        return int(run(given.kind, given.output, given.only))
    Path(given.output).write_text(page(Path(given.folder)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
