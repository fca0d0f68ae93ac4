"""What both release commands are told, and what they do.

They plan, ask if it is unusual, charge, run, write, and say what it cost. What was typed, but for
paths and names of the ledger, goes into the statement (`typed_options`).

`Order.carry_out` calls back into its command to plan and to say what was released. An audit may
listen: whoever calls the commands from Python passes a noise source in click's context,
``app([...], obj=Listening(noise))``. Nothing that a user can type leads there: an ordinary run has
no such object, and draws secure noise.

Options that the methods have come from their classes: what each means, which values it takes and
what its default is are not written down again here. The decorator `takes_options_of` calls back
into its command once these options are gathered.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from gridveil.cli.console import err, out, plain, print_json, steps
from gridveil.cli.typed_options import public_part
from gridveil.errors import InputError, LedgerWarning, PlanWarning, show_exact
from gridveil.release.options import Methods, described, flags_of

if TYPE_CHECKING:
    from gridveil.privacy.account import Account
    from gridveil.privacy.ledger import Address, Charge
    from gridveil.privacy.noise import NoiseSource
    from gridveil.release.plan import Plan, Progress, Release


R = TypeVar("R", bound="Release")

DatasetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        help="The ledger's name for the data, the same for every release of it. Needed the first "
        "time.",
        show_default=False,
    ),
]
DistinctOption = Annotated[
    str | None,
    typer.Option(
        "--distinct",
        metavar="REASON",
        help="Why this is not the data of another dataset that it looks like; the ledger keeps it.",
        show_default=False,
    ),
]

OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="The bundle's folder; needed unless it is a --dry-run.",
        show_default=False,
    ),
]

DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Show what would be asked, charged and guaranteed, and end: nothing is opened, "
        "charged or written.",
    ),
]

YesOption = Annotated[
    bool,
    typer.Option(
        "--yes",
        "-y",
        help="Release even if the plan has something unusual: for scripts, which nobody can ask.",
    ),
]


@dataclass(frozen=True)
class Listening:
    """What an audit passes to a command: the source of all its noise."""

    noise: NoiseSource


_TYPED = ("force", "ledger", "dataset", "distinct", "dry_run", "yes", "as_json", "quiet")


@dataclass(frozen=True)
class Order:
    """Where a release is charged to and written, and how much is said about it.

    Parameters
    ----------
    target, force
        The bundle's folder (a dry run may have none), and whether a bundle that is there may be
        replaced.
    ledger, dataset, distinct
        As the user gave them.
    noise
        That of an audit.
    dry_run, yes
        Whether to end with the plan, and whether to go on whatever is unusual about it.
    as_json, quiet
        Whether a script reads what is printed, and whether to print errors alone.
    request
        What was typed, without paths and names: the statement has it.
    """

    target: Path | None
    force: bool
    ledger: Path | str | None
    dataset: str | None
    distinct: str | None
    noise: NoiseSource | None
    dry_run: bool
    yes: bool
    as_json: bool
    quiet: bool
    request: Mapping[str, Any]

    @classmethod
    def of(cls, kind: str, ctx: typer.Context, inputs: Sequence[Path | str]) -> Order:
        """The order that was typed for a release command, which reads these inputs."""
        from gridveil.release.bundle import check_target

        typed, target = ctx.params, None
        if typed["output"] is not None:
            kept = _kept(inputs, typed["ledger"])
            target = check_target(typed["output"], force=typed["force"], keep=kept)
        elif not typed["dry_run"]:
            raise InputError(
                "No folder was named for the release.",
                remedy="Add -o FOLDER, or --dry-run to see the plan alone.",
            )
        return cls(
            target=target,
            noise=ctx.obj.noise if isinstance(ctx.obj, Listening) else None,
            request=public_part(kind, ctx),
            **{name: typed[name] for name in _TYPED},
        )

    def carry_out(
        self,
        make: Callable[[Progress], Plan[R]],
        describe: Callable[[R], tuple[str, Sequence[str]]],
    ) -> None:
        """Plan, ask, charge, run, write, and say what was released; a dry run ends with the plan.

        ``describe`` says what it is in a few words, and more in lines that may have markup.
        """
        with self._under_way() as progress:
            progress("reading")
            planned = make(progress)
            planned.request = self.request
        if self.dry_run or self.target is None:
            show_plan(planned, as_json=self.as_json)
            return
        self._confirm(planned)
        with self._under_way() as progress:
            account = planned.charge(
                self.ledger, dataset=self.dataset, distinct=self.distinct, noise=self.noise
            )
            made = planned.run(account, progress)
            progress("writing the bundle and its report")
            placed = made.write(self.target, force=self.force)
        if self.as_json:
            paid = charge_fields(made.account)
            print_json({"bundle": str(placed), "charge": paid, "statement": made.statement.body})
        elif not self.quiet:
            from gridveil.release.plan import REPORT_FILE

            what, more = describe(made)
            out().print(f"Released {what} to {plain(placed)}")
            for sentence in made.statement.in_words:
                out().print(f"  {plain(sentence)}")
            for line in more:
                out().print(line)
            out().print(f"The report: {plain(placed / REPORT_FILE)}")
            out().print(plain(charge_line(made.account)))

    @contextmanager
    def _under_way(self) -> Iterator[Progress]:
        silent = self.quiet or self.as_json
        with release_warnings(quiet=self.quiet), steps("releasing", quiet=silent) as progress:
            yield progress

    def _confirm(self, planned: Plan[Any]) -> None:
        """Show the plan to a person, and ask if something about it is unusual.

        Raises
        ------
        InputError
            If nobody can be asked, or the answer is no. Nothing was charged.
        """
        asks = _terminal() and not self.yes
        if asks and not self.quiet:
            err().print(plain_lines(repr(planned)))
        elif asks or not self.quiet:
            for words in planned.unusual:
                err().print(f"[yellow]unusual:[/] {plain(words)}")
        if not planned.unusual or self.yes:
            return
        if not asks:
            raise InputError(
                f"{_counted(planned.unusual)} about this release, and nobody can be asked"
                + (": " + " ".join(planned.unusual) if self.quiet else "; see above."),
                remedy="Correct it, or add --yes if it is meant. Nothing was charged.",
            )
        if not typer.confirm(f"{_counted(planned.unusual)}. Release all the same?", err=True):
            raise InputError(
                "Stopped: nothing was opened, charged or written.",
                remedy="Correct what is unusual; --dry-run shows the plan again.",
            )


def _terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _counted(unusual: tuple[str, ...]) -> str:
    count = len(unusual)
    return "Something is unusual" if count == 1 else f"{count} things are unusual"


def show_plan(planned: Plan[Any], *, as_json: bool) -> None:
    """What a release would do; nothing was opened or charged for it."""
    if as_json:
        print_json({"plan": planned.to_json()})
        return
    out().print(plain_lines(repr(planned)))
    out().print("Nothing was opened, charged or written.")


def plain_lines(text: str) -> str:
    """Lines of data for the screen."""
    return "\n".join(plain(line) for line in text.split("\n"))


@contextmanager
def release_warnings(*, quiet: bool) -> Iterator[None]:
    """Say on standard error what the ledger warns of, as soon as it does.

    What the plan warns of was said before: see `Order`.
    """
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, LedgerWarning):
                shown(message, category, *where, **more)
            elif not quiet:
                err().print(f"[yellow]warning:[/] {plain(message)}")

        warnings.simplefilter("always", LedgerWarning)
        warnings.simplefilter("ignore", PlanWarning)
        warnings.showwarning = show
        yield


def charge_line(account: Account) -> str:
    """What was charged, to which dataset, in which ledger, and what the cap leaves."""
    charge, path = _charge(account)
    left = "no cap"
    if charge.cap is not None:
        left = f"{show_exact(charge.cap - charge.spent)} left of the cap {show_exact(charge.cap)}"
    return (
        f"Charged {show_exact(charge.charged)} to {charge.dataset!r} in {path} "
        f"({show_exact(charge.spent)} spent so far; {left})."
    )


def charge_fields(account: Account) -> dict[str, Any]:
    """The same for a script."""
    charge, path = _charge(account)
    return {
        "dataset": charge.dataset,
        "ledger": str(path),
        "charged": str(charge.charged),
        "spent": str(charge.spent),
        "cap": None if charge.cap is None else str(charge.cap),
        "remaining": None if charge.cap is None else str(charge.cap - charge.spent),
    }


def _charge(account: Account) -> tuple[Charge, Path | Address]:
    # A command's release always has both: only a study has none.
    assert account.ledger is not None
    assert account.charge is not None
    place = account.ledger.place
    return account.charge, place.absolute() if isinstance(place, Path) else place


def _kept(inputs: Sequence[Path | str], ledger: Path | str | None) -> list[Path]:
    """What a bundle must not replace: the files that the command reads, and the ledger's."""
    from gridveil.privacy.ledger import ledger_place

    # Not Path.expanduser, which raises if there is no such user.
    named = [Path(os.path.expanduser(one)).absolute() for one in inputs]
    place = ledger_place(ledger)
    files = [one for one in named if os.path.exists(one)]  # the others are names of built-in cases
    return [*files, place] if isinstance(place, Path) else files


