"""What an owner chose on the page: what is private, how strongly, by which method; all public."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Choice:
    """What the owner chose. All of it is public.

    Parameters
    ----------
    kind, method
        By name.
    private
        Every private parameter with its alpha: an amount, a share of each value as text, or pairs
        of a public class and one of these.
    epsilon
        For all of them together.
    size
        Of the stand-in.
    ranges
        Public ranges; a parameter that has none here has its default.
    """

    kind: str
    private: tuple[tuple[str, Any], ...]
    method: str
    epsilon: Fraction
    size: int
    ranges: tuple[tuple[str, tuple[float, float]], ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of what is private."""
        return tuple(name for name, _ in self.private)

    @property
    def alphas(self) -> dict[str, Any]:
        """How far one entry of each may move, as releases take it."""
        return {n: dict(one) if isinstance(one, tuple) else one for n, one in self.private}

    def only(self, name: str) -> Choice:
        """The same with one private parameter alone."""
        return replace(self, private=((name, dict(self.private)[name]),))
