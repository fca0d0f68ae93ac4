"""What a dataset's entries add up to, and what they allow next.

Epsilons add up only for one notion of neighbour: for each parameter, an entry, or all entries of a
calendar block, that moves by at most a step, its *reference*. A charge counts its own epsilon as
many times as its own steps are needed to make up the reference (`Step.steps`), and once if it
protects more. `counts` is all of this arithmetic.

The reference is the step of the first charge, at the alpha that the owner declared for the
parameter, or for every parameter in its unit (`ANY`), if one was. It only grows:

- in alpha, if the owner declares a larger one (`_declare`);
- in its wholes, if a charge has larger ones: a turbine's capacity was put right (`Step.widened`);
- never by the alpha or the block of a later charge, but for those of version 1 (``raises``).

What is spent is worked out anew from every charge's own epsilon and step whenever it is asked for,
so a reference that grew counts for the charges before it too.

Steps of different units can't be compared, amounts and shares of an entry's own value least of all:
a charge in another unit than those before it is refused. So is one that mixes private and public:
what was once published in clear can't be private later, and the other way round. An alpha that is
far below its reference is warned of (`doubts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from gridveil.errors import InputError, LedgerRefused, show_exact
from gridveil.privacy.adjacency import ENTRY, Adjacency, Step, blocks_in
from gridveil.privacy.ledger.entries import Aborted, Capped, Charged, Referenced, Released, Said
from gridveil.privacy.ledger.identity import Known
from gridveil.privacy.ledger.reference_alphas import ANY, Declared

PART = "outside of"
"""Between the name of a parameter and the part of it that is private, if the rest is public."""

_FAR = 10  # an alpha this many times below its reference looks like a slip


def counts(charge: Charged, moves: Mapping[str, Step]) -> Fraction:
    """The epsilon of a charge for one entry or block that moves by these steps, by parameter.

    It counts for the parameter that it protects least; one that protects none of them counts once.
    """
    times = [moves[key].steps(own) for key, own in charge.steps.items() if key in moves]
    return max(charge.epsilon * max(times, default=1), charge.least)


@dataclass
class Totals(Known):
    """What the entries of one dataset add up to, besides what it is known by.

    `reference` has every parameter that was charged; `declared` what the owner said of them, the
    latest one last; `clear` and `private` what was published and what was kept, each with the first
    entry that did; `unreleased` which charges led to no release.
    """

    reference: dict[str, Step] = field(default_factory=dict)
    declared: dict[str, Declared] = field(default_factory=dict)
    clear: dict[str, int] = field(default_factory=dict)
    private: dict[str, int] = field(default_factory=dict)
    paid: list[Charged] = field(default_factory=list)
    cap: Fraction | None = None
    aborts: int = 0
    unreleased: set[int] = field(default_factory=set)

    @property
    def charges(self) -> int:
        """How many charges there were."""
        return len(self.paid)

    @property
    def spent(self) -> Fraction:
        """The epsilon of all charges together, for a step of the reference."""
        return sum(self.counted.values(), Fraction(0))

    @property
    def counted(self) -> dict[int, Fraction]:
        """What each charge counts at the references in force, and never less than it did."""
        return {one.entry: max(one.charged, counts(one, self.reference)) for one in self.paid}

    @property
    def remaining(self) -> Fraction | None:
        """What the cap leaves, or None without a cap."""
        return None if self.cap is None else max(self.cap - self.spent, Fraction(0))

    @property
    def overspent(self) -> Fraction:
        """What is spent above the cap: more than 0 if the cap or a raised reference came later."""
        return Fraction(0) if self.cap is None else max(self.spent - self.cap, Fraction(0))

    def epsilon_for(self, moves: Mapping[str, Step]) -> Fraction:
        """The epsilon of all charges together for one entry or block that moves so far."""
        return sum((counts(one, moves) for one in self.paid), Fraction(0))

    def without_times(self, moves: Mapping[str, Step]) -> bool:
        """Whether that takes the period of a charge for granted, since its times are not known."""
        blocks = [key for key, step in moves.items() if step.block != ENTRY]
        known = [one.steps[key].members for one in self.paid for key in blocks if key in one.steps]
        return not all(known)

    # -- the next entry -----------------------------------------------------------------------

    def add(self, said: Said) -> None:
        """Take what the next entry of the dataset says into account."""
        match said:
            case Capped(cap):
                self.cap = cap
            case Referenced(alphas):
                for key, one in alphas.items():
                    self._declare(key, one)
            case Released(charge):
                self.unreleased.discard(charge)
            case Aborted():
                self.aborts += 1
            case Charged():
                self._add_charge(said)

    def _declare(self, key: str, one: Declared) -> None:
        self.declared.pop(key, None)  # the latest one is the last
        self.declared[key] = one
        for k in self._meant(key, one):
            found = self.reference[k]
            self.reference[k] = replace(found, alpha=max(found.alpha, one.alpha))

    def _add_charge(self, one: Charged) -> None:
        for key, own in one.steps.items():
            step = self.in_force(key, own)
            alpha = max(step.alpha, own.alpha) if key in one.raises else step.alpha
            self.reference[key] = replace(step, alpha=alpha)
        self.paid.append(one)
        self.unreleased.add(one.entry)
        for name in one.private:
            self.private.setdefault(name, one.entry)
        for name in one.clear:
            self.clear.setdefault(name, one.entry)
        if one.sketch is not None:
            self.sketches.add(one.sketch)
        self.distinct = {**one.distinct, **self.distinct}

    # -- references ---------------------------------------------------------------------------

    def in_force(self, key: str, own: Step) -> Step:
        """The reference that a charge with this step of its own would count at.

        Raises
        ------
        LedgerRefused
            If the two can't be compared.
        """
        found = self.reference.get(key)
        if found is None:
            declared = self.declared_for(key, own)
            return own if declared is None else replace(own, alpha=declared)
        if found.unit != own.unit:
            raise LedgerRefused(
                f"{key} of {self.dataset!r} was charged {_counted_in(found)} before, and this "
                f"release counts alpha {_counted_in(own)}.",
                remedy=f"Give alpha {_counted_in(found)} (reference: {found}).",
            )
        if found.measure != own.measure:
            raise LedgerRefused(
                f"{key} of {self.dataset!r} was in {found.measure} before, and is in "
                f"{own.measure} in this release.",
                remedy=f"Give it in {found.measure}.",
            )
        try:
            blocks_in(found.block, own.block, own.members)
        except KeyError:
            raise LedgerRefused(
                f"{key} of {self.dataset!r} was charged for each {found.block} before, and how "
                f"many entries of this release a {found.block} holds is not known.",
                remedy="Name the column of times (--time).",
            ) from None
        return found.widened(own)

    def facing(self, adjacency: Sequence[Adjacency]) -> Totals:
        """The totals as the next charge finds them: at its wholes, if these are larger."""
        known = [one for one in adjacency if one.key in self.reference]
        raised = {one.key: self.in_force(one.key, Step.of(one)) for one in known}
        return replace(self, reference={**self.reference, **raised})

    def check_declared(self, wanted: Mapping[str, Declared]) -> None:
        """Raise `InputError` if references can't be declared so: they are never lowered."""
        for key, one in wanted.items():
            have = [f"{k} {step}" for k, step in self.reference.items() if key in (k, ANY)]
            meant = self._meant(key, one)
            if have and not meant:
                raise InputError(
                    f"The reference alphas of {self.dataset!r} are {', '.join(have)}: {one} is in "
                    "another unit.",
                    remedy="Name the parameter, as in --alpha cost=2, and give alpha in its unit.",
                )
            for k in meant:
                if one.alpha < self.reference[k].alpha:
                    raise InputError(
                        f"The reference alpha of {k} of {self.dataset!r} is {self.reference[k]}: "
                        f"{one} would lower it, and what is spent with it.",
                        remedy="A reference can be raised, never lowered, once it was charged.",
                    )

    def _meant(self, key: str, one: Declared) -> list[str]:
        """The charged parameters that an alpha is declared for."""
        charged = self.reference.items()
        return [k for k, step in charged if key in (k, ANY) and one.fits(step.unit)]

    def declared_for(self, key: str, own: Step) -> Fraction | None:
        """The alpha that was declared for a parameter, by its name or with all of its unit."""
        named = self.declared.get(key)
        if named is not None and not named.fits(own.unit):
            raise LedgerRefused(
                f"The reference alpha of {key} of {self.dataset!r} was declared as {named}, and "
                f"this release counts alpha in another unit ({own}).",
                remedy=f'Declare it again: gridveil ledger reference "{self.dataset}" '
                f"--alpha {key}={'15%' if own.unit.startswith('of ') else '30'}, for example.",
            )
        found: Fraction | None = None
        for k, one in self.declared.items():
            # What was said of one parameter counts, unless something larger was said of all since.
            if k == key:
                found = one.alpha
            elif k == ANY and one.fits(own.unit):
                found = one.alpha if found is None else max(found, one.alpha)
        return found


