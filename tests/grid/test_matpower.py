"""MATPOWER cases: every PGLib case reads, round trips keep every byte, bad cases are explained."""

from dataclasses import replace

import numpy as np
import pytest
from grid.making import baseline, pglib, pglib_names, tables, text_of, write_case
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sizes import FULL

from gridveil.errors import GridveilError, InputError
from gridveil.grid import Network, problems, read_case
from gridveil.grid.io.matpower import tables_of
from gridveil.grid.model.checks import value_problems


def read_text(folder, text):
    path = folder / "case.m"
    path.write_text(text, encoding="utf-8")
    return read_case(path)


@pytest.fixture
def tiny(tmp_path):
    return read_case(write_case(tmp_path))


@pytest.mark.parametrize("name", pglib_names(10_500 if FULL else 3_000))
def test_pglib_cases_read_and_keep_every_byte(tmp_path, name):
    path = pglib(name)
    network = read_case(path)
    network.write(tmp_path / "again.m")
    assert (tmp_path / "again.m").read_bytes() == path.read_bytes()


def test_counts_are_those_of_the_archive():
    for name, row in baseline().items():
        if int(row["buses"]) <= (10_000 if FULL else 1_000):
            network = read_case(pglib(name))
            counts = len(network.buses), len(network.branches)
            assert counts == (int(row["buses"]), int(row["branches"])), name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["case14_ieee", "case60_c", "case300_ieee", "case1803_snem"])
def test_numbers_are_those_of_another_reader(name):
    frames = pytest.importorskip("matpowercaseframes")
    path = pglib(f"pglib_opf_{name}")
    other = frames.CaseFrames(str(path))
    mine = tables_of(read_case(path).source.data)
    assert mine.base_mva == other.baseMVA
    for table in ("bus", "gen", "branch", "gencost"):
        np.testing.assert_array_equal(
            getattr(mine, table), np.asarray(getattr(other, table), dtype=float)
        )


def test_what_the_tables_mean(tiny):
    buses, units, lines = tiny.buses, tiny.generators, tiny.branches
    assert buses.name == ("1", "2", "3")
    assert buses.load.tolist() == [0, 90, 60]
    assert buses.shunt.tolist() == [0, 1.5, 0]
    assert buses.reference.tolist() == [True, False, False]
    assert units.bus.tolist() == [0, 2, 1]
    assert units.p_min.tolist() == [10, 20, -9]
    assert [units.quadratic[0], units.linear[0], units.constant[0]] == [0.02, 20, 5]
    assert units.points[1].tolist() == [[20, 100], [50, 700], [100, 2000]]
    assert units.points[0] is None
    assert lines.tap.tolist() == [1, 0.98, 1]
    assert lines.shift.tolist() == [0, 2, 0]
    assert lines.capacity.tolist() == [80, 70, np.inf]
    assert lines.angle_min.tolist() == [-30, -np.inf, -np.inf]
    assert lines.angle_max.tolist() == [30, np.inf, np.inf]


def test_out_of_service_and_isolated(tmp_path):
    parts = tables()
    parts["bus"] = np.vstack([parts["bus"], parts["bus"][1]])
    parts["bus"][3, [0, 1]] = 9, 4
    parts["gen"][2, [0, 7]] = 9, 1
    parts["branch"][2, 10] = 0
    network = read_case(write_case(tmp_path, parts))
    assert network.buses.in_service.tolist() == [True, True, True, False]
    assert network.generators.in_service.tolist() == [True, True, False]
    assert network.branches.in_service.tolist() == [True, True, False]


def test_an_island_without_reference_gets_one_and_says_so(tmp_path):
    parts = tables()
    parts["branch"][1:, 10] = 0
    network = read_case(write_case(tmp_path, parts))
    assert network.buses.reference.tolist() == [True, False, True]
    assert network.notes == ("bus 3 is the reference of an island of 1 buses that had none",)
    assert "note" in repr(network)
    network.write(tmp_path / "again.m")
    assert (tmp_path / "again.m").read_bytes() == (tmp_path / "tiny.m").read_bytes()


def test_text_may_be_written_in_many_ways(tmp_path):
    text = text_of(tables())
    plain = read_text(tmp_path, text)
    odd = text.replace("\t", ", ", 4).replace(", 1.0", "1.0", 1)
    odd = odd.replace("mpc.bus = [\n", "mpc.bus = [ % it's a table ];\n%{\nmpc.bus = 5\n%}\n")
    odd = odd.replace("mpc.gen = [\n", "mpc.gen = [").replace("\n", "\r\n")
    odd += "mpc.bus_name = {\n'one % of ]'; 'it''s'; \"x}\"};\nmpc.areas = [1 1];\nend\n"
    network = read_text(tmp_path, odd)
    for table in ("bus", "gen", "branch", "gencost"):
        np.testing.assert_array_equal(
            getattr(tables_of(network.source.data), table),
            getattr(tables_of(plain.source.data), table),
        )
    network.with_load([0, 91.25, 60]).write(tmp_path / "again.m")
    written = (tmp_path / "again.m").read_bytes().decode()
    assert written == odd.replace("90.0", "91.25", 1)


