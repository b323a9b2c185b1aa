# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Makes PyNative's asynchronous pipeline synchronous."""

from __future__ import annotations


def enable_synchronous_execution() -> None:
    """Request synchronous execution. MindSpore ignores it after the first operation of the process."""
    import mindspore

    mindspore.runtime.launch_blocking()