def _counted_in(step: Step) -> str:
    return f"as a share {step.unit}" if step.unit.startswith("of ") else f"in {step.unit}"


def steps_to_reference(totals: Totals, one: Adjacency) -> int:
    """How many of a release's own steps make up the reference."""
    own = Step.of(one)
    return totals.in_force(one.key, own).steps(own)


def refuse_exposed(totals: Totals, hidden: Sequence[str], clear: Sequence[str]) -> None:
    """Raise `LedgerRefused` if a release would mix private and public.

    One that protects a part of a parameter publishes the rest of it, in words like ``"capacity
    outside of voltage>=220"``. What is protected must then stay the same part.
    """
    for name in hidden:
        if name in totals.clear:
            raise LedgerRefused(
                f"{name} of {totals.dataset!r} was published in clear by ledger entry "
                f"{totals.clear[name]}, so it can't be private any more.",
                remedy="Release together what must be private together.",
            )
    for name in clear:
        if name in totals.private or name in hidden:
            raise LedgerRefused(
                f"{name} of {totals.dataset!r} is private in this or an earlier release; "
                "publishing it in clear would undo that guarantee.",
                remedy="Make it private in this release too.",
            )
    for name in hidden:
        before, now = (
            {word for word in words if word.startswith(f"{name} {PART} ")}
            for words in (totals.clear, clear)
        )
        if name in totals.private and before != now:
            raise LedgerRefused(
                f"Another part of {name} of {totals.dataset!r} was protected by ledger entry "
                f"{totals.private[name]}.",
                remedy="Protect the same part of it as before: what was published can't be private "
                "any more, and what was private must not be published.",
            )


