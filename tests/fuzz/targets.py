"""The readers, each with valid files to start from and a check of what it makes of any file.

The right answer to a bad file is an error of GridVeil's own. A check raises `WrongSuccess` where
a reader took what it should not have; any other exception is a bug.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fuzz import bundles, grids, ledgers, winds
from fuzz.mutations import Choose


@dataclass(frozen=True)
class Target:
    """One reader under test.

    Parameters
    ----------
    make
        Gives an input, by choices.
    check
        Reads an input in a folder, and says whether it was taken.
    """

    name: str
    make: Callable[[Choose], bytes]
    check: Callable[[bytes, Path], bool]


TARGETS = {
    target.name: target
    for target in (
        Target("wind records, CSV", winds.make_csv, winds.check_csv),
        Target("wind records, Parquet", winds.make_parquet, winds.check_parquet),
        Target("network, MATPOWER", grids.make_case, grids.check_case),
        Target("population, Parquet", grids.make_population, grids.check_population),
        Target("bundle, verify", bundles.make_bundle, bundles.check_bundle),
        Target("ledger, SQLite", ledgers.make_ledger, ledgers.check_ledger),
    )
}
