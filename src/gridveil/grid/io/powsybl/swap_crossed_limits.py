"""Let pypowsybl read XIIDM in which lower limits of generators are above the upper ones.

pypowsybl refuses such a file, and whether private limits cross must not decide a refusal. So it
reads them swapped, and they are put back into the tree that it returns.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from html import unescape
from pathlib import Path

from gridveil.grid.io.powsybl.tree import elements

_GENERATOR = re.compile(r"""<(?:\w+:)?generator\s(?:[^"'>]|"[^"]*"|'[^']*')*>""")
_ATTRIBUTE = re.compile(r"""([\w:.-]+)\s*=\s*("[^"]*"|'[^']*')""")

Limits = Mapping[str, tuple[str, str]]
"""The lower and the upper limit of generators, as text, by id."""


def uncrossed(path: Path) -> tuple[str, Limits]:
    """Read a file with crossed limits swapped; return its text, and these limits as they were.

    Without crossed limits, or if the file is not text, there are none to put back.
    """
    crossed: dict[str, tuple[str, str]] = {}

    def swap(found: re.Match[str]) -> str:
        said = {one[1]: one[2][1:-1] for one in _ATTRIBUTE.finditer(found[0])}
        try:
            ends = said["minP"], said["maxP"]
            if float(ends[0]) <= float(ends[1]):
                return found[0]
        except (KeyError, ValueError):
            return found[0]
        crossed[unescape(said.get("id", ""))] = ends
        other = {"minP": ends[1], "maxP": ends[0]}
        return _ATTRIBUTE.sub(
            lambda one: f'{one[1]}="{other[one[1]]}"' if one[1] in other else one[0], found[0]
        )

    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return "", {}
    return _GENERATOR.sub(swap, text), crossed


def put_back(root: ET.Element, crossed: Limits) -> None:
    """Write crossed limits into a tree that was read without them."""
    for element in elements(root, "generator"):
        ends = crossed.get(element.get("id", ""))
        if ends is not None:
            element.set("minP", ends[0])
            element.set("maxP", ends[1])
