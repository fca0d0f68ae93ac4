"""How large tests are: GRIDVEIL_FULL=1 runs them at full size."""

import os

FULL = os.environ.get("GRIDVEIL_FULL") == "1"
