"""Controls that put mechanisms together wrongly, or look at private data past them.

Most are caught by a replay: the same noisy answers on two private datasets, and other bytes.
"""

from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from grid.making import tables, write_case

from gridveil.auditing.attacks import values
from gridveil.auditing.checks import Frequency
from gridveil.auditing.scratch_ledgers import account_with
from gridveil.auditing.transcript_audits import Ratio, Replay
from gridveil.errors import InputError
from gridveil.grid import Engine, cases, read_case, sample_population, solve_population
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.mechanisms import laplace
from gridveil.privacy.sealed import Range, seal
from gridveil.privacy.sensitivity import Sensitivity
from museum.control import Control, pair, same
from museum.grids import CAPACITY, PRICE, triangle

ALPHA = Fraction(5)
LIMITS = Range(1.0, 2000.0)
REPLAYS = same(6)


def noisy_copy(private, noise, epsilon=1):
    """The real mechanism on these values."""
    adjacency = Adjacency.of("capacity", alpha=ALPHA, unit="MW", range=LIMITS, entries=len(private))
    sealed = seal(private, name="capacity", unit="MW", range=LIMITS)
    bound = Sensitivity(ALPHA, "one entry moves by at most alpha")
    account = account_with(noise, adjacency)
    return laplace(account, sealed, name="q", sensitivity=bound, epsilon=epsilon).value


def neighbours(values, place=0):
    moved = np.array(values, dtype=float)
    moved[place] -= float(ALPHA)
    return np.array(values, dtype=float), moved


# -- composition -----------------------------------------------------------------------------------


def two_answers(each):
    """The capacities and their total, in a release that claims epsilon 1."""

    def run(capacity, noise):
        entries = noisy_copy(capacity, noise, each)
        total = noisy_copy(capacity.sum(keepdims=True), noise, each)
        return {"both": entries.tobytes() + total.tobytes()}

    one, other = neighbours(CAPACITY)
    return Ratio("two answers", Fraction(1), [(partial(run, one), partial(run, other))], same(60))


# -- a refusal -------------------------------------------------------------------------------------


def refusal(refuses):
    """Loads, and generators with a total of 100 MW."""

    def run(loads, noise):
        if refuses and loads.sum() > 100:
            raise InputError("The generators can't serve the loads.")
        return {"loads": noisy_copy(loads, noise).tobytes()}

    runs = [partial(run, loads) for loads in neighbours([60.0, 43.0])]
    return Replay("loads", runs, REPLAYS)


# -- restoration -----------------------------------------------------------------------------------


def restoration(peeks):
    """Clip noisy records, or shrink them; which of the two is better, the real ones would know."""

    def run(real, noise):
        noisy = noisy_copy(real, noise)
        options = [np.clip(noisy, 1, 2000), 0.5 * np.clip(noisy, 1, 2000) + 500]
        if peeks:
            options.sort(key=lambda option: np.abs(option - real).sum())
        return {"records": options[0].tobytes()}

    return Replay("records", [partial(run, np.full(5, value)) for value in (10, 900)], REPLAYS)


# -- a warm solver ---------------------------------------------------------------------------------


def solver(warm):
    """Costs of public models on noisy capacities, after the engine saw the real ones."""
    network = cases.rts96(variant="paper")
    # Few enough that each is solved alone: models that are solved together leave no memory.
    models = sample_population(network, 12, costs=(80, 100), seed=1)

    def run(capacity, noise):
        public = np.clip(noisy_copy(capacity, noise), 1, 2000)
        engine = Engine(network, model="relaxed", slack_price=3000.0)
        if warm:
            engine.solve(models, capacity=capacity)
        found = engine.solve(models, capacity=public, keep=["dispatch"], fresh=not warm)
        return {"costs": found.cost.tobytes(), "dispatch": found.dispatch.tobytes()}

    real = network.branches.capacity
    return Replay("costs", [partial(run, real), partial(run, 0.7 * real)], same(2))


# -- a bundle --------------------------------------------------------------------------------------


def bundle(copies):
    """A case with released capacities, written into the owner's own text or from the allow-list."""

    def run(capacity, noise):
        with TemporaryDirectory() as folder:
            network = read_case(_case(folder, capacity))
            _, public = network.split("capacity", LIMITS)
            released = np.clip(noisy_copy(capacity, noise), 1, 2000)
            if copies:
                whole = network.branches.capacity.copy()
                whole[public.support["capacity"]] = released
                network.with_capacity(whole).write(Path(folder) / "out.m")
            else:
                public.with_values(released).write(Path(folder) / "out.m")
            return {"out.m": (Path(folder) / "out.m").read_bytes()}

    return Replay("bundle", [partial(run, c) for c in neighbours([80.0, 70.0])], REPLAYS)


def _case(folder, capacity):
    parts = tables()
    parts["branch"][:2, 5:8] = capacity[:, None]
    return write_case(folder, parts)


# -- a filtered population -------------------------------------------------------------------------


def population(filtered):
    """The largest load of a public population, some of it left out for the real network."""
    seeds = iter((1, 2))

    def sample(capacity, n):
        network = triangle(capacity).with_limits([0, 0], [200, 60])
        models = sample_population(network, 8 * n, costs=(80, 100), seed=next(seeds))
        load = models.load[:, 2].copy()
        if filtered:
            found = solve_population(
                network, models, model="relaxed", slack_price=PRICE, keep=["overload"]
            )
            load[found.overload.max(1) > 1e-6] = 0.0
        return load.reshape(n, 8).max(1)  # populations of eight models

    one, other = neighbours(CAPACITY)
    lines = pair("the capacity of a line", sample, one, other)
    return Frequency("population", Fraction(1), [lines], [values()], same(400))


BOUNDARY = (
    Control(
        "Composition left out",
        "two answers of one release are given the whole epsilon each",
        partial(two_answers, Fraction(1)),
        partial(two_answers, Fraction(1, 2)),
    ),
    Control(
        "A population filtered on the real network",
        "models that the real network can't serve are left out of the public population",
        partial(population, True),
        partial(population, False),
    ),
    Control(
        "A refusal that depends on private values",
        "loads are tested for adequacy before the release",
        partial(refusal, True),
        partial(refusal, False),
    ),
    Control(
        "A solver warmed by the real network",
        "an engine that solved private models goes on to public ones",
        partial(solver, True),
        partial(solver, False),
    ),
    Control(
        "A bundle that copies RATE_B",
        "released RATE_A is written into the owner's text, which holds RATE_B too",
        partial(bundle, True),
        partial(bundle, False),
    ),
    Control(
        "Restoration that peeks",
        "the better of two restorations is chosen by comparing them with the real data",
        partial(restoration, True),
        partial(restoration, False),
    ),
)
