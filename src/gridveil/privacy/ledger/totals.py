"""What a dataset's entries add up to, and what they allow next.

**Reference alphas.** Epsilons add up only for one notion of neighbour: for each parameter, an entry
that moves by at most its reference alpha. A reference is declared for a parameter, or for every
parameter in a unit (`ANY`); otherwise the first charge has it. It can be raised at any time, and
lowered only before the first charge that counts at it.

**Different alphas.** A release at a smaller alpha protects a step of ``alpha``; a step of the
reference is at most ``ceil(reference/alpha)`` such steps, so the release counts that many times its
epsilon (group privacy). A larger alpha protects the reference as it is. Shares of the entry's own
value are counted in factors, and never beside amounts: a release that counts alpha in another unit
than those before it is refused.

**Different blocks.** A release may protect all entries of a calendar block, which is inside every
larger one: what protects a day protects each of its records as it is. A reference of a whole day is
as many steps of a record as a day has records, so what protects a record counts that many times.
`counts` is all of this arithmetic. What is spent is worked out anew from every charge's own epsilon
and alpha whenever it is asked for, so a reference that was raised counts for the charges before it
too.

**Private and public.** What was once published in clear can't be private later; what is private
in one release must not be published in clear by another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from gridveil.errors import InputError, LedgerRefused
from gridveil.privacy.adjacency import ENTRY, Adjacency
from gridveil.privacy.ledger.entries import (
    Aborted,
    Capped,
    Charged,
    Referenced,
    Released,
    Said,
)
from gridveil.privacy.ledger.identity import Known
from gridveil.privacy.ledger.references import ANY, Declared
from gridveil.privacy.ledger.steps import Step

PART = "outside of"
"""Between the name of a parameter and the part of it that is private, where the rest is public."""


def counts(charge: Charged, steps: Mapping[str, Step]) -> Fraction:
    """The epsilon of a charge for one entry that moves by these steps, by parameter.

    It counts for the parameter that it protects least; one that protects none of them counts once.
    """
    times = [steps[key].steps(own) for key, own in charge.steps.items() if key in steps]
    return max(charge.epsilon * max(times, default=1), charge.least)


@dataclass
class Totals(Known):
    """What the entries of one dataset add up to, besides what it is known by.

    `reference` has the reference step of every parameter that was charged; `declared` those of the
    owner, the latest one last; `clear` and `private` what was published and what was kept, each
    with the first entry that did; `paid` the charges; `aborts` and `unreleased` how many of these
    were aborted, and which led to no release.
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
        """The epsilon of all charges together, for a step of the reference in force."""
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
        """The epsilon of all charges together for one entry that moves so far."""
        return sum((counts(one, moves) for one in self.paid), Fraction(0))

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
        for k, found in self.reference.items():
            if key in (k, ANY) and one.fits(found.unit):
                self.reference[k] = found.raised(one.alpha)

    def _add_charge(self, one: Charged) -> None:
        for key, own in one.steps.items():
            step = self.in_force(key, own)
            self.reference[key] = step.raised(own.alpha) if key in one.raises else step
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
                f"{key} of {self.dataset!r} was charged in {found.unit} before, and this release "
                f"counts alpha in {own.unit}.",
                remedy=f"Give alpha in {found.unit} (reference: {found}).",
            )
        if found.measure != own.measure:
            raise LedgerRefused(
                f"{key} of {self.dataset!r} was in {found.measure} before, and is in "
                f"{own.measure} in this release.",
                remedy=f"Give it in {found.measure}.",
            )
        if found.block != ENTRY and own.block == ENTRY and not own.members:
            raise LedgerRefused(
                f"{key} of {self.dataset!r} was charged for each {found.block} before, and how "
                f"many entries of this release a {found.block} holds is not known.",
                remedy="Name the column of times (--time).",
            )
        return found.widened(own)

    def facing(self, adjacency: Sequence[Adjacency]) -> Totals:
        """The totals as the next charge finds them.

        If it has larger wholes than those before (a turbine's capacity was put right), these count
        at the larger ones already.
        """
        known = [one for one in adjacency if one.key in self.reference]
        raised = {one.key: self.in_force(one.key, Step.of(one)) for one in known}
        return replace(self, reference={**self.reference, **raised})

    def check_declared(self, wanted: Mapping[str, Declared]) -> None:
        """Raise `InputError` if references can't be declared so: they are never lowered."""
        for key, one in wanted.items():
            charged = [k for k in self.reference if key in (k, ANY)]
            fitting = [k for k in charged if one.fits(self.reference[k].unit)]
            if charged and not fitting:
                have = ", ".join(f"{k} {self.reference[k]}" for k in charged)
                raise InputError(
                    f"The reference alphas of {self.dataset!r} are {have}: {one} is in another "
                    "unit.",
                    remedy="Name the parameter, as in --alpha cost=2, and give alpha in its unit.",
                )
            for k in fitting:
                if one.alpha < self.reference[k].alpha:
                    raise InputError(
                        f"The reference alpha of {k} of {self.dataset!r} is {self.reference[k]}: "
                        f"{one} would lower it, and what is spent with it.",
                        remedy="A reference can be raised, never lowered, once it was charged.",
                    )

    def declared_for(self, key: str, own: Step) -> Fraction | None:
        """The alpha that was declared for a parameter, by its name or with all of its unit."""
        named, every = self.declared.get(key), self.declared.get(ANY)
        if named is not None and not named.fits(own.unit):
            raise LedgerRefused(
                f"The reference alpha of {key} of {self.dataset!r} was declared as {named}, and "
                f"this release counts alpha in another unit ({own}).",
                remedy=f'Declare it again: gridveil ledger reference "{self.dataset}" '
                f"--alpha {key}={'15%' if own.unit.startswith('of ') else '30'}, for example.",
            )
        fitting = every if every is not None and every.fits(own.unit) else None
        if named is None or fitting is None:
            one = named or fitting
            return None if one is None else one.alpha
        # What was said of one parameter counts, unless something larger was said of all since.
        later = list(self.declared).index(ANY) > list(self.declared).index(key)
        return max(named.alpha, fitting.alpha) if later else named.alpha


def steps_to_reference(totals: Totals, one: Adjacency) -> int:
    """How many steps of a release's alpha make up the reference alpha."""
    own = Step.of(one)
    return totals.in_force(one.key, own).steps(own)


def refuse_exposed(totals: Totals, hidden: Sequence[str], clear: Sequence[str]) -> None:
    """Raise `LedgerRefused` if a release would mix private and public."""
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


def refuse_other_parts(totals: Totals, hidden: Sequence[str], clear: Sequence[str]) -> None:
    """Raise `LedgerRefused` if a parameter was, or is now, protected in another part.

    A release that protects a part of a parameter publishes the rest of it, in words like
    ``"capacity outside of voltage>=220"``. What is protected must then stay the same: another part
    would publish what is private, or call private what is published.
    """
    for name in hidden:
        if name not in totals.private:
            continue
        before = {word for word in totals.clear if word.startswith(f"{name} {PART} ")}
        now = {word for word in clear if word.startswith(f"{name} {PART} ")}
        if before != now:
            raise LedgerRefused(
                f"Another part of {name} of {totals.dataset!r} was protected by ledger entry "
                f"{totals.private[name]}.",
                remedy="Protect the same part of it as before: what was published can't be private "
                "any more, and what was private must not be published.",
            )
