"""Files of operators in and out through pypowsybl: XIIDM, CGMES, UCTE, IEEE-CDF."""

import copy
import functools
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import combinations

import numpy as np
import pytest
from fuzz.mutations import random_choices
from fuzz.tables import check_source
from support.sizes import FULL

from gridveil import grid
from gridveil.errors import InputError
from gridveil.grid.io import powsybl as fmt
from gridveil.grid.io import read_case
from gridveil.grid.io.powsybl.to_network import build
from gridveil.grid.io.powsybl.tree import Tree, text_of
from gridveil.grid.model.checks import check

pp = pytest.importorskip("pypowsybl", reason="pypowsybl is not installed")

# The library's own warnings are not ours to fix.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
    "ignore::gridveil.errors.NotPrivateWarning",
)

PARAMETERS = ("capacity", "load", "generator_limit")
SETS = [(name,) for name in PARAMETERS] + list(combinations(PARAMETERS, 2)) + [PARAMETERS]
LIMITED = (
    "micro_grid_be_network",
    "micro_grid_nl_network",
    "four_substations_node_breaker_network",
    "eurostag_tutorial_example1_network",
    "eurostag_tutorial_example1_with_power_limits_network",
    "metrix_tutorial_six_buses_network",
)
PLAIN = ("ieee14", "ieee30", "ieee57", "ieee118", "ieee300")
PLAIN += ("eurostag_tutorial_example1_with_tie_lines_and_areas",)
RANGES = {"capacity": (1, 5000), "load": (-900, 5000), "generator_limit": (-9999, 20000)}


def network(name):
    return getattr(pp.network, f"create_{name}")()


@functools.cache
def _tree(name):
    return read_case(network(name)).source.data


def tree(name):
    """A tree of its own: the XIIDM of a network that pypowsybl brings along."""
    known = _tree(name)
    return Tree(copy.deepcopy(known.root), known.origin)


def from_tree(one):
    """The network of a tree, as pypowsybl reads it."""
    return pp.network.load_from_string("case.xiidm", text_of(one.root))


def written(released, path, names):
    released.write_release(path, names)
    return read_case(path)


def random_release(read, names, seed=0):
    """The network with other values in place of the private ones."""
    _, public = read.split(names, {name: RANGES[name] for name in names})
    draws = np.random.default_rng(seed)
    middle = np.where(public.low > -900, 100.0, 20.0)
    values = np.clip(middle * draws.uniform(0.5, 2, public.entries), public.low, public.high)
    if "generator_limit" in names:
        part = public.parts["generator_limit"]
        values[part] = np.sort(values[part])
    return public.with_values(values), public


# --- reading --------------------------------------------------------------------------------------


def dc_flows(read, extra=None):
    """Flows of a DC model with the file's set points, what is missing at each bus in turn."""
    _, layout = build(read.source.data)
    units, lines, on = read.generators, read.branches, read.buses.in_service
    output = np.array([float(one.get("targetP", "0")) for one in layout.generators])
    injected = -(read.buses.load + read.buses.shunt)
    np.add.at(injected, units.bus, np.where(units.in_service, output, 0.0))
    used = np.flatnonzero(lines.in_service & (lines.reactance != 0))
    weight = 100 / (lines.reactance * lines.tap)[used]
    ends = np.zeros((len(used), len(on)))
    ends[np.arange(len(used)), lines.from_bus[used]] = 1
    ends[np.arange(len(used)), lines.to_bus[used]] -= 1
    shift = np.radians(lines.shift[used])
    free = on & ~read.buses.reference
    inverse = np.linalg.inv((ends.T @ (weight[:, None] * ends))[np.ix_(free, free)])
    island = read.islands()
    for slack in np.flatnonzero(on):
        power = injected + ends.T @ (weight * shift)
        power[slack] -= injected[island == island[slack]].sum()
        angle = np.zeros(len(on))
        angle[free] = inverse @ power[free]
        flow = np.zeros(len(lines))
        flow[used] = weight * (ends @ angle - shift)
        yield flow


def powsybl_flows(one):
    settings = pp.loadflow.Parameters(distributed_slack=False)
    pp.loadflow.run_dc(one, settings)
    found = {}
    for table, column in (
        ("lines", "p1"),
        ("2_windings_transformers", "p1"),
        ("boundary_lines", "p"),
    ):
        found |= getattr(one, f"get_{table}")()[column].to_dict()
    three = one.get_3_windings_transformers()
    for side in "123":
        found |= {f"{name} {side}": value for name, value in three[f"p{side}"].items()}
    return found


