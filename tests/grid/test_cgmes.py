"""CGMES in and out: profiles that pypowsybl wrote, released by our own writer, and read again."""

import copy
import math
import re
import shutil
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import numpy as np
import pytest
from fuzz.mutations import random_choices
from fuzz.tables import check_source
from grid.test_powsybl import SETS, network, pytestmark, random_release
from support.sizes import FULL

from gridveil import grid
from gridveil.errors import InputError
from gridveil.grid.file_facts import file_facts
from gridveil.grid.io import cgmes as fmt
from gridveil.grid.io import read_case
from gridveil.grid.io.cgmes.rdf import (
    ABOUT,
    CIM,
    ID,
    RESOURCE,
    Graph,
    NotCgmes,
    bare,
    column,
    identity,
    local,
    read_profiles,
)

pp = pytest.importorskip("pypowsybl", reason="pypowsybl is not installed")

__all__ = ["pytestmark"]

MICRO = ("micro_grid_be_network", "micro_grid_nl_network")
HEAD = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    f'xmlns:cim="{CIM[0]}" xmlns:entsoe="http://entsoe.eu/CIM/SchemaExtension/3/1#" '
    'xmlns:md="http://iec.ch/TC57/61970-552/ModelDescription/1#">'
    '<md:FullModel rdf:about="urn:uuid:{id}"><md:Model.scenarioTime>2030-01-01T00:00:00Z'
    "</md:Model.scenarioTime><md:Model.profile>http://entsoe.eu/CIM/{profile}</md:Model.profile>"
    "</md:FullModel>"
)


def roots(path):
    """The profiles of a zip file, by the names of their files."""
    with zipfile.ZipFile(path) as packed:
        return {one: ET.fromstring(packed.read(one)) for one in packed.namelist()}


def pack(path, files):
    with zipfile.ZipFile(path, "w") as packed:
        for name, root in files.items():
            packed.writestr(name, root if isinstance(root, str) else ET.tostring(root))
    return path


def boundary(files):
    """Nodes between operators, and their voltages: pypowsybl leaves both to a boundary profile."""
    parts = [one for root in files.values() for one in root]
    known = {identity(one) for one in parts if one.get(ID)}
    bases, lines, nodes = {}, "", ""
    for part in parts:
        says = {column(one.tag): one.text or bare(one.get(RESOURCE, "")) for one in part}
        base = says.get("BaseVoltage", "")
        if local(part.tag) == "VoltageLevel" and base not in known:
            bases[base] = says["name"]
        if local(part.tag) != "TopologicalNode" or not says["name"].endswith("_NODE"):
            continue
        next(root for root in files.values() if part in list(root)).remove(part)
        name = identity(part)
        named = f"<cim:IdentifiedObject.name>{says['name']}</cim:IdentifiedObject.name>"
        lines += (
            f'<cim:Line rdf:ID="_line-{name}">{named}</cim:Line><cim:ConnectivityNode '
            f'rdf:ID="_node-{name}">{named}<entsoe:ConnectivityNode.boundaryPoint>true'
            "</entsoe:ConnectivityNode.boundaryPoint>"
            f'<cim:ConnectivityNode.ConnectivityNodeContainer rdf:resource="#_line-{name}"/>'
            "</cim:ConnectivityNode>"
        )
        nodes += (
            f'<cim:TopologicalNode rdf:ID="_{name}">{named}<entsoe:TopologicalNode.boundaryPoint>'
            "true</entsoe:TopologicalNode.boundaryPoint><cim:TopologicalNode.BaseVoltage "
            f'rdf:resource="#_{base}"/><cim:TopologicalNode.ConnectivityNodeContainer '
            f'rdf:resource="#_line-{name}"/></cim:TopologicalNode><cim:ConnectivityNode '
            f'rdf:about="#_node-{name}"><cim:ConnectivityNode.TopologicalNode '
            f'rdf:resource="#_{name}"/></cim:ConnectivityNode>'
        )
    for name, volts in bases.items():
        lines += (
            f'<cim:BaseVoltage rdf:ID="_{name}"><cim:IdentifiedObject.name>{volts}'
            f"</cim:IdentifiedObject.name><cim:BaseVoltage.nominalVoltage>{volts}"
            "</cim:BaseVoltage.nominalVoltage></cim:BaseVoltage>"
        )
    heads = [
        HEAD.replace("{id}", one).replace("{profile}", profile)
        for one, profile in (
            ("eqbd", "EquipmentBoundaryOperation/3/1"),
            ("tpbd", "TopologyBoundary/3/1"),
        )
    ]
    return {
        "EQBD.xml": f"{heads[0]}{lines}</rdf:RDF>",
        "TPBD.xml": f"{heads[1]}{nodes}</rdf:RDF>",
    }


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """CGMES models by name, as pypowsybl writes its own networks."""
    folder, made = tmp_path_factory.mktemp("cgmes"), {}

    def get(*names):
        if names not in made:
            files = {}
            for name in names:
                path = folder / f"part-{len(made)}-{name}.zip"
                network(name).save(str(path), format="CGMES")
                files |= roots(path)
            if names[0] in MICRO:
                files |= boundary(files)
            made[names] = pack(folder / f"{'-'.join(names)}.zip", files)
        return made[names]

    return get


