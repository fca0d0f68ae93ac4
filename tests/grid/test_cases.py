"""RTS-96: the numbers of PGLib-OPF, and the paper's variant of them."""

from importlib.resources import files

import numpy as np
import pytest
from grid.making import pglib

from gridveil.errors import InputError
from gridveil.grid import cases, problems, read_case
from gridveil.grid.io.matpower import tables_of


def susceptance(branches):
    return branches.reactance / (branches.resistance**2 + branches.reactance**2)


def by_ends(branches, values):
    """Sums of values over branches between the same two buses."""
    total = {}
    for a, b, value in zip(branches.from_bus, branches.to_bus, values, strict=True):
        key = frozenset((int(a), int(b)))
        total[key] = total.get(key, 0.0) + value
    return total


def test_numbers_are_those_of_pglib():
    published = tables_of(read_case(pglib("pglib_opf_case73_ieee_rts")).source.data)
    mine = tables_of(cases.rts96().source.data)
    assert mine.base_mva == published.base_mva
    for table in ("bus", "gen", "branch", "gencost"):
        np.testing.assert_array_equal(getattr(mine, table), getattr(published, table))


def test_sizes():
    network = cases.rts96()
    assert (len(network.buses), len(network.branches), len(network.generators)) == (73, 120, 99)
    assert network.buses.load.sum() == pytest.approx(8550)
    assert problems(network) == []


def test_the_papers_variant_merges_parallel_lines():
    published, paper = cases.rts96(), cases.rts96(variant="paper")
    assert (len(paper.buses), len(paper.branches), len(paper.generators)) == (73, 108, 99)
    assert len(by_ends(paper.branches, paper.branches.capacity)) == 108
    for values, share in (
        ((published.branches.capacity, paper.branches.capacity), 0.6),
        ((susceptance(published.branches), susceptance(paper.branches)), 1.0),
    ):
        before = by_ends(published.branches, values[0])
        after = by_ends(paper.branches, values[1])
        assert before.keys() == after.keys()
        for ends, total in before.items():
            assert after[ends] == pytest.approx(share * total, rel=1e-12)


def test_variants_that_are_not_there():
    with pytest.raises(InputError, match="no variant 'other'"):
        cases.rts96("other")


def test_the_case_can_be_written_and_read(tmp_path):
    network = cases.rts96("paper")
    network.write(tmp_path / "paper.m")
    again = read_case(tmp_path / "paper.m")
    np.testing.assert_array_equal(again.branches.capacity, network.branches.capacity)
    np.testing.assert_array_equal(again.generators.quadratic, network.generators.quadratic)


def test_the_attribution_is_shipped():
    text = files("gridveil.grid.cases").joinpath("rts96", "ATTRIBUTION").read_text("utf-8")
    assert "PGLib-OPF" in text
    assert "Creative Commons Attribution 4.0" in text
