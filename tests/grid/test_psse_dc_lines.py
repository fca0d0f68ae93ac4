"""DC lines and FACTS devices of PSS/E cases, on three buses whose flows are found by hand."""

import numpy as np
import pytest

from gridveil.errors import InputError
from gridveil.grid import solve_ac
from gridveil.grid.io import psse, read_case
from gridveil.grid.opf.engine import solve_population

pytestmark = pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")

RATING = 377.1


def two_terminal(mode, value, ohms=4.0, volts=200.0, name="DC"):
    """A line from bus 2 to bus 3; the angles of its converters are 60 degrees."""
    return (
        f"'{name}', {mode}, {ohms}, {value}, {volts}, 0.0, 0.0, 0.1, 'I', 0.0, 20, 1.0\n"
        "2, 2, 60.0, 12.0, 0.0, 3.8, 115.0, 0.9, 1.02, 1.5, 0.5, 0.00625, 0, 0, 0, '1', 0.0\n"
        "3, 2, 60.0, 15.0, 0.0, 3.0, 115.0, 0.85, 1.0, 1.5, 0.5, 0.00625, 0, 0, 0, '1', 0.0"
    )


def vsc(version, power, kinds=(2, 1), on=1, name="VSC"):
    """A line between buses 2 and 3; converters of kind 2 hold the power, others 200 kV."""
    node = "0, " * (version >= 35)
    ends = (
        f"{bus}, {kind}, 1, {power if kind == 2 else 200.0}, 1.0, 90.0, 0.5, 100.0, {RATING}, "
        f"{RATING}, 1.0, 50.0, -40.0, 0, {node}100.0"
        for bus, kind in zip((2, 3), kinds, strict=True)
    )
    return "\n".join([f"'{name}', {on}, 4.0, 1, 1.0", *ends])


def facts(version, mode=1, to=0, size="40.0", name="F"):
    node = "0, " * (version >= 35)
    return (
        f"'{name}', 2, {to}, {mode}, 0.0, 0.0, 1.0, {size}, 9999.0, 0.9, 1.1, 1.0, {RATING}, "
        f"0.05, 100.0, 1, 0.0, 0.0, 0, 0, {node}''"
    )


def case(version=33, dc="", vscs="", devices="", rating=RATING, isolated=False):
    """Three buses in a ring of equal reactances, a unit at the first, 150 MW at the third."""
    new = version >= 34
    rates = ", ".join([f"{rating}", "0.0", "0.0"] + ["0.0"] * 9 * new)
    name, node, base = "'', " * new, "0, " * (version >= 35), "0, " * (version >= 35)
    lines = [
        f"0, 100.0, {version}, 0, 0, 60.0", "", "", *["0 / SYSTEM"] * new,
        *(f"{at}, 'BUS {at}', 230.0, {kind}, 1, 1, 1, 1.0, 0.0, 1.08, 0.95, 1.1, 0.9"
          for at, kind in ((1, 3), (2, 1), (3, 1))),
        *(["4, 'OUT', 230.0, 4, 1, 1, 1, 1.0, 0.0"] if isolated else []),
        "0 / BUS",
        "3, '1', 1, 1, 1, 150.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1, 1, 0" + ", 0.0, 0.0, 0, ''" * new,
        "0 / LOAD", "0 / SHUNT",
        f"1, '1', 0.0, 0.0, 90.0, -90.0, 1.0, 0, {node}100.0, 0, 0.3, 0, 0, 1.0, 1, 100.0, 300.0, "
        f"0.0, {base}1, 1.0",
        "0 / GEN",
        *(f"{a}, {b}, '1', 0.0, 0.1, 0.0, {name}{rates}, 0, 0, 0, 0, 1, 1, 0.0, 1, 1.0"
          for a, b in ((1, 2), (1, 3), (2, 3))),
        "0 / BRANCH", *["0 / SWITCHES"] * new, "0 / TRANSFORMER", "0 / AREA",
        *filter(None, (dc, )), "0 / DC", *filter(None, (vscs, )), "0 / VSC", *["0 / NEXT"] * 3,
        "1, 'ZONE'", "0 / ZONE", "0 / TRANSFER", "0 / OWNER", *filter(None, (devices, )),
        "0 / FACTS", "0 / SHUNTS", "0 / GNE", "0 / MACHINE",
        *["0 / SUBSTATION"] * (version >= 35), "Q", "",
    ]  # fmt: skip
    return "\n".join(lines)


def read(folder, text):
    path = folder / "case.raw"
    path.write_text(text)
    return read_case(path)


