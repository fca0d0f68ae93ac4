"""The checks, their words, and the runner."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from support.audited import SIZES, broken_audit, shifted, sound_audit

from gridveil.auditing.attacks import values
from gridveil.auditing.checks import Frequency, Pair, Repeat, Sizes, Support, worst_pair
from gridveil.auditing.runner import FALSE_ALARM, run_audits
from gridveil.auditing.verdicts import Verdict, show_confidence


def test_a_claim_that_holds_is_consistent():
    verdict = sound_audit().run(fast=True, error=1e-5)
    assert not verdict.broken
    assert 0.5 < verdict.proved < 1
    proved = f"{verdict.proved:.2f}"
    assert verdict.words == (
        f"claimed 1; proved at least {proved} at 99.999% confidence: consistent"
    )
    assert verdict.finding.startswith("1.0 apart; value at ")
    assert verdict.samples == 4_000
    assert sound_audit().run(fast=False, error=1e-5).samples == 8_000


def test_a_claim_that_does_not_hold_is_broken():
    verdict = broken_audit().run(fast=True, error=1e-5)
    assert verdict.broken
    assert verdict.words.endswith(": BROKEN")
    assert repr(verdict) == f"Verdict(broken: {verdict.words})"


def test_verdicts_are_json():
    verdict = sound_audit().run(fast=True, error=1e-5)
    loaded = json.loads(json.dumps(verdict.to_json()))
    assert loaded["words"] == verdict.words
    assert loaded["broken"] is False
    endless = Verdict("x", "ratio", 1.0, math.inf, 1.0, 1, "", broken=True)
    assert json.loads(json.dumps(endless.to_json(), allow_nan=False))["proved"] == "inf"


def test_the_worst_pair_is_searched():
    pairs = [shifted(distance) for distance in (0.0, 0.3, 1.0, 0.6)]
    assert worst_pair(pairs, [values()], 4_000).words == "1.0 apart"


def test_the_search_leaves_no_traces_in_the_proof():
    # Pilot samples are not used again: what is audited are the draws after them.
    drawn = []

    def sample(n):
        drawn.append(n)
        return np.zeros(n)

    pair = Pair("same", sample, sample)
    Frequency("same", Fraction(1), [pair, pair], [values()], SIZES, pilot=100).run(
        fast=True, error=1e-5
    )
    assert drawn == [100, 100, 100, 100, 4_000, 4_000]


def test_support_needs_one_counterexample():
    pair = Pair("0 or 1", lambda n: np.zeros(n), lambda n: np.r_[np.zeros(n - 1), 0.5])

    def whole(z):
        return z == np.rint(z)

    def anything(z):
        return np.full(len(z), True)

    found = Support("grid", pair, whole, whole, SIZES).run(fast=True, error=1e-5)
    assert found.broken
    assert "1 of 8,000" in found.words
    assert not Support("grid", pair, anything, whole, SIZES).run(fast=True, error=1e-5).broken
    assert Support("grid", pair, whole, anything, SIZES).run(fast=True, error=1e-5).broken


def test_repeats_are_counted():
    fixed = Repeat("fixed", lambda n: np.ones((n, 3)), Sizes(10, 10))
    assert fixed.run(fast=True, error=1e-5).words == "9 of 10 runs repeat an earlier output: BROKEN"
    fresh = Repeat("fresh", lambda n: np.arange(3 * n).reshape(n, 3), Sizes(10, 10))
    assert not fresh.run(fast=True, error=1e-5).broken


@pytest.mark.parametrize("workers", [1, 2])
def test_runs_share_one_false_alarm_rate(workers):
    seen = []
    makers = {"shift": sound_audit, "broken": broken_audit}
    verdicts = run_audits(
        makers, fast=True, workers=workers, progress=lambda *counts: seen.append(counts)
    )
    assert [one.name for one in verdicts] == ["shift", "broken"]
    assert [one.broken for one in verdicts] == [False, True]
    assert {one.confidence for one in verdicts} == {1 - FALSE_ALARM / 2}
    assert seen == [(0, 2), (1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("confidence", "shown"),
    [(0.9, "90%"), (0.99, "99%"), (1 - 1e-4, "99.99%"), (1 - 1e-4 / 30, "99.9997%")],
)
def test_confidence_has_as_many_nines_as_it_needs(confidence, shown):
    assert show_confidence(confidence) == shown
