# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Task "structure": names, stacks and the Cell tree, without numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from probe.measure.measurer import ArraySink, Guard, Role
from probe.pytree import Slot
from probe.recording.call import Call
from probe.recording.task import GradientUse


class StructureTask:
    """Keeps no value of any call.

    Args:
        modes: the setting ``data_mode``.
        extra_info: whether construct.json, which shows the order of backwards, is written.
    """

    has_values = False
    needs_complete_entries = False

    def __init__(self, modes: frozenset[str], extra_info: bool) -> None:
        self.records_forward = "forward" in modes
        self.gradients = GradientUse.ORDER if "backward" in modes and extra_info else GradientUse.NONE

    def inputs(self, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return {}; see ``Task``."""
        return {}

    def outputs(self, call: Call, result: Any, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return {}; see ``Task``."""
        return {}

    def gradient(self, call: Call, slot: Slot, tensor: Any) -> None:
        """Return None; see ``Task``."""

    def gradient_sum(self, call: Call, slot: Slot, total: Any) -> None:
        """Return None; see ``Task``."""

    def backward(self, inputs: list[Any], outputs: list[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Return {}; see ``Task``."""
        return {}

    def parameter_gradient(self, name: str, parameter: str, gradient: Any) -> dict[str, Any]:
        """Return {}; see ``Task``."""
        return {}

    def should_write(self) -> bool:
        """Return True: every step has documents."""
        return True

    def end_step(self) -> str:
        """Return ""; see ``Task``."""
        return ""


class NoMeasurer:
    """Stands in for measurers where no tensor is measured: never waits, holds nothing."""

    is_immediate = has_pending = is_full = False

    @property
    def read(self) -> Callable[[Any], Any]:
        """Return a function that reads nothing."""
        return lambda tensor: None

    def tensor(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> None:
        """Return None."""

    def array(self, array: Any, dtype: str, name: str, sink: ArraySink | None) -> None:
        """Return None."""

    def copy(self, tensor: Any) -> None:
        """Return None."""

    def sum_later(self, total: Any, name: str, sink: ArraySink | None) -> None:
        """Return None."""

    def complete(self, guard: Guard) -> None:
        """Do nothing."""

    def forget(self) -> None:
        """Do nothing."""