def doubts(totals: Totals, adjacency: Sequence[Adjacency]) -> list[str]:
    """A sentence for every alpha that is far below its reference, or makes a cap's reference.

    And one if what was spent before counts more, since the wholes of shares are larger.
    """
    found = []
    if (spent := totals.facing(adjacency).spent) > totals.spent:
        found.append(
            f"Capacities of {totals.dataset!r} are larger than before (one under a new name may "
            f"be one that is gone): what was spent, {show_exact(totals.spent)}, counts "
            f"{show_exact(spent)} for shares of these."
        )
    for one in adjacency:
        own = Step.of(one)
        reference = totals.in_force(one.key, own)
        if reference.alphas(own) * reference.blocks(own) >= _FAR:
            found.append(
                f"alpha of {one.key} is {show_exact(one.alpha)} {one.unit}, and the reference "
                f"of {totals.dataset!r} is {reference}: epsilon counts "
                f"{reference.steps(own):,} times."
            )
        elif (
            totals.cap is not None
            and one.key not in totals.reference
            and totals.declared_for(one.key, own) is None
        ):
            found.append(
                f"{totals.dataset!r} has a cap, and no reference alpha of {one.key} was "
                f"declared: {reference} becomes it (gridveil ledger reference raises it)."
            )
    return found
