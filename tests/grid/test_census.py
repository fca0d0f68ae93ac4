"""The census: every column of a source is in its release as it was, or in the list of changes.

pandapower's networks and PyPSA's run if the library is installed (tests/optional/run).
``make census`` runs all networks.
"""

from pathlib import Path

import pytest
from grid import census
from grid.making import even_dispatch, pglib, pglib_names
from support.sizes import FULL

from gridveil.grid import read_case
from gridveil.grid.io.pandapower.published_part import put_dispatch
from gridveil.grid.io.released_columns import changes, copied, fate_of
from gridveil.grid.io.released_columns.reasons import EVERY
from gridveil.grid.io.released_columns.table import KEPT, RULES
from gridveil.grid.model.parameters import PARAMETERS

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def check(kind, name, parameter, folder):
    found = census.examine(kind, name, parameter, folder)
    assert found.outcome != "failed", found.why
    if found.outcome != "passed":
        pytest.skip(f"{name}, {parameter}: {found.outcome}. {found.why[:90]}")


# --- networks: some of them here, all with make census --------------------------------------------


CASES = ("rts96", "pglib_opf_case5_pjm", "pglib_opf_case30_as", "pglib_opf_case200_activ")
MORE_CASES = pglib_names(300)


@pytest.mark.parametrize("parameter", census.PARAMETERS)
@pytest.mark.parametrize("case", [*CASES, *(MORE_CASES if FULL else ())])
def test_every_column_of_a_case_is_kept_or_listed(case, parameter, tmp_path):
    if case != "rts96":
        pglib(case)  # a skip if it is not here
    check("matpower", case, parameter, tmp_path)


NETS = ("case9", "case39", "create_cigre_network_mv", "case145")
MORE_NETS = ("case14", "case24_ieee_rts", "case118", "case300", "iceland", "mv_oberrhein")


@pytest.mark.parametrize("parameter", census.PARAMETERS)
@pytest.mark.parametrize("name", [*NETS, *(MORE_NETS if FULL else ())])
def test_every_column_of_a_net_is_kept_or_listed(name, parameter, tmp_path):
    pytest.importorskip("pandapower", reason="pandapower is not installed")
    check("pandapower", name, parameter, tmp_path)


@pytest.mark.parametrize("name", ["case24_ieee_rts", "case118", "case300", "GBreducednetwork"])
def test_a_power_flow_of_a_released_net_converges(name, tmp_path):
    pytest.importorskip("pandapower", reason="pandapower is not installed")
    assert census.converges(census.pandapower_net(name))
    found = census.examine("pandapower", name, "capacity", tmp_path)
    assert found.outcome == "passed", found.why


def test_a_power_flow_that_diverges_is_found(tmp_path):
    """A control: with all units at one share of their range case300 has no solution."""
    pandapower = pytest.importorskip("pandapower", reason="pandapower is not installed")

    def damage(path):
        net = pandapower.from_json(str(path))
        put_dispatch(net, even_dispatch(read_case(net)))
        pandapower.to_json(net, str(path))

    found = census.examine("pandapower", "case300", "capacity", tmp_path, damage)
    assert found.outcome == "failed"
    assert found.why == "runpp converged on the source, and not on the release"


PYPSA = ("series", "types", "taps and shifts", "two islands", "solved", "links and storage")


@pytest.mark.parametrize("parameter", census.PARAMETERS)
@pytest.mark.parametrize("name", PYPSA if not FULL else census.PYPSA)
def test_every_attribute_of_a_pypsa_network_is_kept_or_listed(name, parameter, tmp_path):
    pytest.importorskip("pypsa", reason="PyPSA is not installed")
    check("pypsa", name, parameter, tmp_path)


def changed(table, cell, value):
    """Change one cell of the first row of a released case; a row begins with a tab."""

    def damage(path):
        lines = path.read_text(encoding="utf-8").splitlines()
        first = lines.index(f"mpc.{table} = [") + 1
        cells = lines[first].split("\t")
        cells[cell + 1] = value
        lines[first] = "\t".join(cells)
        path.write_text("\n".join(lines), encoding="utf-8")

    return damage


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (changed("branch", 3, "0.12345"), "branch BR_X"),
        (changed("bus", 9, "229"), "bus BASE_KV"),
        (changed("bus", 2, "77.7"), "buses load reads as something else"),
    ],
)
def test_a_column_that_changed_in_silence_is_found(damage, says, tmp_path):
    found = census.examine("matpower", "rts96", "load", tmp_path, damage=damage)
    assert found.outcome == "failed"
    assert says in found.why


# --- the documentation ----------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "released-columns.md"
FORMATS = {
    "matpower": "MATPOWER",
    "pandapower": "pandapower",
    "pypsa": "PyPSA",
    "psse": "PSS/E",
    "cgmes": "CGMES",
    "powsybl": "XIIDM, UCTE, IEEE-CDF (written as XIIDM)",
}


HEAD = """# What a released network keeps

Everything that is neither private nor computed from private values, in every format alike. The list
of what is not as in the source, with the reason, is in the statement (`settings`, `changed
columns`), in the report and on the screen. A column that is not on this page is dropped, since it
may copy a private value, and listed too. This page is made from the table that the writers follow
(`gridveil.grid.io.released_columns.table`).

- *released*: with noise. *rewritten*: made from public and released data. *dropped*: not in the
  file, or a neutral number.
- Names are kept but of elements that have a private number.
- Voltage set points, shunts and charging are public. If yours were computed from a private
  parameter, take them out of the file before the release.
"""


def page():
    """The page of the documentation that lists the table."""
    lines = HEAD.splitlines()
    for kind, title in FORMATS.items():
        lines += ["", f"## {title}", "", "| table | kept |", "|---|---|"]
        lines += [
            f"| {table} | {', '.join(names.split())} |" for table, names in KEPT[kind].items()
        ]
        lines += ["", "| private | table | columns | fate | why |", "|---|---|---|---|---|"]
        for rule in RULES[kind]:
            private = "any" if rule.parameters == EVERY else ", ".join(rule.parameters.split())
            which = ", ".join(rule.tables.split()), ", ".join(rule.columns.split())
            lines.append(f"| {private} | {which[0]} | {which[1]} | {rule.fate} | {rule.reason} |")
    return "\n".join(lines) + "\n"


def test_the_page_of_the_documentation_is_the_table():
    assert PAGE.read_text(encoding="utf-8") == page()


# --- the table ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KEPT)
def test_a_rule_speaks_of_known_columns_and_parameters(kind):
    for rule in RULES[kind]:
        assert {*rule.parameters.split()} <= {*PARAMETERS}
        assert rule.reason.endswith(".")
        for table in rule.tables.split():
            for column in rule.columns.split():
                found = fate_of(kind, table, column, rule.parameters.split())
                assert found is not None
                if not rule.some:
                    assert column not in copied(kind, table, rule.parameters.split())


def test_the_strongest_fate_of_several_parameters_counts():
    (one,) = changes("matpower", {"gencost": ["COST"]}, ("generator_limit", "cost"))
    assert one.fate == "released"
    (one,) = changes("pandapower", {"pwl_cost": ["points"]}, ("generator_limit", "cost"))
    assert one.fate == "dropped"


def test_columns_that_nobody_knows_are_dropped_and_listed():
    found = changes("pandapower", {"line": ["max_i_ka", "rate_b", "300 MVA"]}, ["load"])
    (one,) = found
    assert (one.columns, one.fate) == (("rate_b", "(other)"), "dropped")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