@pytest.mark.parametrize(
    ("line", "drawn", "fed"),
    [
        # 100 MW at 200 kV are 0.5 kA: 4 ohm take 1 MW of them.
        (two_terminal(1, 100.0), 100.0, 99.0),
        (two_terminal(2, 500.0), 100.0, 99.0),
        (two_terminal(2, -500.0), 100.0, 99.0),
        # A negative power is that of the inverter.
        (two_terminal(1, -100.0), 101.0, 100.0),
        (two_terminal(1, 100.0, ohms=0.0, volts=0.0), 100.0, 100.0),
        (two_terminal(0, 100.0), 0.0, 0.0),
    ],
)
@pytest.mark.parametrize("version", [32, 33, 34, 35])
def test_a_two_terminal_line_carries_its_set_power(version, line, drawn, fed, tmp_path):
    network = read(tmp_path, case(version, dc=line))
    assert network.buses.shunt.tolist() == pytest.approx([0.0, drawn, -fed])
    assert network.buses.fixed_load.tolist() == network.buses.shunt.tolist()
    assert "1 DC lines are public and carry their set power" in network.notes
    # In a ring of three equal reactances a third of what a bus draws comes the long way round.
    second, third = drawn, 150.0 - fed
    flow = [(2 * second + third) / 3, (second + 2 * third) / 3, (third - second) / 3]
    found = solve_population(network, keep=("flow", "dispatch"))
    assert found.flow[0] == pytest.approx(flow)
    assert found.dispatch[0] == pytest.approx([second + third])
    # The power factor at 60 degrees is a half.
    assert network.buses.fixed_reactive_load.tolist() == pytest.approx(
        [0.0, drawn * np.sqrt(3), fed * np.sqrt(3)]
    )


@pytest.mark.parametrize("power", [100.0, -100.0])
@pytest.mark.parametrize("version", [32, 33, 34, 35])
def test_a_vsc_line_feeds_its_set_power_and_draws_it_with_all_losses(version, power, tmp_path):
    # 0.5 kA: 1 MW in the line, and 90 kW + 500 A * 0.5 kW/A = 0.34 MW in either converter.
    network = read(tmp_path, case(version, vscs=vsc(version, power)))
    assert network.buses.shunt.tolist() == pytest.approx([0.0, -power, power + 1.68])
    turned = read(tmp_path, case(version, vscs=vsc(version, power, (1, 2))))
    assert turned.buses.shunt.tolist() == pytest.approx([0.0, power + 1.68, -power])
    for off in (
        vsc(version, power, on=0),
        vsc(version, power, (0, 1)),
        vsc(version, power, (2, 0)),
    ):
        assert not read(tmp_path, case(version, vscs=off)).buses.shunt.any()


def test_a_vsc_converter_loses_at_least_its_least_losses(tmp_path):
    # At 2 MW, 10 A: 95 kW by the line, 100 kW at least; the wire takes 400 W.
    network = read(tmp_path, case(vscs=vsc(33, 2.0)))
    assert network.buses.shunt.tolist() == pytest.approx([0.0, -2.0, 2.2004])


def test_a_line_at_an_isolated_bus_carries_nothing(tmp_path):
    text = case(dc=two_terminal(1, 100.0).replace("\n3, 2, 60.0", "\n4, 2, 60.0"), isolated=True)
    assert not read(tmp_path, text).buses.shunt.any()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"dc": two_terminal(1, 100.0, volts=0.0)}, "DC line 1 of section TWODC has no power"),
        ({"dc": two_terminal(1, "")}, "SETVL"),
        ({"dc": two_terminal(1, "X")}, "section TWODC has a SETVL that is not a number"),
        ({"dc": two_terminal(1, 1.0).replace("\n3, 2", "\n9, 2")}, "at bus 9"),
        ({"vscs": vsc(33, 100.0, (2, 2))}, "VSC DC line 1 of section VSCDC has no converter"),
        ({"vscs": vsc(33, 100.0).replace("200.0", "0.0")}, "VSC DC line 1"),
        ({"devices": facts(33, to=3)}, "FACTS device 2-3: it is in series"),
    ],
)
def test_what_can_not_be_read_is_refused_by_name(given, words, tmp_path):
    with pytest.raises(InputError, match=words) as caught:
        read(tmp_path, case(**given))
    assert "case.raw" in str(caught.value)


@pytest.mark.parametrize("version", [33, 35])
def test_facts_devices_at_one_bus_take_part_in_ac_alone(version, tmp_path):
    plain = read(tmp_path, case(version))
    devices = "\n".join((facts(version), facts(version, 0, name="OFF"), facts(version, 0, 3)))
    network = read(tmp_path, case(version, devices=devices))
    assert network.buses.shunt.tolist() == plain.buses.shunt.tolist()
    # 40 Mvar at nominal voltage are 38 at the lowest one, 0.95.
    assert network.buses.q_max.tolist() == pytest.approx([0.0, 38.0, 0.0])
    assert network.buses.q_min.tolist() == pytest.approx([0.0, -38.0, 0.0])
    assert psse.ac_gaps(network.source.data) == []


