"""Bundles with one file changed, as their recipient checks them.

The first byte of an input says which file it stands for; mostly it is the statement.
"""

import tempfile
from pathlib import Path

from fuzz.mutations import Choose, mutate, mutate_json
from fuzz.verdicts import wrong_unless
from support.making import make_release

from gridveil.privacy.ledger import Ledger
from gridveil.privacy.statement import STATEMENT_FILE
from gridveil.release.verification import verify_bundle


def _bundle() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        placed = make_release(Ledger(Path(folder) / "ledger")).write(Path(folder) / "out")
        return {path.name: path.read_bytes() for path in placed.iterdir()}


BUNDLE = _bundle()
NAMES = [STATEMENT_FILE, *sorted(set(BUNDLE) - {STATEMENT_FILE})]


def make_bundle(choose: Choose) -> bytes:
    """One file of a bundle, changed."""
    which = 0 if choose(8) else choose(len(NAMES))
    whole = BUNDLE[NAMES[which]]
    if which == 0 and choose(4):
        return b"\0" + mutate_json(whole, choose)
    return bytes([which]) + mutate(whole, choose, [whole])


def check_bundle(data: bytes, folder: Path) -> bool:
    """Verify it: a bundle passes where every byte is as it was written, and nowhere else."""
    which, body = (data[0] % len(NAMES), data[1:]) if data else (0, b"")
    for name, whole in BUNDLE.items():
        (folder / name).write_bytes(body if name == NAMES[which] else whole)
    findings = verify_bundle(folder)
    sound = bool(findings) and all(finding.ok for finding in findings)
    whole = body == BUNDLE[NAMES[which]]
    wrong_unless(sound == whole, "a changed bundle passes" if sound else "a whole bundle fails")
    return sound
