"""Audits of the ledger's arithmetic: its totals are never below what was spent.

Releases of the same data compose: for a step of ``reference``, which is the first alpha or what it
was raised to, a release with epsilon at ``alpha`` counts ``ceil(reference/alpha)`` times, whatever
the name of the data and the words of the charge. A ledger may refuse a charge, and its total may be
more than that sum.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gridveil.auditing.checks import Sizes
from gridveil.auditing.command_runs import LEDGER, run_command
from gridveil.auditing.scratch_ledgers import new_name, scratch
from gridveil.auditing.verdicts import Audit, NotRun, Verdict
from gridveil.auditing.wind_files import POWER, csv_text
from gridveil.errors import LedgerRefused, LedgerWarning
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.ledger import Ledger, Terms
from gridveil.privacy.noise import SecureNoise
from gridveil.privacy.sealed import Range


@dataclass(frozen=True)
class Spending:
    """One release of the same data, as it is charged.

    Parameters
    ----------
    epsilon, alpha
        Its guarantee.
    name
        The owner's name for the data this time.
    words
        The purpose in the charge.
    raised
        The reference alpha is raised to this before; None to leave it.
    """

    epsilon: Fraction
    alpha: Fraction
    name: str
    words: str = "an audit"
    raised: Fraction | None = None


Pay = Callable[[Spending], Fraction | None]
"""Charges a release; returns the ledger's total for the data so far, or None if it refuses."""


@dataclass(frozen=True)
class Composition:
    """Audit that a ledger's total is at least the exact composition of what was charged.

    Parameters
    ----------
    name
        What is audited.
    open_ledger
        Makes a new ledger, and returns a function that charges it.
    names, words
        The names of the same data, and the purposes of charges, in turn.
    sizes
        How many series of charges to make.
    charges
        How many charges a series has.
    raises
        Whether the reference alpha is raised now and then.
    """

    name: str
    open_ledger: Callable[[], Pay]
    names: Sequence[str]
    sizes: Sizes
    words: Sequence[str] = ("an audit",)
    charges: int = 6
    raises: bool = False

    def run(self, *, fast: bool, error: float) -> Verdict:
        """Charge, and compare every total with the sum."""
        samples = self.sizes.at(fast=fast)
        totals: list[tuple[Fraction, Fraction]] = []
        for number in range(samples):
            pay = self.open_ledger()
            paid: list[Spending] = []
            for one in self._series(number):
                said = pay(one)
                if said is not None:
                    paid.append(one)
                    totals.append((said, composed(paid)))
        if not totals:
            return NotRun(self.name, "composition", "every charge was refused").run(
                fast=fast, error=error
            )
        short = sum(said < due for said, due in totals)
        finding = f"{len(totals):,} charges, no total below their composition"
        if short:
            finding = f"{short:,} of {len(totals):,} totals are below what the charges compose to"
        said, due = max(totals, key=lambda pair: pair[1] - pair[0])
        return Verdict(
            self.name,
            "composition",
            float(said),
            float(due),
            1.0,
            samples,
            finding,
            broken=short > 0,
        )

    def _series(self, number: int) -> list[Spending]:
        # Numbers from a digest look random and are the same in every run.
        drawn = hashlib.sha256(f"series {number}".encode()).digest()
        return [
            Spending(
                Fraction(1 + drawn[k] % 8, 4),
                Fraction(30, 1 + drawn[k + 8] % 9),
                self.names[(k + drawn[k + 16] % 2) % len(self.names)],
                self.words[k % len(self.words)],
                Fraction(30 * k) if self.raises and k and drawn[k + 24] % 2 else None,
            )
            for k in range(self.charges)
        ]


def composed(charges: Sequence[Spending]) -> Fraction:
    """Add up charges for a step of the first one's alpha, or of what that was raised to."""
    reference = max([charges[0].alpha, *(one.raised for one in charges if one.raised is not None)])
    return sum((one.epsilon * math.ceil(reference / one.alpha) for one in charges), Fraction(0))


# -- the real ledger -------------------------------------------------------------------------------


def _open_ledger() -> Pay:
    """Make a new ledger that is charged as a release charges it."""
    ledger = Ledger(scratch() / f"{new_name()}.sqlite")

    def pay(one: Spending) -> Fraction | None:
        adjacency = Adjacency.of(
            "capacity", alpha=one.alpha, unit="MW", range=Range(0.0, 1000.0), entries=10
        )
        with warnings.catch_warnings():  # about alphas far below the reference, wanted here
            warnings.simplefilter("ignore", LedgerWarning)
            try:
                if one.raised is not None:
                    ledger.set_reference(one.name, {"capacity": one.raised})
                return ledger.charge(
                    Terms(one.name, one.epsilon, adjacency=[adjacency], purpose=one.words)
                ).spent
            except LedgerRefused:
                return None

    return pay


def _open_commands() -> Pay:
    """Make a new ledger that is charged by commands which release one file again and again."""
    folder = scratch() / new_name()
    folder.mkdir()
    file, ledger = folder / "records.csv", folder / LEDGER
    file.write_bytes(csv_text(POWER["halves"]))

    def pay(one: Spending) -> Fraction | None:
        typed = ["wind", "release", str(file), "--speed", "speed", "--power", "power"]
        typed += ["--capacity", "1000", "--method", "laplace", "--json", "--force"]
        typed += ["--alpha", str(one.alpha / 1000), "--epsilon", str(one.epsilon)]
        typed += ["--dataset", one.name, "--ledger", str(ledger), "--output", str(folder / "out")]
        typed.append("--yes")
        done = run_command(typed, SecureNoise())
        if done["exit code"] != b"0":
            return None
        return Fraction(json.loads(done["stdout"])["charge"]["spent"])

    return pay


_ONE = ("north farm",)
_SPELLINGS = ("north farm", "North-Farm", "north_farm", "NORTH  FARM", "north.farm")
_RENAMED = ("scada", "scada-final", "records of the north farm")
_WORDS = ("a release", "capacity of a network, method certified", "capacity, for the regulator")


def composition() -> Audit:
    """Audit charges with all kinds of alpha, and changing purposes."""
    return Composition("ledger-composition", _open_ledger, _ONE, Sizes(6, 60), _WORDS)


def raised() -> Audit:
    """Audit charges with a reference that is raised: earlier charges count at the new one."""
    return Composition("ledger-raised", _open_ledger, _ONE, Sizes(6, 60), _WORDS, raises=True)


def spellings() -> Audit:
    """Audit charges under different spellings of one name."""
    return Composition("ledger-spellings", _open_ledger, _SPELLINGS, Sizes(6, 60), _WORDS)


def second_name() -> Audit:
    """Audit one file that the command releases under several names."""
    return Composition("ledger-second-name", _open_commands, _RENAMED, Sizes(2, 10))


def commands() -> Audit:
    """Audit one file that the command releases again and again under its name."""
    return Composition("ledger-commands", _open_commands, _ONE, Sizes(2, 10))


LEDGER_AUDITS: dict[str, Callable[[], Audit]] = {
    "ledger-composition": composition,
    "ledger-raised": raised,
    "ledger-spellings": spellings,
    "ledger-commands": commands,
    "ledger-second-name": second_name,
}
