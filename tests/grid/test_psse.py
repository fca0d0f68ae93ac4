"""PSS/E cases in and out: versions 33 and 35, by hand and as pypowsybl writes them."""

import re
from itertools import combinations

import numpy as np
import pytest
from fuzz.mutations import mutate, random_choices
from fuzz.verdicts import wrong_unless
from support.sizes import FULL

from gridveil import grid
from gridveil.auditing.triangle_network import VALUES
from gridveil.auditing.triangle_operator_files import write_raw
from gridveil.errors import InputError
from gridveil.grid.io import psse as fmt
from gridveil.grid.io import read_case
from gridveil.grid.model.release_problem import check_writable

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
    "ignore::gridveil.errors.NotPrivateWarning",
)
PARAMETERS = ("capacity", "load", "generator_limit")
SETS = [(name,) for name in PARAMETERS] + list(combinations(PARAMETERS, 2)) + [PARAMETERS]
RANGES = {"capacity": (1, 900), "load": (-900, 900), "generator_limit": (-900, 900)}

OWN = {
    "capacity": [111.377, 222.713, 87.131, 93.717, 61.393, 71.931, 81.739],
    "load": [45.1317, 31.7133, 12.3717, 5.9171],
    "generator_limit": [13.1773, 7.3319, 180.7131, 95.3717],
}


def case(version=33, note="", **values):
    """Four buses, a line with copies of its rating, transformers of two and three windings."""
    own = {**OWN, **values}
    c, d, g = own["capacity"], own["load"], own["generator_limit"]
    new = version >= 34
    rate = lambda v: ", ".join([f"{v!r}", f"{1.1 * v!r}", f"{1.2 * v!r}"] + ["0.0"] * 9 * new)  # noqa: E731
    name = f"'{note}', " if new else ""
    node = "0, " if version >= 35 else ""
    extra = f", {0.1 * d[0]!r}, 0.0, 0, '{note}'" if new else ""
    base = "0, " if version >= 35 else ""

    def gen(bus, low, high):
        return (f"{bus}, '1 ', {low!r}, {0.4 * high!r}, {0.6 * high!r}, {-0.3 * high!r}, 1.02, 0, "
                f"{node}{1.2 * high!r}, 0.0, 0.3, 0.0, 0.0, 1.0, 1, 100.0, {high!r}, {low!r}, "
                f"{base}1, 1.0")  # fmt: skip

    def winding(ratio, rating, angle=0.0):
        return (f"{ratio}, 0.0, {angle}, {rate(rating)}, 0, 0, {node}1.1, 0.9, 1.1, 0.9, 33, 0, "
                "0.0, 0.0, 0.0")  # fmt: skip

    def end(section):
        return f"0 / END OF {section} {note}"

    lines = [
        f"0, 100.0, {version}, 0, 0, 60.0 / {note}", f"title {note}", note,
        *([end("SYSTEM")] if new else []),
        *(f"{at}, 'BUS {at}       ', 230.0, {kind}, 1, 1, 1, 1.01234, -3.21" for at, kind in
          ((1, 3), (2, 2), (3, 1), (4, 1))), end("BUS"),
        f"2, '1 ', 1, 1, 1, {d[0]!r}, {0.3 * d[0]!r}, {d[1]!r}, 0.0, {d[2]!r}, 0.0, 1, 1, 0{extra}",
        f"4, '1 ', 1, 1, 1, {d[3]!r}, 1.0, 0.0, 0.0, 0.0, 0.0, 1, 1, 0{extra} / {note}",
        end("LOAD"),
        "3, '1 ', 1, 0.5, 12.0", end("SHUNT"),
        gen(1, g[0], g[2]), gen(3, g[1], g[3]), end("GEN"),
        f"1, 2, '1 ', 0.01, 0.1, 0.02, {name}{rate(c[0])}, 0.0, 0.0, 0.0, 0.0, 1, 1, 17.0, 1, 1.0",
        f"2, 3, '1 ', 0.01, 0.12, 0.02, {name}{rate(c[1])}, 0.0, 0.0, 0.0, 0.0, 1, 1, 9.0, 1, 1.0",
        f"1, 3, '1 ', 0.01, 0.3, 0.02, {name}{rate(0.0)}, 0.0, 0.0, 0.0, 0.0, 1, 1, 0.0, 1, 1.0",
        end("BRANCH"), *([end("SWITCHING")] if new else []),
        f"3, 4, 0, '1 ', 1, 2, 2, 1234.5, 0.01, 2, 'TR {note}', 1, 1, 1.0",
        f"0.004, 0.113, {c[2]!r}", winding(0.98, c[2], 5.0), "1.0, 0.0",
        f"1, 2, 4, '2 ', 1, 1, 1, 0.0, 0.0, 2, 'T3 {note}', 1, 1, 1.0",
        f"0.001, 0.2, {c[3]!r}, 0.001, 0.3, {c[4]!r}, 0.001, 0.25, {c[5]!r}, 1.02, -2.1",
        winding(1.0, c[3]), winding(1.01, c[4]), winding(1.0, c[5]), end("TRANSFORMER"),
        f"1, 1, {c[6]!r}, 10.0, 'AREA {note}'", end("AREA"),
        f"'DC 7 ({note})', 1, 4.0, 10.0, 100.0, 0.0, 0.0, 0.1, 'I', 0.0, 20, 1.0",
        *(f"{bus}, 2, 17.0, 12.0, 0.0, 3.8, 115.0, 0.9, 1.02, 1.5, 0.5, 0.00625, 0, 0, 0, '1', 0.0"
          for bus in (1, 2)), end("DC"),
        f"'VSC ({note})', 1, 2.0, 1, 1.0",
        *(f"{bus}, {kind}, 1, {dc}, 1.0, 90.0, 0.5, 0.0, {c[0]!r}, {c[1]!r}, 1.0, 50.0, -40.0, 0, "
          f"{node}100.0" for bus, kind, dc in ((2, 2, -30.0), (1, 1, 100.0))), end("VSC"),
        *(end(s) for s in ("CORRECTION", "MTDC", "SECTION")),
        "1, 'ZONE'", end("ZONE"), end("TRANSFER"), "1, 'OWNER'", end("OWNER"),
        f"'', 4, 0, 1, {c[0]!r}, {d[0]!r}, 1.02, 50.0, {c[1]!r}, 0.9, 1.1, 1.0, {g[2]!r}, 0.05, "
        f"100.0, 1, {d[1]!r}, 0.0, 0, 0, {node}'{note}'", end("FACTS"),
        "4, 0, 0, 1, 1.1, 0.9, 0, 100.0, '', 3.5, 1, 3.5", end("SWITCHED"), end("GNE"),
        end("MACHINE"), *([end("SUBSTATION")] if version >= 35 else []), "Q", "",
    ]  # fmt: skip
    return "\n".join(lines)


