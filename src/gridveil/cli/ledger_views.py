"""What ``gridveil ledger show`` prints: totals, entries, and who spent how much and when."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gridveil.cli.console import out, plain, print_json, table
from gridveil.errors import InputError, show_exact

if TYPE_CHECKING:
    from rich.table import Table

    from gridveil.privacy.ledger import Entry, Ledger, Totals
    from gridveil.report.spending import Spent

_BAR = 12  # characters


class By(StrEnum):
    """What to add up by."""

    user = "user"
    dataset = "dataset"
    month = "month"


def show_all(ledger: Ledger, as_json: bool) -> None:
    """What every dataset has spent."""
    all_totals = ledger.all_totals()
    if as_json:
        print_json({"ledger": str(ledger.place), "datasets": [_summary(one) for one in all_totals]})
        return
    out().print(f"Ledger {plain(ledger.place)}")
    out().print(totals_table(all_totals))


def totals_table(all_totals: list[Totals]) -> Table:
    """Totals of datasets, one row for each."""
    from gridveil.privacy.ledger import all_references

    shown = table(
        "dataset", "spent", "cap", "remaining", "reference alpha", "charges", "without release"
    )
    for one in all_totals:
        alphas = ", ".join(f"{_named(key)}{alpha}" for key, alpha in all_references(one).items())
        shown.add_row(
            one.dataset,
            show_exact(one.spent),
            "none" if one.cap is None else show_exact(one.cap),
            "unlimited" if one.remaining is None else show_exact(one.remaining),
            alphas or "not fixed yet",
            str(one.charges),
            str(len(one.unreleased)),
        )
    return shown


def show_one(ledger: Ledger, dataset: str, as_json: bool) -> None:
    """The entries of one dataset."""
    entries = ledger.entries(dataset)
    totals = ledger.totals(dataset)
    if not entries:
        raise _unknown(dataset)
    if as_json:
        rows = [{"entry": e.number, "time": e.time, "kind": e.kind, **e.body} for e in entries]
        print_json({**_summary(totals), "entries": rows})
        return
    shown = table("entry", "time", "what", "charged", "details", title=totals.dataset)
    for entry in entries:
        shown.add_row(str(entry.number), entry.time, *_line(entry, totals))
    out().print(shown)
    out().print(f"Spent {show_exact(totals.spent)} in all.")


def _line(entry: Entry, totals: Totals) -> tuple[str, str, str]:
    body = entry.body
    if entry.kind == "charge":
        alphas = ", ".join(f"{n} by {a['alpha']} {a['unit']}" for n, a in body["adjacency"].items())
        open_charge = " (charged, no release recorded)" if entry.number in totals.unreleased else ""
        counts = show_exact(totals.counted[entry.number])
        distinct = body.get("distinct")
        why = "" if distinct is None else f"; distinct data: {distinct['reason']}"
        return "charge", counts, f"{body['purpose']}; {alphas}{why}{open_charge}"
    if entry.kind == "reference":
        steps = (f"{_named(n)}{a['alpha']} {a['unit']}".strip() for n, a in body["alpha"].items())
        return "reference", "", ", ".join(steps)
    if entry.kind == "cap":
        return "cap", "", "none" if body["cap"] is None else f"at most {body['cap']}"
    return entry.kind, "", f"of charge {body['charge']}"


def _named(key: str) -> str:
    from gridveil.privacy.ledger import ANY

    return "" if key == ANY else f"{key} "


def _summary(one: Totals) -> dict[str, Any]:
    from gridveil.privacy.ledger import all_references

    return {
        "dataset": one.dataset,
        "spent": str(one.spent),
        "cap": None if one.cap is None else str(one.cap),
        "remaining": None if one.remaining is None else str(one.remaining),
        "reference_alpha": {
            name: {"alpha": str(reference.alpha), "unit": reference.unit}
            for name, reference in all_references(one).items()
        },
        "published_in_clear": sorted(one.clear),
        "charges": one.charges,
        "charges_without_release": sorted(one.unreleased),
        "aborts": one.aborts,
    }


# -- by user, dataset or month ----------------------------------------------------------------


def show_by(ledger: Ledger, by: By, dataset: str | None, as_json: bool) -> None:
    """What was spent by user, dataset or month, with a bar for each."""
    from gridveil.report.spending import spent_by

    if dataset is not None and not ledger.entries(dataset):
        raise _unknown(dataset)
    rows = spent_by(ledger, by.value, dataset)
    if as_json:
        print_json({"ledger": str(ledger.place), "by": by.value, "rows": [_json(r) for r in rows]})
        return
    out().print(f"Ledger {plain(ledger.place)}")
    heads = [] if by is By.dataset else [by.value]
    shown = table(
        *heads, "dataset", "charges", "released", "charged", "spent by then", "left", "of the cap"
    )
    for row in rows:
        shown.add_row(
            *([] if by is By.dataset else [row.group]),
            row.dataset,
            str(row.charges),
            str(row.released),
            show_exact(row.charged),
            show_exact(row.spent),
            "no cap" if row.left is None else show_exact(row.left),
            _bar(row),
        )
    out().print(shown)
    if by is By.user and any(row.user is None for row in rows):
        out().print("A ledger in a file does not know who wrote its entries.")


def _bar(row: Spent) -> str:
    """What was spent before, by this row, and what is left of the cap, as a bar."""
    if row.cap is None or row.cap == 0:
        return ""
    full, own, empty = "\u2592\u2588\u2591" if _draws_blocks() else "-#."
    most = max(row.cap, row.spent)
    end = _length(row.spent, most)
    begin = min(_length(row.spent - row.charged, most), end)
    return full * begin + own * (end - begin) + empty * (_BAR - end)


def _length(part: Fraction, whole: Fraction) -> int:
    return min(_BAR, round(_BAR * part / whole))


def _draws_blocks() -> bool:
    return out().encoding.lower().replace("-", "").startswith("utf")


def _json(row: Spent) -> dict[str, Any]:
    return {
        "group": row.group,
        "dataset": row.dataset,
        "charges": row.charges,
        "released": row.released,
        "charged": str(row.charged),
        "spent": str(row.spent),
        "cap": None if row.cap is None else str(row.cap),
        "left": None if row.left is None else str(row.left),
    }


def _unknown(dataset: str) -> InputError:
    return InputError(
        f"The ledger has no dataset {dataset!r}.",
        remedy="gridveil ledger show lists those that it has.",
    )
