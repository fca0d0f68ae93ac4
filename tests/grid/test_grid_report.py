"""The public report and the terminal of a release that serves all models, some, or none."""

import numpy as np
import pytest
from grid.releasing import models_for, tiny, tiny_case
from typer.testing import CliRunner

from gridveil import grid
from gridveil.cli.commands import app
from gridveil.grid.opf.engine import solve_population
from gridveil.grid.report import _loading


def release_of(folder, case, models, limits):
    """Release capacities by the command: what it prints, and the text of the report."""
    path = folder / "models.parquet"
    models.write(path)
    words = [
        "grid",
        "release",
        case,
        "--alpha",
        "1",
        "--range",
        limits,
        "--population",
        path,
        "--yes",
    ]
    words += ["--dataset", "grid"]
    words += ["--method", "laplace", "-o", folder / "out"]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout, (folder / "out" / "report.html").read_text()


@pytest.fixture
def case(tmp_path):
    return tiny_case(tmp_path)


def test_a_release_that_serves_no_model_warns(case, tmp_path):
    models = models_for(grid.read_case(case), "capacity")
    text, page = release_of(tmp_path, case, models, "1:2")
    assert "WARNING: The released network serves only 0 of 4 models" in text
    assert "gridveil grid evaluate" in text
    assert "--range" in text
    assert "units" in text
    assert "serves only 0 of 4 models" in page
    assert "No model has a solution, so no loading is known." in page
    assert "lines are grey" in page
    assert "mean loading" not in page
    assert "on average" not in page


def test_a_release_that_serves_some_models_warns(case, tmp_path):
    capacity = np.ones((4, 3))
    capacity[0] = 0.001
    models = grid.Population(4, capacity=capacity)
    text, page = release_of(tmp_path, case, models, "300:500")
    assert "WARNING: The released network serves only 3 of 4 models" in text
    assert "serves only 3 of 4 models" in page
    assert "mean loading over the 3 models that are served" in page


def test_a_release_that_serves_all_models_does_not_warn(case, tmp_path):
    models = models_for(grid.read_case(case), "capacity")
    text, page = release_of(tmp_path, case, models, "300:500")
    assert "  The released network serves 4 of 4 models." in text
    assert "WARNING" not in text
    assert "serves only" not in page
    assert "mean loading over the models." in page
    # Reasons are sentences: on one line, as numbers are, they would run out of the page.
    assert '<td data-name="why">' in page
    assert 'class="number" data-name="why"' not in page


def test_models_without_costs_have_no_picture_of_them(case, tmp_path):
    network = grid.read_case(case)
    free = network.with_linear_costs(np.zeros(len(network.generators)))
    free.write(tmp_path / "free.m")
    models = grid.Population(4, load=np.ones((4, len(network.buses))))
    for name, drawn in (("free.m", False), (case, True)):
        folder = tmp_path / str(drawn)
        folder.mkdir()
        _, page = release_of(folder, tmp_path / name, models, "300:500")
        assert ("No unit has a cost here" in page) != drawn
        assert ("Costs of the models on the released network." in page) == drawn
        assert ("mean cost ($/h)" in page) == drawn


def test_a_wide_range_is_written_out(tmp_path, ledger):
    network = tiny(tmp_path)
    asked = {"range": (1, 1e6), "method": "laplace", "dataset": "tiny", "ledger": ledger}
    made = grid.release(network, epsilon=1, alpha=5, **asked)
    assert "values that are 50 MW or more apart can be told" in made.statement.in_words[1]
    page = (made.write(tmp_path / "out") / "report.html").read_text()
    assert "anywhere in [1, 1000000] MW" in page
    assert "e+06" not in page


def test_no_loading_is_made_up(tmp_path):
    network = tiny(tmp_path)
    models = models_for(network, "capacity")
    solutions = solve_population(network, models, keep=("cost", "flow"))
    assert _loading(network, models, solutions, np.zeros(4, bool)) is None
