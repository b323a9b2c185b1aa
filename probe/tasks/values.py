# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tasks "statistics" and "tensor": every call with numbers and arrays of its tensors; and level "debug"."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from probe import naming
from probe.entry import Entry, Kind
from probe.measure.describe import ValueDescriber
from probe.measure.measurer import ArraySink, GradientSum, Role, unmeasured_record
from probe.measure.storage import StorageNotes
from probe.measure.tensor_reader import to_number
from probe.naming import reserved_outputs
from probe.pytree import Slot, as_outputs
from probe.recording.call import Call, GradientUse, ReadNumber, Task
from probe.recording.measurement_queue import MeasurementQueue

#: attributes of a Primitive that change no number
_NOT_NUMERIC = frozenset(
    ("input_names", "output_names", "side_effect_mem", "side_effect_hidden", "side_effect_io")
)


class ValuesTask(Task):
    """Describes the inputs and outputs of every call."""

    has_values = True

    def __init__(
        self,
        queue: MeasurementQueue,
        sink_of: Callable[[str], ArraySink | None],
        modes: frozenset[str],
        notes: StorageNotes | None = None,
    ) -> None:
        from mindspore import get_context

        super().__init__(modes, GradientUse.VALUES)
        self._on_cpu = get_context("device_target") == "CPU"
        # gives the sink of an entry's arrays; None where none is written
        self._queue = queue
        self._sink_of = sink_of
        #: notes add the memory to the records
        self._notes = notes
        self._measure = queue.measure if notes is None else notes.measure
        self._describe = ValueDescriber(self._measure).value
        self._has_inputs = "input" in modes
        self._has_outputs = "output" in modes

    def input_role(self, call: Call) -> Role:
        """Return the role of the inputs of a call."""
        return Role.INPUT

    def inputs(
        self, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the described inputs; see ``Task``."""
        if not self._has_inputs:
            return {}
        describe = self._describe
        name = call.forward
        role = self.input_role(call)
        sink = self._sink_of(name)
        if sink is None and not kwargs:
            return {
                "input_args": [describe(arg, name, None, role) for arg in args],
                "input_kwargs": {},
            }
        return {
            "input_args": [
                describe(arg, f"{name}.input.{i}", sink, role) for i, arg in enumerate(args)
            ],
            "input_kwargs": {
                key: describe(arg, f"{name}.kwargs.{key}", sink, role)
                for key, arg in kwargs.items()
            },
        }

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the described attributes; see ``Task``."""
        kept = (
            {key: value for key, value in attributes.items() if key not in _NOT_NUMERIC}
            if self._has_inputs
            else {}
        )
        return {"attributes": self._describe(kept, "", None, Role.INPUT)} if kept else {}

    def named(
        self, call: Call, part: str, tensors: Mapping[str, Any], role: Role
    ) -> dict[str, Any]:
        """Return the records of parameters or states; see ``Task``."""
        if not (self._has_outputs if role is Role.OUTPUT else self._has_inputs):
            return {}
        measure = self._measure
        name = call.forward
        sink = self._sink_of(call.forward)
        return {
            part: {
                key: measure(value, f"{name}.{part}.{key}", sink, role)
                for key, value in tensors.items()
            }
        }

    def scalars(
        self, call: Call, numbers: Callable[[ReadNumber], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the described numbers of an update; see ``Task``. On a device a tensor stays a record."""
        if not self._has_inputs:
            return {}
        read = to_number if self._queue.may_read else lambda tensor: tensor
        return {"input_kwargs": self._describe(dict(numbers(read)), call.forward, None, Role.INPUT)}

    def outputs(
        self, call: Call, result: Any, parameters: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Return the described outputs and parameters; see ``Task``."""
        if not self._has_outputs:
            return {}
        describe = self._describe
        name = call.forward
        role = Role.OUTPUT
        sink = self._sink_of(name)
        items = as_outputs(result)
        reserved = reserved_outputs(call.key) if self._on_cpu else None
        if reserved:
            outputs = [
                unmeasured_record(item.dtype, item.shape, unwritten=True)
                if i in reserved
                else describe(item, f"{name}.output.{i}", sink, role)
                for i, item in enumerate(items)
            ]
        else:
            outputs = [
                describe(item, f"{name}.output.{i}", sink, role) for i, item in enumerate(items)
            ]
        used = {} if parameters is None else self.named(call, "parameters", parameters, role)
        return {"output": outputs, **used}

    def flight(self, call: Call, is_over: bool) -> None:
        """Note that a communication has begun, or is over; see ``Task``."""
        if self._notes is not None:
            self._notes.flight(call.forward, is_over)

    def gradient(self, call: Call, slot: Slot, tensor: Any) -> Any:
        """Return the record of a gradient that arrived now; see ``Task``."""
        if not (self._has_inputs if slot.is_input else self._has_outputs):
            return None
        role = self.input_role(call) if slot.is_input else Role.OUTPUT
        return self._measure(
            tensor, f"{call.backward}.{slot.place}", self._sink_of(call.backward), role
        )

    def gradient_sum(self, call: Call, slot: Slot, total: GradientSum) -> Any:
        """Return the record of a summed gradient; see ``Task``."""
        if not total or not (self._has_inputs if slot.is_input else self._has_outputs):
            return None
        return self._queue.measure_sum(
            total, f"{call.backward}.{slot.place}", self._sink_of(call.backward)
        )

    def backward(
        self, inputs: list[Any], outputs: list[Any], keywords: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the parts of a backward entry; see ``Task``."""
        parts: dict[str, Any] = {}
        if self._has_inputs:
            parts["input"] = inputs
        if self._has_outputs:
            parts["output"] = outputs
            if keywords:
                parts["output_kwargs"] = keywords
        return parts

    def parameter_gradient(self, name: str, parameter: str, gradient: Any) -> dict[str, Any]:
        """Return the parts of an entry of a parameter's gradient; see ``Task``."""
        return {
            parameter: [
                self._measure(gradient, f"{name}.{parameter}", self._sink_of(name), Role.OUTPUT)
            ]
        }


class DebugTask(Task):
    """Records named values; no call is recorded. Without a sink no arrays are written."""

    def __init__(self, queue: MeasurementQueue, sink: ArraySink | None) -> None:
        super().__init__(frozenset(), GradientUse.NONE)
        self._queue = queue
        self._sink = sink
        self._describe = ValueDescriber(queue.measure).value
        self._counters: defaultdict[tuple[str, str], Iterator[int]] = defaultdict(itertools.count)
        self._names: set[str] = set()

    def new_names(self, name: str) -> tuple[str, str]:
        """Return the names of the value that is saved now, and of its gradient."""
        while True:  # "w_grad" may be saved beside "w"
            names = naming.debug_names(name, next(self._counters[naming.debug_names(name, 0)]))
            if self._names.isdisjoint(names):
                self._names.update(names)
                return names

    def record_value(self, name: str, value: Any) -> None:
        """Record a value of any kind as it is now."""
        self.put(name, self._describe(value, name, self._sink, Role.OUTPUT))

    def put(self, name: str, shape: Any) -> None:
        """Record the known records of a value. They replace those of an earlier call."""
        self._queue.put(Entry(name, shape, Kind.DEBUG_VALUE))

    def gradient_of(self, place: str, tensor: Any) -> Any:
        """Return the record of a gradient that arrived now at a saved value."""
        return self._queue.measure(tensor, place, self._sink, Role.OUTPUT)
