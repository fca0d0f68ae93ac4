"""Text from files, made fit to be shown: on a screen, in a picture."""

from __future__ import annotations


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
