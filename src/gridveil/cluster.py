"""A Dask cluster, for work on public and noisy data that is too much for one machine."""

from __future__ import annotations

from typing import Any

from gridveil.errors import InputError


def connect(address: str) -> Any:
    """A client of the scheduler at this address; close it, or use it in a ``with`` block.

    It is not made Dask's default: what else this process does with Dask stays as it was, also
    where there is no scheduler.

    Raises
    ------
    InputError
        Where Dask is not installed or the scheduler does not answer.
    """
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            "A cluster needs Dask, which is not installed.",
            remedy="pip install 'gridveil[cluster]'",
        ) from None
    try:
        return Client(  # type: ignore[no-untyped-call]
            address, timeout=10, set_as_default=False
        )
    except (OSError, ValueError):
        raise InputError(
            f"There is no Dask scheduler at {address}.", remedy="Check the address."
        ) from None