def again(path):
    """As pypowsybl reads it, and as we do."""
    return pp.network.load(str(path)), read_case(path)


def by_id(read):
    """Capacities, limits of units and loads by ids."""
    model = read.source.data
    return fmt._values(model, model.ids)


def close(one, other):
    assert one.keys() == other.keys()
    for kind in one:
        assert list(one[kind]) == list(other[kind])
        for name in one[kind]:
            np.testing.assert_allclose(one[kind][name], other[kind][name], rtol=1e-12, atol=1e-12)


NAMES = (*MICRO, "ieee14", "eurostag_tutorial_example1_network")


@pytest.mark.parametrize("names", SETS if FULL else [SETS[0], SETS[-1]], ids=",".join)
@pytest.mark.parametrize("name", NAMES)
def test_a_release_reads_as_the_released_network(name, names, models, tmp_path):
    read = read_case(models(name))
    assert read.source.kind == "cgmes"
    names = tuple(
        one for one in names if one != "capacity" or np.isfinite(read.branches.capacity).any()
    )
    if not names:
        pytest.skip("no line of it has a limit")
    released, _ = random_release(read, names)
    made = fmt.write_release(released, tmp_path / "out.zip", names)
    theirs, ours = again(tmp_path / "out.zip")
    close(fmt._values(made, made.ids), by_id(ours))
    assert ours.buses.load.sum() == pytest.approx(released.buses.load.sum(), rel=1e-12)
    before = pp.network.load(str(models(name)))
    for table in ("buses", "lines", "loads", "generators", "dangling_lines", "shunt_compensators"):
        mine, other = (getattr(one, f"get_{table}")() for one in (theirs, before))
        assert len(mine) == len(other), table


def test_rows_stay_in_the_order_of_the_files(models, tmp_path):
    # pypowsybl has the models of two operators in any order, and those of a release by new ids.
    read = read_case(models(*MICRO))
    assert read.source.kind == "cgmes"
    for names in SETS:
        released, _ = random_release(read, names)
        made = fmt.write_release(released, tmp_path / "out.zip", names)
        ours = read_case(tmp_path / "out.zip")
        close(fmt._values(made, made.ids), by_id(ours))
        np.testing.assert_array_equal(ours.branches.from_bus, read.branches.from_bus)
        np.testing.assert_allclose(ours.buses.load, released.buses.load, rtol=1e-12)
        np.testing.assert_allclose(ours.branches.capacity, released.branches.capacity, rtol=1e-12)
        np.testing.assert_allclose(ours.generators.p_max, released.generators.p_max, rtol=1e-12)
    others = [read_case(models(*MICRO)) for _ in range(4)]
    assert all(one.branches.name == read.branches.name for one in others)
    assert all(one.buses.name == read.buses.name for one in others)


def test_a_release_can_be_evaluated_by_its_owner(models, tmp_path):
    real = read_case(models(MICRO[1]))
    made = grid.release(real, epsilon=1, alpha=5, range=(1, 5000), seed=1, method="laplace")
    bundle = made.write(tmp_path / "out")
    found = grid.evaluate(bundle, real)
    errors = np.abs(read_case(bundle / "network.zip").branches.capacity - real.branches.capacity)
    assert found.parameters[0].mean == pytest.approx(errors[np.isfinite(errors)].mean())


