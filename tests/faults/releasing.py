"""A whole small release by the command line, and what must hold after whatever happened to it."""

import hashlib
import os
import shutil
import time
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from fuzz.grids import CASE

from gridveil.errors import GridveilError
from gridveil.privacy.ledger import Ledger
from gridveil.privacy.statement import STATEMENT_FILE, Statement
from gridveil.release.verification import verify_bundle

DATASET = "small farm"
CAP = 3
ALPHA = {"power": "15%", "capacity": 5}
_ROWS = 40


@dataclass
class Tally:
    """How often a kind of fault was tried, and everything that went wrong."""

    kind: str
    tried: int = 0
    losses: list[str] = field(default_factory=list)
    half_bundles: list[str] = field(default_factory=list)
    overspends: list[str] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)
    note: str = ""

    @property
    def clean(self) -> bool:
        return not (self.losses or self.half_bundles or self.overspends or self.tracebacks)

    def wrong(self) -> str:
        found = [*self.losses, *self.half_bundles, *self.overspends, *self.tracebacks]
        return f"{self.kind}: {len(found)} of {self.tried}: {found[:3]}"


@dataclass(frozen=True)
class Scene:
    """A folder with records to release, perhaps after an earlier release of them."""

    folder: Path
    spent: Fraction
    replaces: bool
    kind: str = "wind"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.sqlite"

    @property
    def target(self) -> Path:
        return self.folder / "out"

    def copy(self, folder: Path) -> "Scene":
        if folder.exists():
            shutil.rmtree(folder)
        shutil.copytree(self.folder, folder)
        return replace(self, folder=folder)

    def after(self, spent: Fraction | int) -> "Scene":
        """The same place once so much has been spent there."""
        return replace(self, spent=Fraction(spent), replaces=spent > 0)


def make_scene(folder: Path, *, earlier: bool, kind: str = "wind") -> Scene:
    """Data to release, a cap of three releases, and an earlier release where one is wanted."""
    folder.mkdir(parents=True)
    _SOURCES[kind](folder)
    scene = Scene(folder, Fraction(0), replaces=False, kind=kind)
    if not earlier:
        return scene
    Ledger(scene.ledger).set_cap(DATASET, CAP, alpha=ALPHA)
    assert release(scene) == 0
    return scene.after(1)


def _write_records(folder: Path) -> None:
    speeds = [3 + 9 * row / _ROWS for row in range(_ROWS)]
    lines = [f"{row},{speed:.3f},{150 * speed:.3f}\n" for row, speed in enumerate(speeds)]
    (folder / "records.csv").write_text("time,speed,power\n" + "".join(lines))


def _write_case(folder: Path) -> None:
    from gridveil.grid import read_case, sample_population

    (folder / "case.m").write_bytes(CASE)
    network = read_case(folder / "case.m")
    models = sample_population(network, 3, spread=0.05, costs=0.1)
    models.write(folder / "models.parquet", network)


_SOURCES = {"wind": _write_records, "grid": _write_case}


def release(scene: Scene, *options: str) -> int:
    """Make a release of epsilon 1 by the command line; the exit code."""
    from gridveil.cli.commands import app

    own = {
        "wind": [
            scene.folder / "records.csv", "--speed", "speed", "--power", "power", "--capacity",
            "2000", "--alpha", "15%", "--key", "time",
        ],
        "grid": [
            scene.folder / "case.m", "--alpha", "5", "--range", "10:500", "--population",
            scene.folder / "models.parquet",
        ],
    }[scene.kind]  # fmt: skip
    common = [
        "--method", "laplace", "--dataset", DATASET, "--ledger", scene.ledger, "-o", scene.target,
        "--force", "--quiet",
    ]  # fmt: skip
    arguments = [scene.kind, "release", *own, *common, *options]
    return app([str(one) for one in arguments], standalone_mode=False) or 0


def check_aftermath(
    scene: Scene, tally: Tally, what: str, screen: str = "", *, retry: bool = True
) -> None:
    """What must hold after a fault, whatever it was."""
    if "Traceback" in screen or "internal error" in screen:
        tally.tracebacks.append(f"{what}: {screen[-400:]}")
    try:
        spent = _check_ledger(scene, tally, what)
        _check_target(scene, tally, what, spent)
        if retry:
            _check_retry(scene, tally, what)
    except GridveilError as error:
        tally.losses.append(f"{what}: {error}")


def _check_ledger(scene: Scene, tally: Tally, what: str) -> Fraction:
    ledger = Ledger(scene.ledger)
    if problems := ledger.problems():
        tally.losses.append(f"{what}: {problems[0]}")
    totals = ledger.totals(DATASET)
    if totals.spent not in (scene.spent, scene.spent + 1):
        wrong = tally.losses if totals.spent < scene.spent else tally.overspends
        wrong.append(f"{what}: spent {totals.spent} after {scene.spent}")
    if totals.cap is not None and totals.spent > totals.cap:
        tally.overspends.append(f"{what}: {totals.spent} over the cap")
    return totals.spent


def _check_target(scene: Scene, tally: Tally, what: str, spent: Fraction) -> None:
    seen = {path.name for path in scene.folder.iterdir() if not path.name.startswith(".")}
    known = {"records.csv", "case.m", "models.parquet", "out", "ledger.sqlite"}
    strange = seen - known - _beside(scene.ledger)
    if strange:
        tally.half_bundles.append(f"{what}: {sorted(strange)}")
    if not scene.target.exists():
        kept = list(scene.folder.glob(".out.*.replaced"))
        if scene.replaces and not kept:
            tally.losses.append(f"{what}: the earlier bundle is gone")
        return
    failed = [one.text for one in verify_bundle(scene.target) if not one.ok]
    if failed:
        tally.half_bundles.append(f"{what}: {failed[0]}")
        return
    text = (scene.target / STATEMENT_FILE).read_bytes()
    recorded = Statement.from_json(text).body["ledger"]
    digest = hashlib.sha256(text).hexdigest()
    if problems := Ledger(scene.ledger).bundle_problems(recorded, digest):
        tally.losses.append(f"{what}: {problems[0]}")
    if Fraction(recorded["spent_so_far"]) > spent:
        tally.overspends.append(f"{what}: a bundle that was not charged")


def _beside(ledger: Path) -> set[str]:
    return {f"{ledger.name}-wal", f"{ledger.name}-shm", f"{ledger.name}-journal"}


def _check_retry(scene: Scene, tally: Tally, what: str) -> None:
    """A new try works, and clears up what the old one left, once that is surely dead."""
    long_ago = time.time() - 7200
    for left in scene.folder.glob(".out.*"):
        os.utime(left, (long_ago, long_ago))
    before = Ledger(scene.ledger).totals(DATASET).spent
    code = release(scene)
    if code != 0 or not all(one.ok for one in verify_bundle(scene.target)):
        tally.losses.append(f"{what}: the retry ended with {code}")
    elif Ledger(scene.ledger).totals(DATASET).spent != before + 1:
        tally.losses.append(f"{what}: the retry was not charged")
    if left := list(scene.folder.glob(".out.*")):
        tally.half_bundles.append(f"{what}: {left[0].name} stays")
