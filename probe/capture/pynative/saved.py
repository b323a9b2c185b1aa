# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes the guard of saved tensors for the settings, and its place in the state of a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from probe.capture.autograd.nodes import AutogradNodes
from probe.capture.autograd.saved_tensors import SavedTensors
from probe.capture.pynative.thread_state import ThreadState
from probe.config.settings import Settings
from probe.measure.checksums import Checksums, DeviceChecksums, HostChecksums
from probe.measure.reductions import Reductions
from probe.measure.select import measures_on_device


def new_saved_tensors(nodes: AutogradNodes, state: ThreadState, settings: Settings) -> SavedTensors | None:
    """Return the guard; None where the graph cannot be seen.

    Args:
        nodes: access to the graph.
        state: the state of each thread.
        settings: the settings.
    """
    import mindspore

    if not nodes.works:
        return None
    on_cpu, checksums = mindspore.get_context("device_target") == "CPU", None
    if measures_on_device(settings):
        checksums = DeviceChecksums(Reductions(on_cpu, scaled=False))

    def unseen(function: Callable[..., Any], *args: Any) -> Any:
        inside, state.in_recorded_call = state.in_recorded_call, True
        try:
            return function(*args)
        finally:
            state.in_recorded_call = inside

    taken: Checksums = checksums or HostChecksums()
    return SavedTensors(nodes, taken, lambda: state.cell, unseen)
