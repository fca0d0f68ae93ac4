"""No private number leaves: canaries in the private data are searched for in all that is published.

Released values are noisy, so one may look like a canary by chance. So the same canary must be found
in each of five runs with fresh noise, which chance does once in a million; a leak is there every
time. What is searched: the bundle, the ledger, the log, and what commands show on the screen.
"""

import base64
import importlib.util
import logging
import struct
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from scipy.io import savemat
from support.canaries import distinctive, leaks, published, speak_in_cgmes
from typer.testing import CliRunner

from gridveil import grid
from gridveil.auditing.grid_files import add_constant_elements, add_series
from gridveil.cli.commands import app
from gridveil.grid.io.matpower import tables_of
from gridveil.wind.demo import CAPACITY, demo_records

RUNS = 5
ALPHAS = {"capacity": 300, "load": 100, "generator_limit": 100, "cost": 10}
ALL = ",".join(ALPHAS)
POWER_UNITS = {"MW": 1.0, "per unit": 1e-2, "percent, pu x 10^4": 1e2, "kW": 1e3, "W": 1e6}
COST_UNITS = {"$/MWh": 1.0, "$/kWh": 1e-3, "cents": 1e2, "k$ per unit": 1e-1}
LIBRARIES = {"json": "pandapower", "nc": "pypsa"}
OPERATORS = dict.fromkeys(("raw", "xiidm", "zip"), "pypowsybl")
"""Formats without costs, whose files pypowsybl writes here."""
THREE = "capacity,load,generator_limit"
SERIES = "capacity,generator_limit,cost"


class Case:
    """A private file, the command that releases it, and the canaries in it."""

    def __init__(self, path, words, canaries, units):
        self.path, self.canaries, self.units = path, canaries, units
        self.words = [*words[:2], path, *words[2:]]

    def release(self, folder, screen):
        """Make a release and look at it in every way; all that there is to see."""
        shown = [screen(*self.words, "--yes", "-o", folder), screen("verify", folder)]
        shown += [screen("ledger", "show", "--json"), screen("ledger", "verify")]
        books = folder.parent.glob("default-ledger.sqlite*")
        seen = [*published(folder), *(book.read_bytes() for book in books), *shown]
        return leaks(seen, self.canaries, self.units)


@pytest.fixture
def screen(capsys, caplog):
    """Runs a command on a terminal; gives everything that it shows and logs, progress as well."""

    def run(*words):
        with caplog.at_level(logging.DEBUG):
            result = CliRunner().invoke(app, [str(w) for w in words], env={"FORCE_COLOR": "1"})
        assert result.exit_code == 0, result.output
        spilt = capsys.readouterr()
        return "\n".join([result.output, spilt.out, spilt.err, caplog.text]).encode()

    return run


def turbine(folder, kind, method):
    """A file of wind records in which every tenth power is a canary."""
    table = demo_records(300, seed=5).to_pandas()
    canaries = [round(91.7345678 + 88.0123456789 * place, 9) for place in range(30)]
    table.loc[::10, "power"] = canaries
    table["remark"] = [f"{power:.4f} kW" for power in table.power]
    path = folder / f"farm.{kind}"
    data = pa.Table.from_pandas(table)
    write = csv.write_csv if kind == "csv" else pq.write_table
    write(data, path)
    units = {"kW": 1.0, "share": 1 / CAPACITY, "percent": 100 / CAPACITY, "MW": 1e-3}
    words = ["--speed", "wind_speed", "--power", "power", "--capacity", "2750", "--alpha", "15%"]
    words += ["--method", method, "--dataset", "farm"]
    return Case(path, ["wind", "release", *words], canaries, units)


def network(folder, kind, method, parameters):
    """RTS-96 fifteen times as large, so that values with two decimals have six digits or more."""
    names = parameters.split(",")
    path = folder / f"case.{kind}"
    units = POWER_UNITS if names != ["cost"] else COST_UNITS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries' own
        numbers = MAKERS[kind](path)
    models = folder / "models.parquet"
    read = grid.read_case(path, **_how(path))
    grid.sample_population(read, 5, costs=0.1, private=names).write(models)
    alphas = ",".join(f"{name}={ALPHAS[name]}" for name in names)
    words = ["--parameter", parameters, "--alpha", alphas]
    # Snapshots are models themselves.
    words += ["--snapshots", "all"] if _how(path) else ["--population", models]
    words += ["--dataset", "case"]
    words += ["--method", method] + ["--rounds", 2] * (method == "paper")
    if parameters in (ALL, THREE, SERIES):
        # Nothing public is left to tell how large they can be.
        wide = {"capacity": "1:1e6", "load": "-5e4:5e4", "generator_limit": "-5e4:5e4"}
        for name in wide.keys() & set(names):
            words += ["--range", f"{name}={wide[name]}"]
    canaries = [c for name in names for part in numbers[name] for c in distinctive(part, units)]
    return Case(path, ["grid", "release", *words], canaries, units)


