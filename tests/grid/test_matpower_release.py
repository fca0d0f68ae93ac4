"""Nothing but the allow-list is in a released case: copies planted anywhere else are gone."""

import re
from dataclasses import replace
from itertools import combinations, cycle

import numpy as np
import pytest
from grid.making import pglib, tables, write_case

from gridveil.errors import InputError
from gridveil.grid import cases, problems, read_case
from gridveil.grid.io import Source
from gridveil.grid.io.matpower import strip, tables_of
from gridveil.grid.model.declarations import Declared
from gridveil.grid.model.public_network import split_parts
from gridveil.privacy.sealed import unseal

# Where each private parameter stands, and columns that copy or bound it; all others are results.
PRIVATE = {
    "capacity": {"branch": [5]},
    "load": {"bus": [2]},
    "generator_limit": {"gen": [8, 9]},
    "cost": {"gencost": [5]},
}
COPIES = {
    "capacity": {"branch": [6, 7]},
    "load": {"bus": [3]},
    "generator_limit": {"gen": [6, *range(10, 21)]},
    "cost": {"gencost": [1, 2]},
}
RESULTS = {
    "bus": [7, 8, 13, 14, 15, 16],
    "gen": [1, 2, *range(21, 25)],
    "branch": [*range(13, 21)],
}
RANGE = (1, 9e5)
SETS = [(name,) for name in PRIVATE] + list(combinations(PRIVATE, 2)) + [tuple(PRIVATE)]


