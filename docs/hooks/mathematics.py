"""Turn the formulas of a page into MathML, which browsers draw without any script.

Inline formulas are written as in GitHub's Markdown, a code span between dollar signs; displayed
ones are blocks of the language ``math``.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_INLINE = re.compile(r"\$<code>(.+?)</code>\$", re.DOTALL)
_BLOCK = re.compile(r'<div class="math">(.+?)</div>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Replace the formulas of a page that Markdown has already made HTML of."""
    content = _BLOCK.sub(
        lambda found: f'<div class="math">{_mathml(found[1], "block")}</div>', content
    )
    return _INLINE.sub(lambda found: _mathml(found[1], "inline"), content)


def _mathml(escaped: str, display: str) -> str:
    return convert(html.unescape(escaped).strip(), display=display)
