"""Every notebook runs from top to bottom, and its stored outputs are what it gives."""

import importlib.util

import matplotlib as mpl
import nbformat
import pytest
from docs.blocks import Session, agree
from docs.running import ROOT
from matplotlib import pyplot as plt

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def needed(cell):
    """The optional libraries that a cell is tagged with, as ``needs:pandapower``."""
    tags = cell.metadata.get("tags", [])
    return {tag.removeprefix("needs:") for tag in tags if tag.startswith("needs:")}


def stored(cell):
    """The text below a cell; pictures are drawn again, and not compared."""
    texts = []
    for output in cell.outputs:
        assert output.output_type in {"stream", "execute_result", "display_data"}, output
        if output.output_type == "stream":
            texts.append(output.text)
        elif "image/png" not in output.data:
            texts.append(output.data["text/plain"] + "\n")
    return "".join(texts)


@pytest.fixture
def reader(tmp_path, monkeypatch):
    folder = tmp_path / "reader"
    folder.mkdir()
    monkeypatch.chdir(folder)
    mpl.use("Agg")
    yield Session(folder)
    plt.close("all")


@pytest.mark.usefixtures("usual_models")
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of optional libraries, about their own
@pytest.mark.filterwarnings("ignore::DeprecationWarning:pypsa")  # of pandas, about calls in PyPSA
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path, reader):
    notebook = nbformat.read(path, as_version=4)
    left_out = set()
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        missing = {name for name in needed(cell) if importlib.util.find_spec(name) is None}
        left_out |= missing
        if missing:
            continue
        printed = reader.python(cell.source, f"{path.name}, cell {number}")
        if not agree(stored(cell), printed, one_run=True):
            pytest.fail(f"cell {number} stores\n\n{stored(cell)}\n\nand the run gave\n\n{printed}")
    if left_out:
        pytest.skip(f"ran all cells but those that need {', '.join(left_out)}: tests/optional/run")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_opens_in_jupyter(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].source.startswith("# ")
    assert notebook.metadata.kernelspec.name == "python3"


def test_the_examples_are_listed():
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in NOTEBOOKS if f"({path.name})" not in text] == []
