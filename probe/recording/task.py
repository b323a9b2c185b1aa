# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The base of tasks: one strategy for each kind of dump."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

from probe.measure.measurer import GradientSum, Role
from probe.pytree import Slot
from probe.recording.call import Call

#: tensor of one element -> its number, or its record
ReadNumber = Callable[[Any], Any]


class GradientUse(enum.Enum):
    """The use that a task makes of gradients."""

    NONE = "backward entries are not recorded"
    ORDER = "only the order of backward entries is recorded"
    VALUES = "gradients are measured"


class Task:
    """Selects the parts of every entry of one step. One object per step. The base class keeps no value.

    Attributes:
        records_forward: whether forward entries are recorded.
        gradients: the use of gradients, if the setting ``data_mode`` has backward.
        records_updates: whether the updates of optimizers are entries.
        has_values: whether entries have parts; otherwise only construct.json and stack.json name the calls.
        needs_complete_entries: an entry is put only after its communication has finished.
    """

    records_updates = True
    has_values = False
    needs_complete_entries = False

    def __init__(self, modes: frozenset[str], gradients: GradientUse) -> None:
        self.records_forward = "forward" in modes
        self.gradients = gradients if "backward" in modes else GradientUse.NONE

    def inputs(self, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parts of a forward entry that hold the inputs as they are now."""
        return {}

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parts of a forward entry that hold the attributes of the Primitive."""
        return {}

    def named(self, call: Call, part: str, tensors: Mapping[str, Any], role: Role) -> dict[str, Any]:
        """Return a part of a forward entry that holds parameters or states by name, as they are now."""
        return {}

    def scalars(self, call: Call, numbers: Callable[[ReadNumber], Mapping[str, Any]]) -> dict[str, Any]:
        """Return the parts of an optimizer's entry that hold the numbers of this update."""
        return {}

    def outputs(self, call: Call, result: Any, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the parts that hold the outputs, and a Cell's parameters, as they are now."""
        return {}

    def flight(self, call: Call, is_over: bool) -> None:
        """Note that the communication of a call has begun, or is over."""

    def gradient(self, call: Call, slot: Slot, tensor: Any) -> Any:
        """Return the record of a gradient that arrived now, or None."""

    def gradient_sum(self, call: Call, slot: Slot, total: GradientSum) -> Any:
        """Return the record of a gradient that was summed from several contributions, or None."""

    def backward(self, inputs: list[Any], outputs: list[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parts of a backward entry from its records: of outputs, of positional and of keyword inputs."""
        return {}

    def parameter_gradient(self, name: str, parameter: str, gradient: Any) -> dict[str, Any]:
        """Return the parts of an entry of a parameter's gradient."""
        return {}

    def should_write(self) -> bool:
        """Return whether the step has documents to write."""
        return True

    def end_step(self) -> list[str]:
        """Return warnings about the step that ends."""
        return []
