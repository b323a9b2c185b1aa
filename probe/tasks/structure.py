# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Task "structure": no numbers, but how much there would be of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import FrameType
from typing import Any

from probe.pytree import TensorTree, as_outputs
from probe.recording.call import Call
from probe.recording.step_recorder import StepRecorder

#: what numpy's header and the record of a tensor take beside its array; measured on three nets
_BESIDE = 128 + 380


class StructureTask(StepRecorder):
    """Records names, stacks and the tree, and counts what the arrays of the step would take on disk.

    Attributes:
        weight: that, in bytes, with their records but without stacks and tree. A gradient is as large as what it
            belongs to.
    """

    def __init__(self, *arguments: Any) -> None:
        import mindspore

        super().__init__(*arguments)
        self.weight = 0
        self._tensor: type = mindspore.Tensor
        self._double = () if self._settings.exact_dtypes else (mindspore.bfloat16,)  # stored as float32
        self._backwards: dict[str, int] = {}
        self._parameters: set[tuple[str, str]] = set()

    def begins(self, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any], frame: FrameType | None) -> None:
        """Take the stack of a call that is recorded, and count its inputs."""
        super().begins(call, args, kwargs, frame)
        if call.recorded:
            self._count(call, (*args, *kwargs.values()))

    def ends(self, call: Call, result: Any, parameters: Mapping[str, Any] | None = None) -> None:
        """Count the outputs and a Cell's parameters, and finish the forward entry."""
        super().ends(call, result, parameters)
        if not call.recorded:
            return
        self._count(call, as_outputs(result))
        for name, parameter in (parameters or {}).items():
            place = call.forward.rpartition(".forward")[0], name
            once = parameter.requires_grad and self.records_backward and place not in self._parameters
            self._parameters.add(place)
            self.weight += self._size(parameter) * (1 + once)

    def backward_ends(self, call: Call, inputs: list[Any], outputs: list[Any], keywords: Mapping[str, Any]) -> None:
        """Count the gradients and finish the backward entry."""
        self.weight += self._backwards.pop(call.backward, 0)
        super().backward_ends(call, inputs, outputs, keywords)

    def _count(self, call: Call, values: Any) -> None:
        for tensor in TensorTree(self._tensor, values, "output").tensors:
            size = self._size(tensor)
            self.weight += size
            if tensor._grad_node is not None:
                self._backwards[call.backward] = self._backwards.get(call.backward, 0) + size

    def _size(self, tensor: Any) -> int:
        return int(tensor._nbytes) * (2 if tensor._dtype in self._double else 1) + _BESIDE
