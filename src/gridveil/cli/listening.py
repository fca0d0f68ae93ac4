"""How an audit listens to a release command: a noise source in click's context.

Whoever calls the commands from Python may pass one: ``app([...], obj=Listening(noise))``. Nothing
that a user can type leads here: an ordinary run has no such object, and draws secure noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

    from gridveil.privacy.noise import NoiseSource


@dataclass(frozen=True)
class Listening:
    """What an audit passes to a command: the source of all its noise."""

    noise: NoiseSource


def noise_of(ctx: typer.Context) -> NoiseSource | None:
    """The source that an audit passed in; None in an ordinary run."""
    return ctx.obj.noise if isinstance(ctx.obj, Listening) else None
