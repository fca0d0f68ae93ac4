"""Statements: they follow their schema and say what was paid for."""

import json

import jsonschema
import pytest
from support.making import FACTS, make_account, spend_some

from gridveil.errors import InputError
from gridveil.privacy.schema import schema, schema_problems
from gridveil.privacy.statement import Statement, make_statement


@pytest.fixture
def statement(ledger):
    account = make_account(ledger, epsilon=1)
    spend_some(account)
    return make_statement(account, FACTS)


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(schema())


def test_it_follows_the_schema_and_reads_back(statement):
    assert schema_problems(statement.body) == []
    again = Statement.from_json(statement.to_json())
    assert again.body == statement.body
    assert again.epsilon == 1
    assert again.dp_valid


def test_it_says_what_was_guaranteed(statement):
    guarantee = statement.body["guarantee"]
    assert guarantee["epsilon"] == "1"
    assert guarantee["neighbours"][0]["alpha"] == "1/10"
    assert guarantee["neighbours"][0]["epsilon_over_whole_range"] == "10000"
    assert guarantee["epsilon_of_k_entries"] == {"2": "2", "5": "5", "10": "10"}
    mechanism = statement.body["mechanisms"][0]
    assert mechanism["epsilon"] == "1"
    assert mechanism["epsilon_of_privacy_map"] <= 1
    assert mechanism["scale"] == pytest.approx(0.1, rel=2e-3)
    assert mechanism["sensitivity"]["proved"]
    assert statement.body["restoration"]["sees_private_data"] is False
    assert statement.body["ledger"]["spent_so_far"] == "1"
    assert statement.body["ledger"]["reference_alpha"] == {"power": {"alpha": "1/10", "unit": "MW"}}


def test_it_speaks_plainly(statement):
    first, second = statement.in_words
    assert first == (
        "Changing one of 10 entries of power by up to 0.1 MW changes the probability of any "
        "released outcome by a factor of at most 2.72 (epsilon 1)."
    )
    # Not as a figure: 10,000 would promise something.
    assert second == (
        "The whole value of an entry is not protected: values that are 1 MW or more apart can be "
        "told from each other; for ten entries at once epsilon is 10."
    )
    assert "epsilon       1  power, discrete Laplace, scale 0.1 MW" in repr(statement)


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        ("1/5", "a factor of at most 1.23 (epsilon 0.2)."),
        (5, "a factor of at most 149 (epsilon 5)."),
        (12, "a factor of at most 163,000 (epsilon 12: next to no protection)."),
        (10**9, "a factor that may be over a million (epsilon 1000000000: next to no protection)."),
    ],
)
def test_a_factor_is_never_too_small(ledger, epsilon, words):
    account = make_account(ledger, epsilon=epsilon)
    spend_some(account, epsilon)
    assert make_statement(account, FACTS).in_words[0].endswith(words)


def test_unspent_epsilon_is_said(ledger):
    account = make_account(ledger, epsilon=2)
    spend_some(account)
    assert make_statement(account, FACTS).body["epsilon_unspent"] == "1"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema_version": 1}'])
def test_what_is_no_statement_is_refused(text):
    with pytest.raises(InputError, match=r"release\.json is not"):
        Statement.from_json(text)


def test_it_names_every_departure(statement):
    body = json.loads(statement.to_json())
    del body["kind"]
    body["dp_valid"] = "yes"
    problems = schema_problems(body)
    assert any("kind" in problem for problem in problems)
    assert any("dp_valid" in problem for problem in problems)


def test_without_a_mechanism_nothing_is_valid(ledger):
    account = make_account(ledger, epsilon=1)
    assert not account.dp_valid
    spend_some(account)
    assert account.dp_valid
