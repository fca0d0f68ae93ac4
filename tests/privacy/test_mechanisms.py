"""Mechanisms: the noise that is really drawn, what is charged first, and what a failure says.

Error rates: every statistical check passes a right mechanism with probability over 1 - 1e-6 and
catches the stated control with probability over 1 - 1e-6.
"""

import itertools
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from threading import Event

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.sparse import csc_array
from scipy.sparse.linalg import MatrixRankWarning, spsolve
from support.making import adjacency, make_account
from support.sizes import FULL
from support.theory import theory

from gridveil.errors import BudgetRefused, InputError, NotPrivateWarning, ReleaseAborted
from gridveil.privacy import mechanisms, noise
from gridveil.privacy.account import Account, Budget, study_account
from gridveil.privacy.mechanisms import laplace, laplace_blocks, laplace_scalar, noisy_max
from gridveil.privacy.noise import SecureNoise
from gridveil.privacy.sealed import Range, Sealed, seal
from gridveil.privacy.seeded import SeededNoise
from gridveil.privacy.sensitivity import Sensitivity

LIMITS = Range(0.0, 100.0)
ONE = Sensitivity(Fraction(1, 10), "one entry moves by at most alpha")
CANARY = 31.41592653


def sealed(values) -> Sealed:
    return seal(values, name="power", unit="MW", range=LIMITS)


def seeded() -> SeededNoise:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return SeededNoise(7)


def draws(source, size: int = 20_000, scale: float = 1500.25) -> np.ndarray:
    return source.laplace(np.zeros(size, dtype=np.int64), scale) / scale


# -- the distribution -----------------------------------------------------------------------------


@pytest.mark.parametrize("source", [SecureNoise(), seeded()], ids=["secure", "seeded"])
def test_laplace_noise_has_its_scale_and_no_other(source):
    sample = draws(source)
    assert stats.kstest(sample, "laplace").pvalue > 1e-6
    for wrong in (0.8, 1.2):  # the control: 20% off
        assert stats.kstest(sample, "laplace", args=(0, wrong)).pvalue < 1e-9


@pytest.mark.parametrize("source", [SecureNoise(), seeded()], ids=["secure", "seeded"])
def test_laplace_noise_is_exact_on_a_coarse_grid(source):
    # At a scale of a few steps the discrete distribution differs from the continuous one.
    scale = 1.7
    sample = source.laplace(np.zeros(40_000, dtype=np.int64), scale)
    assert stats.chisquare(*_binned(sample, scale)).pvalue > 1e-6
    assert stats.chisquare(*_binned(sample, 1.2 * scale)).pvalue < 1e-9


def _binned(sample, scale):
    ratio = np.exp(-1 / scale)
    steps = np.arange(-6, 7)
    inside = (1 - ratio) / (1 + ratio) * ratio ** np.abs(steps)
    tail = ratio**7 / (1 + ratio)
    counts = [np.sum(sample < -6), *(np.sum(sample == k) for k in steps), np.sum(sample > 6)]
    return counts, np.array([tail, *inside, tail]) * len(sample)


def test_noise_over_many_chunks_and_threads_is_independent():
    sample = draws(SecureNoise(), size=3 * noise._CHUNK + 5)
    assert stats.kstest(sample, "laplace").pvalue > 1e-6
    chunks = sample[: 3 * noise._CHUNK].reshape(3, -1)
    correlation = np.corrcoef(chunks)[np.triu_indices(3, 1)]
    assert np.abs(correlation).max() < 6 / np.sqrt(noise._CHUNK)
    assert not (chunks[0] == chunks[1]).all()


@pytest.mark.parametrize("source", [SecureNoise(), seeded()], ids=["secure", "seeded"])
@pytest.mark.parametrize("size", [3, 10])
def test_noisy_max_chooses_as_exponential_noise_does(source, size):
    scale = 1000.0
    scores = np.linspace(0, 2000, size).astype(np.int64)
    picks = 20_000 if FULL else 10_000  # the control is missed once in 1e16 runs
    counts = np.bincount([source.noisy_max(scores, scale) for _ in range(picks)], minlength=size)
    expected = np.array(theory(scores, scale)) * picks
    assert expected.sum() == pytest.approx(picks, rel=1e-6)
    expected *= picks / expected.sum()
    assert stats.chisquare(counts, expected).pvalue > 1e-6
    wrong = np.array(theory(scores, 0.8 * scale)) * picks
    assert stats.chisquare(counts, wrong * picks / wrong.sum()).pvalue < 1e-9


def test_identity_release_is_centred_on_the_data(account):
    values = np.linspace(0, 100, 20_000)  # with 5,000 the control was missed in 1 run of 60
    noisy = laplace(account, sealed(values), name="power", sensitivity=ONE, epsilon=1)
    error = (noisy.value - values) / 0.1
    assert stats.kstest(error, "laplace").pvalue > 1e-6
    assert stats.kstest(error, "laplace", args=(0, 0.8)).pvalue < 1e-6