def read(folder, *args, **kwargs):
    path = folder / "case.raw"
    path.write_text(case(*args, **kwargs))
    return read_case(path)


def released(network, names):
    """The network with other values in place of the private ones."""
    _, public = network.split(names, {name: RANGES[name] for name in names})
    values = np.random.default_rng(3).uniform(20, 60, public.entries)
    if "generator_limit" in names:
        values[public.parts["generator_limit"]] = np.sort(values[public.parts["generator_limit"]])
    return public.with_values(values), public


@pytest.mark.parametrize("version", [33, 34, 35])
def test_a_case_is_read(version, tmp_path):
    network = read(tmp_path, version)
    c, d, g = OWN["capacity"], OWN["load"], OWN["generator_limit"]
    assert network.branches.capacity.tolist() == [c[0], c[1], np.inf, *c[2:6]]
    assert network.buses.load.tolist() == pytest.approx([0, sum(d[:3]), 0, d[3], 0])
    assert network.generators.p_min.tolist() == g[:2]
    assert network.generators.p_max.tolist() == g[2:]
    assert network.buses.shunt[2] == 0.5
    assert network.branches.reactance[3] == pytest.approx(0.113 * 100 / c[2])
    assert network.branches.shift[3] == 5.0
    assert network.branches.reactance[4:] == pytest.approx([0.075, 0.125, 0.175])
    assert network.branches.tap.tolist() == [1, 1, 1, 0.98, 1, 1.01, 1]


