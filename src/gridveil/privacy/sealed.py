"""Private values that can be carried about, but not looked at.

A `Sealed` value shows its name, shape and unit and nothing else. Printing, comparing, pickling,
indexing or converting it shows no number or raises. Mechanisms open it with `unseal`; a test
holds the short list of modules that may. This is an aid for reviewers and against slips, not a
defence against hostile code in the same process: Python offers none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.errors import InputError, SealedError

T = TypeVar("T")


@dataclass(frozen=True)
class Range:
    """A public range ``[low, high]`` of values or answers; both ends are finite."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise InputError(
                f"Expected a public range of two finite ends, the lower one first, got "
                f"{self.low:g} and {self.high:g}.",
                remedy="Write the lower end first, as in range=(1, 5000) (--range 1:5000).",
            )

    def clip(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Move every value into the range. Never moves two values further apart."""
        return np.clip(values, self.low, self.high)

    def __str__(self) -> str:
        return f"[{self.low:.10g}, {self.high:.10g}]"


class Sealed(Generic[T]):
    """A private value, of which only the name, the shape, the unit and the range are public.

    The contents are an array, several, or a reader of one that is too long for memory (`Blocks` in
    `mechanisms`). Whoever seals must have clipped them to the range.
    """

    __slots__ = ("__contents", "_name", "_range", "_shape", "_unit")
    __array_ufunc__ = None

    def __init__(
        self, contents: T, *, name: str, shape: tuple[int, ...], unit: str, range: Range
    ) -> None:
        self.__contents = contents
        self._name = name
        self._shape = shape
        self._unit = unit
        self._range = range

    @property
    def name(self) -> str:
        """What the values are."""
        return self._name

    @property
    def shape(self) -> tuple[int, ...]:
        """The public shape."""
        return self._shape

    @property
    def unit(self) -> str:
        """The public unit."""
        return self._unit

    @property
    def range(self) -> Range:
        """The public range that every value lies in."""
        return self._range

    def __len__(self) -> int:
        if not self._shape:
            raise SealedError(f"A sealed scalar ({self._name}) has no length.")
        return self._shape[0]

    def __repr__(self) -> str:
        size = " x ".join(str(n) for n in self._shape) or "1"
        amount = f"{size} shares" if self._unit.startswith("of ") else f"{size} in"
        return f"<sealed {self._name}: {amount} {self._unit}>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise SealedError(
            f"{self!r} is private: it can't be read, compared, copied or stored.",
            remedy="Pass it to a mechanism in gridveil.privacy.mechanisms.",
        )

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = _refuse
    __bool__ = __int__ = __float__ = __complex__ = __index__ = __bytes__ = _refuse
    __iter__ = __getitem__ = __contains__ = __array__ = _refuse
    __reduce__ = __reduce_ex__ = __getstate__ = __copy__ = __deepcopy__ = _refuse


def unseal(sealed: Sealed[T]) -> T:
    """Open a seal. Only the modules listed in ``tests/test_architecture.py`` may call this."""
    contents: T = sealed._Sealed__contents  # type: ignore[attr-defined]
    return contents


def seal(values: ArrayLike, *, name: str, unit: str, range: Range) -> Sealed[NDArray[np.float64]]:
    """Seal a copy of an array of numbers, clipped to its public range.

    Clipping is total: no private value, infinite ones included, is a reason to refuse. It keeps
    neighbours neighbours, since it never moves two values further apart. Missing values are
    refused: whether a value is missing is public.
    """
    array = _as_numbers(values)
    if array is None:
        raise InputError(f"The values of {name} are not all numbers.")
    missing = np.flatnonzero(np.isnan(array))
    if missing.size:
        raise InputError(
            f"{name} has {missing.size} missing values, the first at position {missing[0]}.",
            remedy="Drop the rows or fill them in before the release.",
        )
    clipped = range.clip(array)
    clipped.setflags(write=False)
    return Sealed(clipped, name=name, shape=clipped.shape, unit=unit, range=range)


def seal_together(
    parts: Sequence[Sealed[NDArray[np.float64]]],
) -> Sealed[tuple[NDArray[np.float64], ...]]:
    """One seal around several sealed arrays, in their order, for a question about all of them.

    What it shows is made of what theirs show: nothing is computed from a value.
    """
    if not parts:
        raise InputError("There are no sealed values to seal together.")
    return Sealed(
        tuple(unseal(part) for part in parts),
        name=", ".join(part.name for part in parts),
        shape=(sum(math.prod(part.shape) for part in parts),),
        unit=", ".join(dict.fromkeys(part.unit for part in parts)),
        range=Range(min(part.range.low for part in parts), max(part.range.high for part in parts)),
    )


def _as_numbers(values: ArrayLike) -> NDArray[np.float64] | None:
    # None rather than numpy's own error, whose message quotes the value.
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None
