"""Solver failures half-way through a grid release, in private and in public solves.

Private solves climb the ladder, and abort charged and silent where it ends. Public ones lose
nothing that was paid for: the release goes on with what it has.
"""

from contextlib import contextmanager

import numpy as np
import pytest
from faults.test_private_failures import visible
from fuzz.grids import CASE
from support.sizes import FULL

from gridveil import grid
from gridveil.errors import ReleaseAborted
from gridveil.grid.methods.cost_query import CostQuery
from gridveil.grid.opf import fallbacks as ladder
from gridveil.grid.opf.lazy_rows import Outcome, without_numbers
from gridveil.grid.release import GridRelease
from gridveil.grid.restoration.master import Unsolved
from gridveil.grid.restoration.oracle import Oracle
from gridveil.release.verification import verify_bundle

CANARY = 3.14159265  # MW: the capacity of a line, and so in all that is private
LIMITS = (1, 500)


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    path = tmp_path_factory.mktemp("case") / "case3.m"
    path.write_bytes(CASE.replace(b"\t75.5\t75.5\t75.5", f"\t{CANARY}\t75\t75".encode()))
    return grid.read_case(path)


@pytest.fixture(scope="module")
def models(network):
    return grid.sample_population(network, 6, spread=0.05, costs=0.1, seed=1)


def make(network, models, ledger, method="paper"):
    options = {"rounds": 2} if method == "paper" else {}
    return grid.release(
        network,
        models,
        epsilon=1,
        alpha=5,
        method=method,
        range=LIMITS,
        dataset="case3",
        ledger=ledger,
        **options,
    )


class Flag:
    """Whether a private computation is under way."""

    on = False

    @contextmanager
    def up(self):
        self.on = True
        try:
            yield
        finally:
            self.on = False


@pytest.fixture
def private(monkeypatch):
    """Up while the real network is being solved."""
    flag = Flag()
    costs = CostQuery._costs

    def watched(self, parts, models):
        with flag.up():
            return costs(self, parts, models)

    monkeypatch.setattr(CostQuery, "_costs", watched)
    return flag


def spoil(monkeypatch, flag, rungs, how):
    """Let solves under the flag fail on their first rungs."""
    lazily = ladder.solve_lazily
    together = ladder.solve_together
    tried = {}

    def failing(solver, batch, k, most=np.inf):
        form = solver.form
        if not flag.on:
            return lazily(solver, batch, k, most)
        number = tried[id(batch)] = tried.get(id(batch), 0) + 1
        if number > rungs:
            return lazily(solver, batch, k, most)
        if how == "raises":
            raise RuntimeError(f"HiGHS: bound {form.capacity if hasattr(form, 'capacity') else 0}")
        return without_numbers(Outcome[how], form)

    monkeypatch.setattr(ladder, "solve_lazily", failing)
    monkeypatch.setattr(ladder, "solve_together", lambda *a: {} if flag.on else together(*a))
    return tried


@pytest.mark.parametrize("how", ["FAILED", "INFEASIBLE", "UNBOUNDED"])
def test_a_private_solve_that_fails_is_solved_again(
    network, models, ledger, tmp_path, monkeypatch, private, how
):
    tried = spoil(monkeypatch, private, 1, how)
    made = make(network, models, ledger)
    assert tried  # it did fail
    check_bundle(made, ledger, tmp_path, monkeypatch)


@pytest.mark.parametrize("how", ["FAILED", "INFEASIBLE", "UNBOUNDED", "raises"])
def test_a_private_solve_that_always_fails_aborts_charged_and_silent(
    network, models, ledger, monkeypatch, private, how
):
    spoil(monkeypatch, private, 99, how)
    with pytest.raises(ReleaseAborted) as caught:
        make(network, models, ledger)
    check_abort(caught.value, ledger)


@pytest.mark.parametrize("how", ["nan", "inf", "uncertified", "shape"])
def test_private_costs_without_a_proof_abort_charged_and_silent(
    network, models, ledger, monkeypatch, private, how
):
    solve = grid.solve_population

    def wrong(on, population, **options):
        found = solve(on, population, **options)
        if private.on and how == "nan":
            found.cost[0] = np.nan
        if private.on and how == "inf":
            found.cost[0] = np.inf
        if private.on and how == "uncertified":
            found.status[0] = ladder.Status.UNCERTIFIED
            found.bound[0] -= 1e6
        if private.on and how == "shape":
            return solve(on, grid.sample_population(network, 9, costs=0.1), **options)
        return found

    monkeypatch.setattr("gridveil.grid.methods.cost_query.solve_population", wrong)
    with pytest.raises(ReleaseAborted) as caught:
        make(network, models, ledger)
    check_abort(caught.value, ledger)


