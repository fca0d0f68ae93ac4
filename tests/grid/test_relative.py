"""Steps that are a share of each value: their sensitivity, the ledger's count, what is refused."""

from fractions import Fraction

import numpy as np
import pytest
from conftest import FULL
from grid.reference import random_network
from hypothesis import given, settings
from hypothesis import strategies as st

from gridveil import grid
from gridveil.errors import InputError, LedgerRefused
from gridveil.grid.cases import rts96
from gridveil.grid.methods import entries_query
from gridveil.grid.methods.entries_query import EntriesQuery, log_step
from gridveil.grid.model.population import Population
from gridveil.grid.model.public_network import split_parts
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.owner_preview import step_words
from gridveil.privacy.account import Account, Budget
from gridveil.privacy.adjacency import RELATIVE, Adjacency, relative_steps
from gridveil.privacy.ledger import Ledger, Terms
from gridveil.privacy.sealed import Range, seal, seal_together
from gridveil.release.verification import verify_bundle

SHARES = [Fraction(1, 1000), Fraction(1, 20), Fraction(1, 5), Fraction(1), Fraction(10)]
EXAMPLES = 300 if FULL else 60


RANGES = {"capacity": (1.0, 300.0), "load": (-150.0, 400.0)}


class Silent:
    """No noise: it remembers the whole numbers that a mechanism handed over."""

    secure = False
    name = "none"

    def laplace(self, values, scale):
        self.steps = values
        return values


def parts_of(*names):
    network = random_network(3, buses=5, extra=1)
    return split_parts(network, names, {name: Range(*RANGES[name]) for name in names})[1]


def asked(query, public, values):
    """The whole numbers that noise would be added to."""
    noise = Silent()
    parts = [
        seal(values[part], name=name, unit="MW", range=public.ranges[name])
        for name, part in public.parts.items()
    ]
    account = Account(Budget(1), noise, [], None, None)
    query.ask(account, seal_together(parts), Fraction(1))
    return noise.steps


def apart(query, public, one, other):
    """How far two answers are apart, and how far they may be."""
    moved = np.abs(asked(query, public, one) - asked(query, public, other)).sum()
    return int(moved), query.sensitivity.steps(query.sensitivity.default_grid())


def draw_values(data, public):
    share = data.draw(st.lists(st.floats(0, 1), min_size=public.entries, max_size=public.entries))
    return public.low + np.array(share) * (public.high - public.low)


def far_apart(data, share, values, public):
    """One entry moved by the factor that the share allows, or less, inside its range."""
    other, place = values.copy(), data.draw(st.integers(0, len(values) - 1))
    factor = (1 + float(share)) ** data.draw(st.sampled_from([1.0, -1.0, 0.5]))
    other[place] = np.clip(values[place] * factor, public.low[place], public.high[place])
    return other


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data(), st.sampled_from(SHARES))
def test_logarithms_move_no_further_than_they_are_said_to(data, share):
    public = parts_of("capacity")
    problem = ReleaseProblem(public, Population(1), Fraction(50), ["capacity"])
    query = EntriesQuery(problem, {"capacity": share})
    values = draw_values(data, public)
    other = far_apart(data, share, values, public)
    moved, most = apart(query, public, values, other)
    assert moved <= most


def test_a_step_that_is_too_small_is_found(monkeypatch):
    # Control: r^2 short of ln(1 + r), which a slip (r / (1 + r) for the logarithm) would be.
    monkeypatch.setattr(entries_query, "log_step", lambda share: share / (1 + share))
    public = parts_of("capacity")
    problem = ReleaseProblem(public, Population(1), Fraction(50), ["capacity"])
    query = EntriesQuery(problem, {"capacity": Fraction(1, 5)})
    values = np.full(public.entries, 100.0)
    other = values.copy()
    other[0] = 120.0
    moved, most = apart(query, public, values, other)
    assert moved > most


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data(), st.sampled_from(SHARES))
def test_beside_amounts_they_move_the_vector_by_one(data, share):
    public = parts_of("capacity", "load")
    problem = ReleaseProblem(public, Population(1), Fraction(50), ["capacity"])
    query = EntriesQuery(problem, {"capacity": share, "load": Fraction(7)})
    values = draw_values(data, public)
    part = public.parts["capacity"]
    other = values.copy()
    place = data.draw(st.integers(part.start, part.stop - 1))
    moved = values[place] * (1 + float(share))
    other[place] = np.clip(moved, public.low[place], public.high[place])
    moved, most = apart(query, public, values, other)
    assert float(query.sensitivity.value) == pytest.approx(1.0)
    assert moved <= most


