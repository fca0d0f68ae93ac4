"""AC power flow of PSS/E, XIIDM and CGMES networks: by others' voltages, and by releases."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from grid.making import pglib, raw_text
from grid.test_cgmes import boundary, pack, roots
from grid.test_powsybl import from_tree, network, pytestmark, random_release, tree, ucte
from typer.testing import CliRunner

from gridveil import grid
from gridveil.auditing.triangle_operator_files import write_raw
from gridveil.cli.commands import app
from gridveil.errors import InputError
from gridveil.grid import Certified, read_case, sample_population, solve_ac
from gridveil.grid.io.powsybl.to_network import build
from gridveil.grid.io.powsybl.tree import Tree, parse
from gridveil.grid.opf.ac.check import flows
from gridveil.grid.opf.ac.numbers import ac_numbers

pp = pytest.importorskip("pypowsybl", reason="pypowsybl is not installed")
pytest.importorskip("casadi", reason="CasADi is not installed")

__all__ = ["pytestmark"]
CLOSE = 1e-7  # per unit; power factors of HVDC stations are of single precision in pypowsybl


def load_flow(one):
    """Run pypowsybl's AC load flow; return what it leaves open at slack buses, MW."""
    more = {"newtonRaphsonConvEpsPerEq": "1e-12", "slackBusPMaxMismatch": "1e9"}
    settings = pp.loadflow.Parameters(
        distributed_slack=False, hvdc_ac_emulation=False, provider_parameters=more
    )
    results = pp.loadflow.run_ac(one, settings)
    assert {found.status for found in results} == {pp.loadflow.ComponentStatus.CONVERGED}
    return {
        slack.id: slack.active_power_mismatch
        for found in results
        for slack in found.slack_bus_results
    }


def with_stars(read, voltage):
    """Fill in the voltages of stars, which pypowsybl does not tell: no current is left there."""
    numbers = ac_numbers(read)
    for bus in np.flatnonzero(np.isnan(voltage)):
        ours, current = 0.0, 0.0
        for own, across, here, there in (
            (numbers.own_start, numbers.across_start, numbers.start, numbers.end),
            (numbers.own_end, numbers.across_end, numbers.end, numbers.start),
        ):
            at = here == bus
            ours += own[at].sum()
            current += (across[at] * voltage[there[at]]).sum()
        voltage[bus] = -current / ours
    return voltage


def left_over(read, voltage, injected):
    """The power (p.u.) that our equations leave at every bus, given voltages and units' power."""
    buses, numbers = read.buses, ac_numbers(read)
    assert buses.in_service.all()
    drawn = buses.load + buses.fixed_load + 1j * (buses.reactive_load + buses.fixed_reactive_load)
    left = (injected - drawn) / read.base_mva - numbers.shunt.conj() * np.abs(voltage) ** 2
    for at, power in zip((numbers.start, numbers.end), flows(numbers, voltage), strict=True):
        np.subtract.at(left, at, power)
    return left


def compared(one, read):
    """What our equations leave at buses with pypowsybl's voltages; Mvar of compensators is free."""
    open_at = load_flow(one)
    _, layout = build(getattr(read.source.data, "tree", read.source.data))
    buses, lines = one.get_buses(), one.get_boundary_lines(all_attributes=True)
    nominal = layout.places.voltages
    voltage = np.full(len(nominal), np.nan, dtype=complex)
    injected, slack = np.zeros((2, len(nominal)), dtype=complex)

    def put(at, size, angle):
        voltage[at] = size / nominal[at] * np.exp(1j * np.radians(angle))

    def put_bus(at, name):
        put(at, buses.v_mag[name], buses.v_angle[name])
        slack[at] = open_at.get(name, 0.0) / read.base_mva

    kinds = ("lines", "2_windings_transformers", "3_windings_transformers", "generators")
    found = {kind: getattr(one, f"get_{kind}")() for kind in kinds}
    ends = list(zip(read.branches.from_bus, read.branches.to_bus, strict=True))
    for branch, (start, end) in zip(layout.branches, ends, strict=True):
        name, tag = branch.element.get("id"), branch.element.tag
        if tag == "danglingLine":
            put_bus(start, lines.bus_id[name])
            put(end, lines.boundary_v_mag[name], lines.boundary_v_angle[name])
        elif tag == "threeWindingsTransformer":
            put_bus(start, found["3_windings_transformers"][f"bus{branch.sides[0]}_id"][name])
        else:
            table = found["lines" if tag == "line" else "2_windings_transformers"]
            put_bus(start, table.bus1_id[name])
            put_bus(end, table.bus2_id[name])
    for unit, at in zip(layout.generators, read.generators.bus, strict=True):
        says = found["generators"].loc[unit.get("id")]
        injected[at] -= says.p + 1j * says.q
    left = left_over(read, with_stars(read, voltage), injected) + slack
    left.imag[read.buses.q_max > read.buses.q_min] = 0.0
    return np.abs(left).max()


