# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""PyNative's asynchronous pipeline: making it synchronous while that is still possible."""

from __future__ import annotations

import time

from probe.executor import pynative_executor


def enable_synchronous_execution() -> bool:
    """Ask for synchronous execution; return whether it has come about.

    MindSpore decides with the first operation of the process. Afterwards it accepts the setting and ignores it, and
    tells nobody, so this looks who does the work: the call, or the wait after it.
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
    return sorted(shares)[len(shares) // 2] > 0.5
