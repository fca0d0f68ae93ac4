"""The grid part of the demo: the line capacities of RTS-96, with the paper's settings."""

from __future__ import annotations

import math
from pathlib import Path

from gridveil.cli.demo import Part, Say, Shown

_ALPHA = 30
_EPSILON = 1
_MODELS = 1000
_RANGE = (50, 1000)  # MW: where capacities of lines at these voltages lie, whoever's they are


def _run(bundle: Path, ledger: Path, say: Say) -> Shown:
    from gridveil import grid
    from gridveil.grid.evaluation import Reference
    from gridveil.grid.requests import PENALTY

    say("sampling models")
    network = grid.cases.rts96(variant="paper")
    population = grid.sample_population(network, _MODELS, costs=(80.0, 100.0))
    made = grid.release(
        network,
        population,
        epsilon=_EPSILON,
        alpha=_ALPHA,
        limits=_RANGE,
        dataset="demo grid",
        ledger=ledger,
        progress=say,
    )
    say("writing the bundle and its report")
    placed = made.write(bundle, force=True)
    say("comparing with the real network")
    errors = Reference(network, population).errors(made.data, penalty=PENALTY)
    return Shown(
        placed,
        (
            f"{math.exp(_EPSILON):.2f}",
            f"the most that moving a capacity by {_ALPHA} MW changes any outcome's odds",
        ),
        (
            f"{errors.cost_error:.2f}%",
            f"mean distance of the models' costs; {errors.infeasible:.0f}% of {_MODELS:,} models "
            "infeasible",
        ),
    )


PART = Part(
    name="grid",
    title="Line capacities",
    text=f"108 lines of RTS-96 at 60% of capacity, {_MODELS:,} optimal power flow models; a "
    f"capacity may move by {_ALPHA} MW, epsilon {_EPSILON}",
    steps=7,
    run=_run,
)
