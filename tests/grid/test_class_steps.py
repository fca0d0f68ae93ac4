"""Steps that differ by public class: their sensitivity, the ledger's count, what is refused."""

import json
from fractions import Fraction

import numpy as np
import pytest
from grid.test_relative import EXAMPLES, apart, draw_values
from hypothesis import given, settings
from hypothesis import strategies as st

from gridveil import grid
from gridveil.cli import parsing
from gridveil.errors import InputError
from gridveil.grid.cases import rts96
from gridveil.grid.methods.cost_query import CostQuery
from gridveil.grid.methods.entries_query import EntriesQuery
from gridveil.grid.model.alphas_by_class import classes_of, rule_of, steps_of
from gridveil.grid.model.population import Population
from gridveil.grid.model.public_network import split_parts
from gridveil.grid.model.release_problem import ReleaseProblem, neighbours
from gridveil.privacy.guarantee_words import in_words
from gridveil.privacy.ledger import Ledger
from gridveil.privacy.sealed import Range
from gridveil.release.verification import verify_bundle

BY_KIND = {"kind=transformer": 60, "others": 12}
RANGES = {"capacity": Range(1.0, 900.0), "load": Range(0.5, 700.0)}
GIVEN = [
    BY_KIND,
    {"230kV": 50, "others": 7},
    {"capacity": {"transformer": 9, "voltage>=200": 40, "others": 100}},
    {"transformer": "50%", "others": "5%"},
]


def public_of(*names):
    return split_parts(rts96(), names, {name: RANGES[name] for name in names})[1]


def query_of(public, alpha, **how):
    made = neighbours(public, alpha, published=False)
    steps = {one.key: steps_of(public, one) for one in made if one.classes}
    relative = [one.key for one in made if one.unit == "of its value"]
    problem = ReleaseProblem(public, Population(1), Fraction(50), relative, steps)
    query = EntriesQuery(problem, {one.key: one.alpha for one in made}, **how)
    return query, [step for one in made for step in problem.step_of_each(one.key, one.alpha)]


def moved_by(values, place, step, relative, public):
    other = values.copy()
    far = values[place] * (1 + float(step)) if relative else values[place] + float(step)
    other[place] = np.clip(far, public.low[place], public.high[place])
    return other


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data(), st.sampled_from(GIVEN))
def test_an_entry_moves_the_vector_by_one_whatever_its_class(data, alpha):
    public = public_of("capacity")
    query, steps = query_of(public, alpha)
    relative = alpha is GIVEN[-1]
    values = draw_values(data, public)
    place = data.draw(st.integers(0, len(values) - 1))
    other = moved_by(values, place, steps[place], relative, public)
    moved, most = apart(query, public, values, other)
    assert float(query.sensitivity.value) == pytest.approx(1.0)
    assert moved <= most


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_so_it_does_with_a_sum_of_loads(data):
    public = public_of("load")
    query, steps = query_of(public, {"area=1": 30, "others": 8}, total_share=Fraction(2, 5))
    values = draw_values(data, public)
    place = data.draw(st.integers(0, len(values) - 1))
    moved, most = apart(query, public, values, moved_by(values, place, steps[place], False, public))
    assert float(query.sensitivity.value) == pytest.approx(1.0)
    assert moved <= most


def test_steps_of_the_wrong_class_are_found():
    # Control: the query takes every line for one of the small steps, and a large one moves.
    public = public_of("capacity")
    _, steps = query_of(public, BY_KIND)
    wrong, _ = query_of(public, {"kind=transformer": "12", "others": 12})
    place = int(np.argmax(steps))
    values = np.full(public.entries, 400.0)
    moved, most = apart(wrong, public, values, moved_by(values, place, steps[place], False, public))
    assert moved > 4 * most


def test_a_cost_moves_with_the_largest_step():
    public = public_of("capacity")
    made = neighbours(public, BY_KIND, published=False)
    models = grid.sample_population(rts96(), 2)
    steps = {"capacity": steps_of(public, made[0])}
    alphas = {"capacity": made[0].alpha}
    by_class = CostQuery(ReleaseProblem(public, models, Fraction(50), (), steps), alphas)
    small = CostQuery(ReleaseProblem(public, models, Fraction(50)), alphas)
    assert by_class.sensitivity.value == 5 * small.sensitivity.value


