"""Audits with twin files of one small network, in every format, with each parameter private.

Numbers that could be private are written in many ways: spelled differently in text, or in columns
of whole numbers or fractions in formats with types. Which entries exist, and their signs, are
public, and the same in all twins.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gridveil.auditing import triangle_operator_files as of
from gridveil.auditing.command_runs import Command
from gridveil.auditing.file_replays import Twins, Write, installed, replays
from gridveil.auditing.transcript import Values
from gridveil.auditing.triangle_network import LINES, VALUES, reactive_loads, triangle_text
from gridveil.auditing.triangle_operator_files import write_cgmes
from gridveil.auditing.triangle_secrets import ALPHAS, RANGES, SECRETS, Secret
from gridveil.auditing.verdicts import Audit
from gridveil.grid.io import unlogged

Parts = Mapping[str, Values]
"""Private values by parameter."""

_PRIVATE = ("capacity", "load", "generator-limit", "cost", "capacity-and-load", "load-and-reactive")
_VOLTAGE = 230.0
_TYPES = ("int64", "float64", "object", "float32", "int32", "text")
_FAST = 2  # replays in a fast audit: each takes nearly a second


@dataclass(frozen=True)
class Format:
    """A format of network files.

    Parameters
    ----------
    file
        The name of a file.
    write
        Writes the triangle with given values in one of the forms.
    forms
        The ways to write numbers: spellings, or types of columns. The first two should differ most:
        a fast audit tries few.
    needs
        The package that writes such files, if any.
    leave_out
        Values that such a file can't hold.
    costs
        Whether such a file has costs.
    more
        Further options of the command.
    """

    file: str
    write: Callable[[Path, Parts, Any], None]
    forms: Mapping[str, Any]
    needs: str | None = None
    leave_out: tuple[str, ...] = ()
    costs: bool = True
    more: tuple[str, ...] = ()


def twins(kind: Format, secret: Secret) -> Twins:
    """Make twin files with different private values, in every form."""
    writers: dict[str, Write] = {}
    values = [one for one in _values(secret).items() if one[0] not in kind.leave_out]
    forms = list(kind.forms.items())
    for at in range(max(len(values), len(forms))):
        words, private = values[at % len(values)]
        form, how = forms[at % len(forms)]
        writers[f"{words} as {form}"] = partial(_write, kind, secret.parts(private), how)
    return Twins(kind.file, _command(secret, *kind.more), writers)


def _write(kind: Format, parts: Parts, how: Any, path: Path) -> None:
    with warnings.catch_warnings():  # the packages' warnings about how they are called
        warnings.simplefilter("ignore")
        kind.write(path, parts, how)


def _values(secret: Secret) -> dict[str, Values]:
    """Return very different private values, which need not be neighbours."""
    own = np.array(secret.values)
    found = {
        "the case's values": own,
        "fractions": 0.4 * own + 0.123,
        "all equal": np.copysign(7.0, own),
        "over the range": 1e3 * own,
        "below the range": 1e-3 * own,
    }
    return {words: tuple(values.tolist()) for words, values in found.items()}


def _command(secret: Secret, *more: str) -> Command:
    names = secret.parameters
    options = ["--parameter", ",".join(names)]
    options += ["--alpha", ",".join(f"{name}={ALPHAS[name]}" for name in names)]
    for name in names:
        low, high = RANGES[name]
        options += ["--range", f"{name}={low:g}:{high:g}"]
    return Command(("grid", "release"), (*options, *more))


# -- MATPOWER --------------------------------------------------------------------------------------


def write_matpower(path: Path, parts: Parts, show: Callable[[float], str]) -> None:
    """Write the triangle as a MATPOWER case."""
    path.write_text(triangle_text(parts, show), encoding="utf-8")


SPELLINGS: dict[str, Callable[[float], str]] = {
    "100.0": str,
    "100": lambda value: f"{value:.12g}",
    "1e2": lambda value: f"{value:.3e}",
    "1.00E+02": lambda value: f"{value:.17E}",
    "       100": lambda value: f"{value:>24.10g}",
    "tabs": lambda value: f"\t\t{value:g}\t",
    "100.": lambda value: f"{value:#.12g}",
    "+100": lambda value: f"{value:+g}",
    "0100": lambda value: f"{value:012.4f}",
}


def write_curves(path: Path, parts: Parts, show: Callable[[float], str]) -> None:
    """Write the triangle with cost curves of two points, which are at the limits."""
    path.write_text(triangle_text(parts, show, curves=True), encoding="utf-8")


# -- pandapower ------------------------------------------------------------------------------------


def write_pandapower(path: Path, parts: Parts, kind: str) -> None:
    """Write the triangle as a pandapower net, with private numbers in columns of a type."""
    import pandapower as pp

    found = {**VALUES, **parts}
    net = pp.create_empty_network(name="triangle", sn_mva=100.0)
    for _ in range(3):
        pp.create_bus(net, _VOLTAGE)
    ohms = _VOLTAGE**2 / 100
    for (a, b, x), rating in zip(LINES, found["capacity"], strict=True):
        pp.create_line_from_parameters(
            net, a - 1, b - 1, 1.0, 0.01 * ohms, x * ohms, 0.0, rating, max_loading_percent=rating
        )
    # A rating of 0 means no limit.
    pp.create_line_from_parameters(
        net, 0, 2, 1.0, ohms, 9 * ohms, 0.0, 0.0, max_loading_percent=100.0
    )
    reactive = (0.0, *reactive_loads(parts))
    for bus, load, other in zip((0, 1, 2), (0.0, *found["load"]), reactive, strict=True):
        pp.create_load(net, bus, load, other)
    limits = found["generator_limit"]
    pp.create_ext_grid(net, 0, min_p_mw=limits[0], max_p_mw=limits[2])
    pp.create_gen(net, 2, limits[3], min_p_mw=limits[1], max_p_mw=limits[3], sn_mva=limits[3])
    pp.create_gen(net, 1, 0.0, min_p_mw=0.0, max_p_mw=limits[3], sn_mva=limits[3])
    for at, unit, cost in zip((0, 0), ("ext_grid", "gen"), found["cost"], strict=True):
        pp.create_poly_cost(net, at, unit, cp1_eur_per_mw=cost)
    pp.create_poly_cost(net, 1, "gen", cp1_eur_per_mw=0.0)
    add_constant_elements(net, _note(parts))
    typed = {
        "capacity": {"line": ["max_i_ka", "max_loading_percent"]},
        "load": {"load": ["p_mw", "q_mvar", "scaling"]},
        "reactive_load": {},
        "generator_limit": {
            "ext_grid": ["min_p_mw", "max_p_mw"],
            "gen": ["p_mw", "min_p_mw", "max_p_mw", "sn_mva"],
        },
        "cost": {"poly_cost": ["cp1_eur_per_mw"]},
    }
    for name in parts:
        for table, columns in typed[name].items():
            for column in columns:
                net[table][column] = _typed(net[table][column], kind)
    pp.to_json(net, str(path))


def add_constant_elements(net: Any, note: str) -> None:
    """Add elements that are public and constant; their types, results and profiles copy `note`."""
    import pandapower as pp
    import pandas as pd

    middle, low = pp.create_bus(net, 110.0), pp.create_bus(net, 20.0)
    sides = {"vn_hv_kv": float(net.bus.vn_kv.iloc[1]), "vn_mv_kv": 110.0, "vn_lv_kv": 20.0}
    sides |= {f"sn_{side}_mva": 50.0 for side in ("hv", "mv", "lv")}
    sides |= {f"vk_{side}_percent": 10.0 for side in ("hv", "mv", "lv")}
    sides |= {f"vkr_{side}_percent": 0.3 for side in ("hv", "mv", "lv")}
    pp.create_transformer3w_from_parameters(
        net, net.bus.index[1], middle, low, **sides, pfe_kw=0.0, i0_percent=0.0, std_type=note
    )
    pp.create_storage(net, middle, 0.0, 10.0, type=note)
    pp.create_dcline(net, *net.bus.index[[0, 2]], 0.0, 1.0, 0.0, 1.0, 1.0)
    for table in ("trafo3w", "storage", "dcline"):
        net[table]["remark"] = note
        net[f"res_{table}"] = pd.DataFrame({"p_mw": [note], "loading_percent": [note]})
    net["profiles"] = {"load": pd.DataFrame({"time": [note], "lv1_pload": [note]})}


def _note(parts: Parts) -> str:
    return " ".join(repr(value) for values in parts.values() for value in values)


def _typed(column: Any, kind: str) -> Any:
    """Convert a column to another type; no entry may become 0, which would be a public change."""
    # Signs are public too, so they are kept.
    whole = np.sign(column) * column.abs().clip(1, 1e6).round()
    if kind == "text":
        return column.map(lambda value: f"{value:g}").astype(object)
    return (whole if kind.startswith("int") else column).astype(kind)


# -- PyPSA -----------------------------------------------------------------------------------------


def write_snapshots(path: Path, parts: Parts, kind: str) -> None:
    """Write the same as `write_pypsa` over three hours, with results that copy private values."""
    write_pypsa(path, parts, kind, hours=3)


def write_pypsa(path: Path, parts: Parts, kind: str, hours: int = 0) -> None:
    """Write the triangle as a PyPSA network, with private numbers in columns of a type."""
    import pypsa

    found = {**VALUES, **parts}
    net = pypsa.Network(name="triangle")
    ohms = _VOLTAGE**2 / 100
    for at in (1, 2, 3):
        net.add("Bus", f"bus {at}", v_nom=_VOLTAGE)
    for (a, b, x), rating in zip(LINES, found["capacity"], strict=True):
        ends = {"bus0": f"bus {a}", "bus1": f"bus {b}"}
        net.add("Line", f"line {a}-{b}", **ends, x=x * ohms, r=0.01 * ohms, s_nom=rating)
    reactive = (0.0, *reactive_loads(parts))
    for bus, load, other in zip((1, 2, 3), (0.0, *found["load"]), reactive, strict=True):
        net.add("Load", f"load {bus}", bus=f"bus {bus}", p_set=load, q_set=other)
    limits = found["generator_limit"]
    for at, bus in enumerate((1, 3)):
        least, most, cost = limits[at], limits[at + 2], found["cost"][at]
        net.add(
            "Generator", f"unit {bus}", bus=f"bus {bus}", p_nom=most, p_min_pu=least / most,
            marginal_cost=cost,
        )  # fmt: skip
    net.add("Generator", "unit 2", bus="bus 2", p_nom=limits[3])
    typed = {
        "capacity": (net.lines, ["s_nom", "s_max_pu"]),
        "load": (net.loads, ["p_set", "q_set"]),
        "reactive_load": (net.loads, []),
        "generator_limit": (net.generators, ["p_nom", "p_min_pu", "p_max_pu"]),
        "cost": (net.generators, ["marginal_cost"]),
    }
    for name in parts:
        table, columns = typed[name]
        for column in columns:
            table[column] = _typed(table[column], kind)
    if hours:
        add_series(net, hours, _note(parts), next(iter(parts.values()))[0])
    with unlogged("pypsa"):
        net.export_to_netcdf(str(path))


def add_series(net: Any, hours: int, note: str, value: float) -> None:
    """Add public series, and results that copy `value`."""
    import pandas as pd

    net.set_snapshots(pd.date_range("2030-01-01", periods=hours, freq="h"))
    share = np.linspace(0.7, 1.0, hours)
    net.add("StorageUnit", "dam", bus=net.buses.index[1], p_nom=1.0)
    net.add(
        "Link", "link", bus0=net.buses.index[0], bus1=net.buses.index[2], p_nom=1.0, carrier=note
    )
    for load in net.loads.index:
        net.loads_t.p_set[load] = share * float(net.loads.p_set[load])
    for table, series, names in (
        (net.lines_t, ("p0", "p1", "mu_upper"), net.lines.index),
        (net.generators_t, ("p", "mu_upper", "status"), net.generators.index),
        (net.buses_t, ("marginal_price",), net.buses.index),
        (net.storage_units_t, ("p", "state_of_charge"), net.storage_units.index),
        (net.links_t, ("p0", "p1"), net.links.index),
    ):
        for one in series:
            table[one] = pd.DataFrame(value, index=net.snapshots, columns=names)
    for name in ("lines", "generators", "storage_units", "links"):
        getattr(net, name)["remark"] = note
    net.meta = {"note": note}


# -- audits ----------------------------------------------------------------------------------

FORMATS: dict[str, Format] = {
    "matpower": Format("triangle.m", write_matpower, SPELLINGS),
    "pandapower": Format(
        "triangle.json",
        write_pandapower,
        {kind: kind for kind in _TYPES},
        needs="pandapower",
    ),
    "pypsa": Format(
        "triangle.nc",
        write_pypsa,
        {kind: kind for kind in _TYPES},
        needs="pypsa",
    ),
    "psse": Format("triangle.raw", of.write_raw, of.SPELLINGS, costs=False),
    "powsybl": Format(
        "triangle.xiidm", of.write_xiidm, of.SPELLINGS, needs="pypowsybl", costs=False
    ),
    "cgmes": Format("triangle.zip", write_cgmes, of.SPELLINGS, needs="pypowsybl", costs=False),
}
"""Every format of networks; a new format is a new entry."""

_SNAPSHOTS = Format(
    "triangle.nc",
    write_snapshots,
    {kind: kind for kind in _TYPES},
    needs="pypsa",
    more=("--snapshots", "all"),
)
# A curve has two ends, and whether limits are equal is public, so equal limits are left out.
_CURVES = Format("triangle.m", write_curves, SPELLINGS, leave_out=("all equal",))


def audit(kind: str, secret: str) -> Audit:
    """Audit one format with one choice of private parameters, by replays."""
    return _audit(f"file-{kind}-{secret}", FORMATS[kind], SECRETS[secret])


def in_ac(kind: str, secret: str) -> Audit:
    """Audit releases of one format that serve their models in AC too."""
    known = FORMATS[kind]
    return _audit(
        f"file-{kind}-{secret}-in-ac", replace(known, more=(*known.more, "--ac")), SECRETS[secret]
    )


def snapshots(secret: str) -> Audit:
    """Audit several snapshots with series and results (private loads are released as series)."""
    return _audit(f"file-pypsa-snapshots-{secret}", _SNAPSHOTS, SECRETS[secret])


def curves() -> Audit:
    """Audit private limits with cost curves that end at them: all twins are refused alike."""
    return _audit(_CURVED, _CURVES, SECRETS["generator-limit"], refused=True)


def _audit(name: str, kind: Format, secret: Secret, *, refused: bool = False) -> Audit:
    def make() -> Audit:
        return replays(name, twins(kind, secret).runs(), fast=_FAST, refused=refused)

    return installed(name, kind.needs, make)


_CURVED = "file-matpower-generator-limit-curve"
_IN_AC = ("psse", "powsybl")
_PRIVATE_IN_AC = ("load-and-reactive", "capacity", "generator-limit")
SLOW_FILES = [f"file-{kind}-{secret}-in-ac" for kind in _IN_AC for secret in _PRIVATE_IN_AC][1:]
"""Audits that a fast run leaves out: solving AC power flow takes long."""

GRID_FILES: dict[str, Callable[[], Audit]] = {
    **{
        f"file-{kind}-{secret}": partial(audit, kind, secret)
        for kind, known in FORMATS.items()
        for secret in _PRIVATE
        if known.costs or secret != "cost"
    },
    _CURVED: curves,
    **{
        f"file-{kind}-{secret}-in-ac": partial(in_ac, kind, secret)
        for kind in _IN_AC
        for secret in _PRIVATE_IN_AC
    },
    **{
        f"file-pypsa-snapshots-{secret}": partial(snapshots, secret)
        for secret in ("capacity", "generator-limit", "cost")
    },
}