def canary_case(folder, names):
    """A case with private numbers in their place and copies of them everywhere else."""
    parts = tables()
    parts["gen"][2, 8:10] = 5, 1
    parts["bus"][0, 2] = 50
    parts["gencost"][:, 4:] = 0
    parts["gencost"][:3, 5] = 30
    parts["gencost"][:, 0], parts["gencost"][:, 3] = 2, 3
    canaries = []
    for table, columns in (place for name in names for place in PRIVATE[name].items()):
        rows = 3
        for column in columns:
            values = 7001.13 + 11.07 * np.arange(rows) + 101.01 * (len(canaries) + 1)
            if column == 9:
                values -= 3000
            parts[table][:rows, column] = np.round(values, 2)
            canaries += parts[table][:rows, column].tolist()
    supply = cycle(canaries)
    for places in (RESULTS, *(COPIES[name] for name in names)):
        for table, columns in places.items():
            for row in range(len(parts[table])):
                for column in columns:
                    parts[table][row, column] = next(supply)
    if "cost" in names:
        parts["gencost"][3:, 4:] = canaries[0]
        parts["gencost"][:3, 6] = canaries[:3]
    elif "generator_limit" in names:
        upper, lower = parts["gen"][1, [8, 9]]
        points = [lower, 100, (lower + upper) // 2, 700000, upper, 2000000]
        parts["gencost"][1] = [1, 0, 0, 3, *points]
    said = ", ".join(f"{value} {value / 100}" for value in canaries)
    stem = str(int(canaries[0]))
    head = f"% {said}\n%{{\n{said}\n%}}\n"
    tail = (
        f"mpc.bus_name = {{'{stem} MVA'; '{canaries[1]}'; 'x'}};\n"
        f"mpc.areas = [1 {canaries[0]}];\nmpc.if.lims = [1 {canaries[1]}];\n"
        f"mpc.note = '{said}';\n% {said}\n"
    )
    path = write_case(folder, parts, head=head, tail=tail, name=f"line_{stem}")
    return read_case(path), canaries


def sightings(text, canaries):
    """Canaries in a text: their digits, or any number close to one or to one per unit."""
    numbers = [float(n) for n in re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?", text)]
    found = [c for c in canaries if str(int(c)) in text or repr(c) in text]
    for scale in (1, 0.01, -1, 0.5, 2):
        found += [c for c in canaries for n in numbers if abs(n - scale * c) < 0.005]
    return found


def released(network, names):
    """The network with other values of its private parameters, far from the real ones."""
    sealed, public = network.split(names, dict.fromkeys(names, RANGE), public_curves=True)
    return public, public.with_values(np.arange(len(sealed)) + 40.0)


@pytest.mark.parametrize("names", SETS)
def test_no_canary_is_in_a_release(tmp_path, names):
    network, canaries = canary_case(tmp_path, names)
    public, whole = released(network, names)
    assert whole.source.private == names
    # From the split network, and from the full one with the same released values.
    direct = network
    for name in names:
        direct = _with(direct, whole, name)
    for name, release in {"split": whole, "direct": direct}.items():
        release.write_release(tmp_path / f"{name}.m", names[::-1])
        text = (tmp_path / f"{name}.m").read_text()
        assert sightings(text, canaries) == []
        assert problems(read_case(tmp_path / f"{name}.m")) == []
    whole.write(tmp_path / "written.m")
    assert sightings((tmp_path / "written.m").read_text(), canaries) == []
    # The control: a plain copy is full of them.
    direct.write(tmp_path / "plain.m")
    assert set(sightings((tmp_path / "plain.m").read_text(), canaries)) == set(canaries)
    assert public.source.private == names


def _with(network, whole, name):
    units = whole.generators
    if name == "capacity":
        return network.with_capacity(whole.branches.capacity)
    if name == "load":
        return network.with_load(whole.buses.load)
    if name == "cost":
        return replace(network, generators=replace(network.generators, linear=units.linear))
    return network.with_limits(units.p_min, units.p_max)


@pytest.mark.parametrize("names", SETS)
def test_stripped_tables_do_not_depend_on_what_is_private(tmp_path, names):
    network, _ = canary_case(tmp_path, names)
    tables_before = tables_of(network.source.data)
    moved = {}
    for table in ("bus", "gen", "branch", "gencost"):
        values = getattr(tables_before, table).copy()
        private = [place[name] for place in (PRIVATE, COPIES) for name in names]
        for places in (*private, RESULTS):
            rows = slice(3) if table == "gencost" else slice(None)
            values[rows, places.get(table, [])] *= 1.37
        moved[table] = values
    other = type(tables_before)("other", tables_before.base_mva, **moved)
    one, two = strip(tables_before, names), strip(other, names)
    for table in ("bus", "gen", "branch", "gencost"):
        np.testing.assert_array_equal(getattr(one, table), getattr(two, table))


@pytest.mark.parametrize("names", SETS)
def test_several_at_once_keep_what_each_of_them_keeps(names):
    data = cases.rts96().source.data
    together = strip(data, ",".join(names))
    for table in ("bus", "gen", "branch", "gencost"):
        alone = np.array([getattr(strip(data, name), table) for name in names])
        dropped = (alone != getattr(tables_of(data), table)[:, : alone.shape[2]]).any(axis=0)
        found = getattr(together, table)
        np.testing.assert_array_equal(found[~dropped], alone[0][~dropped])
        # What is dropped is 0, or neutral in all of them alike.
        same = (alone == alone[0]).all(axis=0)
        if table == "gen" and "generator_limit" in names:
            assert {*np.unique(found[:, 3:5])} <= {-1.0, 0.0, 1.0}  # the sides of reactive limits
            same[:, 3:5], alone[0, :, 3:5] = True, found[:, 3:5]
        np.testing.assert_array_equal(found, np.where(same, alone[0], 0))


def test_companion_columns_of_several_at_once(tmp_path):
    network = cases.rts96()
    before = tables_of(network.source.data)
    capacity = np.linspace(10.1, 20.2, len(network.branches))
    changed = network.with_capacity(capacity)
    changed.write_release(tmp_path / "out.m", "load,capacity")
    tables_after = tables_of(read_case(tmp_path / "out.m").source.data)
    np.testing.assert_array_equal(tables_after.branch[:, 5:8], np.column_stack([capacity] * 3))
    assert not tables_after.bus[:, 3].any()
    np.testing.assert_array_equal(tables_after.gen[:, 3:5], before.gen[:, 3:5])
    changed.write_release(tmp_path / "out.m", "load,generator_limit")
    tables_after = tables_of(read_case(tmp_path / "out.m").source.data)
    reach = 0.75 * np.maximum(np.abs(before.gen[:, 8]), np.abs(before.gen[:, 9]))
    np.testing.assert_allclose(tables_after.gen[:, 3], np.where(before.gen[:, 3] > 0, reach, 0))
    np.testing.assert_allclose(tables_after.gen[:, 4], np.where(before.gen[:, 4] < 0, -reach, 0))
    np.testing.assert_array_equal(tables_after.gen[:, 5], before.gen[:, 5])
    np.testing.assert_array_equal(tables_after.branch[:, 6:8], before.branch[:, 6:8])


def test_ratings_are_released_together(tmp_path):
    network = read_case(pglib("pglib_opf_case14_ieee"))
    capacity = np.linspace(10.1, 20.2, len(network.branches))
    network.with_capacity(capacity).write_release(tmp_path / "out.m", "capacity")
    again = read_case(tmp_path / "out.m")
    np.testing.assert_array_equal(again.branches.capacity, capacity)
    ratings = tables_of(again.source.data).branch[:, 5:8]
    np.testing.assert_array_equal(ratings, np.column_stack([capacity] * 3))
    np.testing.assert_array_equal(again.branches.reactance, network.branches.reactance)
    np.testing.assert_array_equal(again.generators.linear, network.generators.linear)


def test_unlimited_lines_stay_unlimited(tmp_path):
    network = read_case(write_case(tmp_path))
    network.write_release(tmp_path / "out.m", "capacity")
    assert np.isinf(read_case(tmp_path / "out.m").branches.capacity[2])


def test_a_release_of_the_true_values_is_the_same_model(tmp_path):
    network = cases.rts96()
    for names in ("capacity", "load", "capacity,load,generator_limit"):
        limits = dict.fromkeys(names.split(","), (0.1, 5000))
        sealed, public = split_parts(network, names, limits, declared=Declared(public_curves=True))
        whole = public.with_values(np.concatenate(unseal(sealed)))
        whole.write(tmp_path / "out.m")
        again = read_case(tmp_path / "out.m")
        np.testing.assert_array_equal(again.branches.capacity, network.branches.capacity)
        np.testing.assert_array_equal(again.buses.load, network.buses.load)
        np.testing.assert_array_equal(again.generators.p_max, network.generators.p_max)


def test_a_release_is_written_for_its_own_parameter(tmp_path):
    network = cases.rts96()
    with pytest.raises(InputError, match="not a parameter that can be private"):
        network.write_release(tmp_path / "out.m", "reactance")
    _, public = network.split("capacity", (1, 1000))
    whole = public.with_values(np.full(120, 5.0))
    with pytest.raises(InputError, match="split by capacity, not by load"):
        whole.write_release(tmp_path / "out.m", "load")
    with pytest.raises(InputError, match="split by capacity, not by capacity,load"):
        whole.write_release(tmp_path / "out.m", ("capacity", "load"))
    _, both = network.split("load,capacity", dict.fromkeys(("capacity", "load"), RANGE))
    with pytest.raises(InputError, match='parameters="capacity,load"'):
        both.with_values(np.full(both.entries, 5.0)).write_release(tmp_path / "out.m", "load")
    assert not (tmp_path / "out.m").exists()


def test_a_network_without_a_source_can_be_released(tmp_path):
    network = replace(cases.rts96(), source=None)
    network.write_release(tmp_path / "1 new-case.m", "capacity")
    text = (tmp_path / "1 new-case.m").read_text()
    assert text.startswith("function mpc = case_1_new_case\n")
    assert problems(read_case(tmp_path / "1 new-case.m")) == []


def test_reactive_limits_tell_nothing_of_private_active_ones(tmp_path):
    """Many files have them as a share of the active limits, which would follow exactly."""
    written = []
    for share in (0.5, 0.3):
        network = cases.rts96()
        data = tables_of(network.source.data)
        gen = data.gen.copy()
        gen[:, 3], gen[:, 4] = share * gen[:, 8], -share * gen[:, 8]
        network = replace(network, source=Source("matpower", replace(data, gen=gen)))
        _, public = network.split("generator_limit", (-500, 500))
        path = tmp_path / "out.m"
        public.with_values(public.high).write_release(path, "generator_limit")
        written.append(path.read_bytes())
    assert written[0] == written[1]
    assert b"375" in written[0]  # three quarters of the released 500


def test_curves_of_reactive_costs_tell_nothing_of_private_limits(tmp_path):
    """They end at reactive limits, which are a share of the active ones in many files."""
    written = []
    for share in (0.5, 0.3):
        network = cases.rts96()
        data = tables_of(network.source.data)
        ends = np.column_stack([-share * data.gen[:, 8], share * data.gen[:, 8]])
        costs = np.zeros((2 * len(data.gen), max(data.gencost.shape[1], 8)))
        costs[: len(data.gen), : data.gencost.shape[1]] = data.gencost
        costs[len(data.gen) :, [0, 3]] = 1, 2
        costs[len(data.gen) :, [4, 6]] = ends
        costs[len(data.gen) :, 7] = 10
        network = replace(network, source=Source("matpower", replace(data, gencost=costs)))
        _, public = network.split("generator_limit", (-500, 500))
        path = tmp_path / "out.m"
        public.with_values(public.high).write_release(path, "generator_limit")
        written.append(path.read_bytes())
    assert written[0] == written[1]
