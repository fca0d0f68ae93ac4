"""Options of methods: checked when made, read from text, refused if they are for something else."""

from dataclasses import FrozenInstanceError, dataclass
from fractions import Fraction
from typing import ClassVar

import pytest

from gridveil.errors import InputError
from gridveil.privacy.exact_numbers import exact
from gridveil.release.options import OneOf, Options, Within, numbers, option, options_of, share


@dataclass(frozen=True)
class Fine(Options):
    method: ClassVar[str] = "fine"
    margin: float = option(
        0.04, help="share in reserve", check=Within(0, 0.5), read=share, example="4%"
    )
    part: Fraction | None = option(
        None,
        help="share of epsilon",
        check=lambda name, value: exact(value, name=name),
        read=str,
        example="40%",
        parameters=("load", "cost"),
    )


@dataclass(frozen=True)
class Rough(Options):
    method: ClassVar[str] = "rough"
    rounds: int = option(10, help="rounds", check=Within(1, 99, whole=True), read=int, example="3")
    way: str = option("steps", help="way", check=OneOf(("steps", "leap")), read=str, example="leap")


KNOWN = {"fine": Fine, "rough": Rough}


def test_a_name_with_keywords_is_the_same_as_an_object():
    assert options_of(KNOWN, "fine", {"margin": 0.1, "part": None}) == Fine(margin=0.1)
    assert options_of(KNOWN, Fine(margin=0.1)) == Fine(margin=0.1)
    assert options_of(KNOWN, "rough") == Rough()


def test_values_are_kept_as_their_type_and_frozen():
    made = Rough(rounds=3.0)
    assert isinstance(made.rounds, int)
    assert Fine(part="2/5").part == Fraction(2, 5)
    with pytest.raises(FrozenInstanceError):
        made.rounds = 4


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Fine(margin=0.6), "margin is 0.6. It must be between 0 and 0.5"),
        (lambda: Fine(margin="4%"), "margin is '4%'"),
        (lambda: Fine(margin=True), "margin is True"),
        (lambda: Fine(margin=float("nan")), "margin is nan"),
        (lambda: Fine(margin=[7.25]), "margin is of type list"),
        (lambda: Rough(rounds=2.5), "rounds is 2.5. It must be a whole number"),
        (lambda: Rough(way="jump"), "way is 'jump'. Use steps or leap"),
        (lambda: Rough(way=3), "way is 3"),
        (lambda: options_of(KNOWN, "coarse"), "no method 'coarse'. Use fine, rough"),
        (lambda: options_of(KNOWN, 3), "Expected a method, got int"),
        (lambda: options_of(KNOWN, "fine", {"rounds": 3}), "rounds has no meaning for method fine"),
        (lambda: options_of(KNOWN, "fine", {"size": 3}), "no option size. Options of fine: margin"),
        (lambda: options_of(KNOWN, Fine(), {"margin": 0.1}), r"inside: Fine\(margin=...\)"),
        (lambda: Fine(part="1/2").check_parameters(("capacity",)), "part has no meaning for cap"),
        (lambda: Fine.read("margin", "much"), "margin is 'much'. Write it as 4%"),
        (lambda: Rough.read("rounds", "2.5"), "Write it as 3"),
    ],
)
def test_what_is_refused_and_with_which_words(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_options_for_these_parameters_pass():
    assert Fine(part="1/2").check_parameters(("capacity", "load")) == Fine(part="1/2")
    assert Fine().check_parameters(("capacity",)) == Fine()


def test_settings_have_the_names_of_the_options():
    assert Fine(part="1/3").settings() == {"margin": 0.04, "part": "1/3"}
    assert Fine(margin=0.1).given == {"margin": 0.1}


def test_texts_are_read():
    assert Fine.read("margin", "4%") == pytest.approx(0.04)
    assert Rough.read("rounds", "12") == 12
    assert numbers("105, 240") == [105, 240]
    for kind in KNOWN.values():
        for name, about in kind.about().items():
            assert about.help
            kind(**{name: kind.read(name, about.example)})