@pytest.mark.parametrize("version", [33, 35])
def test_a_plain_round_trip_changes_nothing_and_an_edit_one_number(version, tmp_path):
    network = read(tmp_path, version)
    network.write(tmp_path / "again.raw")
    assert (tmp_path / "again.raw").read_text() == case(version)
    capacity = network.branches.capacity.copy()
    capacity[1] = 77.5
    network.with_capacity(capacity).write(tmp_path / "again.raw")
    text = case(version).replace(repr(OWN["capacity"][1]) + ",", "77.5,", 1)
    assert (tmp_path / "again.raw").read_text() == text


@pytest.mark.parametrize("names", SETS, ids=",".join)
@pytest.mark.parametrize("version", [33, 35])
def test_a_release_reads_as_the_released_network(version, names, tmp_path):
    network = read(tmp_path, version)
    made, _ = released(network, names)
    made.write_release(tmp_path / "out.raw", names)
    again = read_case(tmp_path / "out.raw")
    for table, columns in {
        "branches": ("capacity", "reactance", "resistance", "tap", "shift", "in_service"),
        "buses": ("load", "shunt", "reference"),
        "generators": ("p_min", "p_max", "q_min", "q_max"),
    }.items():
        for column in columns:
            ours, theirs = (getattr(getattr(n, table), column) for n in (made, again))
            assert np.array_equal(ours, theirs), column


@pytest.mark.parametrize("names", SETS, ids=",".join)
@pytest.mark.parametrize("version", [33, 35])
def test_a_release_holds_no_copy_of_the_private_numbers(version, names, tmp_path):
    numbers = [value for name in names for value in OWN[name]]
    note = " ".join(map(repr, numbers))
    network = read(tmp_path, version, note)
    made, public = released(network, names)
    made.write_release(tmp_path / "out.raw", names)
    text = (tmp_path / "out.raw").read_text()
    assert [one for one in numbers if repr(one) in text] == []
    held = np.abs([float(one) for one in re.findall(r"-?\d+\.\d+", text)])
    copies = np.outer(numbers, [1, 1.1, 1.2, 0.3, 0.4, 0.6, 0.1]).ravel()
    assert not np.isclose(held[:, None], copies, rtol=1e-6, atol=0).any()
    assert all(repr(one) in case(version, note) for one in numbers)
    assert "more" in {change.table for change in public.changes}


@pytest.mark.parametrize("names", SETS, ids=",".join)
@pytest.mark.parametrize("version", [33, 35])
def test_twins_leave_the_same_bytes(version, names, tmp_path):
    texts = []
    for scale in (1.0, 0.7713):
        other = {name: [scale * value for value in OWN[name]] for name in names}
        if "capacity" in names:
            other["capacity"][2] = OWN["capacity"][2]  # the base of an impedance, see below
        made, public = released(read(tmp_path, version, f"{scale}", **other), names)
        made.write_release(tmp_path / "out.raw", names)
        texts.append((repr(public.changes), (tmp_path / "out.raw").read_bytes()))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("names", [*SETS[:3], ("capacity", "load")], ids=",".join)
@pytest.mark.parametrize("version", [33, 35])
@pytest.mark.parametrize("code", [0, 2, 3, -3, 5, 1])
def test_flows_that_a_transformer_holds_leave_no_trace(code, version, names, tmp_path):
    """The limits of a flow (MW, Mvar) are ratings or results; those of a voltage are public."""
    found, path = [], tmp_path / "case.raw"
    node = ", 0" * (version >= 35)
    for high, low in (
        ((117.25, -93.5), (88.75, 12.5)) if code != 1 else ((1.07, 0.93), (1.08, 0.92))
    ):
        text = case(version)
        old = f"0, 0{node}, 1.1, 0.9, 1.1, 0.9, 33"
        path.write_text(text.replace(old, f"{code}, 4{node}, 30.0, -30.0, {high}, {low}, 33"))
        made, public = released(read_case(path), names)
        assert any("VMA1" in one.columns for one in public.changes)
        made.write_release(tmp_path / "out.raw", names)
        found.append((tmp_path / "out.raw").read_text())
        assert (str(high) in found[-1]) == (code == 1)
        assert read_case(tmp_path / "out.raw").branches.shift.tolist()[3] == 5.0
    assert (found[0] == found[1]) == (code != 1)


