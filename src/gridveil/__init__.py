"""GridVeil: publish power-system data with a differential-privacy guarantee that holds."""

from __future__ import annotations

__version__ = "0.1.0"
