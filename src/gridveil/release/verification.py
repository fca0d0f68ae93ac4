"""The recipient's check of a bundle: is it whole, does it add up, does its guarantee hold?

It needs nothing but the folder. What it can't see (whether the code that made the release told
the truth) it does not claim.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from gridveil.errors import InputError, reason, show_exact, wrong_type
from gridveil.privacy.account import Vector
from gridveil.privacy.adjacency import steps_over
from gridveil.privacy.guarantee_words import Level, show_steps
from gridveil.privacy.schema import read_json, schema_problems
from gridveil.privacy.statement import SCHEMA_VERSION, STATEMENT_FILE, Statement
from gridveil.release.bundle import ANSWERS_FILE, OWNER_MARK, sha256_of

_SIZE_LIMIT = 8 * 2**20  # bytes; no statement is near it


@dataclass(frozen=True)
class Finding:
    """One thing that was checked, whether it holds, and what was found in plain words.

    The one about the guarantee's strength has its class as well (`privacy.words`).
    """

    check: str
    ok: bool
    text: str
    level: Level | None = None


def verify_bundle(folder: Path | str) -> list[Finding]:
    """Check a bundle as its recipient would. All is well if every finding is ``ok``."""
    if not isinstance(folder, (str, os.PathLike)):
        raise wrong_type("folder", folder, remedy="Name the folder of a bundle.")
    root = Path(folder)
    try:
        return _findings(root)
    except OSError as problem:
        raise InputError(
            f"The bundle at {root} can't be read: {reason(problem)}.",
            remedy="Check the folder and its files.",
        ) from None


def _findings(root: Path) -> list[Finding]:
    if not root.is_dir():
        raise InputError(f"There is no folder {root}.", remedy="Name the folder of a bundle.")
    path = root / STATEMENT_FILE
    if path.is_symlink() or not path.is_file() or path.stat().st_size > _SIZE_LIMIT:
        return [Finding("statement", False, f"There is no {STATEMENT_FILE}: this is not a bundle.")]
    text = path.read_bytes()
    body, problem = _read(text)
    if problem is not None:
        return [Finding("statement", False, problem)]
    statement = Statement(body)
    return [
        _statement(statement, text),
        *_files(root, body),
        *_answers(root, body),
        _owner_material(root),
        *_arithmetic(body),
        *_validity(statement),
        _charge(body),
    ]


def _statement(statement: Statement, text: bytes) -> Finding:
    # Written again it must be the same, byte for byte: no name twice, no number spelt otherwise.
    if statement.to_json().encode() != text:
        return Finding("statement", False, "The statement was changed after the release.")
    return Finding("statement", True, "The statement is complete and follows the schema.")


def _read(text: bytes) -> tuple[dict[str, Any], str | None]:
    body = read_json(text)
    if body is None:
        return {}, f"{STATEMENT_FILE} is not JSON."
    version = body.get("schema_version") if isinstance(body, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        return {}, f"The statement's version {version} is newer than this GridVeil: update it."
    if problems := schema_problems(body):
        return {}, f"{STATEMENT_FILE} does not follow the schema: {'; '.join(problems[:5])}."
    return body, None


def _files(root: Path, body: dict[str, Any]) -> Iterator[Finding]:
    names = [one["name"] for one in body["files"]]
    listed = dict(zip(names, body["files"], strict=True))
    present = {path.name for path in root.iterdir()} - {STATEMENT_FILE}
    wrong = [] if listed else ["The statement names no released file"]
    wrong += [f"{name} is missing" for name in sorted(listed.keys() - present)]
    wrong += [f"{name} is not in the statement" for name in sorted(present - listed.keys())]
    for name in sorted(listed.keys() & present):
        path = root / name
        if path.is_symlink() or not path.is_file():
            wrong.append(f"{name} is not a plain file")
        elif path.stat().st_size != listed[name]["bytes"] or (
            sha256_of(path) != listed[name]["sha256"]
        ):
            wrong.append(f"{name} was changed after the release")
    wrong += [f"{name} is listed twice" for name in sorted(listed) if names.count(name) > 1]
    text = f"All {len(listed)} files are as they were released."
    yield Finding("files", not wrong, "; ".join(wrong) + "." if wrong else text)


def _answers(root: Path, body: dict[str, Any]) -> Iterator[Finding]:
    """The noisy answers, if the bundle has them: as many as were asked for, with that noise."""
    path = root / ANSWERS_FILE
    if ANSWERS_FILE not in {one["name"] for one in body["files"]} or not path.is_file():
        return  # releases of earlier versions have none; a missing file is found above
    wrong = wrong_answers(path, body["mechanisms"])
    text = "The noisy answers are as many as were asked for, on their public grids."
    yield Finding("answers", not wrong, "; ".join(wrong[:5]) + "." if wrong else text)


def _owner_material(root: Path) -> Finding:
    mark = OWNER_MARK.encode()
    found = [
        str(path.relative_to(root))
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink() and _contains(path, mark)
    ]
    if found:
        text = f"Owner's material that compares with the real data is inside: {', '.join(found)}."
        return Finding("owner", False, text)
    return Finding("owner", True, "No owner's material is inside.")


def _contains(path: Path, mark: bytes) -> bool:
    tail = b""
    with path.open("rb") as stream:
        while chunk := stream.read(2**20):
            if mark in tail + chunk:
                return True
            tail = chunk[-len(mark) :]
    return False


def _arithmetic(body: dict[str, Any]) -> Iterator[Finding]:
    total = Fraction(body["guarantee"]["epsilon"])
    parts = [Fraction(one["epsilon"]) for one in body["mechanisms"]]
    unspent = Fraction(body["epsilon_unspent"])
    sums = " + ".join(show_exact(part) for part in parts)
    ok = sum(parts) + unspent == total
    rest = f", {show_exact(unspent)} unspent" if unspent else ""
    verb = "add up to" if ok else "do NOT add up to"
    yield Finding(
        "epsilon", ok, f"The mechanisms' epsilons {verb} the total: {sums}{rest} "
        f"{'=' if ok else 'against'} {show_exact(total)}."
    )  # fmt: skip
    short = [one["query"] for one in body["mechanisms"] if not _enough_noise(one)]
    text = f"The noise is too small for its epsilon: {', '.join(short)}."
    yield Finding(
        "noise", not short, text if short else "Every noise scale is what its epsilon calls for."
    )
    wrong = list(_wrong_groups(body, total))
    text = f"Wrong arithmetic for larger changes: {', '.join(wrong)}."
    yield Finding(
        "groups", not wrong, text if wrong else "The figures for larger changes follow from it."
    )


def _enough_noise(one: dict[str, Any]) -> bool:
    any_scores = "noisy max" in one["noise"] and "monotone" not in one["noise"]
    reach = one["sensitivity"]["grid_steps"] * Fraction(one["grid"])
    due = (2 if any_scores else 1) * reach / Fraction(one["epsilon"])
    covered = reach >= Fraction(one["sensitivity"]["value"])
    return bool(covered and Fraction(one["scale"]) >= due * (1 - Fraction(1, 10**9)))


def _wrong_groups(body: dict[str, Any], total: Fraction) -> Iterator[str]:
    for k, epsilon in body["guarantee"]["epsilon_of_k_entries"].items():
        if Fraction(epsilon) != int(k) * total:
            yield f"{k} entries"
    for one in body["guarantee"]["neighbours"]:
        low, high = one["range"]
        steps = steps_over(low, high, Fraction(one["alpha"]), one["unit"])
        if Fraction(one["epsilon_over_whole_range"]) != steps * total:
            yield f"the whole range of {one['parameter']}"
        steps_by_class = map(Fraction, one.get("alpha_by_class", {}).values())
        if min(steps_by_class, default=Fraction(one["alpha"])) != Fraction(one["alpha"]):
            yield f"the smallest step of {one['parameter']}"
        for group in one.get("groups", ()):
            if Fraction(group["epsilon"]) != group["count"] * total:
                yield str(group["name"])


def _validity(statement: Statement) -> Iterator[Finding]:
    proved = all(one["sensitivity"]["proved"] for one in statement.body["mechanisms"])
    charged = statement.body["ledger"] is not None
    if statement.dp_valid and not (proved and charged):
        text = "The statement claims a guarantee for assumed bounds or an uncharged release."
        yield Finding("guarantee", False, text)
        return
    yield Finding("guarantee", statement.dp_valid, " ".join(statement.in_words))
    if statement.dp_valid:
        found = statement.strength
        text = f"{found.name}. {found.headline}. {found.reason}"
        yield Finding("strength", True, text, found.level)


def _charge(body: dict[str, Any]) -> Finding:
    ledger = body["ledger"]
    if ledger is None:
        return Finding("ledger", False, "The release was not charged to any ledger.")
    total = Fraction(body["guarantee"]["epsilon"])
    if not Fraction(ledger["spent_so_far"]) >= Fraction(ledger["charged"]) >= total:
        return Finding("ledger", False, "The ledger was charged less than the guarantee.")
    wide = max(Fraction(one["epsilon_over_whole_range"]) for one in body["guarantee"]["neighbours"])
    least = {"epsilon_so_far_for_alpha": total, "epsilon_so_far_over_whole_range": wide}
    if any(Fraction(ledger.get(name, epsilon)) < epsilon for name, epsilon in least.items()):
        text = "All releases so far are said to have less epsilon than this one alone."
        return Finding("ledger", False, text)
    return Finding(
        "ledger",
        True,
        f"Charged as entry {ledger['entry']} of its owner's ledger (chain head "
        f"{ledger['hash'][:12]}); {show_exact(Fraction(ledger['spent_so_far']))} spent on "
        f"{ledger['dataset']!r} so far, for steps of {show_steps(ledger)}.",
    )


# -- the noisy answers ---------------------------------------------------------------------------


def wrong_answers(path: Path, mechanisms: Sequence[dict[str, Any]]) -> list[str]:
    """What does not fit the statement's mechanisms: how many numbers, their scales, their grids."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    counts = [0] * len(mechanisms)
    wrong: dict[str, None] = {}
    try:
        with pq.ParquetFile(path) as opened:
            for batch in opened.iter_batches(columns=["mechanism", "place", "value", "scale"]):
                number, place, value, scale = (
                    np.asarray(batch.column(name).to_numpy(zero_copy_only=False), dtype=np.float64)
                    for name in batch.schema.names
                )
                for one in np.unique(number).astype(np.int64).tolist():
                    if not 0 <= one < len(mechanisms):
                        wrong[f"mechanism {one} is not in the statement"] = None
                        continue
                    mine = number == one
                    order = np.arange(counts[one], counts[one] + int(mine.sum()))
                    if not np.array_equal(place[mine], order):
                        wrong[f"numbers of mechanism {one} are out of order"] = None
                    counts[one] += int(mine.sum())
                    if not _fits(mechanisms[one], value[mine], scale[mine]):
                        wrong[f"an answer of mechanism {one} does not have its noise"] = None
    except (pa.ArrowException, OSError, ValueError, KeyError):
        return [f"{path.name} can't be read"]
    for one, (count, mechanism) in enumerate(zip(counts, mechanisms, strict=True)):
        if count != _numbers(mechanism):
            wrong[f"mechanism {one} has {count:,} numbers for {_numbers(mechanism):,}"] = None
    return list(wrong)


def _numbers(mechanism: dict[str, Any]) -> int:
    return 1 if _is_choice(mechanism) else int(mechanism["size"])


def _is_choice(mechanism: dict[str, Any]) -> bool:
    return str(mechanism["noise"]).startswith("noisy max")


def _fits(mechanism: dict[str, Any], value: Vector, scale: Vector) -> bool:
    """Whether numbers are on the public grid, once counted in units of their noise."""
    if _is_choice(mechanism):
        return bool(np.isnan(scale).all() and ((value >= 0) & (value < mechanism["size"])).all())
    if not (np.isfinite(value).all() and (scale > 0).all()):
        return False
    steps = value * (float(mechanism["scale"]) / scale) / float(Fraction(mechanism["grid"]))
    # A number was divided by its factor, and is multiplied again: off by a few roundings.
    return bool((np.abs(steps - np.rint(steps)) <= 2.0**-49 * np.abs(steps) + 1e-6).all())
