# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Level "debug": hooks on saved values record the gradients that arrive at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from probe.capture.autograd.nodes import LEAF, AutogradNodes, preserve_hook_version, remove_hooks
from probe.measure.records import PendingRecord
from probe.pytree import tree_map
from probe.recording.step_recorder import StepRecorder
from probe.tasks.debug import DebugTask


class DebugValueHooks:
    """Records values and their gradients, and inserts nothing into the graph."""

    def __init__(self, nodes: AutogradNodes) -> None:
        self._nodes, self._tensor = nodes, nodes.tensor
        self._handles: list[Any] = []

    def save(self, recorder: StepRecorder, task: DebugTask, variable: Any, name: str, backward: bool) -> None:
        """Record a value as it is now, and its gradients as soon as they arrive."""
        recorder.synchronize()
        with recorder.guard("saving a value", key=name):
            value_name, gradient_name = task.new_names(name)
            task.record_value(value_name, variable)
            if not backward:
                return

            def update() -> None:
                task.put(gradient_name, gradients)

            def watch(leaf: Any, place: str) -> PendingRecord | None:
                return self._watch(recorder, task, leaf, place, update) if isinstance(leaf, self._tensor) else None

            gradients = tree_map(watch, variable, gradient_name, self._tensor)
            update()

    def remove(self) -> None:
        """Remove the hooks on leaves of the graph. All others are freed with the graph."""
        remove_hooks(self._handles)

    def _watch(
        self, recorder: StepRecorder, task: DebugTask, tensor: Any, place: str, update: Callable[[], None]
    ) -> PendingRecord:
        pending = PendingRecord()

        def arrived(gradient: Any) -> None:
            if recorder.closed or pending.record is not None or gradient is None:  # a second pass, or no gradient
                return
            recorder.synchronize()
            with recorder.guard("reading a gradient", key=place):
                pending.record = task.gradient_of(place, gradient)
                update()

        node = tensor._grad_node if self._nodes.works else None
        if node is None:
            return pending
        if node._sequence_nr() == LEAF:
            with preserve_hook_version():
                self._handles.append(tensor.register_hook(arrived))
        else:
            index = tensor._output_index
            node.register_prehook(lambda go: arrived(go[index]))
        return pending