@pytest.mark.parametrize("name", ["ieee14", "ieee118", *LIMITED, PLAIN[-1]])
def test_flows_are_those_of_powsybl(name):
    one = network(name)
    read, theirs = read_case(one), powsybl_flows(one)
    wanted = np.array([theirs[branch] for branch in read.branches.name])
    known = ~np.isnan(wanted)
    assert known.any()
    away = min(np.abs(flow - wanted)[known].max() for flow in dc_flows(read))
    assert away < 1e-6


def test_a_line_has_one_capacity_the_least_of_its_permanent_limits():
    read = read_case(network("eurostag_tutorial_example1_network"))
    limits = network("eurostag_tutorial_example1_network").get_operational_limits().reset_index()
    for name, capacity in zip(read.branches.name, read.branches.capacity, strict=True):
        mine = limits[(limits.element_id == name) & (limits.acceptable_duration == -1)]
        wanted = min((np.sqrt(3) * 380 * one / 1000 for one in mine.value), default=np.inf)
        assert capacity == pytest.approx(wanted)
    assert np.isfinite(read.branches.capacity).sum() == 2


# --- releases -------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", SETS, ids=",".join)
@pytest.mark.parametrize("name", LIMITED)
def test_a_release_reads_as_the_released_network(name, names, tmp_path):
    one = network(name)
    released, _ = random_release(read_case(one), names)
    again = written(released, tmp_path / "out.xiidm", names)
    for table, column in (
        *(("branches", c) for c in ("capacity", "reactance", "resistance", "tap", "shift")),
        *(("buses", c) for c in ("load", "shunt", "in_service")),
        *(("generators", c) for c in ("p_min", "p_max", "in_service")),
    ):
        ours, theirs = (getattr(getattr(n, table), column) for n in (released, again))
        assert np.allclose(ours, theirs, rtol=1e-14, atol=1e-12), column
    theirs = pp.network.load(str(tmp_path / "out.xiidm"))
    limits = [n.get_operational_limits().reset_index() for n in (one, theirs)]
    assert len(limits[0]) == len(limits[1])
    if "capacity" not in names:
        assert sorted(limits[0].value) == sorted(limits[1].value)
    assert len(theirs.get_switches()) == len(one.get_switches())
    assert len(theirs.get_shunt_compensators()) == len(one.get_shunt_compensators())


def test_all_limits_of_a_line_are_its_released_capacity(tmp_path):
    read = read_case(network("micro_grid_be_network"))
    released, _ = random_release(read, ("capacity",))
    released.write_release(tmp_path / "out.xiidm", "capacity")
    limits = pp.network.load(str(tmp_path / "out.xiidm")).get_operational_limits()
    assert len(limits) == 56
    _, layout = build(released.source.data)
    seen = 0
    for branch, capacity in zip(layout.branches, released.branches.capacity, strict=True):
        words = ["ONE", "TWO", "THREE"]
        for side, voltage in zip(branch.sides, branch.voltages, strict=True):
            mine = limits.loc[branch.element.get("id")].reset_index()
            mine = mine[mine.side == (words[int(side) - 1] if side else "NONE")]
            assert np.allclose(mine.value * np.sqrt(3) * voltage / 1000, capacity, rtol=1e-14)
            seen += len(mine)
    assert seen == 56


def test_limits_of_durations_and_sides_follow_public_ratios(tmp_path):
    given = {"epsilon": 1, "alpha": 10, "range": (1, 5000), "method": "laplace", "seed": 1}
    read = read_case(network("micro_grid_be_network"))
    ratios = {"25s": 1.25, "side2": 1.5}
    made = grid.release(read, **given, limit_ratios="25s=1.25, side2=1.5")
    body = made.statement.body
    assert body["settings"]["limit_ratios"] == ratios
    assert "ratios of limits" in body["published_in_clear"]
    assert any("25s 1.25, side2 1.5" in one for one in body["limitations"])
    made.data.write_release(tmp_path / "out.xiidm", "capacity")
    limits = pp.network.load(str(tmp_path / "out.xiidm")).get_operational_limits().reset_index()
    assert len(limits) == 56
    _, layout = build(made.public.source.data)
    capacity = {
        (branch.element.get("id"), side): (value * 1e3 / np.sqrt(3) / voltage, len(branch.sides))
        for branch, value in zip(layout.branches, made.data.branches.capacity, strict=True)
        for side, voltage in zip(branch.sides, branch.voltages, strict=True)
    }
    sides = {"ONE": "1", "TWO": "2", "THREE": "3", "NONE": ""}
    used = set()
    for one in limits.itertuples():
        value, ends = capacity[one.element_id, sides[one.side]]
        factor = ratios["side2"] if one.side == "TWO" and ends == 2 else 1.0
        factor *= ratios["25s"] if one.acceptable_duration == 25 else 1.0
        assert one.value == pytest.approx(value * factor, rel=1e-14)
        used.add(factor)
    assert used == {1.0, 1.25, 1.5}
    assert np.array_equal(
        made.data.branches.capacity.round(9),
        read_case(tmp_path / "out.xiidm").branches.capacity.round(9),
    )