def test_the_share_of_a_unit_in_holding_a_voltage_leaves_no_trace(tmp_path):
    """It follows from the size of the unit in many cases; the control: it is public without it."""
    found, path = {}, tmp_path / "case.raw"
    for share in ("61.25", "38.75"):
        path.write_text(case().replace("1.0, 1, 100.0, ", f"1.0, 1, {share}, "))
        for names in (("generator_limit",), ("capacity",)):
            released(read_case(path), names)[0].write_release(tmp_path / "out.raw", names)
            found.setdefault(names, set()).add((tmp_path / "out.raw").read_text())
    assert [len(texts) for texts in found.values()] == [1, 2]


def test_impedances_on_a_rating_are_published_on_the_base_with_three_digits(tmp_path):
    network = read(tmp_path)
    made, _ = released(network, ("capacity",))
    x = made.branches.reactance[3]
    assert x == float(f"{0.113 * 100 / OWN['capacity'][2]:.3g}")
    assert x != network.branches.reactance[3]


def test_elements_that_are_declared_public_keep_what_they_have(tmp_path):
    network = read(tmp_path)
    rule = {"only": "name=1-2", "parameter": "capacity", "range": (1, 900)}
    public = grid.plan(network, epsilon=1, alpha=5, method="laplace", **rule).problem.public
    public.with_values([77.0]).write(tmp_path / "out.raw")
    ours, theirs = case().splitlines(), (tmp_path / "out.raw").read_text().splitlines()
    kept = [line.replace("'1 '", "'1'") for line in ours if line.startswith("2, 3, ")]
    assert kept[0] in theirs
    assert sum("77.0, 77.0, 77.0" in line for line in theirs) == 1


@pytest.mark.parametrize(("version", "given"), [(33, "B=1.1,C=1.25"), (35, {"2": 1.1, "3": 1.25})])
def test_further_ratings_follow_public_ratios(version, given, tmp_path):
    network = read(tmp_path, version)
    how = {"epsilon": 1, "alpha": 5, "method": "laplace", "range": (1, 900)}
    public = grid.plan(network, **how, limit_ratios=given).problem.public
    said = [one.reason for one in public.changes if "RATEB" in one.columns]
    assert version == 35 or "declared public multiply it" in said[0]
    # The first is what stands in for a private one too.
    made = public.with_values(np.array([1.0, 20, 30, 40, 50, 60])[: public.entries])
    made.write_release(tmp_path / "out.raw", "capacity")
    text = (tmp_path / "out.raw").read_text()
    assert "1.0, 1.1, 1.25" in text
    assert "20.0, 22.0, 25.0" in text
    assert read_case(tmp_path / "out.raw").branches.capacity.tolist() == (
        made.branches.capacity.tolist()
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("B=0.9", "between 1 and 10"),
        ("B=1.1,B=1.2", "a name once"),
        ("B", "between 1 and 10"),
        (1.1, "names of limits"),
        ({"B": "much"}, "between 1 and 10"),
        ("900s=1.1", "Those of this file are B, C"),
    ],
)
def test_ratios_that_can_not_be_used_are_refused(given, words, tmp_path):
    network, how = read(tmp_path), {"epsilon": 1, "alpha": 5, "range": (1, 900)}
    with pytest.raises(InputError, match=words):
        grid.plan(network, **how, method="laplace", limit_ratios=given)
    with pytest.raises(InputError, match="not private here"):
        grid.plan(network, **how, method="laplace", parameter="load", limit_ratios="B=1.1")


@pytest.mark.parametrize("name", ["ieee14", "ieee118", "ieee300"])
def test_what_pypowsybl_writes_is_read_and_pypowsybl_reads_a_release(name, tmp_path):
    pp = pytest.importorskip("pypowsybl", reason="pypowsybl is not installed")
    source = getattr(pp.network, f"create_{name}")()
    source.save(str(tmp_path / "case.raw"), format="PSS/E")
    network = read_case(tmp_path / "case.raw")
    other = read_case(pp.network.load(str(tmp_path / "case.raw")))
    assert len(network.branches) == len(other.branches)
    ours, theirs = (np.sort(n.branches.reactance * n.branches.tap) for n in (network, other))
    assert np.allclose(ours, theirs, rtol=1e-9)
    assert network.buses.load.sum() == pytest.approx(other.buses.load.sum())
    made, _ = released(network, ("load",))
    made.write_release(tmp_path / "out.raw", "load")
    again = read_case(pp.network.load(str(tmp_path / "out.raw")))
    assert np.sort(again.buses.load[again.buses.load != 0]) == pytest.approx(
        np.sort(made.buses.load[made.buses.load != 0])
    )