def test_bytes_that_are_not_utf8_are_carried_through(tmp_path):
    raw = text_of(tables(), head="% caf\n").encode().replace(b"caf", b"caf\xe9")
    (tmp_path / "latin.m").write_bytes(raw)
    network = read_case(tmp_path / "latin.m")
    network.write(tmp_path / "again.m")
    assert (tmp_path / "again.m").read_bytes() == raw


STATEMENTS = {
    "unit conversion": "mpc.bus(:, [PD, QD]) = mpc.bus(:, [PD, QD]) / 1e3;",
    "named columns": "[PQ, PV, REF] = idx_bus;",
    "constants": "define_constants;",
    "variable": "Vbase = mpc.bus(1, BASE_KV) * 1e3;",
    "loop": "for k = 1:3\n mpc.bus(k, 3) = 0;\nend",
    "condition": "if true\n mpc.baseMVA = 1;\nend",
    "arithmetic": "mpc.x = [1 2] * 3;",
    "transposed": "mpc.x = [1 2]';",
    "computed": "mpc.x = mpc.bus;",
    "call": "mpc = scale_load(1.2, mpc);",
    "after the end": "return;\nmpc.baseMVA = 1;",
    "nested": "%{\n%{\n%}\nmpc.x = 1;\n%}\n",
    "open": "mpc.x = [1 2",
}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_statements_are_refused(tmp_path, kind):
    with pytest.raises(InputError) as error:
        read_text(tmp_path, text_of(tables(), tail=STATEMENTS[kind]))
    if kind not in ("nested",):
        assert "not plain data" in str(error.value)
        assert "case.m line" in str(error.value)
        assert "1.2" not in str(error.value), "numbers of a statement may be private"