@pytest.mark.parametrize("name", ["micro_grid_be_network", "four_substations_node_breaker_network"])
def test_voltages_are_those_of_the_source_if_its_dispatch_is_public(name, tmp_path):
    one = network(name)
    given = {"epsilon": 1, "alpha": 10, "range": (1, 5000), "method": "laplace"}
    public = grid.plan(read_case(one), **given, public_dispatch=True).problem.public
    assert "targetP" not in [name for one in public.changes for name in one.columns]
    public.with_values(np.full(public.entries, 77.0)).write_release(
        tmp_path / "out.xiidm", "capacity"
    )
    other = pp.network.load(str(tmp_path / "out.xiidm"))
    assert sorted(other.get_generators().target_p) == sorted(one.get_generators().target_p)
    found = []
    for n in (one, other):
        (first, *_) = pp.loadflow.run_ac(n)
        assert first.status == pp.loadflow.ComponentStatus.CONVERGED
        buses, levels = n.get_buses(), n.get_voltage_levels()
        found.append(buses.v_mag / levels.nominal_v[buses.voltage_level_id].to_numpy())
    assert len(found[0]) == len(found[1])
    assert np.nanmax(np.abs(found[0] - found[1])) < 1e-6


# --- nothing else leaves --------------------------------------------------------------------------


PRIVATE = {
    "capacity": {"currentLimits": ["permanentLimit"], "apparentPowerLimits": ["permanentLimit"],
                 "activePowerLimits": ["permanentLimit"], "temporaryLimit": ["value"],
                 "twoWindingsTransformer": ["ratedS"],
                 "threeWindingsTransformer": ["ratedS1", "ratedS2", "ratedS3"]},
    "load": {"load": ["p0", "q0", "p", "q"], "danglingLine": ["p0", "q0", "p", "q"]},
    "generator_limit": {"generator": ["minP", "maxP", "ratedS", "targetP"],
                        "point": ["p", "minQ", "maxQ"], "minMaxReactiveLimits": ["minQ", "maxQ"]},
}  # fmt: skip


def other_values(one, names, seed):
    """Other private values, and all that goes with them; what is there and its sign stay."""
    draws = np.random.default_rng(seed)
    stations = {id(e) for tag in ("vscConverterStation",) for s in one.root.iter(tag)
                for e in s.iter()}  # fmt: skip
    for name in names:
        for tag, attributes in PRIVATE[name].items():
            for element in one.root.iter(tag):
                for attribute in attributes:
                    value = float(element.get(attribute, "0"))
                    if value and id(element) not in stations:
                        element.set(attribute, repr(value * draws.uniform(0.71, 1.31)))
        for unit in one.root.iter("generator"):
            low, high = sorted(float(unit.get(a)) for a in ("minP", "maxP"))
            unit.attrib.update(minP=repr(low), maxP=repr(high))
            points = sorted(unit.iter("point"), key=lambda p: float(p.get("p")))
            curve = unit.find("reactiveCapabilityCurve")
            if curve is not None:
                curve[:] = points
    return one


