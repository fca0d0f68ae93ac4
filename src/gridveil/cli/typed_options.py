"""What was typed for a command, by key: what of it is the owner's own, and what is public.

The public part goes into the statement; `release_toml` keeps all of it in a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DATA = "data"
# Said on the command line each time, and no part of what is released.
_SPOKEN = ("help", "yes", "dry_run", "json", "quiet", "force")
OWNERS = (
    *(DATA, "output", "ledger", "dataset", "distinct", "population", "series"),
    *("snapshot", "snapshots", "contingencies"),
)
"""The owner's own: paths, and names in the ledger. The rest goes into the statement."""


def parameters_of(command: Any) -> dict[str, Any]:
    """The command's parameters by their keys in a file: ``range`` for ``--range``."""
    found = {}
    for one in command.params:
        key = DATA if one.param_type_name == "argument" else _key(one)
        if key not in _SPOKEN:
            found[key] = one
    return found


def _key(option: Any) -> str:
    long = next(text for text in option.opts if text.startswith("--"))
    return str(long.removeprefix("--").replace("-", "_"))


def public_part(kind: str, context: Any) -> dict[str, Any]:
    """What was typed for a release, without what is the owner's own: paths and ledger names."""
    found: dict[str, Any] = {"kind": kind}
    for name, one in parameters_of(context.command).items():
        source = context.get_parameter_source(one.name)
        if name not in OWNERS and source is not None and source.name == "COMMANDLINE":
            found[name] = context.params[one.name]
    return as_single(found)


def as_single(values: Mapping[str, Any]) -> dict[str, Any]:
    """Lists of one value as that value: it reads better, and means the same."""
    return {n: v[0] if isinstance(v, list) and len(v) == 1 else v for n, v in values.items()}
