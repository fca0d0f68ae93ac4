"""A release beside networks that take no epsilon, and its warning of false congestion."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from typer.testing import CliRunner

from gridveil import grid
from gridveil.cli.commands import app
from gridveil.grid import congestion
from gridveil.grid.cases import rts96
from gridveil.grid.congestion import Congestion
from gridveil.grid.evaluation import evaluate
from gridveil.grid.methods import certified
from gridveil.grid.model_comparison import Reference
from gridveil.grid.release import plan

pytestmark = [
    pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning"),
    pytest.mark.usefixtures("all_draws"),
]


@cache
def log_spread():
    """RTS-96 with ratings from 10 to 3,090 MW like those of Great Britain: hardly any binds."""
    network = rts96()
    rng = np.random.default_rng(0)
    free = network.with_capacity(np.full(len(network.branches), np.inf))
    models = grid.sample_population(network, 60, costs=0.125)
    flow = np.abs(grid.solve_population(free, models, keep=("flow",)).flow).max(0)
    ratings = np.exp(rng.uniform(np.log(10), np.log(3090), len(flow)))
    ratings = np.sort(ratings)[np.argsort(np.argsort(flow))]
    needed = flow * rng.uniform(0.97, 1.3, len(flow))
    network = network.with_capacity(np.round(np.clip(np.maximum(ratings, needed), 10, 3090)))
    return replace(network, source=None)


def errors(network, models, made):
    """Cost errors of a release, and of the network without limits."""
    reference = Reference(network, models)
    free = network.with_capacity(np.full(len(network.branches), np.inf))
    return [reference.errors(one, penalty=3000).cost_error for one in (made.data, free)]


def test_a_release_that_is_worse_than_no_limits_says_so():
    network = log_spread()
    models = grid.sample_population(network, 20, costs=0.125)
    for seed in range(2):
        made = grid.release(
            network, models, epsilon=1, alpha=100, range=(1, 5000), method="laplace", seed=seed
        )
        released, free = errors(network, models, made)
        assert released > 10 * free
        assert made.congestion.doubtful
        settings = made.statement.body["settings"]
        assert settings["cost_of_released_limits"] == made.congestion.cost
        assert settings["cost_of_noise_alone"][1] >= made.congestion.cost
        assert made.statement.body["limitations"][0] == made.congestion.words
        assert "may be false" in made.congestion.words


def test_a_release_that_is_better_does_not_warn():
    network = rts96(variant="paper")
    models = grid.sample_population(network, 100, costs=(80, 100))
    for seed in range(2):
        made = grid.release(network, models, epsilon=1, alpha=30, range=(1, 5000), seed=seed)
        released, free = errors(network, models, made)
        assert released < free
        assert not made.congestion.doubtful
        assert not any("may be false" in line for line in made.statement.body["limitations"])


def test_congestion_that_noise_does_not_explain_is_not_called_false():
    """Control: limits that cost much, released with little noise."""
    network = rts96(variant="paper")
    network = network.with_capacity(network.branches.capacity * 0.84)
    models = grid.sample_population(network, 60, spread=0.02, costs=(20, 100))
    made = grid.release(network, models, epsilon=1, alpha=2, range=(1, 5000), seed=0)
    released, free = errors(network, models, made)
    assert free > 0.9 > 0.2 > released
    assert made.congestion.noise is not None
    assert not made.congestion.doubtful


def test_a_rough_look_at_noise_warns_earlier(monkeypatch):
    """Nothing is learned again from imagined noise on a large network: it does too little."""
    noise = (0.1, 0.3)
    assert not Congestion(0.8, noise).doubtful
    assert Congestion(0.8, noise, rough=True).doubtful
    assert not Congestion(1.0, noise, rough=True).doubtful
    assert "0.1 to 0.3% (a rough look: up to 3 times)" in Congestion(0.8, noise, rough=True).words
    monkeypatch.setattr(certified, "LARGE", 0)
    monkeypatch.setattr(congestion, "MATERIAL", 0.0)
    network = log_spread()
    models = grid.sample_population(network, 20, costs=0.125)
    asked = {"epsilon": 1, "alpha": 100, "range": (1, 5000), "seed": 0}
    for method, rough in (("certified", True), ("laplace", False)):
        made = grid.release(network, models, method=method, **asked)
        assert made.congestion.noise is not None
        assert made.congestion.rough == rough


def test_the_warning_sees_released_and_public_values_alone():
    """Twins that release the same values warn in the same words."""
    network = log_spread()
    models = grid.sample_population(network, 20, costs=0.125)
    asked = {"epsilon": 1, "alpha": 100, "range": (1, 5000), "method": "laplace"}
    first = plan(network, models, **asked)
    other = plan(network.with_capacity(network.branches.capacity * 1.5), models, **asked)
    from gridveil.grid.congestion import congestion
    from gridveil.grid.methods.base import Outcome, Task

    made = first.run(first.study(0))
    outcome = Outcome(made.values, deviations=np.full(len(made.values), 100.0))
    words = [
        congestion(
            Task(one.study(1), one.sealed, one.problem, one.options, print), one.prepared, outcome
        ).words
        for one in (first, other)
    ]
    assert words[0] == words[1]


def test_the_owner_sees_controls_beside_the_release(tmp_path, ledger):
    network = rts96(variant="paper")
    models = grid.sample_population(network, 20, costs=(80, 100))
    made = grid.release(
        network,
        models,
        epsilon=1,
        alpha=30,
        range=(50, 1000),
        dataset="case",
        ledger=ledger,
        method="laplace",
    )
    bundle = made.write(tmp_path / "out")
    found = evaluate(bundle, network)
    names = [name for name, _ in found.controls]
    assert names == ["no limits", "all at mean"]
    free = network.with_capacity(np.full(len(network.branches), np.inf))
    shown = found.to_json()["controls"]
    unseen = grid.model.sampling.sample_like(models, network, 20, seed=1)
    expected = Reference(network, unseen).errors(free, penalty=3000)
    assert shown["no limits"]["cost_error"] == pytest.approx(expected.cost_error)
    assert shown["no limits"]["missed"] == 100
    case = tmp_path / "case.m"
    network.write(case)
    page = tmp_path / "owner.html"
    text = CliRunner(env={"COLUMNS": "150"}).invoke(
        app, ["grid", "evaluate", str(bundle), "--against", str(case), "--report", str(page)]
    )
    assert text.exit_code == 0, text.output
    for name in names:
        assert name in text.stdout
        assert name in page.read_text()
    if found.unseen.cost_error > expected.cost_error:
        assert "By cost error it is worse than no limits" in text.stdout


@pytest.mark.parametrize("parameter", ["load", "generator_limit", "cost"])
def test_other_parameters_have_the_mean_as_their_control(parameter, tmp_path, ledger):
    network = rts96(variant="paper")
    models = grid.sample_population(network, 4, costs=0.1, private=parameter)
    made = grid.release(
        network,
        models,
        parameter=parameter,
        epsilon=1,
        alpha=0.1,
        range=(-500, 800),
        dataset="case",
        ledger=ledger,
        method="laplace",
    )
    assert made.congestion is None
    found = evaluate(made.write(tmp_path / "out"), network)
    assert [name for name, _ in found.controls] == ["all at mean"]
    (_, flat), sane = found.controls[0], found.unseen
    assert flat.cost_error > sane.cost_error or flat.price_error > sane.price_error