def plant(one, names):
    """Distinctive private numbers, and copies of them in every text of a tree."""
    other_values(one, names, 7)
    numbers = []
    for name in names:
        for tag, attributes in PRIVATE[name].items():
            for element in one.root.iter(tag):
                numbers += [element.get(a) for a in attributes if a in element.attrib]
    numbers = [n for n in numbers if len(n.strip("-0.")) > 4]
    text = " ".join(numbers)
    for at, element in enumerate(list(one.root.iter())):
        if "id" in element.attrib and element.tag in OWNERS:
            carrier = any(element.tag in fmt.CARRIERS[name] for name in names)
            if element.tag not in ("network",):
                element.set("name", f"{text} {at}")
            ET.SubElement(element, "property", name=f"rating {at}", value=text)
            alias = ET.SubElement(element, "alias", type="note")
            alias.text = f"{text} alias {at}"
            element[:] = sorted(element, key=lambda e: e.tag not in ("alias",))
            element[:] = sorted(element, key=lambda e: e.tag not in ("alias", "property"))
            if carrier and element.tag != "danglingLine":
                rename(one.root, element.get("id"), f"{numbers[at % len(numbers)]} MW {at}")
        for a in ("p", "q", "p1", "q1", "p2", "q2"):
            if a in element.attrib and element.tag not in ("point", "load", "generator"):
                element.set(a, numbers[at % len(numbers)])
    return numbers


OWNERS = ("substation", "voltageLevel", "generator", "load", "shunt", "danglingLine", "line",
          "twoWindingsTransformer", "threeWindingsTransformer")  # fmt: skip


def rename(root, old, new):
    for element in root.iter():
        for name, value in element.attrib.items():
            if value == old:
                element.set(name, new)


@pytest.mark.parametrize("names", SETS, ids=",".join)
@pytest.mark.parametrize("name", ["micro_grid_be_network", "four_substations_node_breaker_network"])
def test_a_release_holds_no_copy_of_the_private_numbers(name, names, tmp_path):
    one = tree(name)
    numbers = plant(one, names)
    read = read_case(from_tree(one))
    released, _ = random_release(read, names)
    released.write_release(tmp_path / "out.xiidm", names)
    found = (tmp_path / "out.xiidm").read_text()
    assert [number for number in numbers if number in found or number[:9] in found] == []
    texts = [value for one in ET.fromstring(found).iter() for value in one.attrib.values()]
    held = np.array(
        [abs(float(text)) for text in texts if re.fullmatch(r"-?[\d.]+(E-?\d+)?", text)]
    )
    values = np.abs(np.array([float(number) for number in numbers]))
    assert not np.isclose(held[:, None], values, rtol=1e-7, atol=0).any()
    # The control: the owner's own file has them.
    read.write(tmp_path / "own.xiidm")
    assert all(number in (tmp_path / "own.xiidm").read_text() for number in numbers)


@pytest.mark.parametrize("names", SETS, ids=",".join)
@pytest.mark.parametrize("name", LIMITED[:3])
def test_twins_leave_the_same_bytes(name, names, tmp_path):
    texts = []
    for seed in (1, 2):
        read = read_case(from_tree(other_values(tree(name), names, seed)))
        released, public = random_release(read, names)
        released.write_release(tmp_path / "out.xiidm", names)
        texts.append((repr(public.changes), (tmp_path / "out.xiidm").read_bytes()))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("mode", ["REACTIVE_POWER", "VOLTAGE", None])
@pytest.mark.parametrize("names", SETS[:3], ids=",".join)
def test_flows_that_a_tap_changer_holds_leave_no_trace(names, mode, tmp_path):
    """The reactive power that it holds is often a result; a voltage is public.

    A tap changer that is off may have a value without a mode, which may be either.
    """
    texts = []
    for value, room in (("31.5271", "0.75"), ("27.2513", "0.5")):
        one = tree("micro_grid_be_network")
        holding = {"regulationValue": value, "targetDeadband": room}
        holding |= {"regulating": "false"} if mode is None else {"regulating": "true"}
        changers = [e for e in one.root.iter() if str(e.tag).startswith("ratioTapChanger")]
        for changer in changers:
            # Those of three windings regulate nothing in this file.
            if changer.get("regulating") == "true" or changer.tag != "ratioTapChanger":
                changer.attrib.pop("regulationMode", None)
                changer.attrib.update(holding, **({} if mode is None else {"regulationMode": mode}))
        assert {changer.tag for changer in changers} >= {"ratioTapChanger", "ratioTapChanger2"}
        released, public = random_release(read_case(from_tree(one)), names)
        assert any("regulationValue" in one.columns for one in public.changes)
        released.write_release(tmp_path / "out.xiidm", names)
        texts.append((tmp_path / "out.xiidm").read_text())
        assert (value in texts[-1]) == (mode == "VOLTAGE")
        pp.network.load(str(tmp_path / "out.xiidm"))
    assert (texts[0] == texts[1]) == (mode != "VOLTAGE")


