"""Files of networks of any size: what is released of them follows from the step alone.

Files of pandapower and PyPSA run if the library is installed (tests/optional/run).
"""

import importlib.util

import numpy as np
import pytest

from gridveil.auditing.grid_files import FORMATS
from gridveil.auditing.triangle_network import VALUES
from gridveil.auditing.triangle_secrets import ALPHAS, RANGES
from gridveil.grid import read_case, release, sample_population
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.privacy.exact_numbers import exact

pytestmark = [
    pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
# 0.1 MW and 113 GW of load; powers of two, so that noise is the same but for them.
SIZES = [2.0**-10, 2.0**10]
CASES = [
    (kind, name)
    for kind, one in FORMATS.items()
    for name in (*RANGES, "load,reactive_load")
    if name not in ("cost", "reactive_load") or (name == "cost" and one.costs)
]
COLUMNS = {
    "buses": ("load", "reactive_load"),
    "generators": ("p_min", "p_max", "q_min", "q_max"),
    "branches": ("capacity",),
}


def in_megawatts(path):
    """The net with ratings of so many MW; in the file they are kA, and percent."""
    import pandapower as pp

    net = pp.from_json(str(path))
    net.line["max_i_ka"] /= net.bus.vn_kv[0] * np.sqrt(3)
    net.line["max_loading_percent"] = 100.0
    return net


def released(kind, name, size, folder):
    """What the released file of the triangle at this size says, in units of the size."""
    known = FORMATS[kind]
    scales = {one: size if PARAMETERS[one].is_power else 1.0 for one in PARAMETERS}
    parts = {
        one: tuple(scales[one] * value for value in VALUES[one])
        for one in PARAMETERS
        if one != "cost" or known.costs
    }
    names = name.split(",")
    path = folder / f"{size} {known.file}"
    known.write(path, parts, known.forms.get("float64", str))
    network = read_case(in_megawatts(path) if kind == "pandapower" else path)
    made = release(
        network,
        sample_population(network, 4, private=name, costs=0.1),
        parameter=name,
        epsilon=1,
        alpha={one: exact(float(ALPHAS[one]) / 10 * scales[one], name="alpha") for one in names},
        range={one: tuple(scales[one] * end for end in RANGES[one]) for one in names},
        seed=3,
    )
    again = folder / f"released {path.name}"
    made.data.write_release(again, name)
    file = read_case(again)
    # The file says what was released.
    for kind_of in (PARAMETERS[one] for one in names):
        for column in kind_of.columns:
            ours, theirs = (getattr(getattr(n, kind_of.table), column) for n in (made.data, file))
            assert theirs == pytest.approx(ours, rel=1e-9)
    found = {
        f"{table} {column}": getattr(getattr(file, table), column) / size
        for table, columns in COLUMNS.items()
        for column in columns
    }
    return {**found, "cost": file.generators.linear}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_file_of_another_size_is_released_alike(kind, name, size, tmp_path):
    needs = FORMATS[kind].needs
    if needs is not None and importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    usual, other = (released(kind, name, one, tmp_path) for one in (1.0, size))
    step = float(max(ALPHAS[one] for one in name.split(","))) / 10
    for column, ours in usual.items():
        theirs = other[column]
        ends = np.isfinite(ours)
        assert (np.isfinite(theirs) == ends).all()
        # Rounding may take a hundredth of the noise; of two releases, of either.
        assert theirs[ends] == pytest.approx(ours[ends], abs=0.015 * step, rel=1e-4), column