def test_the_first_class_that_fits_counts():
    public = public_of("capacity")
    names = ["transformer", "230kV", "others"]
    found = classes_of(public, "capacity", names)
    swapped = classes_of(public, "capacity", ["230kV", "others"])
    assert set(found.tolist()) == {0, 1, 2}
    # Transformers of RTS-96 have their higher side at 230 kV.
    assert (swapped[found == 0] == 0).all()
    assert rule_of("138 KV") == "voltage=138"


@pytest.mark.parametrize(
    ("alpha", "words"),
    [
        ({"380kV": 100, "others": 20}, "no private entry"),
        ({"230kV": 100}, "none of the classes"),
        ({"230kV": 100, "others": "20%"}, "others are amounts"),
        ({"voltage?": 20, "others": 100}, "can't be read"),
        ({"colour=red": 100, "others": 20}, "colour"),
        ({"230kV": 5000, "others": 20}, "more than the whole range"),
        ({}, "names no class"),
    ],
)
def test_classes_that_can_not_be_used_are_refused(alpha, words):
    with pytest.raises(InputError, match=words):
        neighbours(public_of("capacity"), alpha, published=False)


def test_a_catalogue_goes_with_one_step():
    with pytest.raises(InputError, match="catalogue"):
        grid.plan(rts96(), epsilon=1, alpha=BY_KIND, catalogue=[175, 400, 500])


def test_the_command_line_reads_classes():
    assert parsing.steps("30") == "30"
    assert parsing.steps("capacity=30,load=5") == {"capacity": "30", "load": "5"}
    assert parsing.steps("voltage>=220:100, others:20%") == {"voltage>=220": "100", "others": "20%"}
    with pytest.raises(InputError, match="each class"):
        parsing.steps("230kV:100,20")


def test_a_release_by_class_is_counted_by_its_smallest_step(tmp_path):
    network = rts96()
    models = grid.sample_population(network, 5)
    book = Ledger(tmp_path / "ledger.sqlite")
    how = {"epsilon": 1, "range": (1, 2000), "dataset": "lines", "ledger": book}
    made = grid.release(network, models, alpha=BY_KIND, **how)
    made.write(tmp_path / "out")
    assert all(finding.ok for finding in verify_bundle(tmp_path / "out"))
    (one,) = made.statement.body["guarantee"]["neighbours"]
    assert one["alpha"] == "12"
    assert one["alpha_by_class"] == {"kind=transformer": "60", "others": "12"}
    assert "kind=transformer: 60 MW, others: 12 MW" in in_words(made.statement.body)[0]
    # Steps of 12 MW cost what they cost; a larger step is covered five times.
    assert made.statement.body["ledger"]["charged"] == "1"
    plain = grid.release(network, models, alpha=12, **how)
    assert plain.statement.body["ledger"]["charged"] == "1"
    larger = grid.plan(network, models, epsilon=1, alpha=60, range=(1, 2000))
    assert larger.charge(book, dataset="lines").charge.epsilon_for_alpha == 5 + 5 + 1
    # Transformers have five times the noise of lines.
    entries = grid.plan(network, models, alpha=BY_KIND, epsilon=1).prepared.entries
    widths = np.unique(np.round(entries.scale(Fraction(1)), 1))
    assert widths[-1] == pytest.approx(5 * widths[0], rel=0.01)


def test_the_owner_sees_steps_by_class_and_verification_smaller_ones(tmp_path):
    network = rts96()
    models = grid.sample_population(network, 3)
    made = grid.release(
        network,
        models,
        alpha={"230kV": 60, "others": 12},
        epsilon=1,
        range=(1, 2000),
        dataset="lines",
        ledger=Ledger(tmp_path / "ledger.sqlite"),
    )
    made.write(tmp_path / "out")
    # Small lines are of 138 kV, large ones of 230 kV: each is counted with its own step.
    (told,) = grid.evaluate(tmp_path / "out", network).inference
    small, _, large = told.sizes
    assert small.noise * small.value == pytest.approx(12)
    assert large.noise * large.value == pytest.approx(60)
    assert not any("does not fit" in words for words in told.warnings)
    path = tmp_path / "out" / "release.json"
    body = json.loads(path.read_text())
    body["guarantee"]["neighbours"][0]["alpha_by_class"]["others"] = "6"
    path.write_text(json.dumps(body))
    found = [one.text for one in verify_bundle(tmp_path / "out") if not one.ok]
    assert any("smallest step" in text for text in found)
