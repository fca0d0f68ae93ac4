"""Failures half-way through a wind release: private ones are charged and silent, public ones mend.

Every private query is made to fail in every way, and everything that a log or a debugger could
show of the error is searched for the private numbers.
"""

import json
import traceback
from types import TracebackType

import numpy as np
import pytest

from gridveil import wind
from gridveil.errors import LedgerError, ReleaseAborted
from gridveil.privacy.ledger import Ledger
from gridveil.privacy.noise import SecureNoise
from gridveil.privacy.statement import STATEMENT_FILE
from gridveil.release.verification import verify_bundle
from gridveil.wind.regression import Ridge

CANARY = 0.31415926535
ROWS = 60
QUERIES = {  # method: the private computations it makes, and where each can be got at
    "laplace": ["records"],
    "wpo": ["records", "weights", "loss"],
    "tuned": ["records", "weights", "spread"],
}


def records():
    import pandas as pd

    frame = pd.DataFrame({"speed": np.linspace(3, 12, ROWS), "power": np.full(ROWS, CANARY)})
    return wind.read_records(frame, speed="speed", power="power", capacity=1, name="farm")


class Panic(BaseException):
    """As libraries in Rust raise, beside all exceptions."""


def broken(kind, *_, **__):
    private = np.full(ROWS, CANARY)
    if kind == "raises":
        raise ValueError(f"could not use {private}")
    if kind == "runs out of memory":
        raise MemoryError(str(private))
    if kind == "interrupted by a bug":
        raise AssertionError(private)
    if kind == "panics":
        raise Panic(str(private))
    return {"nan": private * np.nan, "inf": np.inf, "shape": private[:7], "text": str(private)}[
        kind
    ]


RAISED = ["raises", "runs out of memory", "interrupted by a bug", "panics"]
KINDS = [*RAISED, "nan", "inf", "shape", "text"]


def inject(monkeypatch, query, kind):
    if query == "records":
        # Noise on a block is the last step that sees private numbers.
        monkeypatch.setattr(SecureNoise, "laplace", lambda *a: broken(kind, *a))
    elif query == "spread":
        monkeypatch.setattr("gridveil.wind.queries._spread", lambda *a: broken(kind, *a))
    else:
        monkeypatch.setattr(Ridge, query, lambda *a: broken(kind, *a))


def frames(tb: TracebackType | None):
    while tb is not None:
        yield tb.tb_frame
        tb = tb.tb_next


def visible(error: BaseException) -> str:
    """All that a log, a debugger or a crash reporter would show: text, chain and variables."""
    shown = "".join(traceback.format_exception(error)) + repr(error.args)
    for frame in frames(error.__traceback__):
        if "gridveil" in frame.f_code.co_filename and "tests" not in frame.f_code.co_filename:
            shown += "".join(f"{name}={value!r}\n" for name, value in frame.f_locals.items())
            for value in frame.f_locals.values():
                if isinstance(value, np.ndarray) and value.dtype == np.float64:
                    assert not np.isin(CANARY, value), f"private numbers in {frame.f_code.co_name}"
    return shown


CASES = [  # the records are no computation: their noise can only raise
    (method, query, kind)
    for method, found in QUERIES.items()
    for query in found
    for kind in (RAISED if query == "records" else KINDS)
]


@pytest.mark.parametrize(("method", "query", "kind"), CASES)
def test_a_private_failure_is_charged_noted_and_silent(ledger, monkeypatch, method, query, kind):
    made = records()
    inject(monkeypatch, query, kind)
    with pytest.raises(ReleaseAborted) as caught:
        wind.release(made, epsilon=1, alpha=0.1, method=method, ledger=ledger)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "0.314159" not in visible(caught.value)
    totals = ledger.totals("farm")
    assert (totals.spent, totals.aborts, len(totals.unreleased)) == (1, 1, 1)
    assert ledger.problems() == []


def test_the_control_private_numbers_in_a_frame_are_found(ledger, monkeypatch):
    """What is searched for can be found: an error from the frame that opened the seal shows it."""
    from gridveil.privacy import mechanisms

    monkeypatch.setattr(mechanisms, "_quietly", lambda _, compute: compute())
    monkeypatch.setattr(Ridge, "weights", lambda *a: broken("interrupted by a bug"))
    with pytest.raises(AssertionError) as caught:
        wind.release(records(), epsilon=1, alpha=0.1, method="wpo", ledger=ledger)
    with pytest.raises(AssertionError, match=r"private numbers in|0\.314159"):
        assert "0.314159" not in visible(caught.value)