def test_what_the_model_does_not_have_is_refused_all_at_once(tmp_path):
    text = case().replace("0 / END OF FACTS ", "'F', 1, 2\n0 / END OF FACTS ")
    text = text.replace("0 / END OF MTDC ", "1, 2\n0 / END OF MTDC ")
    (tmp_path / "case.raw").write_text(text)
    with pytest.raises(InputError, match=r"(?s)multi-terminal DC lines.*FACTS"):
        read_case(tmp_path / "case.raw")


def test_what_is_no_case_is_refused(tmp_path):
    for text in ("", "17.377", "0, 100.0, 29", "0, 100.0, 33\n\n\n0\n"):
        (tmp_path / "case.raw").write_text(text)
        with pytest.raises(InputError, match=r"case\.raw"):
            read_case(tmp_path / "case.raw")


def test_a_network_is_released_by_the_whole_pipeline(tmp_path):
    network = read(tmp_path)
    made = grid.release(
        network, grid.sample_population(network, 5, private="load", costs=(10, 20)),
        parameter="load", epsilon=1, alpha=5, range=(1, 300), seed=1,
    )  # fmt: skip
    again = read_case(made.write(tmp_path / "out") / "network.raw")
    assert again.buses.load.tolist() == made.data.buses.load.tolist()


def test_odd_texts_are_read_and_released_or_refused_with_a_reason(tmp_path):
    seeds = [case(33).encode(), case(35).encode()]
    taken = 0
    for seed in range(3000 if FULL else 150):
        choose = random_choices(seed)
        data = mutate(seeds[choose(2)], choose, seeds)
        path = tmp_path / "case.raw"
        path.write_bytes(data)
        try:
            network = read_case(path)
        except InputError as error:
            wrong_unless("case.raw" in str(error), "the error does not name the file")
            continue
        network.write(tmp_path / "again.raw")
        wrong_unless((tmp_path / "again.raw").read_bytes() == data, "it does not come back")
        names = SETS[choose(len(SETS))]
        try:
            made, public = released(network, names)
            check_writable(public)
        except InputError:
            continue
        taken += 1
        fmt.write_release(made, None, names)
    assert taken > 10


def test_how_a_private_number_is_spelt_decides_nothing(tmp_path):
    texts = []
    for at, show in enumerate((repr, "{:+.12E}".format, "{:.12e}".format)):
        write_raw(tmp_path / "case.raw", VALUES, show)
        text = (tmp_path / "case.raw").read_text()
        if at == 2:  # as Fortran writes doubles
            text = re.sub(r"(\d)e([+-]\d)", r"\1D\2", text)
        (tmp_path / "case.raw").write_text(text)
        read = read_case(tmp_path / "case.raw")
        ranges = {name: RANGES[name] for name in PARAMETERS}
        _, public = read.split(PARAMETERS, ranges)
        public.with_values(np.where(public.signs > 0, 7.5, -7.5)).write(tmp_path / "out.raw")
        texts.append((tmp_path / "out.raw").read_text())
    assert len(set(texts)) == 1


def test_a_public_power_factor_is_in_the_released_file(tmp_path):
    path = tmp_path / "case.raw"
    path.write_text(case(), encoding="utf-8")
    network = read_case(path)
    given = {"parameter": "load", "epsilon": 1, "alpha": 5, "range": RANGES["load"], "seed": 1}
    for factor, ratio in ((0.8, 0.75), (None, 0.0)):
        made = grid.release(network, **given, method="laplace", power_factor=factor)
        made.data.write_release(tmp_path / "out.raw", "load")
        file = read_case(tmp_path / "out.raw")
        assert file.buses.load == pytest.approx(made.data.buses.load)
        assert file.buses.reactive_load == pytest.approx(ratio * file.buses.load)
        assert (file.buses.load != 0).any()