def _large():
    """The network with a digit or two of its own in every private value."""
    real = grid.cases.rts96(variant="paper")
    rng = np.random.default_rng(96)

    def own(values):
        return np.round(15 * values * (1 + 1e-3 * rng.random(len(values))), 7)

    units, lines = real.generators, real.branches
    real = replace(real, branches=replace(lines, capacity=own(lines.capacity)))
    real = real.with_load(own(real.buses.load))
    high = own(units.p_max)
    real = real.with_limits(np.round(high * 0.1, 7), high)
    return real.with_linear_costs(np.round(1234.56789 + 41.2345678 * np.arange(len(units)), 7))


def _values(real):
    """The private columns; a format may add what they are made of."""
    return {
        "capacity": [real.branches.capacity],
        "load": [real.buses.load],
        "generator_limit": [real.generators.p_max],
        "cost": [real.generators.linear],
    }


def _all(real):
    return [float(one) for (values,) in _values(real).values() for one in values]


def _matpower(path):
    """With copies where they often are: ratings B and C, reactive load, dispatch, comments."""
    real = _large()
    real.write(path)
    copies = {"branch": {6: 5, 7: 5}, "bus": {3: 2}, "gen": {1: 8}}
    lines, table = [], ""
    for line in path.read_text().splitlines():
        table = line.split()[0].removeprefix("mpc.") if line.startswith("mpc.") else table
        cells = line.strip().split("\t")
        if line.startswith("\t") and table in copies:
            for to, origin in copies[table].items():
                cells[to] = cells[origin]
            line = "\t" + "\t".join(cells)
        lines.append(line)
    lines += [f"% {one!r}" for one in _all(real)]
    path.write_text("\n".join(lines) + "\n")
    assert path.read_text().count(f"{real.branches.capacity[0]}") == 4
    return _values(grid.read_case(path))


def _pandapower(path):
    """As pandapower converts the case, with results and a comment. Ratings are currents there.

    Texts, results and profiles of the tables that are public and constant have copies too.
    """
    import pandapower as pp
    from pandapower.converter.matpower.from_mpc import from_mpc

    _large().write(path.with_suffix(".m"))
    net = from_mpc(str(path.with_suffix(".m")))
    net.comment = " ".join(map(repr, _all(_large())))
    net.line["rate_b"] = net.line.max_i_ka
    add_constant_elements(net, net.comment)
    pp.to_json(net, str(path))
    read = _values(grid.read_case(path))
    read["capacity"].append(net.line.max_i_ka)
    return read


def _pypsa(path):
    """As PyPSA imports the case, with its costs, and a note."""
    import pypsa
    from matpowercaseframes import CaseFrames

    _large().write(path.with_suffix(".m"))
    data = CaseFrames(str(path.with_suffix(".m")))
    tables = {name: np.asarray(getattr(data, name), float) for name in ("bus", "gen", "branch")}
    tables["gen"] = np.pad(tables["gen"], ((0, 0), (0, max(0, 21 - tables["gen"].shape[1]))))
    n = pypsa.Network(name="case")
    n.import_from_pypower_ppc({"version": "2", "baseMVA": float(data.baseMVA), **tables})
    n.generators["p_set"] = np.nan
    n.generators["marginal_cost"] = _large().generators.linear
    n.meta = {"note": _all(_large())}
    if path.stem.endswith("series"):
        add_series(n, 3, str(n.meta["note"]), n.lines.s_nom.iloc[0])
    n.export_to_netcdf(path)
    return _values(grid.read_case(path, **_how(path)))


def _how(path):
    return {"snapshots": "all"} if path.stem.endswith("series") else {}


