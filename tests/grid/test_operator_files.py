"""Files that others wrote: PGLib-OPF as pypowsybl writes it in RAW and XIIDM, and IEEE-CDF.

They go through read, release, write, and are read again by pypowsybl itself.
"""

import functools

import numpy as np
import pytest
from grid.making import pglib
from grid.test_powsybl import pytestmark, random_release
from scipy.io import savemat
from support.sizes import FULL

from gridveil import grid
from gridveil.grid import read_case
from gridveil.grid.file_facts import file_facts
from gridveil.grid.io import module_of
from gridveil.grid.io.matpower import tables_of

pp = pytest.importorskip("pypowsybl", reason="pypowsybl is not installed")

__all__ = ["pytestmark"]
CASES = ["case118_ieee", *(["case300_ieee", "case1354_pegase", "case2869_pegase"] if FULL else [])]
PARAMETERS = ("capacity", "load", "generator_limit")
COLUMNS = {
    "buses": ("load", "shunt", "in_service", "reference"),
    "generators": ("bus", "p_min", "p_max", "in_service"),
    "branches": ("from_bus", "to_bus", "reactance", "tap", "shift", "capacity", "in_service"),
}


@functools.cache
def made_by_others(case, folder):
    """The case as pypowsybl reads it from a MATPOWER file, and its RAW and XIIDM files."""
    known = read_case(pglib(f"pglib_opf_{case}"))
    tables = tables_of(known.source.data)
    mpc = {name: np.asarray(getattr(tables, name), float) for name in ("bus", "gen", "branch")}
    mpc["gen"] = np.pad(mpc["gen"], ((0, 0), (0, max(0, 21 - mpc["gen"].shape[1]))))
    savemat(folder / f"{case}.mat", {"mpc": {"version": "2", "baseMVA": known.base_mva, **mpc}})
    network = pp.network.load(str(folder / f"{case}.mat"))
    for suffix, kind in (("raw", "PSS/E"), ("xiidm", "XIIDM")):
        network.save(str(folder / f"{case}.{suffix}"), format=kind)
    return known


@pytest.mark.parametrize("suffix", ["raw", "xiidm"])
@pytest.mark.parametrize("case", CASES)
def test_pglib_as_others_write_it_goes_through(case, suffix, tmp_path_factory, tmp_path):
    folder = tmp_path_factory.getbasetemp()
    known = made_by_others(case, folder)
    source = read_case(folder / f"{case}.{suffix}")
    assert source.buses.load.sum() == pytest.approx(known.buses.load.sum(), rel=1e-9)
    assert source.generators.p_max.sum() == pytest.approx(known.generators.p_max.sum(), rel=1e-9)
    limits = [np.sort(one.branches.capacity) for one in (source, known)]
    assert np.allclose(*limits, rtol=1e-6), "others write amperes with few digits"
    for parameter in PARAMETERS:
        released, public = random_release(source, (parameter,))
        path = tmp_path / f"out.{suffix}"
        released.write_release(path, parameter)
        again = read_case(path)
        for table, columns in COLUMNS.items():
            for column in columns:
                ours, theirs = (getattr(getattr(one, table), column) for one in (released, again))
                assert np.allclose(ours, theirs, rtol=1e-13, atol=1e-13), (parameter, column)
        theirs = pp.network.load(str(path))
        assert len(theirs.get_buses()) == len(
            pp.network.load(str(folder / f"{case}.{suffix}")).get_buses()
        )
        loads, units = theirs.get_loads(), theirs.get_generators()
        assert loads.p0.sum() == pytest.approx(released.buses.load.sum(), rel=1e-12)
        assert units.max_p.sum() == pytest.approx(released.generators.p_max.sum(), rel=1e-12)
        assert public.entries > 10
        if parameter == "capacity":
            count = int(np.isfinite(source.branches.capacity).sum())
            said = theirs.get_operational_limits().reset_index()
            assert said.element_id.nunique() == count


@pytest.mark.parametrize("suffix", ["raw", "xiidm", "m"])
def test_every_column_of_a_file_is_published_or_has_a_fate(suffix, tmp_path_factory):
    folder, case = tmp_path_factory.getbasetemp(), "case118_ieee"
    network = made_by_others(case, folder)
    network = network if suffix == "m" else read_case(folder / f"{case}.{suffix}")
    known = file_facts(network)
    assert known.written_as == f".{suffix}"
    assert known.entries["capacity"] == np.isfinite(network.branches.capacity).sum()
    assert bool(known.entries["cost"]) == (suffix == "m"), "the others have no costs"
    always = {(one.table, name) for one in known.always for name in one.columns}
    private = {
        (one.table, name) for told in known.private.values() for one in told for name in one.columns
    }
    kept = {(table, name) for table, names in known.kept.items() for name in names}
    present = module_of(network.source.kind).columns(network.source.data)
    assert {(table, name) for table, names in present.items() for name in names} == (
        kept | always | private
    )
    assert not kept & (always | private)
    # With each parameter the list is that of a release.
    for parameter in ("capacity", "load", "generator_limit"):
        _, public = network.split(
            parameter, (-9999.0, 9999.0) if parameter != "capacity" else (1, 9999)
        )
        listed = {(one.table, name) for one in public.changes for name in one.columns}
        told = {(one.table, name) for one in known.private[parameter] for name in one.columns}
        assert listed == always | told
    said = dict(known.rows())
    assert "values could be private" in said["capacity"]


