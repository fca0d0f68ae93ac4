"""A released series of loads, and what is prepared for it from public data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.io import module_of, network_suffix
from gridveil.grid.model.network import Network
from gridveil.grid.model.public_network import PublicNetwork
from gridveil.grid.opf.engine import Solutions
from gridveil.grid.report import network_snippets
from gridveil.grid.series.load_table import LoadSeries, write_series
from gridveil.grid.series.pictures import series_sections
from gridveil.grid.series.queries import Frame, Query
from gridveil.grid.series.rebuild import Box
from gridveil.grid.series.serve_hours import KEPT, Served, solve_hours
from gridveil.privacy.account import Account
from gridveil.privacy.statement import Facts, make_statement
from gridveil.release.plan import Release
from gridveil.report.page import Section, Snippet

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Prepared:
    """What is prepared from public data before anything is charged.

    Parameters
    ----------
    series
        The series; only its clock, names and layout are used.
    kept, entry
        The loads that are not always 0, in the order of the network's buses, and the private
        entry of the network (a bus with loads) that each belongs to.
    frame, box
        Their public facts and ranges.
    queries, epsilons
        All queries, and the epsilon of each that is asked.
    typical
        The public guess of the mean load, MW.
    decimals
        The number of decimals of released values.
    snapshots
        The names of a PyPSA network's loads, whose file holds loads over time too; else empty.
    """

    series: LoadSeries
    kept: Ints
    entry: Ints
    frame: Frame
    box: Box
    queries: Mapping[str, Query]
    epsilons: Mapping[str, Fraction]
    typical: float
    decimals: int
    snapshots: tuple[str, ...]

    def at_buses(self, values: Floats) -> Floats:
        """Sum loads by bus: ``(times, private entries)``."""
        first = np.flatnonzero(np.diff(self.entry, prepend=-1))
        return np.asarray(np.add.reduceat(values, first, axis=1))

    @property
    def bus_box(self) -> tuple[Floats, Floats]:
        """The public range of every private entry: lower and upper ends, MW."""
        return self.at_buses(self.box.low[None])[0], self.at_buses(self.box.high[None])[0]

    def to_loads(self, moved: Floats, values: Floats) -> Floats:
        """Divide moved sums of buses among their loads, in proportion to `values`.

        If loads of a bus may be below 0, all of them are shifted by the same amount.
        """
        have = self.at_buses(values)
        count = np.bincount(self.entry)
        free = (have <= 0) | (self.bus_box[0] < 0)
        share = np.divide(moved, have, out=np.ones_like(moved), where=~free)
        shift = np.where(free, (moved - have) / count, 0.0)
        found = values * share[:, self.entry] + shift[:, self.entry]
        # Loads of one bus are rounded one by one, with more decimals so that their sum is served.
        return np.clip(np.round(found, self.decimals + 3), self.box.low, self.box.high)


class SeriesRelease(Release):
    """A released series of loads: `data` is its table, `network` has the mean loads."""

    def __init__(
        self,
        account: Account,
        facts: Facts,
        public: PublicNetwork,
        prepared: Prepared,
        served: Served,
        rebuilt: Sequence[str],
    ) -> None:
        self.public, self.prepared, self.served = public, prepared, served
        self.rebuilt = rebuilt
        series = prepared.series
        self.clock, self.names = series.clock, series.names
        self.network: Network = public.with_values(prepared.at_buses(served.values).mean(axis=0))
        files = {
            f"network{network_suffix(self.network)}": self._write_network,
            f"loads{series.layout.suffix}": lambda path: write_series(
                path, series.layout, series.clock, series.names, self.values
            ),
        }
        super().__init__(make_statement(account, facts), account, files)

    def _write_network(self, path: Path) -> None:
        if not self.prepared.snapshots:
            self.network.write_release(path, ("load",))
            return
        import pandas as pd

        times = pd.DatetimeIndex(self.data.index).tz_localize(None)
        module_of("pypsa").write_loads(
            self.network, path, times, self.data, self.prepared.snapshots
        )

    @cached_property
    def values(self) -> Floats:
        """Released loads in MW: one row per time, one column per load of the table."""
        found = np.zeros((self.clock.size, len(self.names)))
        found[:, self.prepared.kept] = self.served.values
        return found

    @cached_property
    def data(self) -> pd.DataFrame:
        """The released series as a table, with times as index."""
        import pandas as pd

        times = pd.to_datetime(self.clock.moments, unit="s", utc=self.clock.zone == "UTC")
        return pd.DataFrame(self.values, index=times, columns=list(self.names))

    @cached_property
    def solutions(self) -> Solutions:
        """The dispatch of every released hour, with prices of lines."""
        if self.served.solved is not None:
            return self.served.solved
        values = self.prepared.at_buses(self.served.values)
        return solve_hours(self.public, values, keep=KEPT)

    def sections(self) -> tuple[Section, ...]:
        """Pictures of the released series."""
        return series_sections(self.clock, self.values, self.served, self.rebuilt)

    def loading(self) -> tuple[Snippet, ...]:
        """Code that loads the released series, and the network that they belong to."""
        name = next(file for file in self.files if file.startswith("loads"))
        read = "read_csv" if name.endswith(".csv") else "read_parquet"
        kept = "them at every snapshot" if self.prepared.snapshots else "their means"
        code = f'# In MW; the network file has {kept}.\nloads = pd.{read}("{name}")'
        suffix = network_suffix(self.network)
        return Snippet("pandas", f"import pandas as pd\n\n{code}"), *network_snippets(
            f"network{suffix}", suffix
        )
