"""Twins of CGMES models: private numbers in odd places of the profiles leave no trace."""

import xml.etree.ElementTree as ET
import zipfile

import numpy as np
import pytest
from grid.test_cgmes import MICRO, models, pack, pytestmark, roots
from grid.test_powsybl import PARAMETERS, RANGES

from gridveil.grid.io import read_case
from gridveil.grid.io.cgmes.rdf import ABOUT, CIM, ID, RESOURCE, bare, column, local, schema
from gridveil.grid.io.cgmes.rdf import identity as id_of

pytest.importorskip("pypowsybl", reason="pypowsybl is not installed")

__all__ = ["models", "pytestmark"]


class Twin:
    """Profiles that numbers are put into."""

    def __init__(self, path):
        self.files = {name: root for name, root in roots(path).items() if "_SV" not in name}
        (self.equipment,) = (root for name, root in self.files.items() if name.endswith("_EQ.xml"))
        self.space = next(f"{{{schema(o.tag)}}}" for o in self.equipment if schema(o.tag) in CIM)

    def parts(self, *kinds):
        """All that profiles say of resources of these classes."""
        return [one for root in self.files.values() for one in root if local(one.tag) in kinds]

    def add(self, part, name, text):
        ET.SubElement(part, f"{self.space}{name}").text = str(text)

    def put(self, part, name, text):
        for old in [one for one in part if column(one.tag) == name.rpartition(".")[2]]:
            part.remove(old)
        self.add(part, name, text)

    def resource(self, kind, name, **refers):
        part = ET.SubElement(self.equipment, f"{self.space}{kind}", {ID: f"_{name}"})
        self.add(part, "IdentifiedObject.name", name)
        for says, other in refers.items():
            tag = f"{self.space}{says.replace('__', '.')}"
            ET.SubElement(part, tag, {RESOURCE: f"#_{other}"})
        return part

    def rename(self, old, new):
        for one in (one for root in self.files.values() for one in root.iter()):
            for key in (ID, ABOUT, RESOURCE):
                if bare(f"#{one.get(key, '').lstrip('#')}") == old:
                    one.set(key, f"_{new}" if key == ID else f"#_{new}")


def limit_of(kind, terminal):
    """An operational limit of a machine or load, at its terminal or of itself."""

    def put(twin, value):
        name = id_of(twin.parts(kind)[0])
        ends = {bare(r.get(RESOURCE)): id_of(one) for one in twin.parts("Terminal") for r in one
                if column(r.tag) == "ConductingEquipment"}  # fmt: skip
        where = {"OperationalLimitSet__Terminal": ends[name]} if terminal else {
            "OperationalLimitSet__Equipment": name}  # fmt: skip
        twin.resource("OperationalLimitSet", "set", **where)
        twin.add(twin.resource("OperationalLimitType", "type"),
                 "OperationalLimitType.acceptableDuration", 0)  # fmt: skip
        for limit in ("ActivePowerLimit", "ApparentPowerLimit", "CurrentLimit"):
            part = twin.resource(
                limit, f"own{limit}", OperationalLimit__OperationalLimitSet="set",
                OperationalLimit__OperationalLimitType="type",
            )  # fmt: skip
            twin.add(part, f"{limit}.value", value)

    return put


def participation(twin, value):
    for one in twin.equipment:
        if local(one.tag).endswith("GeneratingUnit"):
            twin.put(one, "GeneratingUnit.normalPF", value)


def control_of_nothing(twin, value):
    """A control that does not say what it holds: it may be a power."""
    for one in twin.parts("RegulatingControl"):
        for each in list(one):
            if column(each.tag) == "mode":
                one.remove(each)
            elif column(each.tag) in ("targetValue", "targetDeadband"):
                each.text = str(value)


def name_like_a_new_one(twin, value):
    """An id that a release could have made, for one of the two values."""
    load = id_of(twin.parts("EnergyConsumer")[3])
    twin.rename(load, "load-3" if value < 300 else f"load-{value:g}")