def test_limits_that_are_not_in_use_go(tmp_path):
    one = tree("eurostag_tutorial_example1_network")
    (line, *_) = one.root.iter("line")
    for side in "12":
        del line.attrib[f"selectedOperationalLimitsGroupId{side}"]
    read = read_case(from_tree(one))
    assert np.isfinite(read.branches.capacity).sum() == 1
    released, _ = random_release(read, ("capacity",))
    released.write_release(tmp_path / "out.xiidm", "capacity")
    limits = pp.network.load(str(tmp_path / "out.xiidm")).get_operational_limits()
    assert set(limits.reset_index().element_id) == {"line-1"}


def test_elements_that_are_declared_public_keep_what_they_have(tmp_path):
    one = network("metrix_tutorial_six_buses_network")
    read = read_case(one)
    rule = {"only": "kind=transformer", "parameter": "capacity", "range": (1, 5000)}
    public = grid.plan(read, epsilon=1, alpha=5, method="laplace", **rule).problem.public
    public.with_values(np.full(public.entries, 77.0)).write(tmp_path / "out.xiidm")
    ours, theirs = (n.get_operational_limits().reset_index()
                    for n in (one, pp.network.load(str(tmp_path / "out.xiidm"))))  # fmt: skip
    mine, kept = (n[n.element_type == "LINE"].set_index("element_id").value for n in (ours, theirs))
    assert sorted(mine.items()) == sorted(kept.items())
    hidden = theirs[(theirs.element_type != "LINE") & (theirs.value < 1e300)]
    assert hidden.element_id.str.startswith("twoWindingsTransformer-").all()
    assert (hidden.value == hidden.value.iloc[0]).all()
    assert len(hidden)


# --- formats --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "kind", "name"),
    [
        ("zip", "CGMES", "four_substations_node_breaker_network"),
        ("xiidm", "XIIDM", "four_substations_node_breaker_network"),
    ],
)
def test_files_become_xiidm(suffix, kind, name, tmp_path):
    one = network(name)
    one.save(str(tmp_path / f"case.{suffix}"), format=kind)
    read = read_case(tmp_path / f"case.{suffix}")
    assert read.source.data.origin == kind
    bundle = grid.release(
        read, grid.sample_population(read, 5, private="load"), parameter="load", epsilon=1,
        alpha=5, range=(-900, 5000), method="laplace", seed=1,
    ).write(tmp_path / "out")  # fmt: skip
    again = read_case(bundle / "network.xiidm")
    assert len(again.buses) == len(read.buses)
    said = (bundle / "release.json").read_text()
    assert ("a release of such a file is XIIDM" in said) == (kind != "XIIDM")


def ucte(folder):
    """Two nodes and a line, in the columns of UCTE's format."""
    powers = {"one": [90, 10, 0, 0, 0, 0, 0, 0], "two": [5, 1, -60, 0, -10, -500, 200, -200]}
    lines = ["##C 2007.05.01", "note 480.123", "##N", "##ZFR"]
    for place, (name, row) in enumerate(powers.items()):
        known = " ".join(f"{value:7d}" for value in row)
        lines.append(f"FSU1A11{place} {name:<12} 0 {2 * place} {400:6d} {known}")
    lines += ["##L", f"FSU1A110 FSU1A111 1 0 {1.0:6.4f} {9.0:6.4f} {0.0:8.6f} {480:6d} 480.123"]
    (folder / "case.uct").write_text("\n".join(lines) + "\n")
    return folder / "case.uct"


def test_ucte_is_read(tmp_path):
    read = read_case(ucte(tmp_path))
    assert read.source.data.origin == "UCTE"
    assert read.branches.capacity[0] == pytest.approx(np.sqrt(3) * 380 * 480 / 1000)
    assert sorted(read.buses.load) == [5, 90]
    released, _ = random_release(read, ("capacity",))
    released.write_release(tmp_path / "out.xiidm", "capacity")
    assert "480" not in (tmp_path / "out.xiidm").read_text()


def test_a_missing_library_says_which_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pypowsybl", None)
    (tmp_path / "case.xiidm").write_text("")
    with pytest.raises(InputError, match=r"gridveil\[powsybl\]"):
        read_case(tmp_path / "case.xiidm")