# -- what is charged, and when ---------------------------------------------------------------------


@given(
    st.fractions(Fraction(1, 100), 10, max_denominator=1000),
    st.fractions(Fraction(1, 100), 10, max_denominator=1000),
    st.none() | st.integers(-16, 0).map(lambda e: Fraction(2) ** e),
    st.integers(1, 30),
)
def test_every_mechanism_is_charged_what_its_map_says(alpha, epsilon, grid, size):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        account = study_account(epsilon * 3, adjacency=[adjacency()], seed=1)
    sensitivity = Sensitivity(alpha, "test")
    data = sealed(np.zeros(size))
    common = {"name": "q", "sensitivity": sensitivity, "epsilon": epsilon, "grid": grid}
    records = [
        laplace(account, data, **common).record,
        laplace_scalar(account, data, query=np.sum, range=LIMITS, unit="MW", **common).record,
        noisy_max(
            account,
            data,
            query=lambda y: y,
            size=size,
            range=LIMITS,
            unit="MW",
            monotone=False,
            **common,
        ).record,
    ]
    for record in records:
        assert record.calibration.mapped <= record.epsilon == epsilon
    assert account.budget.remaining == 0
    assert account.records == tuple(records)


def test_a_refused_budget_opens_no_seal(ledger):
    account = make_account(ledger, epsilon=1)

    def never(_):
        raise AssertionError("the seal was opened")

    with pytest.raises(BudgetRefused):
        laplace(
            account, sealed([1]), query=never, name="q", sensitivity=ONE, epsilon="1.01", size=1
        )
    assert account.budget.remaining == 1
    assert account.records == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"epsilon": "nan"},
        {"size": 0},
        {"grid": Fraction(1, 3)},
        {"range": Range(0, 1e300)},
    ],
)
def test_bad_public_parameters_charge_nothing(account, wrong):
    before = account.budget.remaining
    call = {"name": "q", "sensitivity": ONE, "epsilon": 1, **wrong}
    with pytest.raises(InputError):
        laplace(account, sealed([1.0]), **call)
    assert account.budget.remaining == before


def test_answers_outside_their_range_are_clipped_not_refused(account):
    def query(_):
        return [1e12, -1e12]

    both = replace(ONE, moving=2)
    noisy = laplace(
        account, sealed([1.0]), query=query, name="q", sensitivity=both, epsilon=500, size=2
    )
    assert np.allclose(noisy.value, [100, 0], atol=1)


# -- failures on private data ----------------------------------------------------------------------


def _raises(values):
    raise ValueError(f"{values}")


@pytest.mark.parametrize(
    "query",
    [
        _raises,
        lambda y: np.array([np.nan]),
        lambda y: np.array([np.inf]),
        lambda y: y[:0],
        lambda y: [1.0, 2.0],
        lambda y: f"power {y[0]}",
        lambda y: None,
    ],
)
def test_a_failing_query_aborts_charged_and_silent(ledger, query):
    account = make_account(ledger, epsilon=1)
    with pytest.raises(ReleaseAborted) as caught:
        laplace(
            account, sealed([CANARY]), query=query, name="q", sensitivity=ONE, epsilon=1, size=1
        )
    seen = "".join(traceback.format_exception(caught.value))
    assert "31.4" not in seen
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert account.budget.remaining == 0
    assert ledger.totals("test").aborts == 1
    assert ledger.totals("test").spent == 1


@pytest.mark.parametrize("setting", ["warn", "raise", "print"])
def test_no_warning_tells_of_private_values(ledger, setting, capfd):
    """An overflow, a division by zero or a singular matrix on the way to an answer is no output."""

    def odd(y):
        return np.nan_to_num(np.array([(y[0] * 1e308) / (y[0] - 50) + 0 * np.log(y[0] - 50)]))

    def singular(y):
        return np.nan_to_num(spsolve(csc_array([[y[0] - 50.0]]), np.ones(1)))

    asked = {"name": "q", "sensitivity": ONE, "epsilon": 1, "size": 1}
    with warnings.catch_warnings(record=True) as said, np.errstate(all=setting):
        warnings.simplefilter("always")
        for value, query in itertools.product((1.0, 50.0, 100.0), (odd, singular)):
            laplace(make_account(ledger, epsilon=1), sealed([value]), query=query, **asked)
    assert not said
    assert capfd.readouterr() == ("", "")
    assert ledger.totals("test").aborts == 0
    # The control: it does say so elsewhere.
    with pytest.warns(RuntimeWarning):
        odd(np.array([100.0]))
    with pytest.warns(MatrixRankWarning):
        singular(np.array([50.0]))