# --- the same equations as other programs ---------------------------------------------------------

NAMES = (
    *("ieee14", "ieee57", "ieee118", "ieee300", "four_substations_node_breaker_network"),
    *("micro_grid_be_network", "micro_grid_nl_network"),
    "eurostag_tutorial_example1_with_tie_lines_and_areas",
)


@pytest.mark.parametrize("name", NAMES)
def test_voltages_of_pypowsybl_balance_our_equations(name):
    one = network(name)
    assert compared(one, read_case(one)) < CLOSE


def test_voltages_of_files_in_ucte_and_cgmes_balance_too(tmp_path):
    network("micro_grid_be_network").save(str(tmp_path / "micro.zip"), "CGMES")
    files = roots(tmp_path / "micro.zip")
    for path in (ucte(tmp_path), pack(tmp_path / "case.zip", files | boundary(files))):
        assert compared(pp.network.load(str(path)), read_case(path)) < CLOSE


def odd():
    """A network with what the others lack: two nominal voltages of a line, a battery, and so on."""
    found = tree("four_substations_node_breaker_network")
    for element in found.root.iter():
        if element.get("id") == "S4VL1":
            element.attrib.update(nominalV="380.0", lowVoltageLimit="370.0")
        if element.tag == "line":
            element.attrib.update(g1="1e-5", b1="2e-4", g2="3e-6", b2="5e-5")
        if element.tag == "staticVarCompensator":
            element.attrib.update(regulationMode="REACTIVE_POWER", reactivePowerSetpoint="35.0")
        if element.tag == "shunt":
            element.remove(element.find("shuntLinearModel"))
            steps = '<n><shuntNonLinearModel><section b="1e-4" g="2e-5"/><section b="9.0" g="9.0"/>'
            element.insert(0, parse(f"{steps}</shuntNonLinearModel></n>")[0])
        if element.get("id") == "VSC1":
            element.set("voltageRegulatorOn", "false")
        if element.tag == "twoWindingsTransformer":
            element.attrib.update(g="3e-5", b="-4e-5", ratedU1="221.0")
            for step in element.iter("step"):
                step.attrib.update(r="1.5", x="-2.5", g="3.5", b="4.5")
        if element.get("id") == "S3VL1":
            battery = (
                '<n><battery id="b" targetP="7.0" targetQ="-3.0" minP="-9" maxP="9" node="30">'
                '<minMaxReactiveLimits minQ="-9" maxQ="9"/></battery></n>'
            )
            element.insert(list(element).index(element.find("load")), parse(battery)[0])
            element.find("nodeBreakerTopology").append(
                parse('<n><internalConnection node1="30" node2="0"/></n>')[0]
            )
    return from_tree(Tree(found.root, "XIIDM"))


def test_odd_elements_balance_too():
    one = odd()
    read = read_case(one)
    assert compared(one, read) < CLOSE
    assert read.buses.fixed_load.any()
    assert read.buses.v_min[-1] == pytest.approx(370 / 380)


COLUMNS = {
    "buses": ("reactive_shunt", "shunt", "fixed_load", "fixed_reactive_load"),
    "branches": (
        *("conductance_from", "charging_from", "conductance_to", "charging_to"),
        *("resistance", "tap", "shift"),
    ),
}


