"""How large tests are, and how long they wait: GRIDVEIL_FULL=1 runs them at full size."""

import os

FULL = os.environ.get("GRIDVEIL_FULL") == "1"
PATIENCE = 600  # seconds: a busy machine with a slow disk may take minutes for what takes one
