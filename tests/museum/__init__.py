"""The museum of broken mechanisms: each must be caught by the audit, in every run of the tests.

``python -m museum`` (with the tests on the path) shows what catches each, and writes the tables of
the documentation; see ``__main__``.
"""

from gridveil.auditing.catalogue import AUDITS
from gridveil.auditing.runner import FALSE_ALARM
from museum.boundary import BOUNDARY
from museum.draws import DRAWS
from museum.files import FILES
from museum.ledgers import LEDGERS
from museum.scales import SCALES

MUSEUM = (*SCALES, *DRAWS, *BOUNDARY, *FILES, *LEDGERS)

ERROR = FALSE_ALARM / len(AUDITS)
"""Controls are caught at the confidence that the real audits have."""
