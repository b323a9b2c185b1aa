# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Makes PyNative's asynchronous pipeline synchronous, while that is still possible."""

from __future__ import annotations

import logging
import time

from probe.executor import pynative_executor

_log = logging.getLogger("probe")


def enable_synchronous_execution() -> None:
    """Request synchronous execution; log a warning where it is too late.

    MindSpore decides with the first operation of the process. Later it accepts the setting and silently ignores it. So
    the times of a call and of the wait after it are compared: the longer one did the work.
    """
    import mindspore
    from mindspore.ops.auto_generate import copy_op

    mindspore.runtime.launch_blocking()
    wait = pynative_executor().sync
    tensor = mindspore.ops.zeros((2048, 2048), mindspore.float32)
    shares = []
    for _ in range(5):
        wait()
        start = time.perf_counter()
        copy_op(tensor)
        called = time.perf_counter()
        wait()
        shares.append((called - start) / (time.perf_counter() - start))
    if sorted(shares)[len(shares) // 2] <= 0.5:
        _log.warning(
            "synchronize has no effect: MindSpore already ran an operation. Make the PrecisionDebugger first, or "
            "call mindspore.set_context(pynative_synchronize=True) at the top of the program"
        )
