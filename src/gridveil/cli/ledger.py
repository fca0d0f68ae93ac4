"""``gridveil ledger``: what was spent, how much may be, and whether the record is whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gridveil.cli import parsing
from gridveil.cli.common_options import JsonOption, LedgerOption, no_password
from gridveil.cli.console import err, out, plain, print_json
from gridveil.cli.ledger_views import By, show_all, show_by, show_one, totals_table
from gridveil.cli.output_files import EXPORT, PICTURE, check_output
from gridveil.errors import InputError, show_exact

if TYPE_CHECKING:
    from gridveil.privacy.ledger import Ledger

app = typer.Typer(help="See, cap and check what has been spent.", no_args_is_help=True)


@app.command()
def show(
    dataset: Annotated[
        str | None, typer.Argument(help="Show the entries of this dataset.", show_default=False)
    ] = None,
    by: Annotated[
        By | None,
        typer.Option(
            help="Add up what was spent by user, dataset or month, and draw it.",
            show_default=False,
        ),
    ] = None,
    chart: Annotated[
        Path | None,
        typer.Option(
            help="Draw what was spent and what is left over time: a file .svg or .png.",
            show_default=False,
        ),
    ] = None,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what every dataset has spent, or the entries of one.

    Example: [cyan]gridveil ledger show --by month --chart spent.svg[/]
    """
    check_output(chart, PICTURE)
    found = _existing(ledger)
    if chart is not None:
        from gridveil.report.spending import draw_spending

        draw_spending(found, dataset, chart)
    if by is not None:
        show_by(found, by, dataset, as_json)
    elif dataset is None:
        show_all(found, as_json)
    else:
        show_one(found, dataset, as_json)


@app.command()
def create(
    ledger: LedgerOption = None,
    analysts: Annotated[
        str | None,
        typer.Option(
            help="A role of the database whose members may charge and read.", show_default=False
        ),
    ] = None,
) -> None:
    """Make a ledger in a PostgreSQL database, which you will own.

    A ledger in a file needs no such command: the first release makes it.

    Example: [cyan]gridveil ledger create --ledger postgresql://owner@db/gridveil --analysts team[/]
    """
    from gridveil.privacy.ledger import Address, ledger_place
    from gridveil.privacy.ledger.database_tables import create as make

    place = ledger_place(ledger)
    if not isinstance(place, Address):
        raise InputError(
            f"{place} is not the address of a database.",
            remedy="Write --ledger postgresql://USER@HOST/DATABASE. A file is made by itself.",
        )
    make(place, analysts=analysts)
    out().print(f"Made a ledger in {plain(place)}.")


@app.command()
def copy(
    source: Annotated[
        str, typer.Argument(help="The ledger as it is: a file or an address.", show_default=False)
    ],
    target: Annotated[
        str,
        typer.Argument(
            help="A file that does not exist yet, or a database without a ledger.",
            show_default=False,
        ),
    ],
    analysts: Annotated[
        str | None,
        typer.Option(
            help="A role of the database whose members may charge and read.", show_default=False
        ),
    ] = None,
) -> None:
    """Move a ledger into a database, or back into a file, and check both.

    The old one is closed, so that nothing is spent twice; it says where the ledger is now.

    Example: [cyan]gridveil ledger copy ledger.sqlite postgresql://owner@db/gridveil[/]
    """
    from gridveil.privacy.ledger.moving import move

    no_password(source), no_password(target)
    old = _existing(source)
    new = move(old, target, analysts=analysts)
    problems = [f"{one.place}: {text}" for one in (old, new) for text in one.problems()]
    if problems:
        raise InputError("; ".join(problems), remedy="Nothing was lost: the old one is whole.")
    out().print(
        f"{len(new.entries())} entries are in {plain(new.place)} now; both chains are whole.\n"
        f"{plain(old.place)} is closed. Set GRIDVEIL_LEDGER, or give --ledger, from here on."
    )


@app.command()
def export(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write.", show_default=False)
    ],
    ledger: LedgerOption = None,
) -> None:
    """Write the whole ledger to a JSON file, which an auditor can check without it.

    It holds names, purposes and epsilons, and nothing private.

    Example: [cyan]gridveil ledger export -o ledger.json[/]
    """
    import json

    from gridveil.privacy.ledger.export import export_of

    check_output(output, EXPORT)
    body = export_of(_existing(ledger))
    output.write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
    out().print(
        f"Wrote {len(body['entries'])} entries to {plain(output)}. "
        f"Check it with: gridveil ledger verify --export {plain(output)}"
    )


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
    book.set_cap(dataset, epsilon, alpha=None if alpha is None else parsing.alpha(alpha))
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
    book.set_reference(dataset, parsing.alpha(alpha))
    _show_changed(book, dataset, known=known)


def _show_changed(book: Ledger, dataset: str, *, known: bool) -> None:
    totals = book.totals(dataset)
    out().print(f"Ledger {plain(book.place)}")
    out().print(totals_table([totals]))
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
    export: Annotated[
        Path | None,
        typer.Option(
            "--export", help="Check this exported ledger instead, without the ledger itself."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check the ledger's chain, and that it holds the charges of your bundles.

    A chain alone can't show that its end was cut off: give it your bundles. Exit code 0 if all
    is well, 1 if not.

    Example: [cyan]gridveil ledger verify --bundle out/[/]
    """
    if export is None:
        found = _existing(ledger)
        problems = found.problems()
    else:
        from gridveil.privacy.ledger import Ledger
        from gridveil.privacy.ledger.export import Export

        store = Export(export)
        found = Ledger(store)
        problems = found.problems() or store.wrong_totals()
    for folder in bundle or []:
        problems += [f"{folder}: {text}" for text in found.bundle_problems(*_recorded(folder))]
    entries = 0 if problems else len(found.entries())
    if as_json:
        print_json({"ok": not problems, "entries": entries, "problems": problems})
    elif problems:
        for problem in problems:
            out().print(f"[bold red]FAIL[/] {plain(problem)}")
    else:
        count = len(bundle or [])
        checked = f" and holds the charges of {count} bundle{'s' * (count != 1)}" if count else ""
        out().print(f"[green]ok[/]   {entries} entries; the chain is whole{checked}.")
    raise typer.Exit(1 if problems else 0)


def _existing(given: str | None) -> Ledger:
    from gridveil.privacy.ledger import Ledger, ledger_place

    place = ledger_place(given)
    if isinstance(place, Path) and not os.path.exists(place):
        raise InputError(
            f"There is no ledger at {place} yet.",
            remedy="The first release or cap makes it; name another with --ledger.",
        )
    return Ledger(place)


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