def test_lines_declared_to_have_no_limit_have_none(models, tmp_path):
    read = read_case(models(MICRO[0]))
    some = float(np.sort(read.branches.capacity[np.isfinite(read.branches.capacity)])[-2])
    given = {"epsilon": 1, "alpha": 5, "range": (1, 5000), "method": "laplace", "seed": 1}
    bundle = grid.release(read, **given, unlimited_above=some).write(tmp_path / "out")
    ours = read_case(bundle / "network.zip").branches.capacity
    np.testing.assert_array_equal(np.isinf(ours), ~(read.branches.capacity < some))


@pytest.mark.parametrize("name", MICRO)
def test_voltages_are_those_of_the_source_if_its_dispatch_is_public(name, models, tmp_path):
    given = {"epsilon": 1, "alpha": 10, "range": (1, 5000), "method": "laplace"}
    public = grid.plan(read_case(models(name)), **given, public_dispatch=True).problem.public
    released = public.with_values(np.full(public.entries, 77.0))
    released.write_release(tmp_path / "out.zip", "capacity")
    found = []
    for path in (models(name), tmp_path / "out.zip"):
        n = pp.network.load(str(path))
        (first, *_) = pp.loadflow.run_ac(n)
        assert first.status == pp.loadflow.ComponentStatus.CONVERGED
        buses, levels = n.get_buses(), n.get_voltage_levels()
        volts = buses.v_mag / levels.nominal_v[buses.voltage_level_id].to_numpy()
        found.append(np.sort(volts))
    np.testing.assert_allclose(*found, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", MICRO)
def test_all_limits_of_a_line_are_its_released_capacity(name, models, tmp_path):
    read = read_case(models(name))
    released, _ = random_release(read, ("capacity",))
    released.write_release(tmp_path / "out.zip", "capacity")
    theirs, ours = again(tmp_path / "out.zip")
    before = pp.network.load(str(models(name))).get_operational_limits(all_attributes=True)
    after = theirs.get_operational_limits(all_attributes=True)
    assert len(after) == len(before) == {MICRO[0]: 56, MICRO[1]: len(before)}[name]
    # Ids are new; three voltages and one capacity each make as many values as lines and sides do.
    values = np.sort(ours.branches.capacity)
    np.testing.assert_allclose(values, np.sort(released.branches.capacity), rtol=1e-12)


def test_ratios_of_durations_are_public(models, tmp_path):
    read = read_case(models(MICRO[0]))
    made = grid.release(
        read, parameter="capacity", epsilon=1, alpha=5, range=(1, 5000), seed=1,
        method="laplace", limit_ratios="20s=1.1, 10s=1.25",
    )  # fmt: skip
    bundle = made.write(tmp_path / "out")
    limits = pp.network.load(str(bundle / "network.zip")).get_operational_limits()
    limits = limits.reset_index()
    columns = [one for one in ("element_id", "side", "group_name") if one in limits]
    for _, rows in limits.groupby(columns):
        found = dict(zip(rows["acceptable_duration"], rows["value"], strict=True))
        if {-1, 20, 10} <= {*found}:
            assert found[20] / found[-1] == pytest.approx(1.1)
            assert found[10] / found[-1] == pytest.approx(1.25)
            break
    else:
        pytest.fail("no line has limits of two durations")


CANARY = "77.137"


def with_canaries(path, to):
    """A number in every text that a model has room for, and in the ids of what may be private."""
    files = roots(path)
    for name, root in files.items():
        for part in root:
            if local(part.tag) == "FullModel":
                ET.SubElement(
                    part, part.tag.replace("FullModel", "Model.description")
                ).text = CANARY
                continue
            for one in part:
                if column(one.tag) == "name" and local(part.tag) not in ("OperationalLimitType",):
                    one.text = f"{one.text} {CANARY}"
            space = part.tag.partition("}")[0] + "}"
            for extra in ("IdentifiedObject.description", "IdentifiedObject.mRID", "Canary.value"):
                ET.SubElement(part, f"{space}{extra}").text = CANARY
            ET.SubElement(part, "{http://example.org/#}Own.value").text = CANARY
            ET.SubElement(part, f"{space}Equipment.aggregate").text = CANARY
        if "_EQ" in name:
            space = root[1].tag.partition("}")[0] + "}"
            other = ET.SubElement(root, f"{space}ConformLoadSchedule", {ID: f"_{CANARY}"})
            ET.SubElement(other, f"{space}IdentifiedObject.name").text = CANARY
        root.append(ET.Comment(CANARY))
    return pack(to, files)


PRIVATE_IDS = ("ACLineSegment", "PowerTransformer", "EnergyConsumer", "SynchronousMachine",
               "EquivalentInjection", "Terminal", "CurrentLimit", "OperationalLimitSet",
               "GeneratingUnit", "PowerTransformerEnd", "OperationalLimitType")  # fmt: skip


def rename(path, to):
    """Numbers in the ids of every element with a private number, and of its parts."""
    files = roots(path)
    old = {
        identity(one)
        for root in files.values()
        for one in root
        if local(one.tag) in PRIVATE_IDS and one.get(ID)
    }
    for root in files.values():
        for one in root.iter():
            for key in (ID, ABOUT, RESOURCE):
                name = (one.get(key) or "").lstrip("#").removeprefix("_")
                if name in old:
                    mark = "" if key == ID else "#"
                    one.set(key, f"{mark}_{name}-{CANARY}")
    return pack(to, files)


@pytest.mark.parametrize("change", [with_canaries, rename])
def test_texts_and_unknown_properties_do_not_leave(change, models, tmp_path):
    path = change(models(MICRO[0]), tmp_path / "canary.zip")
    names = ("capacity", "load", "generator_limit")
    read = read_case(path)
    assert read.source.kind == "cgmes"
    released, _ = random_release(read, names)
    released.write_release(tmp_path / "out.zip", names)
    assert CANARY.encode() not in (tmp_path / "out.zip").read_bytes()
    read.write(tmp_path / "own.zip")  # the control: an owner's file has them
    assert CANARY.encode() in (tmp_path / "own.zip").read_bytes()


@pytest.mark.parametrize("names", SETS if FULL else SETS[:3], ids=",".join)
def test_private_numbers_do_not_leave_and_twins_are_the_same_bytes(names, models, tmp_path):
    """Every private number of the files is another one in a twin; the released values are not."""
    made = []
    for place, factor in enumerate((1.0, 1.03125)):
        files = roots(models(MICRO[0]))
        private = scale(files, names, factor)
        read = read_case(pack(tmp_path / f"{place}.zip", files))
        ranges = {name: (1 if name == "capacity" else -9999, 20000) for name in names}
        _, public = read.split(names, ranges)
        values = np.linspace(100.0, 200.0, public.entries)
        public.with_values(values).write_release(tmp_path / f"out{place}.zip", names)
        made.append((tmp_path / f"out{place}.zip").read_bytes())
        assert private
        for text in private:
            assert f">{text}<".encode() not in made[-1]
    assert made[0] == made[1]


COLUMNS = {
    "capacity": {"CurrentLimit": ["value"], "PowerTransformerEnd": ["ratedS"]},
    "load": {"EnergyConsumer": ["p", "q"], "EquivalentInjection": ["p", "q"]},
    "generator_limit": {
        "GeneratingUnit": ["minOperatingP", "maxOperatingP"],
        "SynchronousMachine": ["ratedS", "minQ", "maxQ"],
        "CurveData": ["xvalue", "y1value", "y2value"],
    },
}


def scale(files, names, factor):
    """Private numbers times a factor plus something to know them by; their new texts."""
    found = []
    for root in files.values():
        for part in root:
            wanted = [one for name in names for one in COLUMNS[name].get(local(part.tag), [])]
            for one in part:
                value = float(one.text) if column(one.tag) in wanted else 0.0
                if value:
                    one.text = repr(value * factor + math.copysign(0.0137, value))
                    found.append(one.text)
    return found


def test_set_points_and_states_are_not_those_of_the_file(models, tmp_path):
    released, _ = random_release(read_case(models(MICRO[0])), ("capacity",))
    released.write_release(tmp_path / "out.zip", "capacity")
    text = (tmp_path / "out.zip").read_bytes()
    assert b"SvVoltage" not in text
    assert b"SvPowerFlow" not in text
    before = {one.text for one in values(roots(models(MICRO[0])), "SynchronousMachine", "p")}
    after = {one.text for one in values(roots(tmp_path / "out.zip"), "SynchronousMachine", "p")}
    assert before
    assert not before & after


def values(files, kind, name):
    """The entries of a column."""
    known = [one for one in files.values() if not isinstance(one, str)]
    parts = [one for root in known for one in root if local(one.tag) == kind]
    return [one for part in parts for one in part if column(one.tag) == name]


def test_bytes_follow_from_the_network_alone(models, tmp_path):
    read = read_case(models(MICRO[1]))
    for name in ("one.zip", "two.zip"):
        released, _ = random_release(read, ("load",))
        released.write_release(tmp_path / name, "load")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as packed:
        assert {one.date_time for one in packed.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_elements_that_are_declared_public_keep_what_they_have(models, tmp_path):
    read = read_case(models(MICRO[0]))
    rule = {"only": "kind=transformer", "parameter": "capacity", "range": (1, 5000)}
    public = grid.plan(read, epsilon=1, alpha=5, method="laplace", **rule).problem.public
    public.with_values(np.full(public.entries, 77.0)).write(tmp_path / "out.zip")
    _, ours = again(tmp_path / "out.zip")
    mine, kept = (
        dict(zip(one.branches.name, one.branches.capacity, strict=True)) for one in (read, ours)
    )
    same = mine.keys() & kept.keys()
    assert len(same) == 7  # all lines, also those that lead out
    for name in same:
        assert kept[name] == pytest.approx(mine[name], rel=1e-12)
    new = [kept[name] for name in kept.keys() - same if np.isfinite(kept[name])]
    np.testing.assert_allclose(new, 77.0)
    assert len(new) == public.entries


def test_an_owner_writes_back_what_was_changed_and_nothing_else(models, tmp_path):
    read = read_case(models(MICRO[0]))
    read.write(tmp_path / "same.zip")
    for name, root in roots(models(MICRO[0])).items():
        other = roots(tmp_path / "same.zip")[name]
        assert [(one.tag, one.attrib, (one.text or "").strip()) for one in root.iter()] == [
            (one.tag, one.attrib, (one.text or "").strip()) for one in other.iter()
        ]
    units = read.generators
    changed = read.with_capacity(read.branches.capacity * 1.5).with_load(read.buses.load * 2)
    changed = changed.with_limits(units.p_min - 1, units.p_max + 1)
    changed.write(tmp_path / "own.zip")
    _, ours = again(tmp_path / "own.zip")
    np.testing.assert_allclose(ours.branches.capacity, changed.branches.capacity, rtol=1e-12)
    np.testing.assert_allclose(ours.buses.load, changed.buses.load, rtol=1e-12)
    np.testing.assert_allclose(ours.generators.p_max, changed.generators.p_max, rtol=1e-12)


def test_a_model_that_can_not_be_written_is_released_as_xiidm(models, tmp_path):
    read = read_case(models("four_substations_node_breaker_network"))
    assert read.source.kind == "powsybl"
    assert "a release of this model is XIIDM" in read.notes[-1]
    assert "DCLineSegment" in read.notes[-1]


def test_machines_that_share_a_unit_have_no_limits_of_their_own(models, tmp_path):
    files = roots(models("ieee14"))
    first = None
    for part in (one for root in files.values() for one in root):
        for one in part:
            if local(one.tag) == "RotatingMachine.GeneratingUnit":
                first = first or one.get(RESOURCE)
                one.set(RESOURCE, first)
    read = read_case(pack(tmp_path / "shared.zip", files))
    with pytest.raises(InputError, match="share one generating unit"):
        read.split("generator_limit", range=(-9999, 20000))
    read.split("load", range=(-900, 5000))


def test_what_does_not_come_back_is_refused_before_a_charge(models, monkeypatch):
    """The control of the rehearsal: a writer that loses a number."""
    read = read_case(models(MICRO[0]))
    released, _ = random_release(read, ("capacity",))
    fmt.write_release(released, None, "capacity")
    monkeypatch.setattr(fmt, "put_limits", lambda *_: None)
    with pytest.raises(InputError, match="A line of this CGMES model does not come back"):
        fmt.write_release(released, None, "capacity")


def test_a_zip_file_of_something_else(models, tmp_path):
    with pytest.raises(InputError, match="not a network"):
        read_case(pack(tmp_path / "no.zip", {"a.xml": "<a/>"}))
    files = roots(models("ieee14"))
    named = next(name for name in files if name.endswith("_EQ.xml"))
    text = ET.tostring(files[named]).decode()
    files[named] = f'<!DOCTYPE a [<!ENTITY b "c">]>{text}'
    with pytest.raises(NotCgmes):
        read_profiles(pack(tmp_path / "entity.zip", files))
    shutil.copy(models("ieee14"), tmp_path / "cut.zip")
    (tmp_path / "cut.zip").write_bytes((tmp_path / "cut.zip").read_bytes()[:900])
    with pytest.raises(InputError):
        read_case(tmp_path / "cut.zip")


def test_a_model_without_its_boundary_says_what_is_missing(tmp_path):
    path = tmp_path / "micro.zip"
    network(MICRO[0]).save(str(path), format="CGMES")
    with pytest.raises(InputError, match=r"refers to \d base voltages .*\(EQBD, TPBD\)"):
        read_case(path)


def test_what_becomes_of_the_file_is_said(models):
    facts = file_facts(read_case(models(MICRO[0])))
    assert (facts.kind, facts.written_as) == ("cgmes", ".zip")
    assert facts.entries["generator_limit"] == 4
    said = dict(facts.rows())
    assert said["file"] == "a CGMES model; a release of it is a .zip file"
    dropped = [one for one in facts.always if one.fate == "dropped"]
    assert any("SvVoltage" in one.columns for one in dropped)


# --- odd files ------------------------------------------------------------------------------------

ODD = ("", "nan", "inf", "-1", "0", "1e308", "text", "2.5", "true", "#_none", "-0.0")


def odd(files, choose):
    """Profiles with something odd in them."""
    found = {name: copy.deepcopy(root) for name, root in files.items()}
    for _ in range(1 + choose(3)):
        root = list(found.values())[choose(len(found))]
        if not len(root):
            continue
        part = root[choose(len(root))]
        kind = choose(6)
        if kind == 0:
            root.remove(part)
        elif kind == 1:
            root.append(copy.deepcopy(part))
        elif kind == 2 and part.attrib:
            part.set(next(iter(part.attrib)), f"_{ODD[choose(len(ODD))]}")
        elif len(part):
            one = part[choose(len(part))]
            if kind == 3:
                part.remove(one)
            elif RESOURCE in one.attrib:
                other = root[choose(len(root))]
                one.set(RESOURCE, (ODD[choose(len(ODD))], f"#_{identity(other)}")[choose(2)])
            else:
                one.text = ODD[choose(len(ODD))]
    return found


class _Format:
    """The format as the fuzz of sources calls it."""

    read = staticmethod(fmt.read)

    @staticmethod
    def write(read):
        if read.source.kind == "cgmes":
            fmt.write(read, _Format.path)

    @staticmethod
    def write_release(read, path, names):
        if read.source.kind == "cgmes":
            fmt.write_release(read, path, names)

    path: Path


def test_odd_files_are_read_and_released_or_refused_with_a_reason(models, tmp_path):
    files = {name: root for name, root in roots(models(MICRO[0])).items() if "_SV" not in name}
    _Format.path = tmp_path / "own.zip"
    taken = 0
    for choose in map(random_choices, range(1000 if FULL else 15)):
        taken += check_source(_Format, pack(tmp_path / "odd.zip", odd(files, choose)), choose)
    assert taken > 3


def test_a_graph_knows_its_resources(models):
    graph = Graph(read_profiles(models("ieee14")))
    name = next(one for one in graph.names() if graph.kind(one) == "ACLineSegment")
    assert re.fullmatch(r"[\d.]+", graph.text(name, "r"))
    assert name in graph
    assert "none" not in graph
    assert graph.kind("none") == graph.text("none", "r") == graph.reference("none", "r") == ""