def check_abort(error, ledger):
    assert error.__context__ is None
    assert error.__cause__ is None
    assert str(CANARY) not in visible(error)
    assert "3.141592" not in visible(error)
    totals = ledger.totals("case3")
    assert (totals.spent, totals.aborts, len(totals.unreleased)) == (1, 1, 1)
    assert ledger.problems() == []


def test_every_private_solve_has_a_solver_of_its_own(network, models, ledger, monkeypatch, private):
    """A solver that touched the real network is never used for a public answer."""
    seen = {True: set(), False: set()}
    kept = []
    lazily = ladder.solve_lazily

    def watched(solver, batch, k, most=np.inf):
        kept.append(solver)  # alive, so that no other gets its address
        seen[private.on].add(id(solver))
        return lazily(solver, batch, k, most)

    monkeypatch.setattr(ladder, "solve_lazily", watched)
    monkeypatch.setattr(ladder, "solve_together", lambda *_: {})
    make(network, models, ledger)
    assert seen[True]
    assert seen[False]
    assert not seen[True] & seen[False]


# -- public solves ---------------------------------------------------------------------------------


def raising(error):
    def fail(*_, **__):
        raise error

    return fail


def costs_of(value, monkeypatch):
    solve = Oracle.solve

    def wrong(self, *a):
        found = solve(self, *a)
        found.cost[...] = value
        return found

    monkeypatch.setattr(Oracle, "solve", wrong)


PUBLIC = [
    ("certified", "gridveil.grid.restoration.project.nearest", Unsolved("Clarabel gave up.")),
    ("certified", "gridveil.grid.restoration.project.nearest", RuntimeError("panic")),
    (
        "certified",
        "gridveil.grid.methods.base._estimate",
        np.linalg.LinAlgError("singular"),
    ),
    ("certified", "gridveil.grid.methods.base._estimate", ZeroDivisionError()),
    ("certified", "gridveil.grid.restoration.oracle.Oracle.at", Unsolved("HiGHS gave up.")),
    ("certified", "gridveil.grid.restoration.oracle.Oracle.at", ValueError("shapes")),
    ("paper", "gridveil.grid.restoration.paper_steps.Matcher.match", Unsolved("No values.")),
    ("paper", "gridveil.grid.restoration.paper_steps.Programme.solve", Unsolved("No values.")),
    ("paper", "gridveil.grid.restoration.paper_steps.Matcher.match", RuntimeError("panic")),
    ("paper", "gridveil.grid.restoration.oracle.Oracle.solve", OverflowError()),
]


@pytest.mark.parametrize(("method", "where", "error"), PUBLIC)
def test_a_public_failure_loses_nothing_that_was_paid_for(
    network, models, ledger, tmp_path, monkeypatch, method, where, error
):
    with monkeypatch.context() as patch:
        patch.setattr(where, raising(error))
        made = make(network, models, ledger, method)
    check_bundle(made, ledger, tmp_path, monkeypatch)
    assert any("failed" in name for name in made.statement.body["settings"])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf] if FULL else [np.nan])
@pytest.mark.parametrize("method", ["certified", "paper"])
def test_public_costs_that_are_no_numbers_lose_nothing(
    network, models, ledger, tmp_path, monkeypatch, method, value
):
    with monkeypatch.context() as patch:
        # It takes long to give up.
        patch.setattr("gridveil.grid.restoration.paper_steps._LOOKS", 20)
        costs_of(value, patch)
        made = make(network, models, ledger, method)
    check_bundle(made, ledger, tmp_path, monkeypatch)


def test_a_solver_that_fails_in_one_round_is_asked_again_in_the_next(
    network, models, ledger, tmp_path, monkeypatch
):
    from gridveil.grid.restoration.paper_steps import Matcher

    match, tried = Matcher.match, []

    def failing(self, *a):
        tried.append(len(tried))
        if len(tried) == 1:
            raise Unsolved("No values.")
        return match(self, *a)

    monkeypatch.setattr(Matcher, "match", failing)
    made = make(network, models, ledger)
    assert len(tried) == 2
    assert len(made.statement.body["mechanisms"]) == 5
    check_bundle(made, ledger, tmp_path, monkeypatch)


def check_bundle(made, ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(GridRelease, "sections", lambda self: ())  # its map takes the most time
    placed = made.write(tmp_path / "out")
    assert all(finding.ok for finding in verify_bundle(placed)), verify_bundle(placed)
    assert ((made.values >= LIMITS[0]) & (made.values <= LIMITS[1])).all()
    totals = ledger.totals("case3")
    assert (totals.spent, totals.aborts, totals.unreleased) == (1, 0, set())
    assert grid.read_case(placed / "network.m").branches.capacity[0] == made.values[0]
