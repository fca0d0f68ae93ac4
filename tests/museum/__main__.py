"""Run every control, and write what catches it into the documentation.

    PYTHONPATH=tests python -m museum [--audit FILE] [--docs FILE]

Looks for the fewest samples, doubling, at which each control is caught, and checks that the same
mechanism without its fault passes with many. Exit code 1 if one is not caught, or a sound one is
called broken.

``--audit`` takes the file of ``gridveil audit --json``; ``--docs`` the page whose tables, between
marks, are written anew from both.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from gridveil.auditing.verdicts import show_confidence
from museum import ERROR, MUSEUM
from museum.control import same

FEWEST = {"Frequency": 50}


def main():
    parser = argparse.ArgumentParser(prog="museum", description="Run the museum's controls.")
    parser.add_argument("--audit", type=Path, help="verdicts of the real mechanisms, as JSON")
    parser.add_argument("--docs", type=Path, help="the page to write the tables into")
    options = parser.parse_args()
    rows, failures = [], 0
    for control in MUSEUM:
        found = fewest(control.broken)
        passes = not control.sound().run(fast=True, error=ERROR).broken
        failures += found is None or not passes
        caught = "NOT CAUGHT" if found is None else f"{found.check}: {evidence(found)}"
        samples = "" if found is None else f"{found.samples:,}"
        print(f"{control.name:44}{caught}{'' if passes else '   SOUND ONE CALLED BROKEN'}")
        rows.append((control.name, control.what, caught, samples))
    if options.docs is not None:
        page = options.docs.read_text(encoding="utf-8")
        page = between(page, "controls", table(("control", "fault", "caught by", "samples"), rows))
        if options.audit is not None:
            page = between(page, "audits", audits(json.loads(options.audit.read_text("utf-8"))))
        options.docs.write_text(page, encoding="utf-8")
    print(f"{len(MUSEUM) - failures} of {len(MUSEUM)} controls are caught and pass when repaired.")
    return 1 if failures else 0


def fewest(make):
    """The verdict with the fewest samples that catches a control; None if none does."""
    most = make().sizes.fast
    samples = FEWEST.get(type(make()).__name__, 1)
    while samples < 2 * most:
        verdict = replace(make(), sizes=same(min(samples, most))).run(fast=True, error=ERROR)
        if verdict.broken:
            return verdict
        samples *= 2
    return None


HEAD = ("audit", "check", "claimed", "proved at least", "samples", "verdict")


def audits(body):
    """What was run, and the table of what it found."""
    verdicts = body["verdicts"]
    confidence = show_confidence(1 - body["false_alarm"] / len(verdicts))
    left_out = sum(not one["ran"] for one in verdicts)
    head = (
        f"The {body['setting']} setting: {len(verdicts) - left_out} audits, {body['broken']} "
        f"claims broken, each frequency at {confidence} confidence."
    )
    if left_out:
        head += f" {left_out} more were not run, for want of a package that they need."
    return f"{head}\n\n{table(HEAD, [line(one) for one in verdicts])}"


def line(one):
    claimed = "" if one["claimed"] is None else f"{one['claimed']:g}"
    proved = "" if one["proved"] is None else f"{float(one['proved']):.2f}"
    verdict = "**BROKEN**" if one["broken"] else "consistent"
    if not one["ran"]:
        verdict = f"not run: {one['finding']}"
    return one["name"], one["check"], claimed, proved, f"{one['samples']:,}", verdict


def evidence(verdict):
    if verdict.check == "replay":
        return verdict.finding.partition(", ")[2].partition("; first: ")[0]
    if verdict.claimed is None:
        return verdict.finding
    return f"epsilon {verdict.claimed:.3g} claimed, {verdict.proved:.3g} proved"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


def between(page, mark, text):
    """Replace what stands between two marks."""
    before, found, rest = page.partition(f"<!-- {mark} -->")
    _, end, after = rest.partition(f"<!-- end of {mark} -->")
    if not found or not end:
        raise SystemExit(f"The page has no place for {mark}.")
    return f"{before}{found}\n\n{text}\n\n{end}{after}"


if __name__ == "__main__":
    sys.exit(main())