def _powsybl(path):
    """As pypowsybl reads the case, with numbers wherever its model has room for them."""
    import pandas as pd
    import pypowsybl as pp

    real, mat = _large(), path.with_suffix(".mat")
    tables = tables_of(_written(real, path.with_suffix(".m")).source.data)
    mpc = {name: np.array(getattr(tables, name), float) for name in ("bus", "gen", "branch")}
    mpc["gen"] = np.pad(mpc["gen"], ((0, 0), (0, max(0, 21 - mpc["gen"].shape[1]))))
    mpc["branch"][:, 6:8] = mpc["branch"][:, [5]]  # RATE_B and RATE_C are copies, as in most files
    savemat(mat, {"mpc": {"version": "2", "baseMVA": real.base_mva, **mpc}})
    n = pp.network.load(str(mat))
    for numbers, table, update in (
        (real.branches.capacity, n.get_lines(), n.update_lines),
        (real.buses.load[real.buses.load != 0], n.get_loads(), n.update_loads),
        (real.generators.p_max, n.get_generators(), n.update_generators),
    ):
        ids, own = table.index, np.resize(numbers, len(table))
        said = [repr(float(one)) for one in own]
        update(pd.DataFrame({"name": said}, ids))
        n.add_elements_properties(pd.DataFrame({"rating": said, "remark": said}, ids))
        aliases = pd.DataFrame({"id": ids, "alias": [f"{one} {at}" for at, one in enumerate(said)]})
        n.add_aliases(aliases.set_index("id"))
        # Results, and an extension with numbers in it.
        side = {"p1": own, "q1": own} if "p1" in table else {"p": own, "q": own}
        update(pd.DataFrame(side, ids))
    units = n.get_generators().index
    droop = pd.DataFrame({"droop": np.resize(real.generators.p_max, len(units))}, units)
    n.create_extensions("activePowerControl", droop.assign(participate=True))
    return n


def _xiidm(path):
    """With copies in names, properties, aliases, an extension and results."""
    n = _powsybl(path)
    n.save(str(path), format="XIIDM")
    text = path.read_text()
    assert all(word in text for word in ("activePowerControl", ":alias", 'name="rating"'))
    read = _values(grid.read_case(path))
    read["capacity"].append(n.get_operational_limits().value.to_numpy())
    return read


def _cgmes(path):
    _powsybl(path).save(str(path), "CGMES", {"iidm.export.cgmes.cim-version": "100"})
    speak_in_cgmes(path, [repr(one) for one in _all(_large())])
    return _values(grid.read_case(path))


def _psse(path):
    """With copies in titles, behind records and in ratings B and C."""
    _powsybl(path).save(str(path), format="PSS/E")
    said = [repr(one) for one in _all(_large())]
    first, _, _, *rest = path.read_text().splitlines()
    spoken = [f"{line} / {said[at % len(said)]}" for at, line in enumerate(rest)]
    path.write_text("\n".join([first, said[0], said[1], *spoken]) + "\n")
    return _values(grid.read_case(path))


def _written(network, path):
    network.write(path)
    return grid.read_case(path)


MAKERS = {"m": _matpower, "json": _pandapower, "nc": _pypsa, "series.nc": _pypsa}
MAKERS |= {"raw": _psse, "xiidm": _xiidm, "zip": _cgmes}


def without(kind):
    """Whether the library of a format is missing here."""
    name = {**LIBRARIES, **OPERATORS, "series.nc": "pypsa"}.get(kind)
    return name is not None and importlib.util.find_spec(name) is None


WIND = [("csv", "tuned"), ("csv", "wpo"), ("csv", "laplace"), ("parquet", "tuned")]
GRID = [("m", "certified", parameters) for parameters in (*ALPHAS, ALL)]
GRID += [("m", "laplace", ALL), ("m", "paper", "capacity")]
GRID += [(kind, "certified", p) for kind in LIBRARIES for p in (*ALPHAS, ALL)]
GRID += [(kind, "laplace", p) for kind in ("raw", "xiidm") for p in (*THREE.split(","), THREE)]
GRID += [("zip", "laplace", THREE)]
GRID += [("series.nc", "certified", p) for p in ("capacity", SERIES)]
EVERY = [(turbine, *rest) for rest in WIND] + [(network, *rest) for rest in GRID]
NAMES = ["-".join(map(str, rest)) for rest in (*WIND, *GRID)]
FIRST = [EVERY[0], EVERY[3], *[one for one in EVERY if one[2:] == ("certified", ALL)]]
FIRST += [one for one in EVERY if one[2:] in (("laplace", THREE), ("certified", SERIES))]


