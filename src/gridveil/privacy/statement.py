"""The statement, ``release.json``: what was guaranteed, how, and under what assumptions.

A statement is made from an account and public facts only. Its JSON Schema ships with the package
(`schema`), so that a recipient can check one without trusting the code that wrote it.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from importlib import metadata
from typing import Any

from gridveil import __version__
from gridveil.errors import InputError, show_exact
from gridveil.privacy.account import Account
from gridveil.privacy.adjacency import ENTRY
from gridveil.privacy.guarantee_words import (
    Strength,
    in_words,
    neighbour_json,
    show_neighbour,
    strength_of,
)
from gridveil.privacy.schema import read_json, schema_problems

SCHEMA_VERSION = 1
STATEMENT_FILE = "release.json"

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_GROUPS = (2, 5, 10)
_PERIOD = (
    "An earlier release of this data did not name its times. What all releases tell of a block of "
    "time takes for granted that it covers the same period as this one, evenly."
)
_SOFTWARE = ("opendp", "numpy", "scipy", "clarabel", "pyarrow", "pandas")


ADJACENCY = (
    "Same public data, length, order and missing rows; one entry of one private parameter differs "
    "by at most its alpha, both values inside its range."
)
"""Who is a neighbour, in words; a release may have more to say."""


@dataclass(frozen=True)
class Restoration:
    """How the noisy data was repaired. It sees noisy and public data only."""

    solver: str
    gap: float | None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Facts:
    """The public facts of a release that its account does not know.

    Parameters
    ----------
    kind, method
        What was released, and by which method.
    summary
        One plain sentence: what the data is.
    settings
        Every public setting that shaped the release.
    public_inputs
        What the release read besides the private data, a line each.
    published_in_clear
        What is in the bundle as it is in the source.
    restoration
        How the noisy data was repaired, if it was.
    limitations
        What the guarantee does not cover here, a line each.
    adjacency
        What more is the same, or differs, between two neighbours than `ADJACENCY` says.
    """

    kind: str
    method: str
    summary: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    public_inputs: Sequence[str] = ()
    published_in_clear: Sequence[str] = ()
    restoration: Restoration | None = None
    limitations: Sequence[str] = ()
    adjacency: str = ""


class Statement:
    """The contents of ``release.json``, and what they mean in plain words."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = dict(body)

    @property
    def epsilon(self) -> Fraction:
        """The guarantee for one entry that moves by alpha."""
        return Fraction(self.body["guarantee"]["epsilon"])

    @property
    def dp_valid(self) -> bool:
        """Whether the guarantee holds at all."""
        return bool(self.body["dp_valid"])

    @property
    def in_words(self) -> tuple[str, str]:
        """The guarantee in two plain sentences."""
        return in_words(self.body)

    @property
    def strength(self) -> Strength:
        """How strong the guarantee is: a class, a line, and why."""
        return strength_of(self.body)

    def with_files(self, files: Sequence[Mapping[str, Any]]) -> Statement:
        """The same statement with the digests of the released files."""
        return Statement({**self.body, "files": [dict(one) for one in files]})

    def with_request(self, request: Mapping[str, Any]) -> Statement:
        """The same statement with what the command was told, so that it can be repeated."""
        return Statement({**self.body, "request": dict(request)})

    def to_json(self) -> str:
        """The text of ``release.json``: the contents, and a digest of them at the end."""
        body = {key: value for key, value in self.body.items() if key != "digest"}
        return _text({**body, "digest": hashlib.sha256(_text(body).encode()).hexdigest()})

    @classmethod
    def from_json(cls, text: str | bytes) -> Statement:
        """Read a statement, or raise `InputError` that names every place it is not one."""
        body = read_json(text)
        if body is None:
            raise InputError(f"{STATEMENT_FILE} is not JSON.")
        if problems := schema_problems(body):
            raise InputError(f"{STATEMENT_FILE} is not a statement: " + "; ".join(problems) + ".")
        return cls({key: value for key, value in body.items() if key != "digest"})

    def __repr__(self) -> str:
        lines = [f"Statement: {self.body['summary']}", *(f"  {line}" for line in self.in_words)]
        for one in self.body["mechanisms"]:
            lines.append(
                f"  epsilon {show_exact(Fraction(one['epsilon'])):>7}  {one['query']}, "
                f"{one['noise']}, scale {one['scale']:.4g} {one['unit']}"
            )
        return "\n".join(lines)


def make_statement(account: Account, facts: Facts) -> Statement:
    """Write down what an account paid for. Every epsilon in it was charged."""
    total = account.budget.total
    charge = account.charge
    return Statement(
        {
            "schema_version": SCHEMA_VERSION,
            "kind": facts.kind,
            "method": facts.method,
            "summary": facts.summary,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "dp_valid": account.dp_valid,
            "guarantee": {
                "epsilon": str(total),
                "neighbours": [neighbour_json(one, total) for one in account.adjacency],
                "epsilon_of_k_entries": {str(k): str(k * total) for k in _GROUPS},
                "adjacency": f"{_adjacency(account)} {facts.adjacency}".strip(),
            },
            "mechanisms": [record.to_json() for record in account.records],
            "composition": "sequential: the epsilons of the mechanisms add up",
            "epsilon_unspent": str(account.budget.remaining),
            "noise_source": account.noise.name,
            "ledger": None
            if charge is None
            else {
                "ledger": charge.ledger,
                "dataset": charge.dataset,
                "entry": charge.entry,
                "hash": charge.hash,
                "charged": str(charge.charged),
                "spent_so_far": str(charge.spent),
                "epsilon_so_far_for_alpha": str(charge.epsilon_for_alpha),
                "epsilon_so_far_over_whole_range": str(charge.epsilon_over_range),
                "reference_alpha": {
                    name: {
                        "alpha": str(one.alpha),
                        "unit": one.unit,
                        **({} if one.block == ENTRY else {"block": one.block}),
                    }
                    for name, one in charge.reference.items()
                },
                "aborts_outside_epsilon": charge.earlier_aborts,
            },
            "public_inputs": list(facts.public_inputs),
            "published_in_clear": list(facts.published_in_clear),
            "settings": dict(facts.settings),
            "restoration": None
            if facts.restoration is None
            else {
                "solver": facts.restoration.solver,
                "gap": facts.restoration.gap,
                "settings": dict(facts.restoration.settings),
                "sees_private_data": False,
            },
            "limitations": [
                *facts.limitations,
                *([_PERIOD] if charge is not None and charge.assumed else []),
            ],
            "software": dict(_software()),
            "files": [],
        }
    )


def _adjacency(account: Account) -> str:
    larger = [one for one in account.adjacency if one.block != ENTRY]
    if not larger:
        return ADJACENCY
    whole = " or ".join(
        f"{show_neighbour(neighbour_json(one, Fraction(1)))} (times: "
        f"{one.clock}{', from Monday' if one.block == 'week' else ''})"
        for one in larger
    )
    return (
        f"Same public data, length, order and missing rows; {whole} differ, each by at most its "
        "alpha, both values inside its range."
    )


def _text(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    # Half a character (a name may hold one) has no UTF-8, but JSON can write it.
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


@cache
def _software() -> dict[str, str]:
    found = {"python": platform.python_version(), "gridveil": __version__}
    for name in _SOFTWARE:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
