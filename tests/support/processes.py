"""Processes that tests start and stop."""

import signal


def hear_interrupts():
    """For ``preexec_fn``: let a new process hear Ctrl-C, wherever the tests run.

    A shell makes all processes that it starts in the background ignore it, and Python then leaves
    it ignored.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
