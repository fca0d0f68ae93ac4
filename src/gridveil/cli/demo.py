"""``gridveil demo``: a release of built-in data, from sealed values to a checked bundle."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gridveil.bundle import check_target
from gridveil.cli.console import out
from gridveil.cli.verify import run_verify
from gridveil.privacy.account import open_account
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.ledger import Ledger
from gridveil.privacy.mechanisms import laplace
from gridveil.privacy.sealed import Limits, seal
from gridveil.privacy.sensitivity import Sensitivity
from gridveil.privacy.statement import Facts, make_statement
from gridveil.release import REPORT_FILE, Release

_LIMITS = Limits(0.0, 100.0)
_ALPHA = Fraction(2)


def demo_release(ledger: Ledger) -> Release[NDArray[np.float64]]:
    """Release a made-up day of hourly load in MW with Laplace noise and clipping."""
    hours = np.arange(24)
    load = 55 + 20 * np.sin((hours - 9) * np.pi / 12) + 5 * np.sin(hours * np.pi / 4)
    sealed = seal(load, name="hourly load", unit="MW", limits=_LIMITS)
    adjacency = Adjacency.of("load", alpha=_ALPHA, unit="MW", limits=_LIMITS, entries=len(sealed))
    account = open_account(
        ledger,
        dataset="demo: hourly load",
        epsilon=1,
        adjacency=[adjacency],
        clear=["hour"],
        purpose="hourly load by Laplace noise",
    )
    noisy = laplace(
        account,
        sealed,
        name="every hour's load",
        sensitivity=Sensitivity(_ALPHA, "one entry moves by at most alpha"),
        epsilon=1,
    )
    released = np.round(_LIMITS.clip(noisy.value), 2)
    facts = Facts(
        kind="load",
        method="laplace",
        summary="A made-up day of hourly load in MW",
        settings={"alpha": "2 MW", "epsilon": "1"},
        public_inputs=["the hours of a day"],
        published_in_clear=["hour"],
        limitations=["Neighbouring hours resemble each other, which epsilon does not bound."],
    )
    rows = [f"{hour},{value:.2f}" for hour, value in zip(hours, released, strict=True)]
    text = "\n".join(["hour,load_mw", *rows]) + "\n"
    files = {"load.csv": lambda path: path.write_bytes(text.encode())}
    return Release(released, make_statement(account, facts), account, files)


def run_demo(output: Path, *, quiet: bool) -> None:
    """Make the demo's release, check it, and name its report."""
    bundle = check_target(output / "load", force=True)
    placed = demo_release(Ledger(output / "ledger.sqlite")).write(bundle, force=True)
    run_verify(placed, as_json=False, quiet=quiet)
    if not quiet:
        out().print(f"\nThe report: {placed / REPORT_FILE}")