@pytest.mark.parametrize(
    ("table", "column"), [(table, one) for table, names in COLUMNS.items() for one in names]
)
def test_the_balance_finds_each_column_that_is_wrong(table, column):
    # The control of the tests above.
    one = odd()
    read = read_case(one)
    values = getattr(getattr(read, table), column)
    assert (values != 1).any() if column == "tap" else values.any() or column == "shift"
    wrong = replace(getattr(read, table), **{column: values * 1.01 + 1e-3 * (column == "shift")})
    assert compared(one, replace(read, **{table: wrong})) > 1e-6


def rich(version):
    """A RAW case with impedances of all codes, magnetising, taps at both sides and a DC line."""
    new, last = version >= 34, version >= 35
    rate = ", ".join(["500.0", "0", "0"] + ["0"] * 9 * new)
    name, node = "'', " * new, "0, " * last

    def unit(bus, volts):
        return (
            f"{bus}, '1', 40.0, 5.0, 80.0, -60.0, {volts}, 0, {node}120.0, 0, 0.3, 0, 0, 1.0, 1, "
            f"100.0, 150.0, 10.0, {'0, ' * last}1, 1.0"
        )

    def line(a, b, numbers, grounds):
        return f"{a}, {b}, '1', {numbers}, {name}{rate}, {grounds}, 1, 1, 0.0, 1, 1.0"

    def winding(ratio, nominal=0.0, angle=0.0):
        return (
            f"{ratio}, {nominal}, {angle}, {rate}, 0, 0, {node}1.1, 0.9, 1.1, 0.9, 33, 0, 0, 0, 0"
        )

    def load(bus, power, other):
        rest = ", 0.0, 0.0, 0, ''" * new
        return f"{bus}, '1', 1, 1, 1, {power}, {other}, 0, 0, 0, 0, 1, 1, 0{rest}"

    buses = ((1, 230.0, 3), (2, 115.0, 1), (3, 230.0, 2), (4, 13.8, 1), (5, 115.0, 1))
    switched = f"5, {chr(39) + '1' + chr(39) + ', ' if last else ''}0, 0, 1, 1.1, 0.9, 0, {node}"
    lines = [
        *(f"0, 100.0, {version}, 0, 0, 60.0", "", "", *["0 / SYSTEM"] * new),
        *(
            f"{at}, 'BUS', {kv}, {kind}, 1, 1, 1, 1.0, 0.0, 1.08, 0.93, 1.1, 0.9"
            for at, kv, kind in buses
        ),
        *("0 / BUS", load(2, 45.0, 12.0), load(4, 6.0, 2.0), load(5, 30.0, 9.0), "0 / LOAD"),
        *("2, '1', 1, 0.5, 12.0", "0 / SHUNT", unit(1, 1.02), unit(3, 1.01), "0 / GEN"),
        line(1, 3, "0.01, 0.1, 0.2", "0.001, 0.02, 0.002, -0.03"),
        *(line(2, 5, "0.02, 0.12, 0.05", "0, 0, 0, 0"), "0 / BRANCH", *["0 / SWITCHES"] * new),
        "1, 2, 0, '1', 1, 2, 2, 120000.0, 0.02, 2, 'T', 1, 1, 1.0, ''",
        *("0.004, 0.1, 150.0", winding(0.98, 230.0, 5.0), "1.02, 0.0"),
        "3, 5, 0, '1', 2, 1, 1, 0.002, -0.03, 2, 'T', 1, 1, 1.0, ''",
        *("0.003, 0.08, 100.0", winding(225.0), "117.0, 0.0"),
        "1, 5, 4, '2', 1, 1, 1, 0.001, -0.02, 2, 'T', 1, 1, 1.0, ''",
        "0.001, 0.2, 100.0, 0.001, 0.3, 100.0, 0.001, 0.25, 100.0, 1.0, 0.0",
        *(winding(1.02), winding(0.99, angle=-3.0), winding(1.01, angle=30.0), "0 / TRANSFORMER"),
        *("1, 1, 0.0, 10.0, 'A'", "0 / AREA"),
        "'DC', 1, 5.0, 20.0, 250.0, 0.0, 0.0, 0.1, 'I', 0.0, 20, 1.0",
        "2, 2, 17.0, 12.0, 0.0, 3.8, 115.0, 0.9, 1.02, 1.5, 0.5, 0.00625, 0, 0, 0, '1', 0.0",
        "5, 2, 21.0, 15.0, 0.0, 3.0, 115.0, 0.85, 1.0, 1.5, 0.5, 0.00625, 0, 0, 0, '1', 0.0",
        *("0 / DC", *["0 / NEXT"] * 4, "1, 'ZONE'", "0 / ZONE", "0 / TRANSFER", "1, 'O'"),
        *("0 / OWNER", "0 / FACTS", f"{switched}100.0, '', 7.5, {'1, ' * last}1, 7.5"),
        *("0 / SWITCHED", "0 / GNE", "0 / MACHINE", *["0 / SUBSTATION"] * last, "Q", ""),
    ]
    return "\n".join(lines)


