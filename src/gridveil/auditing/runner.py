"""Run audits, in several processes if wanted, with few false alarms of all of them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from gridveil.auditing.verdicts import Audit, Verdict

FALSE_ALARM = 1e-4
"""The largest probability that a run of audits calls any correct mechanism broken."""

Progress = Callable[[int, int], None]


def run_audits(
    makers: Mapping[str, Callable[[], Audit]],
    *,
    fast: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> list[Verdict]:
    """Run audits, with errors so small that all together stay below `FALSE_ALARM`.

    Parameters
    ----------
    makers
        Functions that make an audit, by name; worker processes must be able to import them.
    fast
        Draw fewer samples, which finds gross errors only.
    workers
        How many processes.
    progress
        Called with the number of audits done and the number of all audits.
    """
    error = FALSE_ALARM / max(len(makers), 1)
    say = progress or (lambda done, total: None)
    say(0, len(makers))
    found: dict[str, Verdict] = {}
    if workers == 1:
        for name, make in makers.items():
            found[name] = _run(make, fast, error)
            say(len(found), len(makers))
        return list(found.values())
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        # Whole releases are last in the list and take longest, so they start first.
        order = reversed(list(makers.items()))
        futures = {pool.submit(_run, make, fast, error): name for name, make in order}
        for future in as_completed(futures):
            found[futures[future]] = future.result()
            say(len(found), len(makers))
    return [found[name] for name in makers]


def _run(make: Callable[[], Audit], fast: bool, error: float) -> Verdict:
    return make().run(fast=fast, error=error)
