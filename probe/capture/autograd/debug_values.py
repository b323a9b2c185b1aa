# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Level "debug": the values that the user names, and the gradients that arrive at them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from probe.capture.autograd.hook_version import preserve_hook_version
from probe.capture.autograd.nodes import LEAF, AutogradNodes
from probe.measure.describe import is_mapping, items_of
from probe.measure.records import PendingRecord

if TYPE_CHECKING:
    from probe.tasks.debug import DebugTask


class DebugValueHooks:
    """Records values, and watches their gradients without putting anything into the graph."""

    def __init__(self, nodes: AutogradNodes) -> None:
        import mindspore

        self._nodes = nodes
        self._tensor: type = mindspore.Tensor
        self._handles: list[Any] = []

    def save(self, recorder: DebugTask, variable: Any, name: str, backward: bool) -> None:
        """Record a value as it is now, and its gradients as soon as they arrive."""
        recorder.settle()
        try:
            entry, gradients = recorder.names(name)
            recorder.value(entry, variable)
            if backward:
                structure: list[Any] = []
                update = _update(recorder, gradients, structure)
                structure.append(self._mirror(variable, gradients, recorder, update))
                update()
        except Exception as error:
            recorder.trouble("saving a value", error, name)

    def remove(self) -> None:
        """Take the hooks on leaves of the graph away; all others go with the graph."""
        handles, self._handles = self._handles, []
        with preserve_hook_version(), contextlib.ExitStack() as every:
            for handle in handles:
                every.callback(handle.remove)

    def _mirror(self, value: Any, place: str, recorder: DebugTask, update: Callable[[], None], depth: int = 0) -> Any:
        """Return the value's structure with a record to come for each tensor, and null for all else."""
        if isinstance(value, self._tensor):
            return self._watched(value, place, recorder, update)
        items = None if depth > 8 or isinstance(value, (str, int, float, type(None))) else items_of(value)
        if items is None:
            return None
        inner = {key: self._mirror(item, f"{place}.{key}", recorder, update, depth + 1) for key, item in items}
        return inner if is_mapping(value) else list(inner.values())

    def _watched(self, tensor: Any, place: str, recorder: DebugTask, update: Callable[[], None]) -> PendingRecord:
        later = PendingRecord()

        def arrived(gradient: Any) -> None:
            if recorder.closed or later.record is not None or gradient is None:  # of a second pass, or of none
                return
            recorder.settle()
            try:
                later.record = recorder.gradient_of(place, gradient)
                update()
            except Exception as error:
                recorder.trouble("reading a gradient", error, place)

        node = tensor._grad_node if self._nodes.works else None
        if node is None:
            return later
        if node._sequence_nr() == LEAF:
            with preserve_hook_version():
                self._handles.append(tensor.register_hook(arrived))
        else:
            index = tensor._output_index
            node.register_prehook(lambda go: arrived(go[index]))
        return later


def _update(recorder: DebugTask, gradients: str, structure: list[Any]) -> Callable[[], None]:
    def update() -> None:
        if structure:
            recorder.put_value(gradients, structure[0])

    return update