@pytest.mark.parametrize("version", [33, 35])
def test_a_case_is_read_as_pypowsybl_reads_it(version, tmp_path):
    path = tmp_path / "rich.raw"
    path.write_text(rich(version))
    read, one = read_case(path), pp.network.load(str(path))
    open_at, buses, levels = load_flow(one), one.get_buses(), one.get_voltage_levels()
    voltage = np.full(len(read.buses), np.nan, dtype=complex)
    injected, slack = np.zeros((2, len(voltage)), dtype=complex)
    places = {}
    for name, bus in one.get_bus_breaker_view_buses().bus_id.items():
        number = name.split("-")[0].lstrip("B")
        if number in read.buses.name:
            at = places[bus] = read.buses.name.index(number)
            size = buses.v_mag[bus] / levels.nominal_v[buses.voltage_level_id[bus]]
            voltage[at] = size * np.exp(1j * np.radians(buses.v_angle[bus]))
            slack[at] = open_at.get(bus, 0.0) / 100
    for unit in one.get_generators().itertuples():
        injected[places[unit.bus_id]] -= unit.p + 1j * unit.q
    left = left_over(read, with_stars(read, voltage), injected) + slack
    assert np.abs(left).max() < CLOSE
    assert read.buses.v_min.tolist() == [0.93] * 5 + [0.5]
    # Version 34 has switched shunts as 33 has, and the other fields as 35 has.
    path.write_text(rich(34))
    between = read_case(path)
    for table in ("buses", "branches", "generators"):
        for column in fields(getattr(read, table))[1:]:
            mine, other = (getattr(getattr(n, table), column.name) for n in (read, between))
            assert all(np.array_equal(a, b) for a, b in zip(mine, other, strict=True)), column.name


@pytest.mark.parametrize("case", ["case5_pjm", "case14_ieee", "case30_as", "case118_ieee"])
def test_a_raw_case_costs_what_its_matpower_original_costs(case, tmp_path):
    known = read_case(pglib(f"pglib_opf_{case}"))
    path = tmp_path / "case.raw"
    path.write_text(raw_text(known))
    read = read_case(path)
    units, costs = known.generators, ("quadratic", "linear", "constant")
    priced = replace(read.generators, **{name: getattr(units, name) for name in costs})
    theirs, ours = solve_ac(known), solve_ac(replace(read, generators=priced))
    assert ours.served.all()
    assert ours.cost[0] == pytest.approx(theirs.cost[0], rel=1e-9)
    # The control: without charging it is another one.
    bare = replace(read.branches, charging=0.0 * read.branches.charging)
    off = solve_ac(replace(read, generators=priced, branches=bare)).cost[0]
    assert off != pytest.approx(theirs.cost[0], rel=1e-6)


# --- what is not read is refused by name ----------------------------------------------------------