def test_what_is_no_network_is_refused(tmp_path):
    for name in ("case.xiidm", "case.uct", "case.zip"):
        (tmp_path / name).write_text("17.377 MW")
        with pytest.raises(InputError, match=name) as found:
            read_case(tmp_path / name)
        assert "17.377" not in str(found.value)
    with pytest.raises(InputError, match="no file"):
        read_case(tmp_path / "none.xiidm")


def test_limits_that_cross_are_read_and_decide_nothing(tmp_path):
    """pypowsybl itself refuses a generator whose lower limit is above the upper one."""
    text, made = text_of(tree("eurostag_tutorial_example1_network").root), []
    own = "&quot;minP='3'&quot; &gt; 5"  # attributes in the text of another
    text = re.sub(r'id="GEN"', f'id="GEN" name="{own}"', text)
    for low, high in ((300.5, 700.25), (700.25, 300.5)):
        twin = re.sub(r'minP="[^"]*"', f'minP="{low}"', text)
        path = tmp_path / "twin.xiidm"
        path.write_text(re.sub(r'maxP="[^"]*"', f'maxP="{high}"', twin))
        if low > high:
            with pytest.raises(Exception, match="invalid active limits"):
                pp.network.load(str(path))
        read = read_case(path)
        assert set(read.generators.p_min) == {low}
        assert set(read.generators.p_max) == {high}
        read.write(tmp_path / "own.xiidm")
        again = read_case(tmp_path / "own.xiidm")
        np.testing.assert_array_equal(again.generators.p_min, read.generators.p_min)
        _, public = read.split("generator_limit", RANGES["generator_limit"])
        released = public.with_values(50.0 + np.arange(public.entries))
        released.write_release(tmp_path / "out.xiidm", "generator_limit")
        made.append((tmp_path / "out.xiidm").read_bytes())
    assert made[0] == made[1]


def test_costs_can_not_be_private():
    with pytest.raises(InputError, match="no costs"):
        read_case(network("ieee14")).split("cost", (0, 10))


def test_a_network_with_detailed_dc_equipment_is_refused():
    with pytest.raises(InputError, match="XIIDM"):
        read_case(network("dc_detailed_lcc_bipole_ground_return_network"))


def test_an_owner_writes_back_what_was_changed_and_nothing_else(tmp_path):
    read = read_case(network("micro_grid_be_network"))
    read.write(tmp_path / "same.xiidm")
    assert text_of(read.source.data.root) == (tmp_path / "same.xiidm").read_text()
    load = read.buses.load.copy()
    load[load != 0] *= 2
    changed = read.with_load(load)
    changed.write(tmp_path / "more.xiidm")
    assert np.allclose(read_case(tmp_path / "more.xiidm").buses.load, load)


# --- fuzz -----------------------------------------------------------------------------------------

ODD = ("", "0", "-1", "1e308", "NaN", "-9", "true", "x", "3", "99999")


def odd_tree(choose):
    """A tree with something odd in it: an attribute, or an element that is gone or twice."""
    one = tree(LIMITED[choose(3)])
    found = list(one.root.iter())
    for _ in range(1 + choose(3)):
        element = found[choose(len(found))]
        kind = choose(5)
        if kind == 0 and len(element):
            element.remove(element[choose(len(element))])
        elif kind == 1 and len(element):
            element.append(copy.deepcopy(element[choose(len(element))]))
        elif element.attrib:
            name = list(element.attrib)[choose(len(element.attrib))]
            if kind == 2:
                del element.attrib[name]
            else:
                element.set(name, ODD[choose(len(ODD))])
    return one


class _Format:
    """The format as the fuzz of sources calls it."""

    @staticmethod
    def read(one):
        return check(fmt.from_tree(one, "case"))

    @staticmethod
    def write(read):
        text_of(read.source.data.root)

    write_release = staticmethod(fmt.write_release)


def test_odd_trees_are_read_and_released_or_refused_with_a_reason():
    taken = sum(
        check_source(_Format, odd_tree(choose), choose)
        for choose in map(random_choices, range(2000 if FULL else 60))
    )
    assert taken > 5


def test_the_library_logs_nothing_while_a_network_is_read(tmp_path):
    """Neither while it is imported, which says what it lacks, nor of the values that it reads."""
    path = tmp_path / "net.xiidm"
    pp.network.create_micro_grid_be_network().save(path, format="XIIDM")
    script = f"from gridveil import grid; print(grid.read_case({str(path)!r}).name)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