TEXTS = ("description", "mRID", "aliasName", "shortName", "energyIdentCodeEic")
MORE = {
    "EnergyConsumer": ("EnergyConsumer.pfixedPct", "EnergyConsumer.customerCount"),
    "GeneratingUnit": ("GeneratingUnit.ratedGrossMaxP", "GeneratingUnit.governorSCD",
                       "GeneratingUnit.maxEconomicP", "GeneratingUnit.startupCost"),
    "SynchronousMachine": ("SynchronousMachine.baseQ", "SynchronousMachine.qPercent"),
}  # fmt: skip


def odd_places(twin, value):
    """Texts, properties that are not read, attributes, comments, instructions, other files."""
    for part in twin.parts(*MORE, "Terminal", "Substation", "VoltageLevel"):
        for name in TEXTS:
            twin.add(part, f"IdentifiedObject.{name}", value)
        for name in MORE.get(local(part.tag), ()):
            twin.add(part, name, value)
        part.set("{http://example.org/#}note", str(value))
        part.append(ET.Comment(str(value)))
        part.append(ET.ProcessingInstruction("note", str(value)))
        for one in list(part)[:1]:
            one.tail = str(value)
            one.set("{http://www.w3.org/XML/1998/namespace}lang", f"x{value:g}")
    twin.files[f"notes_{value}.txt"] = f"{value}"


def copies(twin, value):
    """What other columns say of private numbers."""
    for part in twin.parts("EquivalentInjection"):
        if part.get(ID) is not None:
            for name in ("minP", "maxP", "minQ", "maxQ"):
                twin.put(part, f"EquivalentInjection.{name}", value)
    for part in twin.equipment:
        if local(part.tag) == "ACLineSegment":
            twin.put(part, "Conductor.length", value)
        elif local(part.tag).endswith("GeneratingUnit"):
            twin.put(part, "GeneratingUnit.nominalP", value)


def control_of_power(twin, value):
    """Controls of taps that hold a power, at which a line may be full."""
    names = {id_of(part) for part in twin.parts("TapChangerControl")}
    assert names
    for part in (one for root in twin.files.values() for one in root if id_of(one) in names):
        for one in part:
            if column(one.tag) == "mode":
                one.set(RESOURCE, one.get(RESOURCE).rpartition(".")[0] + ".activePower")
            elif column(one.tag) in ("targetValue", "targetDeadband"):
                one.text = str(value)


UNITS, DRAWN = ("generator_limit",), ("load",)
BESIDE = [limit_of(kind, True) for kind in ("EnergyConsumer", "LinearShuntCompensator")]
CASES = [
    *((limit_of("SynchronousMachine", terminal), UNITS) for terminal in (True, False)),
    (limit_of("EnergyConsumer", True), DRAWN),
    (participation, UNITS),
    (control_of_nothing, UNITS),
    (name_like_a_new_one, DRAWN),
    (odd_places, (*UNITS, *DRAWN)),
    (copies, PARAMETERS),
    (control_of_power, PARAMETERS),
    *((beside, ("capacity",)) for beside in BESIDE),
]
LARGER = (copies, control_of_power, *BESIDE)


@pytest.mark.parametrize(("put", "names"), CASES)
def test_a_private_number_in_an_odd_place_changes_no_byte(put, names, models, tmp_path):
    made = []
    for value in (140.25, 332.4):
        twin = Twin(models(MICRO[0] if put in LARGER else "ieee14"))
        put(twin, value)
        read = read_case(pack(tmp_path / "twin.zip", twin.files))
        assert read.source.kind == "cgmes"
        _, public = read.split(names, {name: RANGES[name] for name in names})
        released = public.with_values(public.signs * (50.0 + np.arange(public.entries)))
        released.write_release(tmp_path / "out.zip", names)
        read.write(tmp_path / "own.zip")
        made.append([(tmp_path / name).read_bytes() for name in ("out.zip", "own.zip")])
        with zipfile.ZipFile(tmp_path / "out.zip") as packed:
            assert not any(str(value).encode() in packed.read(one) for one in packed.namelist())
    assert made[0][0] == made[1][0]
    assert made[0][1] != made[1][1]  # the control: an owner's files tell them apart


