"""``gridveil ledger``: what was spent, how much may be, and whether the record is whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gridveil.cli import typed
from gridveil.cli.console import JsonOption, LedgerOption, err, out, plain, print_json, table
from gridveil.errors import InputError, show_exact

if TYPE_CHECKING:
    from rich.table import Table

    from gridveil.privacy.ledger import Entry, Ledger, Totals

app = typer.Typer(help="See, cap and check what has been spent.", no_args_is_help=True)


@app.command()
def show(
    dataset: Annotated[
        str | None, typer.Argument(help="Show the entries of this dataset.", show_default=False)
    ] = None,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what every dataset has spent, or the entries of one.

    Example: [cyan]gridveil ledger show turbine[/]
    """
    found = _existing(ledger)
    if dataset is None:
        _show_all(found, as_json)
    else:
        _show_one(found, dataset, as_json)


@app.command()
def cap(
    dataset: Annotated[str, typer.Argument(help="The dataset's name.", show_default=False)],
    epsilon: Annotated[
        str | None,
        typer.Argument(help="The most it may ever spend: 5, 0.5 or 1/3.", show_default=False),
    ] = None,
    alpha: Annotated[
        str | None,
        typer.Option(
            help="The reference alpha that the cap is about: 30 (MW), 15% (of capacity), or "
            "capacity=30,cost=1.",
            show_default=False,
        ),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the cap away.")] = False,
    ledger: LedgerOption = None,
) -> None:
    """Set the most epsilon that a dataset may ever spend, for steps of a reference alpha.

    Example: [cyan]gridveil ledger cap turbine 5 --alpha 15%[/]
    """
    from gridveil.privacy.ledger import Ledger

    if (epsilon is None) != remove:
        raise InputError(
            "Give either a cap or --remove.",
            remedy='For example: gridveil ledger cap "north farm" 5 --alpha 15%',
        )
    book = Ledger(ledger)
    known = bool(book.entries(dataset))
    book.set_cap(dataset, epsilon, alpha=None if alpha is None else typed.alpha(alpha))
    _show_changed(book, dataset, known=known)


@app.command()
def reference(
    dataset: Annotated[str, typer.Argument(help="The dataset's name.", show_default=False)],
    alpha: Annotated[
        str,
        typer.Option(
            help="The step that epsilons add up for: 30 (MW), 15% (of capacity), or "
            "capacity=30,cost=1.",
            show_default=False,
        ),
    ],
    ledger: LedgerOption = None,
) -> None:
    """Declare or raise the reference alpha: the step that a dataset's epsilons add up for.

    Releases at a smaller alpha count several times their epsilon, those before it too.

    Example: [cyan]gridveil ledger reference rts96 --alpha capacity=30,load=10[/]
    """
    from gridveil.privacy.ledger import Ledger

    book = Ledger(ledger)
    known = bool(book.entries(dataset))
    book.set_reference(dataset, typed.alpha(alpha))
    _show_changed(book, dataset, known=known)


def _show_changed(book: Ledger, dataset: str, *, known: bool) -> None:
    totals = book.totals(dataset)
    out().print(f"Ledger {plain(book.path)}")
    out().print(_table([totals]))
    if not known:
        err().print(
            f"[yellow]note:[/] {plain(repr(totals.dataset))} is a new name in this ledger "
            "(gridveil ledger show lists all)."
        )
    if totals.overspent:
        err().print(
            f"[yellow]warning:[/] the cap is below what is spent already, by "
            f"{show_exact(totals.overspent)}: no release will be allowed."
        )


@app.command()
def verify(
    ledger: LedgerOption = None,
    bundle: Annotated[
        list[Path] | None,
        typer.Option("--bundle", help="A bundle that the ledger must know of. May be repeated."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check the ledger's chain, and that it holds the charges of your bundles.

    A chain alone can't show that its end was cut off: give it your bundles. Exit code 0 if all
    is well, 1 if not.

    Example: [cyan]gridveil ledger verify --bundle out/[/]
    """
    found = _existing(ledger)
    problems = found.problems()
    for folder in bundle or []:
        problems += [f"{folder}: {text}" for text in found.bundle_problems(*_recorded(folder))]
    entries = 0 if problems else len(found.entries())
    if as_json:
        print_json({"ok": not problems, "entries": entries, "problems": problems})
    elif problems:
        for problem in problems:
            out().print(f"[bold red]FAIL[/] {plain(problem)}")
    else:
        checked = f" and holds the charges of {len(bundle)} bundles" if bundle else ""
        out().print(f"[green]ok[/]   {entries} entries; the chain is whole{checked}.")
    raise typer.Exit(1 if problems else 0)


def _existing(path: Path | None) -> Ledger:
    from gridveil.privacy.ledger import Ledger, ledger_path

    if not os.path.exists(ledger_path(path)):
        raise InputError(
            f"There is no ledger at {ledger_path(path)} yet.",
            remedy="The first release or cap makes it; name another with --ledger.",
        )
    return Ledger(path)


def _recorded(folder: Path) -> tuple[dict[str, Any], str]:
    import hashlib

    from gridveil.privacy.statement import STATEMENT_FILE, Statement

    try:
        text = (folder / STATEMENT_FILE).read_bytes()
    except (OSError, ValueError):
        raise InputError(
            f"There is no bundle at {folder}.", remedy="Name the folder that a release wrote."
        ) from None
    recorded: dict[str, Any] = Statement.from_json(text).body["ledger"] or {}
    return recorded, hashlib.sha256(text).hexdigest()


def _show_all(ledger: Ledger, as_json: bool) -> None:
    all_totals = ledger.all_totals()
    if as_json:
        print_json({"ledger": str(ledger.path), "datasets": [_summary(one) for one in all_totals]})
        return
    out().print(f"Ledger {plain(ledger.path)}")
    out().print(_table(all_totals))


def _table(all_totals: list[Totals]) -> Table:
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


def _show_one(ledger: Ledger, dataset: str, as_json: bool) -> None:
    entries = ledger.entries(dataset)
    totals = ledger.totals(dataset)
    if not entries:
        raise InputError(
            f"The ledger has no dataset {dataset!r}.",
            remedy="gridveil ledger show lists those that it has.",
        )
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
