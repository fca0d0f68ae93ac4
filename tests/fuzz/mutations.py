"""Mutations of valid files, driven by any source of choices: hypothesis or a plain generator.

``choose(n)`` gives a number from 0 to n - 1. Mutations work on bytes; those of JSON on its tree.
"""

import json
import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

Choose = Callable[[int], int]

NUMBERS = [
    b"0", b"-0", b"1", b"-1", b"0.1", b"1e308", b"-1e308", b"1e309", b"1e-320", b"1e400", b"NaN",
    b"nan", b"Inf", b"-inf", b"9" * 30, b"9" * 400, b"0x10", b"1_0", b"1,5", b"1/2", b"+5", b".5",
    b"5.", b"1e", b"--1", b"\xef\xbc\x91", b"2147483648", b"9223372036854775808", b"4294967296",
]  # fmt: skip
JUNK = [
    b"", b"\0", b"\r", b"\n", b"\r\n", b"\t", b" ", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xc3(",
    b"\xed\xa0\x80", b"'", b'"', b'""', b"\\", b"%", b"%{\n", b"%}\n", b"...\n", b"[", b"]", b"{",
    b"}", b"(", b")", b";", b",", b"|", b"=", b"=cmd()", b"@x", b"../x", b"<script>", b"\x1b[2J",
    b"\xe2\x80\xae", b"null", b"true", b"end", b"mpc.bus = [];", b"mpc.x = 1;\n", b"\x80",
]  # fmt: skip
MOST = 100_000  # bytes; what one input may grow to


def random_choices(seed: int) -> Choose:
    """Choices from a seed, for long runs."""
    rng = random.Random(seed)
    return lambda n: int(rng.random() * n)


def mutate(data: bytes, choose: Choose, others: list[bytes]) -> bytes:
    """One to three mutations, one after the other."""
    for _ in range(1 + choose(3)):
        data = MUTATIONS[choose(len(MUTATIONS))](data, choose, others)[:MOST]
    return data


def _flip(data: bytes, choose: Choose, others: list[bytes]) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    for _ in range(1 + choose(3)):
        changed[choose(len(data))] ^= 1 << choose(8)
    return bytes(changed)


def _set(data: bytes, choose: Choose, others: list[bytes]) -> bytes:
    at = choose(len(data) + 1)
    return data[:at] + bytes([choose(256)]) + data[at + 1 :]


def _cut(data: bytes, choose: Choose, others: list[bytes]) -> bytes:
    return data[: choose(len(data) + 1)]


def _delete(data: bytes, choose: Choose, others: list[bytes]) -> bytes:
    start, end = _span(data, choose)
    return data[:start] + data[end:]


def _repeat(data: bytes, choose: Choose, others: list[bytes]) -> bytes:
    start, end = _span(data, choose)
    times = (2, 2, 3, 3, 50, 1000)[choose(6)]
    return data[:start] + data[start:end] * min(times, 1 + MOST // (end - start + 1)) + data[end:]


def _insert(data: bytes, choose: Choose, others: list[bytes]) -> bytes:
    at = choose(len(data) + 1)
    words = NUMBERS if choose(2) else JUNK
    times = (1, 1, 1, 1, 1, 1, 1, 1000)[choose(8)]
    return data[:at] + words[choose(len(words))] * times + data[at:]


def _token(data: bytes, choose: Choose, others: list[bytes]) -> bytes:
    """Put a number or junk in place of a whole token."""
    start = end = choose(len(data) + 1)
    while start > 0 and data[start - 1] not in b" \t\r\n,;[]{}:\"'":
        start -= 1
    while end < len(data) and data[end] not in b" \t\r\n,;[]{}:\"'":
        end += 1
    words = NUMBERS if choose(3) else JUNK
    return data[:start] + words[choose(len(words))] + data[end:]


def _lines(data: bytes, choose: Choose, others: list[bytes]) -> bytes:
    """Drop, double, swap or shuffle lines."""
    lines = data.split(b"\n")
    at, other = choose(len(lines)), choose(len(lines))
    match choose(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, lines[at])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            random.Random(choose(1 << 16)).shuffle(lines)
    return b"\n".join(lines)


def _tokens(data: bytes, choose: Choose, others: list[bytes]) -> bytes:
    """Drop, double or swap the tokens of a line."""
    lines = data.split(b"\n")
    at = choose(len(lines))
    separator = (b",", b"\t", b" ", b";")[choose(4)]
    tokens = lines[at].split(separator)
    one, two = choose(len(tokens)), choose(len(tokens))
    match choose(3):
        case 0:
            del tokens[one]
        case 1:
            tokens.insert(two, tokens[one])
        case 2:
            tokens[one], tokens[two] = tokens[two], tokens[one]
    lines[at] = separator.join(tokens)
    return b"\n".join(lines)


def _splice(data: bytes, choose: Choose, others: list[bytes]) -> bytes:
    """The start of this file and the end of another."""
    other = others[choose(len(others))]
    return data[: choose(len(data) + 1)] + other[choose(len(other) + 1) :]


def _encode(data: bytes, choose: Choose, others: list[bytes]) -> bytes:
    """The same text in another encoding, or with other line ends."""
    text = data.decode("utf-8", "replace")
    match choose(6):
        case 0:
            return text.encode("utf-16")
        case 1:
            return text.encode("utf-16-le")
        case 2:
            return b"\xef\xbb\xbf" + data
        case 3:
            return data.replace(b"\n", b"\r\n")
        case 4:
            return data.replace(b"\n", b"\r")
        case _:
            return data.replace(b" ", b"\xc2\xa0")


def _nest(data: bytes, choose: Choose, others: list[bytes]) -> bytes:
    """Deep nesting."""
    at = choose(len(data) + 1)
    opening = (b"[", b"{", b"(", b'{"a":', b"%{\n", b'"', b"mpc.a.")[choose(7)]
    return data[:at] + opening * (3, 3, 100, 3000)[choose(4)] + data[at:]


MUTATIONS = [
    _flip, _flip, _set, _cut, _delete, _repeat, _insert, _token, _token, _token, _lines, _tokens,
    _tokens, _splice, _encode, _nest,
]  # fmt: skip


def _span(data: bytes, choose: Choose) -> tuple[int, int]:
    start = choose(len(data) + 1)
    return start, min(len(data), start + 1 + choose((4, 40, 400, 4000)[choose(4)]))


def mutate_binary(data: bytes, choose: Choose, seeds: list[bytes]) -> bytes:
    """Small changes to a binary file, half of them in its last third; now and then large ones."""
    if not choose(8):
        return mutate(data, choose, seeds)
    changed = bytearray(data)
    low = len(data) * 2 // 3 if choose(2) else 0
    for _ in range(1 + choose(3)):
        at = low + choose(len(data) - low)
        changed[at] = (changed[at] ^ (1 << choose(8)), choose(256), 0, 255)[choose(4)]
    return bytes(changed)


# -- JSON ------------------------------------------------------------------------------------------

VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 10**18, 10**400, 0.1, 1e308, 5e-324, float("inf"), float("nan"),
    "", "0", "-1", "1/0", "1/3", "1e999999999", "9" * 300, "\ud800", "\u202e", "\0", "a\nb", "../x",
    "1\n", "0" * 64, [], {}, [[]], [0], {"": 0}, "<script>", "2030-01-01T00:00:00+00:00",
]  # fmt: skip


def mutate_json(text: bytes, choose: Choose) -> bytes:
    """Change a JSON text at some places of its tree, and keep the layout that it has."""
    tree = json.loads(text)
    for _ in range(1 + choose(2)):
        mutate_tree(tree, choose)
    return (json.dumps(tree, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def mutate_tree(place: Any, choose: Choose) -> None:
    """Change one place of a tree."""
    while isinstance(place, dict | list) and place:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = keys[choose(len(keys))]
        if isinstance(place[key], dict | list) and place[key] and choose(4):
            place = place[key]
            continue
        match choose(5):
            case 0 if isinstance(place, dict):
                place[str(VALUES[choose(len(VALUES))])] = place.pop(key)
            case 1:
                del place[key]
            case 2 if isinstance(place, list):
                place.append(deepcopy(place[key]))
            case _:  # a copy: a list of these that went in twice could come to hold itself
                place[key] = deepcopy(VALUES[choose(len(VALUES))])
        return
