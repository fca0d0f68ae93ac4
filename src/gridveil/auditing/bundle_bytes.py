"""Read the bytes that a release publishes, without those that differ between any two runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from gridveil.auditing.scratch_ledgers import new_name, scratch
from gridveil.auditing.transcript import Outcome
from gridveil.privacy.statement import STATEMENT_FILE
from gridveil.release.plan import Release

# The time, the position in the ledger's chain, and digests of files that contain these.
_OF_THE_RUN = ("created", "ledger", "files", "digest")


def bundle_parts(release: Release) -> Outcome:
    """Write a release, and read every file of its bundle, without marks of the single run."""
    folder = release.write(scratch() / new_name())
    parts = folder_parts(folder)
    shutil.rmtree(folder)
    return parts


def folder_parts(folder: Path) -> Outcome:
    """Read every file of a written bundle, without marks of the single run."""
    parts = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    statement = json.loads(parts[STATEMENT_FILE])
    ledger = statement["ledger"]
    marks = [statement["created"], ledger["ledger"], ledger["hash"], ledger["dataset"]]
    marks.append(f"entry {ledger['entry']} ")
    for name, content in parts.items():
        for mark in marks:
            content = content.replace(mark.encode(), b"")
        parts[name] = content
    kept = {key: value for key, value in statement.items() if key not in _OF_THE_RUN}
    text = json.dumps(kept).replace(ledger["dataset"], "")
    return {**parts, STATEMENT_FILE: text.encode()}