def test_a_facts_device_makes_up_for_what_converters_draw(tmp_path):
    pytest.importorskip("casadi", reason="CasADi is not installed")
    line = two_terminal(1, 30.0)  # its converters draw 104 Mvar, and the unit has 90
    served = [
        solve_ac(read(tmp_path, case(dc=line, devices=devices))).served.tolist()
        for devices in ("", facts(33, mode=0, size="60.0"), facts(33, size="60.0"))
    ]
    assert served == [[False], [False], [True]]


def test_ac_names_what_it_can_not_have(tmp_path):
    text = case(vscs="\n".join((vsc(33, 50.0), vsc(33, 50.0, on=0))), devices=facts(33, size="X"))
    found = [problem.element for problem in psse.ac_gaps(read(tmp_path, text).source.data)]
    assert found == ["VSC DC line 1", "FACTS device 1"]


def everything(version, name="N", rating=RATING):
    text = case(
        version,
        dc=two_terminal(1, 100.0, name=name),
        vscs=vsc(version, 50.0, name=name),
        devices=facts(version, name=name),
        rating=rating,
    )
    return text.replace(str(RATING), str(rating))


@pytest.mark.parametrize("version", [32, 33, 34, 35])
def test_a_release_keeps_what_is_public_and_no_rating(version, tmp_path):
    texts = {}
    for rating in (RATING, 291.3):
        network = read(tmp_path, everything(version, rating=rating))
        network.write(tmp_path / "again.raw")
        assert (tmp_path / "again.raw").read_text() == everything(version, rating=rating)
        _, public = network.split("capacity", {"capacity": (1, 900)})
        made = public.with_values([81.0, 82.0, 83.0])
        made.write_release(tmp_path / "out.raw", "capacity")
        texts[rating] = (tmp_path / "out.raw").read_text()
        assert str(rating) in everything(version, rating=rating)
        assert str(rating) not in texts[rating]
        again = read_case(tmp_path / "out.raw")
        assert again.branches.capacity.tolist() == [81.0, 82.0, 83.0]
        for column in ("shunt", "fixed_load", "fixed_reactive_load", "q_min", "q_max"):
            ours, theirs = (getattr(n.buses, column) for n in (network, again))
            assert ours.tolist() == theirs.tolist(), column
        said = {name for change in public.changes for name in change.columns}
        assert {"SMAX_1", "IMAX_2", "IMX"} <= said
    assert texts[RATING] == texts[291.3]
    assert texts[RATING].count("'N'") == 3


@pytest.mark.parametrize("name", ["", "0", "Q", "a (377.1 MVA)"])
def test_names_that_are_not_labels_do_not_end_a_section(name, tmp_path):
    network = read(tmp_path, everything(33, name))
    assert network.buses.fixed_load.any()
    _, public = network.split("capacity", {"capacity": (1, 900)})
    public.with_values([81.0, 82.0, 83.0]).write(tmp_path / "out.raw")
    again = read_case(tmp_path / "out.raw")
    assert again.buses.fixed_load.tolist() == network.buses.fixed_load.tolist()
    assert again.buses.q_max.tolist() == network.buses.q_max.tolist()
    assert "377.1" not in (tmp_path / "out.raw").read_text()


def test_a_zone_without_a_number_does_not_end_its_section(tmp_path):
    network = read(tmp_path, everything(33).replace("1, 'ZONE'", "'ZONE', 1"))
    _, public = network.split("capacity", {"capacity": (1, 900)})
    public.with_values([81.0, 82.0, 83.0]).write(tmp_path / "out.raw")
    assert read_case(tmp_path / "out.raw").buses.q_max.tolist() == network.buses.q_max.tolist()
    assert network.buses.q_max.any()


def test_pypowsybl_reads_what_is_released(tmp_path):
    pp = pytest.importorskip("pypowsybl", reason="pypowsybl is not installed")
    network = read(tmp_path, everything(33))
    _, public = network.split("capacity", {"capacity": (1, 900)})
    public.with_values([81.0, 82.0, 83.0]).write(tmp_path / "out.raw")
    theirs = pp.network.load(str(tmp_path / "out.raw"))
    assert sorted(theirs.get_hvdc_lines().target_p) == [50.0, 100.0]
    assert len(theirs.get_static_var_compensators()) == 1
    # Two-terminal lines have the same losses there.
    lone = read(tmp_path, case(dc=two_terminal(1, 100.0)))
    other = read_case(pp.network.load(str(tmp_path / "case.raw")))
    assert sorted(lone.buses.fixed_load) == pytest.approx(sorted(other.buses.fixed_load))
