# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The selection of the operators that report tensors, by the device that graphs run on."""

from __future__ import annotations

from probe.capture.graph.file_operators import FileOperators
from probe.capture.graph.file_templates import ascend_operators
from probe.capture.graph.operators import CallbackOperators, GraphEvents, GraphOperators
from probe.capture.graph.sites import Plans


def device_target() -> str:
    """Return the device that graphs run on."""
    import mindspore

    return str(mindspore.get_context("device_target"))


def select_operators(events: GraphEvents, plans: Plans, is_split: bool, dump_path: str) -> GraphOperators:
    """Return the operators for this device; those that write files write them below ``dump_path``."""
    if device_target() == "CPU":
        return CallbackOperators(events, is_split)
    return FileOperators(events, plans, ascend_operators(), is_split, dump_path)
