"""Networks that come with the package.

>>> from gridveil.grid import cases
>>> print(cases.rts96())
Network 'rts96' on 100 MVA
  buses       73, load 8,550.0 MW on 51
  branches    120, 120 of them limited
  generators  99, capacity 10,215.0 MW
"""

from __future__ import annotations

from gridveil.grid.cases.rts import rts96

__all__ = ["rts96"]