@pytest.fixture
def case(request, tmp_path):
    make, kind, *rest = request.param
    if without(kind):
        pytest.skip(f"the library of .{kind} is not installed (tests/optional/run)")
    return make(tmp_path, kind, *rest)


libraries = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@libraries
@pytest.mark.parametrize("case", EVERY, ids=NAMES, indirect=True)
def test_no_canary_leaves(case, tmp_path, screen):
    found = None
    for number in range(RUNS):
        here = case.release(tmp_path / f"out-{number}", screen)
        found = here if found is None else found & here
        if not found:
            return
    pytest.fail(f"in all of {RUNS} runs: {sorted(found)}")


@libraries
@pytest.mark.parametrize("case", FIRST, ids=lambda one: f"{one[1]}-{one[-1]}", indirect=True)
def test_the_source_itself_is_full_of_canaries(case, tmp_path):
    only = tmp_path / "only"
    only.mkdir()
    case.path.rename(only / case.path.name)
    found = leaks(published(only), case.canaries, case.units)
    missing = [one for one in case.canaries if not any(repr(one) in text for text in found)]
    assert missing == []


CHANNELS = ("bundle", "log", "screen", "ledger")


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_leak_of_the_program_is_caught(channel, tmp_path, screen, monkeypatch):
    """The control: a program that lets one number slip, rounded, in one place."""
    case = network(tmp_path, "m", "laplace", "load")
    value = case.canaries[3]
    from gridveil.cli import grid_release
    from gridveil.cli.console import out
    from gridveil.grid import report
    from gridveil.privacy.ledger import Ledger

    models, shown = report._models, grid_release._described

    def leaky_models(*given):
        section = models(*given)
        return replace(section, text=f"{section.text} Mean load {value:,.2f} MW.")

    def leaky_end(*given, **options):
        if channel == "log":
            logging.getLogger("gridveil").debug("total %.3f", value)
        if channel == "screen":
            out().print(f"{value / 100:.5f} per unit")
        if channel == "ledger":
            Ledger().set_cap(f"load {value:.2f}", 5, alpha=30)
        return shown(*given, **options)

    monkeypatch.setattr(report, "_models", leaky_models if channel == "bundle" else models)
    monkeypatch.setattr(grid_release, "_described", leaky_end)
    found = set.intersection(*(case.release(tmp_path / f"out-{k}", screen) for k in range(2)))
    assert [text for text in found if repr(value) in text]


VALUE, OTHER = 1581.2345678, 4507.7654321


def picture():
    blob = b"\x89PNG....tEXtnote\0" + repr(VALUE).encode()
    return f'<img src="data:image/png;base64,{base64.b64encode(blob).decode()}">'


@pytest.mark.parametrize(
    "said",
    [
        repr(VALUE),
        f"{VALUE:.6g}",
        f"{VALUE:,.2f}",
        f"{VALUE:,.4f}".translate(str.maketrans(",.", ".,")).replace(".", "'"),
        f"{VALUE:.5e}",
        f"{VALUE / 100:.6f} per unit",
        f"{1000 * VALUE:_.0f} kW",
        f"{float(np.float32(VALUE))!r}",
        picture(),
        struct.pack(">f", VALUE / 100),
        np.array([1.0, VALUE]).tobytes(),
    ],
    ids=str,
)
def test_every_way_to_write_a_number_is_found(said):
    blob = said if isinstance(said, bytes) else f"of {said} in all".encode()
    assert leaks([blob], [VALUE], POWER_UNITS)
    assert not leaks([blob], [OTHER], POWER_UNITS)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_a_column_of_a_compressed_table_is_searched(kind, tmp_path):
    column = np.array([1.0, 2000.0, 1000 * OTHER]).astype(kind)
    table = pa.table({"list": [column.tolist(), [7]], "text": ["x", "y"]})
    schema = pa.schema(
        [pa.field("list", pa.list_(pa.from_numpy_dtype(kind))), ("text", pa.string())]
    )
    pq.write_table(table.cast(schema), tmp_path / "extra.parquet", compression="zstd")
    assert leaks(published(tmp_path), [OTHER], POWER_UNITS)
    assert not leaks(published(tmp_path), [VALUE], POWER_UNITS)
    table = table.replace_schema_metadata({"note": f"{VALUE:.3f}"})
    pq.write_table(table, tmp_path / "noted.parquet", compression="zstd")
    assert leaks(published(tmp_path), [VALUE], POWER_UNITS)