def ieee_cdf(folder):
    """A small case in IEEE's common data format: fixed columns, as in the archive of old cases."""

    def place(*fields):
        line = [" "] * 132
        for start, text in fields:
            line[start - 1 : start - 1 + len(text)] = text
        return "".join(line).rstrip()

    def bus(number, kind, load, made):
        volts = 1.02 if kind else 1.0
        return place(
            *((1, f"{number:4d}"), (6, f"Bus {number}"), (19, " 1"), (21, "  1")),
            *((25, f"{kind:2d}"), (28, f"{volts:6.3f}"), (34, "   0.0"), (41, f"{load:8.2f}")),
            *((50, f"{load / 4:8.2f}"), (60, f"{made:7.1f}"), (68, f"{0.0:7.1f}")),
            *((77, f"{132.0:6.1f}"), (85, f"{volts:5.3f}"), (91, f"{90.0:7.1f}")),
            *((99, f"{-90.0:7.1f}"), (107, f"{0.0:7.4f}"), (115, f"{0.0:7.4f}"), (124, "   0")),
        )

    def branch(start, end, reactance):
        return place(
            *((1, f"{start:4d}"), (6, f"{end:4d}"), (11, " 1"), (14, " 1"), (17, "1"), (19, "0")),
            *((20, f"{0.01:9.5f}"), (30, f"{reactance:10.5f}"), (41, f"{0.02:9.5f}")),
            *((51, f"{120:5d}"), (57, f"{0:5d}"), (63, f"{0:5d}"), (69, "   0"), (74, "0")),
            *((77, f"{0.0:5.3f}"), (84, f"{0.0:6.2f}"), (91, f"{0.0:6.4f}"), (98, f"{0.0:6.4f}")),
        )

    lines = [
        place((2, "08/19/93"), (11, "OWN"), (32, " 100.0"), (39, "1962"), (44, "W"), (46, "Small")),
        f"BUS DATA FOLLOWS {4:28d} ITEMS",
        *(bus(1, 3, 0.0, 60.0), bus(2, 0, 21.7, 0.0), bus(3, 2, 0.0, 40.0), bus(4, 0, 78.3, 0.0)),
        "-999",
        f"BRANCH DATA FOLLOWS {5:25d} ITEMS",
        *(branch(1, 2, 0.1), branch(2, 3, 0.2), branch(3, 4, 0.15), branch(4, 1, 0.12)),
        branch(1, 3, 0.3),
        "-999",
        "LOSS ZONES FOLLOWS                     0 ITEMS",
        "-99",
        "INTERCHANGE DATA FOLLOWS                 0 ITEMS",
        "-9",
        "TIE LINES FOLLOWS                     0 ITEMS",
        "-999",
        "END OF DATA",
    ]
    path = folder / "small.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_ieee_cdf_is_read_from_a_file(tmp_path):
    source = read_case(ieee_cdf(tmp_path))
    assert (len(source.buses), len(source.branches), len(source.generators)) == (4, 5, 2)
    assert np.sort(source.buses.load).tolist() == [0.0, 0.0, 21.7, 78.3]
    assert np.allclose(np.sort(source.branches.reactance), [0.1, 0.12, 0.15, 0.2, 0.3])
    released, _ = random_release(source, ("load",))
    released.write_release(tmp_path / "out.xiidm", "load")
    again = pp.network.load(str(tmp_path / "out.xiidm"))
    assert (
        np.sort(again.get_loads().p0).tolist()
        == np.sort(released.buses.load[released.buses.load > 0]).tolist()
    )


SMALL = ("ieee9", "ieee14", "four_substations_node_breaker_network")
SMALL += ("micro_grid_be_network", "micro_grid_nl_network")
LARGE = ("ieee30", "ieee57", "ieee118", "ieee300")


@pytest.mark.parametrize("name", [*SMALL, *(LARGE if FULL else ())])
def test_a_whole_release_of_a_bundled_network_is_read_by_its_own_library(name, tmp_path):
    """Certified, with noise, from pypowsybl's object to a bundle and back."""
    source = getattr(pp.network, f"create_{name}")()
    read = read_case(source)
    private = "capacity" if np.isfinite(read.branches.capacity).any() else "load"
    limits = {"capacity": (1, 5000), "load": (-900, 5000)}[private]
    made = grid.release(read, parameter=private, epsilon=1, alpha=5, range=limits, seed=1)
    bundle = made.write(tmp_path / "out")
    again = pp.network.load(str(bundle / "network.xiidm"))
    assert len(again.get_buses()) == len(source.get_buses())
    ours, theirs = made.data, read_case(bundle / "network.xiidm")
    np.testing.assert_allclose(theirs.branches.capacity, ours.branches.capacity, rtol=1e-13)
    np.testing.assert_allclose(theirs.buses.load, ours.buses.load, rtol=1e-13, atol=1e-13)
    # The control: noise was drawn.
    before, after = (
        (one.branches.capacity if private == "capacity" else one.buses.load) for one in (read, ours)
    )
    assert not np.allclose(before[np.isfinite(before)], after[np.isfinite(before)])
