"""Make a page of every notebook in ``examples/``, with the outputs that are stored in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add the notebooks' pages to those of the folder."""
    for path in sorted(_EXAMPLES.glob("*.ipynb")):
        name = f"examples/{path.stem}.md"
        files.append(File.generated(config, name, content=page(path)))
    return files


def page(path: Path) -> str:
    """The Markdown of a notebook."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = [part for cell in cells for part in _cell(cell)]
    return "\n\n".join(parts) + "\n"


def _cell(cell: dict[str, Any]) -> list[str]:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [text]
    return [f"```python\n{text}\n```", *(_output(one) for one in cell["outputs"])]


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _shown("".join(output["text"]))
    data = output["data"]
    if "image/png" in data:
        picture = "".join(data["image/png"].split())
        return (
            f'<img alt="The figure drawn by the cell above" src="data:image/png;base64,{picture}">'
        )
    return _shown("".join(data["text/plain"]))


def _shown(text: str) -> str:
    return f'```text title="One run"\n{text.rstrip()}\n```'