REFUSED = {
    "assigned twice": ({"tail": "mpc.baseMVA = 5;"}, "baseMVA again"),
    "part of a table": ({"tail": "mpc.bus.x = 5;"}, r"bus\.x again"),
    "direct current": ({"tail": "mpc.dcline = [1 2 1 10];"}, "mpc.dcline, which changes"),
    "direct current grid": ({"tail": "mpc.branchdc = [1 2 1 10];"}, "mpc.branchdc, which"),
    "user constraints": ({"tail": "mpc.A = [1 2 1 10];"}, "mpc.A, which"),
    "version": ({"tail": "", "head": "mpc.version = '3';%"}, "version '3'"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_would_change_the_model_is_refused(tmp_path, kind):
    options, message = REFUSED[kind]
    text = text_of(tables(), **options)
    with pytest.raises(InputError, match=message):
        read_text(tmp_path, text)


def test_empty_tables_change_nothing(tmp_path):
    assert len(read_text(tmp_path, text_of(tables(), tail="mpc.dcline = [\n];\n")).buses) == 3


def edit(table, row, column, value):
    def apply(parts):
        parts[table][row, column] = value

    return apply


WRONG = {
    "unknown bus": (edit("gen", 0, 0, 8), r"mpc.gen row 1: there is no such bus \(bus 8\)"),
    "unknown end": (edit("branch", 1, 1, 8), r"mpc.branch row 2: there is no such bus"),
    "duplicate": (edit("bus", 1, 0, 3), "bus 3: the number is not unique"),
    "half a bus": (
        edit("bus", 1, 0, 2.5),
        "mpc.bus row 2: the bus number is not a positive integer",
    ),
    "type": (edit("bus", 1, 1, 7), "mpc.bus row 2: there is no such type of bus"),
    "status": (edit("gen", 1, 7, np.nan), "mpc.gen row 2: it has no status"),
    "load": (edit("bus", 1, 2, np.nan), "bus 2: not a finite number"),
    "capacity": (edit("branch", 0, 5, -5), "branch 1-2: the capacity is negative"),
    "references": (edit("bus", 1, 1, 3), "island of bus 1: it has 2 reference buses"),
    "model": (edit("gencost", 0, 0, 3), "mpc.gencost row 1: the model is 3"),
    "count": (edit("gencost", 0, 3, 1.5), "coefficients or points is 1.5"),
    "too many": (edit("gencost", 1, 3, 4), "announces 8 numbers"),
    "too few": (edit("gencost", 1, 3, 1), "needs two points"),
    "cubic": (edit("gencost", 0, 3, 6), "degree above 2"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_rows_are_named(tmp_path, kind):
    apply, message = WRONG[kind]
    parts = tables()
    apply(parts)
    with pytest.raises(InputError, match=message):
        read_case(write_case(tmp_path, parts).replace(tmp_path / "case.m"))


def test_damaged_tables_are_named(tmp_path):
    text = text_of(tables())
    with pytest.raises(InputError, match=r"case\.m has no mpc\.branch, mpc\.gencost"):
        read_text(tmp_path, text[: text.index("mpc.branch")])
    with pytest.raises(InputError, match=r"mpc\.bus has something that is not a number"):
        read_text(tmp_path, text.replace("90.0", "ninety"))
    with pytest.raises(InputError, match=r"mpc\.bus has something that is not a number"):
        read_text(tmp_path, text.replace("90.0", "90-1"))
    with pytest.raises(InputError, match=r"line \d+: mpc\.bus row 2 has 16 columns"):
        read_text(tmp_path, text.replace("90.0\t", "", 1))
    parts = tables()
    with pytest.raises(InputError, match=r"mpc\.gencost has 5 rows for 3 generators"):
        read_text(tmp_path, text_of({**parts, "gencost": parts["gencost"][:5]}))
    with pytest.raises(InputError, match=r"mpc\.gen has 8 columns and needs 10"):
        read_text(tmp_path, text_of({**parts, "gen": parts["gen"][:, :8]}))
    with pytest.raises(InputError, match="there is no bus"):
        read_text(tmp_path, text_of({k: v[:0] for k, v in tables().items()}))
    with pytest.raises(InputError, match="can't be read"):
        read_case(tmp_path / "nothing.m")
    (tmp_path / "folder.m").mkdir()
    with pytest.raises(InputError, match="can't be read"):
        read_case(tmp_path / "folder.m")


def test_changes_that_have_no_place(tiny, tmp_path):
    with pytest.raises(InputError, match="0 means that there is no limit"):
        tiny.with_capacity([0, 1, 1]).write(tmp_path / "x.m")
    rigid = replace(tiny.branches, angle_min=[0, 0, 0], angle_max=[0, 1, 1])
    with pytest.raises(InputError, match="Angle limits of 0 and 0"):
        replace(tiny, branches=rigid).write(tmp_path / "x.m")
    moved = replace(tiny, generators=replace(tiny.generators, bus=[1, 1, 1]))
    with pytest.raises(InputError, match="no longer has the elements"):
        moved.write(tmp_path / "x.m")
    steps = np.column_stack([np.arange(9.0), np.arange(9.0)])
    many = replace(tiny, generators=replace(tiny.generators, points=(steps, None, None)))
    with pytest.raises(InputError, match="needs 18 columns"):
        many.write(tmp_path / "x.m")
    replace(many, source=None).write(tmp_path / "x.m")
    np.testing.assert_array_equal(read_case(tmp_path / "x.m").generators.points[0], steps)
    with pytest.raises(InputError, match="can't be written"):
        tiny.write(tmp_path / "no" / "x.m")


def same(one: Network, other: Network) -> None:
    for table, columns in {
        "buses": ("load", "shunt", "reference", "in_service"),
        "generators": ("bus", "p_min", "p_max", "in_service", "quadratic", "linear", "constant"),
        "branches": (
            "from_bus", "to_bus", "resistance", "reactance", "tap", "shift", "capacity",
            "angle_min", "angle_max", "in_service",
        ),
    }.items():  # fmt: skip
        for column in columns:
            np.testing.assert_array_equal(
                getattr(getattr(one, table), column), getattr(getattr(other, table), column)
            )
    for mine, theirs in zip(one.generators.points, other.generators.points, strict=True):
        np.testing.assert_array_equal(mine, theirs)


POSITIVE = st.floats(1e-3, 1e5)
ANY = st.floats(-1e5, 1e5)


@given(data=st.data())
def test_random_edits_come_back_and_touch_nothing_else(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("edits")
    path = pglib("pglib_opf_case14_ieee")
    network = read_case(path)
    lines, units, buses = network.branches, network.generators, network.buses

    def some(values, strategy):
        places = data.draw(st.sets(st.integers(0, len(values) - 1), max_size=3))
        changed = np.array(values)
        for place in sorted(places):
            changed[place] = data.draw(strategy)
        return changed

    capacity = some(lines.capacity, POSITIVE | st.just(np.inf))
    edited = network.with_capacity(capacity).with_load(some(buses.load, ANY))
    edited = edited.with_limits(units.p_min, some(units.p_max, POSITIVE))
    edited = replace(
        edited,
        generators=replace(
            edited.generators,
            linear=some(units.linear, ANY),
            quadratic=some(units.quadratic, POSITIVE),
        ),
    )
    edited.write(folder / "edited.m")
    again = read_case(folder / "edited.m")
    same(again, edited)
    before, after = path.read_text().split("\n"), (folder / "edited.m").read_text().split("\n")
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        if old != new:
            assert sum(a != b for a, b in zip(old.split(), new.split(), strict=True)) <= 3
    # Back to where it was: every byte that was not touched is still there.
    replace(network, source=again.source).write(folder / "back.m")
    same(read_case(folder / "back.m"), network)


def test_every_column_of_the_model_can_be_changed(tiny, tmp_path):
    lines, units, buses = tiny.branches, tiny.generators, tiny.buses
    edited = replace(
        tiny,
        base_mva=50.0,
        buses=replace(buses, shunt=[1, 2, 3], reference=[False, True, False]),
        generators=replace(
            units,
            in_service=[True, True, False],
            points=(units.points[1], None, None),
            linear=[0, 7.5, 40],
            quadratic=[0, 0.5, 0],
            constant=[0, 1, 0],
        ),
        branches=replace(
            lines,
            resistance=[0, 0, 0],
            reactance=[1, 2, 3],
            tap=[1.1, 1, 1],
            shift=[1, 0, 0],
            angle_min=[-np.inf, -5, 0],
            angle_max=[0, np.inf, 5],
            in_service=[True, False, True],
        ),
    )
    edited.write(tmp_path / "edited.m")
    again = read_case(tmp_path / "edited.m")
    same(again, edited)
    assert again.base_mva == 50
    replace(edited, source=None).write(tmp_path / "new.m")
    same(read_case(tmp_path / "new.m"), edited)


def pieces(text):
    """Places of the numbers in the tables of a case."""
    start = text.index("mpc.bus = [")
    end = text.index("];", text.index("mpc.branch = ["))
    return start, end


@settings(max_examples=5000 if FULL else 250)
@given(data=st.data())
def test_mutated_cases_are_explained_or_right(tmp_path_factory, data):
    """A bad case gives an error of ours; what reads is sound but for values, and written back."""
    folder = tmp_path_factory.mktemp("mutated")
    name = data.draw(st.sampled_from(["case5_pjm", "case14_ieee", "case30_as"]))
    text = pglib(f"pglib_opf_{name}").read_text()
    for _ in range(data.draw(st.integers(1, 3))):
        text = mutate(data.draw, text)
    path = folder / "mutated.m"
    path.write_text(text, encoding="utf-8", newline="")
    network, error = attempt(path)
    if network is None:
        assert "mutated.m" in error
        return
    # Values may be private: a release asks about those that are not.
    assert problems(network) == value_problems(network)
    network.write(folder / "again.m")
    assert (folder / "again.m").read_bytes() == path.read_bytes()


def attempt(path):
    try:
        return read_case(path), None
    except GridveilError as error:
        return None, str(error)


def mutate(draw, text):
    kind = draw(st.sampled_from(["number", "number", "line", "table", "garbage", "cut", "twice"]))
    try:
        start, end = pieces(text)
    except ValueError:
        kind, start, end = "garbage", 0, len(text)
    lines = text[start:end].split("\n")
    row = draw(st.integers(0, len(lines) - 1))
    if kind == "number":
        tokens = lines[row].split("\t")
        place = draw(st.integers(0, len(tokens) - 1))
        values = ["NaN", "Inf", "-Inf", "-1", "0", "999", "1.5", "1e300", "x", "", "1/2", "-", "'"]
        tokens[place] = draw(st.sampled_from(values))
        lines[row] = "\t".join(tokens)
    elif kind == "line":
        lines[row : row + 1] = draw(st.sampled_from([[], [lines[row]] * 2]))
    elif kind == "twice":
        return text + draw(st.sampled_from(["mpc.bus = [];", "mpc.x = 1;", "end", "mpc.bus(1)=2;"]))
    elif kind == "table":
        table = draw(st.sampled_from(["bus", "gen", "gencost", "branch", "baseMVA", "version"]))
        return text.replace(f"mpc.{table} =", draw(st.sampled_from(["%", "mpc.other =", ""])), 1)
    elif kind == "cut":
        return text[: draw(st.integers(0, len(text)))]
    else:
        at = draw(st.integers(0, len(text)))
        junk = draw(st.text(max_size=20) | st.sampled_from(["[", "]", "{", "}", "'", "%", "%{\n"]))
        junk = junk.encode("utf-8", "ignore").decode()
        return text[:at] + junk + text[at:]
    return text[:start] + "\n".join(lines) + text[end:]
