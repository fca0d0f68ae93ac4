"""What an owner should know of a case before epsilon is spent on it.

Whether it has a solution, and which options suit its values. That is for the owner's eyes only: it
solves the real case. Nothing here is published, charged, or asked by a release. `file_facts` says
what a release would have of its file.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.model.declarations import Declared
from gridveil.grid.model.default_ranges import default_range
from gridveil.grid.model.likely_sizes import PLACEHOLDER
from gridveil.grid.model.network import Network
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.grid.model.public_network import check_ranges
from gridveil.grid.model.sampling import own_models, sample_population
from gridveil.grid.opf.engine import solve_population
from gridveil.privacy.guarantee_words import certainty, show_certainty
from gridveil.report.certainty_by_size import misfit, sizes

_USUAL_ALPHA = Fraction(30)
_MODELS, _FEWER, _LARGE = 100, 20, 500


@dataclass(frozen=True)
class Preview:
    """Whether a real case, and models sampled about it as a release does, have a solution.

    Parameters
    ----------
    case
        Whether the case has one as it is.
    models, served
        How many models were sampled, and how many of them have one.
    snapshots
        Whether the models are snapshots of the file instead.
    """

    case: bool
    models: int
    served: int
    snapshots: bool = False

    @property
    def words(self) -> list[str]:
        """What the owner should know, a sentence each."""
        said = []
        which = "snapshots" if self.snapshots else "models that vary loads, limits and costs by "
        which += "" if self.snapshots else "12.5%"
        if not self.case:
            said.append("The case has no solution as it is: no dispatch keeps to all limits.")
        if self.served == 0:
            said.append(
                f"None of {self.models:,} {which} has a solution on this network: a release would "
                "spend epsilon, and could not be compared. Correct the case, or give models of "
                "your own (--population)."
            )
        else:
            said.append(
                f"{self.served:,} of {self.models:,} {which} have a solution on this network."
            )
        return said

    def to_json(self) -> dict[str, Any]:
        """The figures."""
        return asdict(self)


def preview(network: Network) -> Preview:
    """Solve a real case, and models sampled about it."""
    size = _MODELS if len(network.buses) <= _LARGE else _FEWER
    own = own_models(network)
    models = sample_population(network, size) if own is None else own
    # Of several snapshots the case itself is none: it has the largest loads of all.
    case = own is not None or bool(np.isfinite(solve_population(network).cost[0]))
    served = int(np.isfinite(solve_population(network, models).cost).sum())
    return Preview(case, models.size, served, own is not None)


def advice(network: Network) -> list[str]:
    """All that the real values suggest for the options of a release."""
    return [*placeholder_words(network), *range_words(network), *step_words(network)]


def placeholder_words(network: Network) -> list[str]:
    """A proposal for ratings that limit nothing."""
    rated = network.branches.capacity
    count = int((np.isfinite(rated) & (rated >= PLACEHOLDER)).sum())
    if not count:
        return []
    return [
        f"{count:,} branches have ratings of {PLACEHOLDER:,.0f} MW or more, which are often "
        "placeholders. If they are, and everybody may know which lines have one, release with "
        f"--unlimited-above {PLACEHOLDER:.0f}."
    ]


def range_words(network: Network) -> list[str]:
    """Which parameters have values that the range of a release would clip, if it names none."""
    said = []
    for name, parameter in PARAMETERS.items():
        table = getattr(network, parameter.table)
        support = Declared().support(network, name)
        values = np.concatenate([getattr(table, column)[on] for column, on in support.items()])
        try:
            known = check_ranges((name,), {name: default_range(network, (name,), name)})[name]
        except InputError:
            continue  # nothing public tells, and a release asks for a range
        count = int(((values < known.low) | (values > known.high)).sum())
        if count:
            said.append(
                f"{count:,} of {len(values):,} values of {name} lie outside [{known.low:g}, "
                f"{known.high:g}] {parameter.unit}, the range of a release that names none: they "
                f"would count as the nearer end. Name one by what is public: --range {name}=LOW:"
                "HIGH."
            )
    return said


def step_words(network: Network) -> list[str]:
    """Whether one alpha in MW fits the lines, by those of a twentieth, a half and all but that."""
    rated = network.branches.capacity[network.branches.in_service]
    rated = rated[np.isfinite(rated) & (rated > 0) & (rated < PLACEHOLDER)]
    found = sizes(rated, [_USUAL_ALPHA] * len(rated), Fraction(1), relative=False)
    if misfit(found, "capacity", "MW") is None:
        return []
    small, median, large = (f"{one.noise:.0%}" for one in found)
    rating = [f"{one.value:,.4g} MW" for one in found]
    sure = [show_certainty(one.sure) for one in found]
    return [
        f"Noise of {_USUAL_ALPHA} MW is {small} of a small line here ({rating[0]}), "
        f"{median} of a median one ({rating[1]}) and {large} of a large one "
        f"({rating[2]}): one alpha in MW drowns the first or leaves the last open. A share of "
        "each value fits all of them: --alpha 20%. Or give each public class its own: --alpha "
        "380kV:100,others:20. Choose by what is public (voltages, kinds): a choice by the ratings "
        "would tell about them.",
        "At epsilon 1 an observer who asks of these three whether they are a tenth larger is right "
        f"at most {sure[0]}, {sure[1]} and {sure[2]} of the time at {_USUAL_ALPHA} MW, and "
        f"{show_certainty(certainty(Fraction(1)))} for each at 20%.",
    ]