@given(st.fractions(0, 1000), st.sampled_from(SHARES[1:]))
def test_steps_to_a_factor_are_the_fewest(far, share):
    count = relative_steps(far, share)
    assert (1 + share) ** count >= 1 + far
    assert count == 0 or (1 + share) ** (count - 1) < 1 + far
    # The ledger's rule for amounts would count more, never fewer (Bernoulli).
    assert count <= -(-far // share)


def test_the_bound_of_a_logarithm_is_above_it():
    for share in SHARES:
        # ln(1 + r) <= D, by exp(D) >= its first terms.
        step, term, total = log_step(share), Fraction(1), Fraction(0)
        for k in range(60):
            total += term
            term = term * step / (k + 1)
        assert total >= 1 + share


def adjacency(alpha, unit=RELATIVE):
    return Adjacency.of("capacity", alpha=alpha, unit=unit, range=Range(50.0, 1000.0), entries=10)


def test_the_whole_range_is_counted_in_factors():
    assert adjacency("20%").steps_over_range == 17
    wide = Adjacency.of("capacity", alpha="20%", unit=RELATIVE, range=Range(1.0, 1e6), entries=1)
    assert wide.steps_over_range == 76
    assert adjacency(30, "MW").steps_over_range == 32


def test_the_ledger_counts_factors_and_keeps_amounts_apart(tmp_path):
    book = Ledger(tmp_path / "ledger.sqlite")

    def charge(one):
        return book.charge(Terms("lines", epsilon=1, adjacency=[one], purpose="a test"))

    assert charge(adjacency("44%")).charged == 1
    # 44% is two steps of 20% and four and a bit of 9%.
    assert charge(adjacency("20%")).charged == 2
    assert charge(adjacency("9%")).charged == 5
    assert charge(adjacency("100%")).charged == 1
    with pytest.raises(LedgerRefused, match=r"share of its value \(reference: 44% of"):
        charge(adjacency(30, "MW"))
    # Neither was charged: the total is that of the four.
    assert charge(adjacency("44%")).spent == 10
    book.set_reference("lines", {"capacity": "100%"})
    # 100% is two of 44% (1.44^2 > 2), four of 20%, nine of 9%.
    assert charge(adjacency("100%")).spent == 2 + 4 + 9 + 1 + 2 + 1


@pytest.mark.parametrize("alpha", ["20%", "250%", "1/3"])
def test_a_cap_is_set_with_the_reference_that_its_refusal_names(alpha, tmp_path):
    book = Ledger(tmp_path / "ledger.sqlite")
    book.charge(Terms("lines", epsilon=1, adjacency=[adjacency(alpha)], purpose="a test"))
    with pytest.raises(InputError, match="needs the alpha that it is about") as refused:
        book.set_cap("lines", 2)
    name, _, typed = refused.value.remedy.partition("--alpha ")[2].rstrip(".").partition("=")
    book.set_cap("lines", 2, alpha={name: typed})
    assert book.totals("lines").reference["capacity"].alpha == adjacency(alpha).alpha


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"method": "paper"}, "costs"),
        ({"parameter": "cost", "range": (1, 100)}, "can't be a share"),
        ({"parameter": "load", "range": (0, 1000)}, "--range load=0.01:1000 "),
        ({"parameter": "load", "range": (1, 1000), "total_share": "40%"}, "share of each"),
        ({"parameter": "load", "range": (1, 1000), "published_total": 8000}, "not a share"),
        ({"catalogue": [105, 240]}, "catalogue"),
        ({"alpha": "0.01%"}, "0.01%"),
        ({"alpha": "30%", "range": (100, 110)}, "more than the whole range"),
    ],
)
def test_what_shares_do_not_fit_is_refused(how, words):
    given = {"parameter": "capacity", "alpha": "20%", "epsilon": 1, **how}
    with pytest.raises(InputError, match=words):
        grid.plan(rts96(variant="paper"), **given)


def test_a_release_by_shares(tmp_path):
    network = rts96(variant="paper")
    models = grid.sample_population(network, 5, costs=(80.0, 100.0))
    made = grid.release(
        network,
        models,
        alpha="20%",
        epsilon=1,
        range=(50, 1000),
        dataset="lines",
        ledger=tmp_path / "ledger.sqlite",
    )
    (mechanism,) = made.statement.body["mechanisms"]
    assert mechanism["query"] == "the logarithm of every entry"
    assert mechanism["scale"] >= np.log(1.2)
    assert "at most 1 + alpha times" in made.statement.body["guarantee"]["adjacency"]
    assert "epsilon is 17" in made.statement.in_words[1]
    assert np.isfinite(made.solutions.cost).all()
    # Errors are shares, not amounts: about as large for small lines as for large ones.
    off = np.abs(made.values / network.branches.capacity - 1)
    assert off.mean() < 0.3
    made.write(tmp_path / "out")
    assert all(finding.ok for finding in verify_bundle(tmp_path / "out"))


@pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")
def test_loads_by_shares():
    network = rts96()
    plan = grid.plan(network, parameter="load", alpha="10%", epsilon=1, range=(1, 1000))
    made = plan.run(plan.study(0))
    off = np.abs(made.values / network.buses.load[network.buses.load != 0] - 1)
    assert off.mean() < 0.2


def test_the_owner_is_told_if_one_amount_fits_no_line():
    network = rts96()
    assert step_words(network) == []
    wide = network.with_capacity(np.geomspace(20, 4000, len(network.branches)))
    words, sure = step_words(wide)
    assert "--alpha 20%" in words
    assert "Choose by what is public" in words
    # A tenth of the three is 1, 1 and 11 steps of 30 MW (about 26, 280 and 3,100 MW).
    assert "73.2%, 73.2% and over 99.99%" in sure
    assert "73.2% for each at 20%" in sure
    # Placeholders and lines without a limit say nothing.
    assert step_words(network.with_capacity(np.full(len(network.branches), 9999.0))) == []