def test_elements_that_are_not_read_for_ac_are_named(tmp_path):
    path = tmp_path / "case.raw"
    path.write_text(rich(33).replace("2, 2, 17.0", "2, 2, "))
    with pytest.raises(InputError, match="DC line 1: it has no firing angles"):
        solve_ac(read_case(path))
    path.write_text(rich(33).replace("0.9, 33, 0,", "0.9, 33, 7,", 1))
    with pytest.raises(InputError, match=r"transformer 1-2: its table .* \(TAB\)"):
        grid.plan(read_case(path), epsilon=1, alpha=5, range=(1, 500), ac=True)
    path.write_text(rich(33).replace("'', 7.5", "'', 'X'"))
    with pytest.raises(InputError, match="switched shunt 1: its bus, status or BINIT"):
        solve_ac(read_case(path))
    found = tree("micro_grid_be_network")
    line = next(found.root.iter("danglingLine"))
    line.attrib.update(generationMinP="0", generationMaxP="9", generationTargetP="5")
    line.attrib.update(generationTargetQ="0", generationVoltageRegulationOn="false")
    with pytest.raises(InputError, match=f"danglingLine {line.get('id')}: generation at the far"):
        solve_ac(read_case(from_tree(found)))


# --- releases -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    """One network of each format, by the suffix of its file."""
    folder, known = tmp_path_factory.mktemp("ac"), read_case(pglib("pglib_opf_case14_ieee"))
    (folder / "case.raw").write_text(raw_text(known))
    network("four_substations_node_breaker_network").save(str(folder / "case.xiidm"), "XIIDM")
    network("micro_grid_nl_network").save(str(folder / "micro.zip"), "CGMES")
    files = roots(folder / "micro.zip")
    pack(folder / "case.zip", files | boundary(files))
    return {suffix: read_case(folder / f"case{suffix}") for suffix in (".raw", ".xiidm", ".zip")}


BOTH = "load,reactive_load"
RANGES = {"capacity": (1, 5000), "load": (-300, 900), "reactive_load": (-300, 300)}


@pytest.mark.parametrize(
    ("suffix", "parameter"),
    [
        *((".raw", one) for one in ("capacity", BOTH, "generator_limit")),
        *((".xiidm", one) for one in ("capacity", "load", "generator_limit")),
        (".zip", "capacity"),
    ],
)
def test_a_release_in_ac_serves_its_models_and_so_does_its_file(
    suffix, parameter, networks, tmp_path
):
    known = networks[suffix]
    models = sample_population(known, 2, spread=0.03, private=parameter)
    assert solve_ac(known, models).served.all()
    names = parameter.split(",")
    made = grid.release(
        known,
        models,
        parameter=parameter,
        epsilon=1,
        alpha=dict.fromkeys(names, 5),
        range={name: RANGES.get(name, (-100, 5000)) for name in names},
        method=Certified(ac=True),
        power_factor=0.95 if parameter == "load" else None,
        seed=3,
    )
    assert "ac_failed" not in made.statement.body["settings"]
    assert made.in_ac.served.all()
    bundle = made.write(tmp_path / "out")
    again = read_case(bundle / f"network{suffix}")
    assert solve_ac(again, models).served.all()
    assert "models in AC power flow" in " ".join(made.quality())
    assert "AC" in (bundle / "report.html").read_text()
    seen, _ = grid.evaluate(bundle, known).ac
    assert (seen.models, seen.not_served, seen.unknown) == (2, 0.0, 0)
    assert np.isfinite(seen.voltage_error)


@pytest.mark.parametrize("names", [("capacity",), ("load",), ("generator_limit",)])
@pytest.mark.parametrize("name", ["four_substations_node_breaker_network", *NAMES[5:7]])
def test_all_columns_of_ac_pass_a_release(name, names, tmp_path):
    released, _ = random_release(read_case(network(name)), names)
    released.write_release(tmp_path / "out.xiidm", names)
    again = read_case(tmp_path / "out.xiidm")
    for table in ("buses", "branches", "generators"):
        for column in fields(getattr(released, table))[1:]:
            if column.name != "points":
                mine, other = (getattr(getattr(n, table), column.name) for n in (released, again))
                np.testing.assert_allclose(mine, other, rtol=1e-14, atol=1e-14)