# -- options of the methods ----------------------------------------------------------------------

_TAKES = "options"  # the command's parameter that gets what was typed


def takes_options_of(methods: Methods) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option ``--margin`` for every ``margin`` of its methods.

    The command has a parameter ``options`` in their place, which gets the texts that were typed.
    """
    known, flags = described(methods), flags_of(methods)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_options(**given: Any) -> None:
            texts = {name: given.pop(name) for name in known}
            texts |= {name: "yes" for name in flags if texts[name]}
            command(**given, **{_TAKES: {n: text for n, text in texts.items() if text is not None}})

        hints = get_type_hints(command, include_extras=True)
        made = []
        for one in inspect.signature(command).parameters.values():
            if one.name == _TAKES:
                made += [_parameter(name, words, name in flags) for name, words in known.items()]
            else:
                kind = inspect.Parameter.KEYWORD_ONLY
                made.append(one.replace(annotation=hints[one.name], kind=kind))
        with_options.__signature__ = inspect.Signature(made)  # type: ignore[attr-defined]
        with_options.__annotations__ = {one.name: one.annotation for one in made}
        return with_options

    return decorate


def _parameter(name: str, words: str, flag: bool) -> inspect.Parameter:
    option = typer.Option(f"--{name.replace('_', '-')}", help=words, show_default=False)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[bool | None if flag else str | None, option],
    )
