"""GridVeil: publish power-system data with a differential-privacy guarantee that holds.

>>> import gridveil as gv
>>> gv.wind.RBF(5)
RBF(count=5, low=2.5, high=12.5, spread=None, column='speed')
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gridveil import grid as grid
    from gridveil import wind as wind

__version__ = "0.1.0"

_PARTS = ("grid", "wind")


def __getattr__(name: str) -> ModuleType:
    # Parts are loaded when they are first used: a command that needs none starts at once.
    if name in _PARTS:
        return importlib.import_module(f"gridveil.{name}")
    raise AttributeError(f"module 'gridveil' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_PARTS]