def test_the_commands_take_such_files(networks, tmp_path):
    path, out = tmp_path / "case.raw", tmp_path / "out"
    networks[".raw"].write(path)
    shown = CliRunner().invoke(app, ["grid", "solve", str(path), "--ac", "--json"])
    assert json.loads(shown.stdout)["status"] == "served"
    words = ["grid", "release", path, "--alpha", 5, "--range", "1:5000", "--ac", "-o", out]
    words += ["--json", "--yes", "--dataset", "case14", "--ledger", tmp_path / "l.sqlite"]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["statement"]["settings"]["capacity_is"] == "MVA"
    assert solve_ac(read_case(out / "network.raw")).served.all()


# --- private values decide nothing of it ----------------------------------------------------------


def test_no_private_rating_is_in_a_public_admittance(tmp_path):
    # The admittance of T1 is given on its rating, 150 MVA: private, so it is 0 in a release.
    path, found = tmp_path / "rich.raw", []
    for rating in ("150.0", "163.7"):
        path.write_text(rich(33).replace("0.004, 0.1, 150.0", f"0.004, 0.1, {rating}"))
        read = read_case(path)
        _, public = read.split("capacity", (1, 900))
        found.append((read.branches.charging_from, public.branches.charging_from))
    transformer = 2
    assert found[0][0][transformer] != found[1][0][transformer]
    assert found[0][1][transformer] == found[1][1][transformer] == 0.0
    # What is given on the system's base is public and stays.
    assert found[0][1][3] == found[0][0][3] != 0


def test_private_limits_choose_no_side_of_a_curve():
    found = []
    for most in ("150.0", "1200.0"):
        grown = tree("four_substations_node_breaker_network")
        next(grown.root.iter("generator")).set("maxP", most)
        curve = next(grown.root.iter("generator")).find("reactiveCapabilityCurve")
        for point, high in zip(curve, ("40.0", "-5.0"), strict=False):
            point.set("maxQ", high)
        _, public = read_case(from_tree(grown)).split("generator_limit", (0, 5000))
        found.append((public.generators.q_min.tolist(), public.generators.q_max.tolist()))
    assert found[0] == found[1]


def test_private_values_that_no_ac_solver_takes_are_not_refused(tmp_path):
    texts = []
    for value in (20.0, 1e12):
        write_raw(tmp_path / "case.raw", {"load": (value, -value)}, repr)
        plan = grid.plan(
            read_case(tmp_path / "case.raw"),
            parameter=BOTH,
            epsilon=1,
            alpha=dict.fromkeys(BOTH.split(","), 5),
            range={name: RANGES[name] for name in BOTH.split(",")},
            ac=True,
        )
        texts.append(str(plan))
    assert texts[0] == texts[1]


# --- compensators ---------------------------------------------------------------------------------


def test_a_compensator_is_used_within_its_limits(networks):
    read = read_case(network("ieee14"))
    # All of the load at bus B14 is reactive: nothing but a compensator there holds its voltage.
    at = read.buses.name.index("B14")
    heavy = read.buses.reactive_load.copy()
    heavy[at] = 150.0
    buses = replace(read.buses, reactive_load=heavy)
    bare = solve_ac(replace(read, buses=buses))
    room = np.where(np.arange(len(heavy)) == at, 160.0, 0.0)
    helped = replace(read, buses=replace(buses, q_min=-room, q_max=room))
    found = solve_ac(helped)
    assert (bare.served.all(), found.served.all()) == (False, True)
    # What it injects is what is left at its bus, and units have outputs of their own alone.
    voltage = found.voltage[0] * np.exp(1j * np.radians(found.angle[0]))
    injected = np.zeros(len(heavy), dtype=complex)
    np.add.at(injected, read.generators.bus, found.dispatch[0] + 1j * found.reactive[0])
    left = 100 * left_over(helped, voltage, injected)
    assert np.abs(np.delete(left, at)).max() < 1e-3
    assert 0 < -left[at].imag < 160.0
