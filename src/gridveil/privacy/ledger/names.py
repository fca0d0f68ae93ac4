"""Names of datasets and keys of parameters: what entries are added up under.

The same data under a second name would have a second budget, so spellings of a name are folded
(`name_key`).
"""

from __future__ import annotations

import re
import unicodedata

from gridveil.errors import InputError

_KEY = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
# Letters and marks that show nothing; the others of their kind are not printable anyway.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0") | {
    chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}


def checked_name(dataset: str) -> str:
    """A dataset's name as the ledger writes it, or `InputError`."""
    name = " ".join(unicodedata.normalize("NFC", dataset).split())
    if not name or len(name) > 200 or not name.isprintable() or _INVISIBLE & set(name):
        raise InputError(
            "A dataset needs a name of 1 to 200 printable characters.",
            remedy="Name it with --dataset NAME.",
        )
    return name


def name_key(dataset: str) -> str:
    """What a name is found by.

    Spellings that differ in case, spaces, punctuation or the width of letters share one budget: a
    slip must not double it. Letters of different scripts that look alike are different letters.

    >>> name_key("North_Farm") == name_key("\uff2eorth farm")
    True
    """
    folded = old_name_key(dataset)
    words = "".join(" " if unicodedata.category(one)[0] in "PSZ" else one for one in folded)
    return " ".join(words.split()) or folded


def old_name_key(dataset: str) -> str:
    """What a name was found by before keys had a version: punctuation made a difference."""
    wide = unicodedata.normalize("NFKC", checked_name(dataset)).casefold()
    return " ".join(unicodedata.normalize("NFKC", wide).split())


def checked_key(key: str) -> str:
    """A parameter's key as the ledger writes it, or `InputError`."""
    if not _KEY.fullmatch(key):
        raise InputError(
            f"{key[:64]!r} can't be a key of the ledger.",
            remedy="Use small letters, digits and underscores, as in generator_limit.",
        )
    return key
