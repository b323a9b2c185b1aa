# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Jobs of several ranks end, whatever happens to a rank."""

from __future__ import annotations

import time

import pytest

from tests.support import msrun

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

PROGRAM = """
import os, signal, sys
import mindspore as ms
from mindspore import ops
from mindspore.communication import get_rank, init
ms.set_device("CPU")
init()
if get_rank() == 1 and sys.argv[1] == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
print("sum", float(ops.AllReduce()(ms.Tensor([1.0], ms.float32))))
"""


@pytest.mark.parametrize("event", ["", "crash"])
def test_a_crash_in_the_program_ends_the_job_long_before_its_limit(tmp_path, event):
    program = tmp_path / "mine.py"
    program.write_text(PROGRAM)
    begin = time.monotonic()
    job = msrun.run(2, tmp_path, program, event, limit=500)
    assert time.monotonic() - begin < 250
    if event:
        assert job.status != 0, job.words()
        assert "Segmentation fault" in job.logs[1]
    else:
        assert job.status == 0, job.words()
        assert all("sum 2.0" in log for log in job.logs)
