"""What keeps a ledger: the tests of its rules run on files and on databases."""

import pytest
from support import databases


@pytest.fixture(params=["sqlite", "postgresql"])
def backend(request, tmp_path):
    """Makes ledgers, tampers with them and restores their backups."""
    if request.param == "sqlite":
        yield databases.Files(tmp_path)
        return
    if why := databases.missing():
        pytest.skip(why)
    found = databases.Databases()
    yield found
    found.close()
