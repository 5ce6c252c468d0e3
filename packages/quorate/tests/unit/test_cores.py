"""Work on threads that stand ready, also in a process that was forked after they were started."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FORKED = """
import os, signal
from quorate.model.kernels.cores import in_order
assert list(in_order(abs, [-1, -2], 1)) == [1, 2]
child = os.fork()
if not child:
    signal.alarm(5)
    os._exit(0 if list(in_order(abs, [-3, -4], 1)) == [3, 4] else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_a_forked_process_starts_threads_of_its_own() -> None:
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], check=False, timeout=60).returncode == 0