def seasons(twin, larger, apart):
    """Two limits of one duration for every line, written in the order of their values."""
    sets = twin.parts("OperationalLimitSet")
    for name in ("winter", "summer"):
        kind = twin.resource("OperationalLimitType", name)
        twin.add(kind, "OperationalLimitType.acceptableDuration", 900)
    ends = {id_of(one): one for one in twin.equipment if local(one.tag) == "Terminal"}
    for place, group in enumerate(sets):
        names = ["winter", "summer"] if larger(place) else ["summer", "winter"]
        owner = next(one for one in group if column(one.tag) in ("Terminal", "Equipment"))
        end = ends.get(bare(owner.get(RESOURCE)), ())
        first = any(column(one.tag) == "sequenceNumber" and one.text == "1" for one in end)
        for at, name in enumerate(names):
            own = id_of(group)
            if apart and first:  # the other end still has one set, and so its line a capacity
                own = f"set-{place}-{at}"
                ET.SubElement(twin.resource("OperationalLimitSet", own), owner.tag, owner.attrib)
            limit = twin.resource(
                "CurrentLimit", f"limit-{place}-{name}", OperationalLimit__OperationalLimitSet=own,
                OperationalLimit__OperationalLimitType=name,
            )  # fmt: skip
            twin.add(limit, "CurrentLimit.value", 900.0 + 50 * at)


@pytest.mark.parametrize("apart", [False, True], ids=["one set", "sets"])
def test_which_of_two_limits_is_larger_changes_no_byte(apart, models, tmp_path):
    made = []
    for larger in (lambda place: True, lambda place: place % 2 == 0, lambda place: place % 3 == 0):
        twin = Twin(models(MICRO[0]))
        seasons(twin, larger, apart)
        read = read_case(pack(tmp_path / "twin.zip", twin.files))
        _, public = read.split(("capacity",), RANGES["capacity"])
        released = public.with_values(50.0 + np.arange(public.entries))
        released.write_release(tmp_path / "out.zip", ("capacity",))
        made.append((tmp_path / "out.zip").read_bytes())
    assert len(set(made)) == 1


def test_limits_of_machines_stay_if_their_numbers_are_public(models, tmp_path):
    twin = Twin(models("ieee14"))
    limit_of("SynchronousMachine", True)(twin, 332.4)
    read = read_case(pack(tmp_path / "twin.zip", twin.files))
    _, public = read.split(DRAWN, RANGES["load"])
    public.with_values(public.signs * 50.0).write_release(tmp_path / "out.zip", DRAWN)
    assert b"332.4" in (tmp_path / "out.zip").read_bytes()


@pytest.mark.parametrize("names", [("capacity",), DRAWN])
def test_generation_at_the_far_ends_of_lines_stays(names, models, tmp_path):
    """Injections that regulate are generation, which is public and no load."""
    twin = Twin(models(MICRO[0]))
    for part in twin.parts("EquivalentInjection"):
        if part.get(ID) is not None:
            twin.put(part, "EquivalentInjection.regulationCapability", "true")
        else:
            twin.put(part, "EquivalentInjection.regulationStatus", "true")
            twin.put(part, "EquivalentInjection.regulationTarget", 225.0)
    read = read_case(pack(tmp_path / "twin.zip", twin.files))
    assert read.buses.shunt.min() < -20
    _, public = read.split(names, RANGES[names[0]])
    public.with_values(public.signs * 50.0).write_release(tmp_path / "out.zip", names)
    read.write(tmp_path / "own.zip")
    for name in ("out.zip", "own.zip"):
        again = read_case(tmp_path / name)
        np.testing.assert_allclose(np.sort(again.buses.shunt), np.sort(read.buses.shunt))
