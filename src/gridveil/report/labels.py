"""Names from files and numbers, made fit to be shown: on a screen, in a picture."""

from __future__ import annotations

import math


def visible(text: str) -> str:
    r"""Text with what can't be seen written out; lines and tabs stay.

    An escape sequence in a name could rewrite a terminal's screen, and a character that turns the
    reading direction could make one name look like another.

    >>> visible("a\x1b[2Jb\u202ec")
    'a\\x1b[2Jb\\u202ec'
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text
    )


def label(text: str) -> str:
    r"""Text for a picture, on one line; dollar signs are signs, and no mathematics.

    >>> print(label("price in $, not $\\frac{1}$"))
    price in \$, not \$\frac{1}\$
    """
    return visible(" ".join(text.split())).replace("$", r"\$")


def shown(value: float, digits: int = 4) -> str:
    """A number for people: so many digits, whatever its size, or a dash if there is none.

    >>> [shown(one) for one in (182277.73, 1234.5, 12.3456, 0.0004321, 0.0, float("nan"))]
    ['182,278', '1,234', '12.35', '0.0004321', '0', '-']
    """
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"
