"""Work on threads that stand ready, also in a process that was forked after they were started."""

from __future__ import annotations

import os
import signal
import warnings

import pytest

from quorate.infer.kernels.cores import in_order


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_a_forked_process_starts_threads_of_its_own() -> None:
    assert list(in_order(abs, [-1, -2], 1)) == [1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that threads and forks do not go together is the point
        child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(5)
        os._exit(0 if list(in_order(abs, [-3, -4], 1)) == [3, 4] else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
