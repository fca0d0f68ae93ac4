"""Transcripts: what was asked and told, how likely it is, and what a replay shows."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from support.theory import theory

from gridveil.auditing.checks import Sizes
from gridveil.auditing.scratch_ledgers import account_with
from gridveil.auditing.transcript import (
    Departure,
    Recorder,
    Replayer,
    choice_probability,
    published,
)
from gridveil.auditing.transcript_audits import Ratio, Replay, distance, log_ratio
from gridveil.auditing.wind import METHODS, _release
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.mechanisms import laplace, noisy_max
from gridveil.privacy.noise import SecureNoise
from gridveil.privacy.sealed import Range, seal
from gridveil.privacy.sensitivity import Sensitivity

LIMITS = Range(0.0, 100.0)
ONE = Sensitivity(Fraction(1), "a test")
FEW = Sizes(20, 20)


def answer(values, noise, *, chosen=True, epsilon=1, alpha=1):
    """A vector and, at will, the index of its largest entry."""
    adjacency = Adjacency.of("power", alpha=1, unit="MW", range=LIMITS, entries=len(values))
    account = account_with(noise, adjacency)
    sealed = seal(values, name="power", unit="MW", range=LIMITS)
    bound = Sensitivity(Fraction(alpha), "a test")
    noisy = laplace(account, sealed, name="q", sensitivity=bound, epsilon=epsilon)
    found = {"values": noisy.value.tobytes()}
    if chosen:
        index = noisy_max(
            account, sealed, query=lambda y: y, name="m", sensitivity=ONE, epsilon=1,
            size=len(values), range=LIMITS, unit="MW", monotone=True,
        )  # fmt: skip
        found["index"] = bytes([index.value])
    return found


@pytest.mark.parametrize("scores", [[0, 0], [0, 2000], [5, 5000, 300], [0, 700, 1400, 90_000]])
def test_choices_are_as_likely_as_theory_says(scores):
    scores = np.array(scores)
    expected = theory(scores, 1000.0)
    found = [choice_probability(scores, 1000.0, k) for k in range(len(scores))]
    assert found == pytest.approx(expected, abs=1e-7)
    assert sum(found) == pytest.approx(1, abs=1e-12)


def test_a_replay_gives_the_same_answers_on_other_data():
    recorder = Recorder()
    first = answer([10.0, 20.0], recorder)
    replayer = Replayer(recorder.transcript)
    assert answer([90.0, 0.0], replayer) == first
    assert replayer.faithful
    assert [asked.values.tolist() for asked in replayer.transcript] != [
        asked.values.tolist() for asked in recorder.transcript
    ]


def test_how_a_vector_is_cut_into_blocks_is_no_question():
    recorder = Recorder()
    whole = recorder.laplace(np.arange(10), 50.0)
    recorder.laplace(np.arange(2), 7.0)
    replayer = Replayer(recorder.transcript)
    parts = [replayer.laplace(np.zeros(n, np.int64), 50.0) for n in (3, 7)]
    assert np.concatenate(parts).tolist() == whole.tolist()
    assert not replayer.faithful
    replayer.laplace(np.zeros(2, np.int64), 7.0)
    assert replayer.faithful
    again = Replayer(replayer.transcript)
    assert again.laplace(np.arange(10), 50.0).tolist() == whole.tolist()
    with pytest.raises(Departure):
        again.laplace(np.arange(3), 7.0)
    assert again.departed


@pytest.mark.parametrize(
    "other",
    [{"chosen": False}, {"epsilon": 2}, {"alpha": "3/2"}],
    ids=["fewer", "epsilon", "scale"],
)
def test_a_replay_that_asks_for_something_else_departs(other):
    recorder = Recorder()
    answer([10.0, 20.0], recorder)
    replayer = Replayer(recorder.transcript)
    published(partial(answer, [10.0, 20.0], **other), replayer)
    assert not replayer.faithful
    assert log_ratio(partial(answer, [1.0]), partial(answer, [1.0], **other)) == np.inf
    assert distance(partial(answer, [1.0]), partial(answer, [1.0], **other)) == np.inf


def test_more_than_was_recorded_departs_too():
    recorder = Recorder()
    answer([10.0, 20.0], recorder, chosen=False)
    replayer = Replayer(recorder.transcript)
    assert "refusal" in published(partial(answer, [10.0, 20.0]), replayer)
    assert replayer.departed


def test_ratios_stay_under_the_sum_of_epsilons_and_reach_it():
    pairs = [(partial(answer, [10.0, 9.0]), partial(answer, [10.0, 10.0]))]
    found = Ratio("both", Fraction(2), pairs, Sizes(200, 200)).run(fast=True, error=1e-6)
    assert not found.broken
    assert 1.5 < found.proved <= 2
    assert found.words == f"claimed 2; reached {found.proved:.2f}: consistent"
    wrong = Ratio("both", Fraction(3, 2), pairs, Sizes(200, 200)).run(fast=True, error=1e-6)
    assert wrong.broken


def test_distance_is_what_epsilon_pays_for():
    one, other = partial(answer, [10.0, 20.0]), partial(answer, [10.0, 21.0])
    assert distance(one, other) == pytest.approx(2, rel=2e-3)


@pytest.mark.parametrize("leak", ["value", "refusal", "nothing"])
def test_a_replay_finds_what_goes_past_the_noise(leak):
    def run(value, noise):
        found = answer([value], noise, chosen=False)
        if leak == "refusal" and value > 50:
            raise Departure("too large")
        return {**found, "leak": bytes([int(value)])} if leak == "value" else found

    verdict = Replay("leak", [partial(run, 10.0), partial(run, 60.0)], FEW).run(
        fast=True, error=1e-6
    )
    assert verdict.broken == (leak != "nothing")
    if leak == "value":
        assert "leak (20)" in verdict.finding


@pytest.mark.parametrize("end", ["refusal", "exit code"])
def test_releases_that_all_fail_alike_are_not_a_replay(end):
    def run(value, noise):
        if end == "refusal":
            raise Departure("too large")
        return {"exit code": b"1"}

    runs = [partial(run, 10.0), partial(run, 60.0)]
    verdict = Replay("none", runs, FEW).run(fast=True, error=1e-6)
    assert verdict.broken
    assert "nothing was compared" in verdict.finding
    assert not Replay("none", runs, FEW, refused=True).run(fast=True, error=1e-6).broken
    made = [partial(answer, [10.0]), partial(answer, [60.0])]
    assert Replay("one", made, FEW, refused=True).run(fast=True, error=1e-6).broken


@pytest.mark.parametrize("method", METHODS)
def test_a_wiretap_hears_everything_that_a_release_pays_for(method):
    recorder = Recorder()
    made = _release(method, (0.1, 0.9, 0.3, 0.5, 0.0, 1.0), recorder)
    assert made.statement.dp_valid
    heard = [asked.scale for asked in recorder.transcript]
    assert heard == [record.calibration.scale for record in made.account.records]
    assert _release(method, (0.5,) * 6, SecureNoise()).account.noise is not recorder
