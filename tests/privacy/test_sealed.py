"""Sealed data shows nothing, however one tries."""

import copy
import io
import json
import logging
import pickle
import traceback

import numpy as np
import pytest

from gridveil.errors import GridveilError, InputError, SealedError
from gridveil.privacy.sealed import Range, Sealed, seal, seal_together, unseal

CANARY = 123.456789


@pytest.fixture(params=["one", "together"])
def sealed(request) -> Sealed:
    if request.param == "one":
        return seal([CANARY, 2.5, 7.0], name="capacity", unit="MW", range=Range(0, 1000))
    parts = [[CANARY, 2.5], [7.0]]
    return seal_together(
        [seal(part, name="capacity", unit="MW", range=Range(0, 1000)) for part in parts]
    )


def test_shows_name_shape_and_unit(sealed):
    names = ("capacity", "capacity, capacity")
    assert repr(sealed) in [f"<sealed {name}: 3 in MW>" for name in names]
    assert (sealed.shape, sealed.unit, len(sealed)) == ((3,), "MW", 3)


def test_sealed_together():
    one = seal([CANARY, 2.5], name="capacity", unit="MW", range=Range(1, 1000))
    two = seal([[7.0, -3.0]], name="cost", unit="$/MWh", range=Range(-5, 50))
    both = seal_together([one, two])
    assert repr(both) == "<sealed capacity, cost: 4 in MW, $/MWh>"
    assert both.range == Range(-5, 1000)
    held = unseal(both)
    assert [part.tolist() for part in held] == [[CANARY, 2.5], [[7.0, -3.0]]]
    assert not any(part.flags.writeable for part in held)
    assert repr(seal_together([one])) == repr(one)
    assert len(unseal(seal_together([one]))) == 1
    with pytest.raises(InputError, match="no sealed values"):
        seal_together([])


@pytest.mark.parametrize(
    "show",
    [
        repr,
        str,
        lambda s: f"{s}",
        lambda s: f"{s!r:>80}",
        lambda s: f"{s:.3f}",
        lambda s: "%s" % s,  # noqa: UP031
        lambda s: str([s, {"a": s}]),
        lambda s: str(dir(s)),
    ],
)
def test_text_has_no_private_number(sealed, show):
    text = show(sealed)
    assert "123" not in text
    assert "2.5" not in text


@pytest.mark.parametrize(
    "attempt",
    [
        pickle.dumps,
        copy.copy,
        copy.deepcopy,
        hash,
        bool,
        float,
        int,
        list,
        np.asarray,
        json.dumps,
        vars,
        lambda s: s == s,
        lambda s: s != 1,
        lambda s: s < 1,
        lambda s: s[0],
        lambda s: CANARY in s,
        lambda s: s + 1,
        lambda s: np.add(s, 1),
        lambda s: np.sum(s),
        lambda s: s.contents,
        lambda s: s.__dict__,
        lambda s: {s: 1},
        lambda s: memoryview(s),
    ],
)
def test_reading_raises_and_says_nothing(sealed, attempt):
    with pytest.raises((GridveilError, TypeError, AttributeError)) as caught:
        attempt(sealed)
    assert "123" not in "".join(traceback.format_exception(caught.value))


def test_exceptions_and_logs_have_no_private_number(sealed):
    stream = io.StringIO()
    logger = logging.Logger("test")
    logger.addHandler(logging.StreamHandler(stream))
    try:
        raise ValueError(sealed)
    except ValueError as error:
        logger.exception("with %s and %r", sealed, error)
    text = stream.getvalue()
    assert "123" not in text
    assert repr(sealed) in text


def test_unseal_gives_a_read_only_clipped_copy():
    given = np.array([-5.0, 3.0, np.inf])
    sealed = seal(given, name="x", unit="MW", range=Range(0, 10))
    given[1] = 99
    opened = unseal(sealed)
    assert opened.tolist() == [0.0, 3.0, 10.0]
    assert not opened.flags.writeable


def test_missing_values_are_refused_by_position_alone():
    with pytest.raises(InputError, match="1 missing values, the first at position 1") as caught:
        seal([CANARY, float("nan")], name="x", unit="MW", range=Range(0, 10))
    assert "123" not in str(caught.value)


def test_text_is_refused_without_quoting_it():
    text = [f"{CANARY}x"]
    with pytest.raises(InputError) as caught:
        seal(text, name="x", unit="MW", range=Range(0, 10))
    assert "123" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


def test_a_scalar_has_no_length():
    with pytest.raises(SealedError):
        len(Sealed(1.0, name="x", shape=(), unit="MW", range=Range(0, 1)))


@pytest.mark.parametrize("ends", [(1, 0), (0, 0), (float("nan"), 1), (0, float("inf"))])
def test_limits_need_two_finite_ends(ends):
    with pytest.raises(InputError):
        Range(*ends)
