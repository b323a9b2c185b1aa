# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A call while it is being recorded, and the base of tasks: one strategy for each kind of dump."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, cast

from probe.entry import Entry, Kind, Parent
from probe.measure.measurer import GradientSum, Role
from probe.naming import call_names, cell_names
from probe.pytree import Slot

_NAMES = {Kind.API: call_names, Kind.CELL: cell_names}
ReadNumber = Callable[[Any], Any]  # tensor of one element -> its number, or its record


class Call:
    """One call of an API, a Primitive, a jit function, a collective or a Cell, from its begin to its last gradient."""

    __slots__ = ("kind", "key", "number", "forward", "backward", "cell",
                 "recorded", "watched", "parts", "frame", "stack", "micro")  # fmt: skip

    def __init__(self, kind: Kind, key: str, number: int, cell: Call | None) -> None:
        #: the names of its entries without number and direction, and its number among the calls of this key
        self.key = key
        self.number = number
        self.kind = kind
        self.cell = cell
        self.forward, self.backward = _NAMES[kind](key, number)
        self.recorded = self.watched = (
            False  # its forward entry is recorded; its backward entry may be
        )
        self.frame: FrameType | None = None  # the caller's frame, while the call runs
        self.stack = -1  # the number of its stack
        #: the number of the micro-batch of a pipeline; a text, as msprobe's compare fails on numbers
        self.micro = cast("str | None", None)
        self.parts: dict[str, Any] = {}  # the parts of its forward entry so far

    def __repr__(self) -> str:
        return f"Call({self.forward!r})"

    def name(self, backward: bool) -> str:
        """Return the name of its entry of one direction."""
        return self.backward if backward else self.forward

    def entry(
        self, parts: Any, backward: bool = False, stack: int = -1, parents: Sequence[Parent] = ()
    ) -> Entry:
        """Return its entry of one direction, or further keys for it."""
        return Entry(
            self.name(backward), parts, self.kind, self.key, self.forward, backward, stack, parents
        )


class GradientUse(enum.Enum):
    """The use that a task makes of gradients."""

    NONE = "backward entries are not recorded"
    ORDER = "only the order of backward entries is recorded"
    VALUES = "gradients are measured"


class Task:
    """Selects the parts of every entry of one step. One object per step. The base class keeps no value."""

    records_updates = True  # whether the updates of optimizers are entries
    records_parameters = True  # whether the gradients of parameters are entries
    has_values = False  # whether entries have parts; otherwise only construct.json and stack.json name the calls
    keeps_entries = (
        True  # whether calls become entries; otherwise their values are noted as they pass
    )
    needs_complete_entries = False  # an entry is put only after its communication has finished

    def __init__(self, modes: frozenset[str], gradients: GradientUse) -> None:
        self.records_forward = "forward" in modes
        self.gradients = gradients if "backward" in modes else GradientUse.NONE

    def inputs(
        self, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the parts of a forward entry that hold the inputs as they are now."""
        return {}

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parts of a forward entry that hold the attributes of the Primitive."""
        return {}

    def named(
        self, call: Call, part: str, tensors: Mapping[str, Any], role: Role
    ) -> dict[str, Any]:
        """Return a part of a forward entry that holds parameters or states by name, as they are now."""
        return {}

    def scalars(
        self, call: Call, numbers: Callable[[ReadNumber], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the parts of an optimizer's entry that hold the numbers of this update."""
        return {}

    def outputs(
        self, call: Call, result: Any, parameters: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Return the parts that hold the outputs, and a Cell's parameters, as they are now."""
        return {}

    def flight(self, call: Call, is_over: bool) -> None:
        """Note that the communication of a call has begun, or is over."""

    def gradient(self, call: Call, slot: Slot, tensor: Any) -> Any:
        """Return the record of a gradient that arrived now, or None."""

    def gradient_sum(self, call: Call, slot: Slot, total: GradientSum) -> Any:
        """Return the record of a gradient that was summed from several contributions, or None."""

    def backward(
        self, inputs: list[Any], outputs: list[Any], keywords: Mapping[str, Any]
    ) -> dict[str, Any]:
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
