"""What a dataset's entries add up to, and what they allow next.

**Different alphas.** Epsilons add up only for one notion of neighbour: for each parameter, an
entry that moves by at most its reference alpha. A release at a smaller alpha protects a step of
``alpha``; a step of the reference is at most ``ceil(reference/alpha)`` such steps, so the release
counts that many times its epsilon (group privacy). A larger alpha protects the reference as it is.
What is spent is worked out anew from every charge's own epsilon and alpha whenever it is asked for,
so a reference that was raised counts for the charges before it too.

**Private and public.** What was once published in clear can't be private later; what is private
in one release must not be published in clear by another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from gridveil.errors import InputError, LedgerRefused, show_exact
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.ledger.entries import Entry, read_key
from gridveil.privacy.ledger.names import old_name_key
from gridveil.privacy.ledger.references import ANY, Declared, Reference
from gridveil.privacy.ledger.sketch import Sketch

FAR = 10
"""An alpha this many times below its reference looks like a slip."""

PART = "outside of"
"""Between the name of a parameter and the part of it that is private, where the rest is public."""

_RATIONAL = re.compile(r"\d{1,400}(/\d{1,400})?", re.ASCII)


@dataclass(frozen=True)
class Paid:
    """One charge: its own epsilon and alphas, and what the ledger said that it counts."""

    entry: int
    epsilon: Fraction
    charged: Fraction
    adjacency: Mapping[str, Reference]


@dataclass
class Totals:
    """What the entries of one dataset add up to.

    Attributes
    ----------
    dataset
        Its name.
    reference
        The reference alpha of every parameter that was charged.
    declared
        Reference alphas as their owner declared them.
    clear, private
        What was published in clear and what was kept private, with the first entry that did.
    paid
        Its charges.
    aborts, unreleased
        How many charges were aborted, and which ones led to no release.
    sketches
        Fingerprints of the public part of what was charged.
    distinct
        The keys of datasets that look like this one and are others, with their owner's reason.
    """

    dataset: str
    reference: dict[str, Reference] = field(default_factory=dict)
    declared: dict[str, Declared] = field(default_factory=dict)
    clear: dict[str, int] = field(default_factory=dict)
    private: dict[str, int] = field(default_factory=dict)
    paid: list[Paid] = field(default_factory=list)
    aborts: int = 0
    unreleased: set[int] = field(default_factory=set)
    sketches: set[Sketch] = field(default_factory=set)
    distinct: dict[str, str] = field(default_factory=dict)
    _caps: dict[str, Fraction | None] = field(default_factory=dict)
    _old_names: dict[str, set[str]] = field(default_factory=dict)

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
        """What each charge counts at the references in force, by its entry."""
        return {one.entry: self._counted(one) for one in self.paid}

    @property
    def cap(self) -> Fraction | None:
        """The most that may be spent; None without a cap."""
        return min((cap for cap in self._caps.values() if cap is not None), default=None)

    @property
    def remaining(self) -> Fraction | None:
        """What the cap leaves, or None without a cap."""
        return None if self.cap is None else max(self.cap - self.spent, Fraction(0))

    @property
    def overspent(self) -> Fraction:
        """What is spent above the cap: more than 0 if the cap or a raised reference came later."""
        return Fraction(0) if self.cap is None else max(self.spent - self.cap, Fraction(0))

    @property
    def references(self) -> dict[str, Reference | Declared]:
        """The references of parameters that were charged, and what was declared for others."""
        waiting = {
            key: one
            for key, one in self.declared.items()
            if key not in self.reference
            and not (key == ANY and any(one.fits(r.unit) for r in self.reference.values()))
        }
        return {**self.reference, **waiting}

    def epsilon_for(self, moves: Mapping[str, Reference]) -> Fraction:
        """The epsilon of all charges together for one entry that moves so far.

        Parameters
        ----------
        moves
            How far, for each parameter. A charge counts for the one that it protects least; one
            that protects none of them counts once, as it does in `spent`.
        """
        return sum((self._epsilon_of(one, moves) for one in self.paid), Fraction(0))

    def has_reference(self, key: str, own: Reference) -> bool:
        """Whether a parameter was charged before, or something was declared for it."""
        return key in self.reference or self._declared_for(key, own) is not None

    def in_force(self, key: str, own: Reference) -> Reference:
        """The reference that a charge with this step of its own would count at.

        Raises
        ------
        LedgerRefused
            If the two can't be compared.
        """
        found = self.reference.get(key)
        if found is None:
            declared = self._declared_for(key, own)
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
        return found.widened(own)

    def facing(self, adjacency: Sequence[Adjacency]) -> Totals:
        """The totals as the next charge finds them.

        If it has larger wholes than those before (a turbine's capacity was put right), these count
        at the larger ones already.
        """
        raised = {
            one.key: self.in_force(one.key, _own(one))
            for one in adjacency
            if one.key in self.reference
        }
        return replace(self, reference={**self.reference, **raised})

    def add(self, entry: Entry) -> None:
        """Take the next entry of the dataset into account."""
        body, version = entry.body, entry.version
        if entry.kind == "cap":
            self._add_cap(entry)
        elif entry.kind == "reference":
            for key, one in body["alpha"].items():
                self._declare(key, Declared(_positive(one["alpha"]), str(one["unit"])))
        elif entry.kind == "charge":
            self._add_charge(entry)
            for name in body["private"]:
                self.private.setdefault(name, entry.number)
            for name in body["clear"]:
                self.clear.setdefault(name, entry.number)
        elif entry.kind == "release":
            self.unreleased.discard(body["charge"])
        elif entry.kind == "abort":
            self.aborts += 1
        elif version > 1:
            raise ValueError(entry.kind)

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

    def _declared_for(self, key: str, own: Reference) -> Fraction | None:
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

    def _add_cap(self, entry: Entry) -> None:
        cap = None if entry.body["cap"] is None else _rational(entry.body["cap"])
        if entry.version == 1:
            # Of old names that are one name now, the lowest cap counts until a new one is set.
            self._caps[old_name_key(entry.dataset)] = cap
        else:
            self._caps = {"": cap}

    def _declare(self, key: str, one: Declared) -> None:
        self.declared.pop(key, None)  # the latest one is the last
        self.declared[key] = one
        for k, found in self.reference.items():
            if key in (k, ANY) and one.fits(found.unit):
                self.reference[k] = replace(found, alpha=max(found.alpha, one.alpha))

    def _add_charge(self, entry: Entry) -> None:
        body = entry.body
        steps = {read_key(k, entry.version): _step(one) for k, one in body["adjacency"].items()}
        for key, own in steps.items():
            found = self.reference.get(key)
            self.reference[key] = self.in_force(key, own) if found is None else found.widened(own)
            if found is not None and entry.version == 1 and key not in self._names(entry):
                # The first charge of a name that is one with another now: the larger step counts.
                self.reference[key] = self.reference[key].joined(own)
            if entry.version == 1:
                self._names(entry).add(key)
        epsilon, charged = _rational(body["epsilon"]), _rational(body["charged"])
        self.paid.append(Paid(entry.number, epsilon, charged, steps))
        self.unreleased.add(entry.number)
        if "sketch" in body:
            self.sketches.add(Sketch.from_json(body["sketch"]))
        if "distinct" in body:
            for other in body["distinct"]["from"]:
                self.distinct.setdefault(str(other), str(body["distinct"]["reason"]))

    def _names(self, entry: Entry) -> set[str]:
        return self._old_names.setdefault(old_name_key(entry.dataset), set())

    def _counted(self, one: Paid) -> Fraction:
        """What a charge counts at the references in force, and never less than it did."""
        steps = [
            self.reference[key].steps(own.alpha, own.wholes)
            for key, own in one.adjacency.items()
            if self.reference[key].comparable(own)
        ]
        return max(one.charged, one.epsilon * max(steps, default=1))

    def _epsilon_of(self, one: Paid, moves: Mapping[str, Reference]) -> Fraction:
        shared = [(own, moves[key]) for key, own in one.adjacency.items() if key in moves]
        if not all(move.comparable(own) for own, move in shared):
            # Old names that are one name now may have been charged in two units.
            return self._counted(one)
        return one.epsilon * max((m.steps(own.alpha, own.wholes) for own, m in shared), default=1)


def _step(body: Mapping[str, Any]) -> Reference:
    wholes = {str(name): _positive(whole) for name, whole in body.get("wholes", {}).items()}
    measure = str(body.get("measure", ""))
    return Reference(_positive(body["alpha"]), str(body["unit"]), wholes, measure)


def _positive(text: str) -> Fraction:
    amount = _rational(text)
    if amount <= 0:
        raise ValueError
    return amount


def _rational(text: str) -> Fraction:
    # Nothing but what the ledger writes: no sign, no exponent that takes a year to expand.
    if not _RATIONAL.fullmatch(text):
        raise ValueError
    return Fraction(text)


def refuse_exposed(totals: Totals, hidden: Sequence[str], clear: Sequence[str]) -> None:
    """Raise `LedgerRefused` where a release would mix private and public."""
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


def steps_to_reference(totals: Totals, one: Adjacency) -> int:
    """How many steps of a release's alpha make up the reference alpha."""
    return totals.in_force(one.key, _own(one)).steps(one.alpha, one.wholes)


def _own(one: Adjacency) -> Reference:
    return Reference(one.alpha, one.unit, one.wholes, one.measure)


def doubtful_alphas(totals: Totals, adjacency: Sequence[Adjacency]) -> list[str]:
    """A sentence for every alpha that is far below its reference, or makes a cap's reference.

    And one if what was spent before counts more, since the wholes of shares are larger.
    """
    found = []
    if (spent := totals.facing(adjacency).spent) > totals.spent:
        found.append(
            f"Capacities of {totals.dataset!r} are larger than before: what was spent, "
            f"{show_exact(totals.spent)}, counts {show_exact(spent)} for shares of these."
        )
    for one in adjacency:
        own = _own(one)
        reference = totals.in_force(one.key, own)
        if reference.times(one.alpha, one.wholes) >= FAR:
            steps = reference.steps(one.alpha, one.wholes)
            found.append(
                f"alpha of {one.key} is {show_exact(one.alpha)} {one.unit}, and the reference of "
                f"{totals.dataset!r} is {reference}: epsilon counts {steps:,} times."
            )
        elif totals.cap is not None and not totals.has_reference(one.key, own):
            found.append(
                f"{totals.dataset!r} has a cap, and no reference alpha of {one.key} was declared: "
                f"{reference} becomes it (gridveil ledger reference raises it)."
            )
    return found
