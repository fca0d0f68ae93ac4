"""Nothing but the allow-list is in a released case: copies planted anywhere else are gone."""

import re
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from grid.making import pglib, tables, write_case

from gridveil.errors import InputError
from gridveil.grid import cases, problems, read_case
from gridveil.grid.formats.matpower import strip, tables_of
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
    "generator_limit": {"gen": [3, 4]},
    "cost": {},
}
RESULTS = {
    "bus": [7, 8, 13, 14, 15, 16],
    "gen": [1, 2, 5, 6, *range(10, 25)],
    "branch": [*range(13, 21)],
    "gencost": [1, 2],
}
RANGE = {"capacity": (1, 9e5), "load": (1, 9e5), "generator_limit": (1, 9e5), "cost": (1, 9e5)}


def canary_case(folder, parameter):
    """A case with private numbers in their place and copies of them everywhere else."""
    parts = tables()
    parts["gen"][2, 8:10] = 5, 1
    parts["bus"][0, 2] = 50
    parts["gencost"][:, 4:] = 0
    parts["gencost"][:3, 5] = 30
    parts["gencost"][:, 0], parts["gencost"][:, 3] = 2, 3
    canaries = []
    for table, columns in PRIVATE[parameter].items():
        rows = 3
        for column in columns:
            values = 7001.13 + 11.07 * np.arange(rows) + 101.01 * (len(canaries) + 1)
            if column == 9:
                values -= 3000
            parts[table][:rows, column] = np.round(values, 2)
            canaries += parts[table][:rows, column].tolist()
    supply = cycle(canaries)
    for places in (RESULTS, COPIES[parameter]):
        for table, columns in places.items():
            for row in range(len(parts[table])):
                for column in columns:
                    parts[table][row, column] = next(supply)
    parts["gencost"][3:, 4:] = canaries[0]
    if parameter == "cost":
        parts["gencost"][:3, 6] = canaries[:3]
    if parameter == "generator_limit":
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


def released(network, parameter):
    """The network with other values of its parameter, far from the private ones."""
    sealed, public = network.split(parameter, RANGE[parameter])
    vector = np.arange(len(sealed)) + 40.0
    return public, public.with_values(parameter, vector)


@pytest.mark.parametrize("parameter", PRIVATE)
def test_no_canary_is_in_a_release(tmp_path, parameter):
    network, canaries = canary_case(tmp_path, parameter)
    public, whole = released(network, parameter)
    assert whole.source.private == parameter
    # From the split network, and from the full one with the same released values.
    table = {"capacity": "branches", "load": "buses"}.get(parameter, "generators")
    direct = _with(network, whole, table, parameter)
    for name, release in {"split": whole, "direct": direct}.items():
        release.write_release(tmp_path / f"{name}.m", parameter)
        text = (tmp_path / f"{name}.m").read_text()
        assert sightings(text, canaries) == []
        assert problems(read_case(tmp_path / f"{name}.m")) == []
    whole.write(tmp_path / "written.m")
    assert sightings((tmp_path / "written.m").read_text(), canaries) == []
    # The control: a plain copy is full of them.
    direct.write(tmp_path / "plain.m")
    assert set(sightings((tmp_path / "plain.m").read_text(), canaries)) == set(canaries)
    assert public.source.private == parameter


def _with(network, whole, table, parameter):
    values = getattr(whole, table)
    if parameter == "capacity":
        return network.with_capacity(values.capacity)
    if parameter == "load":
        return network.with_load(values.load)
    if parameter == "cost":
        return replace(network, generators=replace(network.generators, linear=values.linear))
    return network.with_limits(values.p_min, values.p_max)


@pytest.mark.parametrize("parameter", PRIVATE)
def test_stripped_tables_do_not_depend_on_what_is_private(tmp_path, parameter):
    network, _ = canary_case(tmp_path, parameter)
    tables_before = tables_of(network.source.data)
    moved = {}
    for table in ("bus", "gen", "branch", "gencost"):
        values = getattr(tables_before, table).copy()
        for places in (PRIVATE[parameter], COPIES[parameter], RESULTS):
            values[:, places.get(table, [])] *= 1.37
        moved[table] = values
    other = type(tables_before)("other", tables_before.base_mva, **moved)
    one, two = strip(tables_before, parameter), strip(other, parameter)
    for table in ("bus", "gen", "branch", "gencost"):
        np.testing.assert_array_equal(getattr(one, table), getattr(two, table))


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
    for parameter, limits in {"capacity": (1, 5000), "load": (1, 5000)}.items():
        sealed, public = network.split(parameter, limits)
        whole = public.with_values(parameter, unseal(sealed))
        whole.write(tmp_path / "out.m")
        again = read_case(tmp_path / "out.m")
        np.testing.assert_array_equal(again.branches.capacity, network.branches.capacity)
        np.testing.assert_array_equal(again.buses.load, network.buses.load)
        np.testing.assert_array_equal(again.generators.p_max, network.generators.p_max)


def test_a_release_is_written_for_its_own_parameter(tmp_path):
    network = cases.rts96()
    with pytest.raises(InputError, match="no parameter that can be private"):
        network.write_release(tmp_path / "out.m", "reactance")
    _, public = network.split("capacity", (1, 1000))
    whole = public.with_values("capacity", np.full(120, 5.0))
    with pytest.raises(InputError, match="split by capacity, not by load"):
        whole.write_release(tmp_path / "out.m", "load")
    assert not (tmp_path / "out.m").exists()


def test_a_network_without_a_source_can_be_released(tmp_path):
    network = replace(cases.rts96(), source=None)
    network.write_release(tmp_path / "1 new-case.m", "capacity")
    text = (tmp_path / "1 new-case.m").read_text()
    assert text.startswith("function mpc = case_1_new_case\n")
    assert problems(read_case(tmp_path / "1 new-case.m")) == []