def test_a_missing_row_of_blocks_aborts_without_a_trace(ledger, monkeypatch):
    made = records()
    sealed = made.power
    monkeypatch.setattr(
        "gridveil.privacy.mechanisms.unseal", lambda _: lambda: iter([np.full(9, CANARY)])
    )
    with pytest.raises(ReleaseAborted) as caught:
        wind.release(made, epsilon=1, alpha=0.1, method="laplace", ledger=ledger)
    assert "0.314159" not in visible(caught.value)
    assert sealed is made.power


def test_an_abort_that_can_not_be_noted_is_still_an_abort(ledger, monkeypatch):
    def refuse(self, charge):
        raise LedgerError("The disk is full.")

    made = records()
    inject(monkeypatch, "weights", "raises")
    monkeypatch.setattr(Ledger, "record_abort", refuse)
    with pytest.raises(ReleaseAborted, match="could not note the abort") as caught:
        wind.release(made, epsilon=1, alpha=0.1, method="wpo", ledger=ledger)
    assert "0.314159" not in visible(caught.value)
    assert ledger.totals("farm").spent == 1


def test_a_later_release_lists_the_abort(ledger, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        inject(patch, "weights", "nan")
        with pytest.raises(ReleaseAborted):
            wind.release(records(), epsilon=1, alpha=0.1, method="wpo", ledger=ledger)
    placed = wind.release(records(), epsilon=1, alpha=0.1, method="laplace", ledger=ledger).write(
        tmp_path / "out"
    )
    statement = json.loads((placed / STATEMENT_FILE).read_text())
    assert statement["ledger"]["aborts_outside_epsilon"] == 1
    assert all(finding.ok for finding in verify_bundle(placed))


# -- public computations ---------------------------------------------------------------------------

PUBLIC = [
    ("tuned", "gridveil.wind.methods.tuned.restore_closely", "none"),
    ("tuned", "gridveil.wind.restoration.projection.project", "singular"),
    ("tuned", "gridveil.wind.methods.tuned.estimate_weights", "singular"),
    ("tuned", "gridveil.wind.methods.tuned.estimate_loss", "value"),
    ("tuned", "gridveil.wind.methods.tuned.estimate_spread", "overflow"),
    ("tuned", "gridveil.wind.methods.tuned.Levels", "value"),
    ("synthetic", "gridveil.wind.methods.synthetic.draw", "value"),
    ("synthetic", "gridveil.wind.methods.synthetic.ask_means", "singular"),
    ("synthetic", "gridveil.wind.methods.synthetic.ask_base", "overflow"),
    ("wpo", "gridveil.wind.methods.base.restore", "singular"),
    ("wpo", "gridveil.wind.restoration.restore.search", "overflow"),
    ("wpo", "gridveil.wind.restoration.restore.CERTIFIED", "cone"),
]


def fail_in_public(kind):
    def fail(*_, **__):
        raise {"singular": np.linalg.LinAlgError, "overflow": OverflowError, "value": ValueError}[
            kind
        ]

    return -1.0 if kind == "cone" else (lambda *_, **__: None) if kind == "none" else fail


@pytest.mark.parametrize(("method", "where", "kind"), PUBLIC)
def test_a_public_failure_loses_nothing_that_was_paid_for(
    ledger, monkeypatch, tmp_path, method, where, kind
):
    monkeypatch.setattr(where, fail_in_public(kind))
    if kind == "cone":  # every answer is sent to the cone program, which gives no numbers
        monkeypatch.setattr(
            "gridveil.wind.restoration.small_problem._run",
            lambda price, G, h, *_: (price * np.nan, h * np.nan),
        )
    alpha = 1 if method == "synthetic" else 0.1
    made = wind.release(records(), epsilon=1, alpha=alpha, method=method, ledger=ledger)
    placed = made.write(tmp_path / "out")
    assert all(finding.ok for finding in verify_bundle(placed))
    assert made.data["power"].between(0, 1).all()
    totals = ledger.totals("farm")
    assert (totals.spent, totals.aborts, totals.unreleased) == (1, 0, set())


def test_blocks_that_fail_halfway_leave_none_of_the_rest_in_a_frame(ledger, monkeypatch):
    """A reader that holds all its blocks fails at the second: the abort shows none of them."""

    class Reader:
        def __init__(self):
            self.left = [np.full(9, CANARY), np.full(9, CANARY)]

        def __iter__(self):
            return self

        def __repr__(self):
            return repr(self.left)

        def __next__(self):
            if len(self.left) == 1:
                raise RuntimeError
            return self.left.pop()

    made = records()
    monkeypatch.setattr("gridveil.privacy.mechanisms.unseal", lambda _: Reader)
    with pytest.raises(ReleaseAborted) as caught:
        wind.release(made, epsilon=1, alpha=0.1, method="laplace", ledger=ledger)
    assert caught.value.__context__ is None
    assert "0.314159" not in visible(caught.value)