def test_no_warning_tells_of_private_values_in_another_thread(ledger):
    """Filters of warnings belong to all threads: one that is done puts back none for the others."""
    begun, joined, gone = Event(), Event(), Event()

    def early(y):
        begun.set()
        joined.wait(10)
        return y

    def late(y):
        joined.set()
        gone.wait(10)
        warnings.warn(f"{y[0]}", RuntimeWarning, stacklevel=1)
        return y

    def ask(query, account):
        laplace(account, sealed([CANARY]), query=query, name="q", sensitivity=ONE, epsilon=1)

    accounts = [make_account(ledger, epsilon=1) for _ in range(2)]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        with ThreadPoolExecutor(2) as pool:
            one = pool.submit(ask, early, accounts[0])
            begun.wait(10)
            other = pool.submit(ask, late, accounts[1])
            one.result()
            gone.set()
            other.result()
        assert not said
        assert warnings.filters == before  # what comes later is shown, as before


def test_later_releases_list_the_abort(ledger):
    account = make_account(ledger, epsilon=1)
    with pytest.raises(ReleaseAborted):
        laplace(account, sealed([1]), query=_raises, name="q", sensitivity=ONE, epsilon=1, size=1)
    assert make_account(ledger, epsilon=1).charge.earlier_aborts == 1


# -- blocks ----------------------------------------------------------------------------------------


def blocks_of(values, size=7) -> Sealed:
    parts = [np.array(values[i : i + size], float) for i in range(0, len(values), size)]
    return Sealed(lambda: iter(parts), name="power", shape=(len(values),), unit="MW", range=LIMITS)


def test_blocks_are_charged_at_once_and_noised_like_a_vector(ledger):
    account = make_account(ledger, epsilon=1)
    values = np.linspace(0, 100, 3000)
    noisy = laplace_blocks(account, blocks_of(values), name="q", sensitivity=ONE, epsilon=1)
    assert account.budget.remaining == 0
    error = (np.concatenate(list(noisy.value)) - values) / 0.1
    assert stats.kstest(error, "laplace").pvalue > 1e-6
    assert list(noisy.value) == []  # a second reading would draw other noise


@pytest.mark.parametrize("values", [[1.0, np.nan], [1.0]])
def test_blocks_that_are_not_what_was_sealed_abort(account, values):
    broken = Sealed(lambda: iter([np.array(values)]), name="p", shape=(2,), unit="MW", range=LIMITS)
    noisy = laplace_blocks(account, broken, name="q", sensitivity=ONE, epsilon=1)
    with pytest.raises(ReleaseAborted):
        list(noisy.value)


# -- noise sources ---------------------------------------------------------------------------------


def test_seeded_noise_warns_repeats_and_is_never_valid():
    with pytest.warns(NotPrivateWarning):
        first = study_account(1, adjacency=[adjacency()], seed=3)
    with pytest.warns(NotPrivateWarning):
        second = study_account(1, adjacency=[adjacency()], seed=3)
    one, two = (
        laplace(a, sealed(np.ones(9)), name="q", sensitivity=ONE, epsilon=1)
        for a in (first, second)
    )
    assert (one.value == two.value).all()
    assert not first.dp_valid


def test_secure_noise_without_a_charge_can_not_be_had():
    with pytest.raises(InputError, match="needs a charge"):
        Account(Budget(1), SecureNoise(), [adjacency()], None, None)


def test_an_assumed_sensitivity_is_not_valid(account):
    assumed = Sensitivity(Fraction(1), "assumed", proved=False)
    laplace(account, sealed([1]), name="p", sensitivity=ONE, epsilon=1)
    assert account.dp_valid
    laplace(account, sealed([1]), name="q", sensitivity=assumed, epsilon=1)
    assert not account.dp_valid


def test_secure_noise_never_repeats():
    first, second = (draws(SecureNoise(), 50) for _ in range(2))
    assert not (first == second).all()


def test_records_read_well(account):
    record = laplace(account, sealed([1]), name="power", sensitivity=ONE, epsilon=1).record
    assert repr(record) == "Record(power: discrete Laplace, scale 0.1 MW, epsilon 1)"
    assert mechanisms.Noisy(1, record).value == 1


def test_a_query_that_mixes_entries_counts_all_its_coordinates(account):
    """One of two coordinates may be left out only by a sensitivity that says why it can't move."""
    sealed = seal([0.2, 0.4], name="power", unit="MW", range=LIMITS)

    def ask(**said):
        bound = Sensitivity(Fraction(1, 5), "test", **said)
        asked = {"query": lambda y: [y.sum(), y[0]], "size": 2, "name": "two of them"}
        return laplace(account, sealed, sensitivity=bound, epsilon=1, **asked)

    with pytest.raises(InputError, match="1 of 2 coordinates"):
        ask()
    assert account.budget.spent == 0
    ask(moving=2)
    ask(separate=True)
    assert account.budget.spent == 2
