"""Products that are the same, and as fast, however many threads BLAS may use."""

import os
import subprocess
import sys

import numpy as np
import pytest

from gridveil.grid.opf.workers import processes
from gridveil.grid.restoration.matrix_blocks import Blocks


@pytest.mark.parametrize("shape", [(1, 1), (3, 5000), (7, 40), (1000, 60), (2049, 300)])
def test_blocks_multiply_like_the_matrix(shape):
    rng = np.random.default_rng(0)
    matrix, right, left = rng.random(shape), rng.random(shape[1]), rng.random(shape[0])
    blocks = Blocks(matrix)
    np.testing.assert_allclose(blocks.times(right), matrix @ right, rtol=1e-12)
    np.testing.assert_allclose(blocks.under(left), left @ matrix, rtol=1e-12)
    if shape[1] < 100:
        np.testing.assert_allclose(blocks.weighed(left), matrix.T * left @ matrix, rtol=1e-12)


_HASH = """
import hashlib
import numpy as np
from gridveil.grid.restoration.covariate_prior import _density, _robust
rng = np.random.default_rng(0)
basis = rng.random((6000, 40))
found = [_density(rng.random((6000, 60))), _robust(basis, rng.random(6000), rng.random(6000))]
print(hashlib.sha256(np.concatenate(found).tobytes()).hexdigest())
"""


def test_what_is_learned_does_not_depend_on_threads():
    found = {
        subprocess.run(
            [sys.executable, "-c", _HASH],
            env=os.environ | {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(found) == 1


def test_workers_have_one_thread_of_blas_each(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    with processes(1) as pool:
        seen = [
            pool.submit(os.getenv, name).result()
            for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        ]
    assert seen == ["1", "3"]
    assert "OPENBLAS_NUM_THREADS" not in os.environ
