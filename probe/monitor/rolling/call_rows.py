# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The numbers of the calls that a step has recorded, each the value of a series."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from probe.measure.dtype_name import dtype_name
from probe.measure.measurer import GradientSum
from probe.measure.tensor_reader import local_tensor
from probe.monitor.numbers import Checksum, Held, HostNumbers, Number, known
from probe.naming import reserved_outputs
from probe.pytree import Slot, as_outputs
from probe.recording.call import Call, GradientUse, Task
from probe.series.series_name import HIGH, LOW

Note = Callable[[Call, bool, str, Any], None]  # call, whether backward, place, tensor

#: the greatest number of each dtype whose range a training may leave
_LARGEST = {"Float16": 65504.0, "BFloat16": 3.3895e38}
_STATISTICS = ("max", "min", "mean", "norm")
_OF_OUTPUTS = ("zeros",)


class CallTask(Task):
    """Passes the tensors of calls on as they are now, and keeps no entry."""

    has_values = True
    keeps_entries = records_updates = records_parameters = False

    def __init__(self, modes: frozenset[str], note: Note) -> None:
        from mindspore import Tensor, get_context

        super().__init__(modes, GradientUse.VALUES)
        self._on_cpu = get_context("device_target") == "CPU"
        self._tensor = Tensor
        self._note = note

    def inputs(
        self, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Note the inputs; see ``Task``."""
        for place, arg in enumerate(args):
            self._note_all(call, f"input.{place}", arg)
        for name, arg in kwargs.items():
            self._note_all(call, f"input_kwargs.{name}", arg)
        return {}

    def outputs(
        self, call: Call, result: Any, parameters: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Note the outputs that are written; see ``Task``."""
        unwritten = (reserved_outputs(call.key) if self._on_cpu else None) or ()
        for place, item in enumerate(as_outputs(result)):
            if place not in unwritten:
                self._note_all(call, f"output.{place}", item)
        return {}

    def _note_all(self, call: Call, place: str, value: Any) -> None:
        if isinstance(value, self._tensor):
            self._note(call, False, place, value)
        elif isinstance(value, (list, tuple, dict)):
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                self._note_all(call, f"{place}.{key}", item)

    def gradient(self, call: Call, slot: Slot, tensor: Any) -> Any:
        """Note a gradient; see ``Task``."""
        self._note(call, True, slot.place, tensor)

    def gradient_sum(self, call: Call, slot: Slot, total: GradientSum) -> Any:
        """Note a gradient that was summed; see ``Task``."""
        if total.resolve() and total.array is not None:
            self.gradient(call, slot, total.array)


class Noted(NamedTuple):
    """A tensor of a call."""

    call: Call
    is_backward: bool
    place: str  # "output.0"
    is_output: bool  # of a forward
    largest: float | None  # the largest number of its dtype, where a training may leave the range
    numbers: Held  # returns its numbers


@functools.lru_cache(10_000)
def columns(place: str, is_output: bool) -> Mapping[str, str]:
    """Return the columns of a tensor by the names of its numbers; those of outputs have the part of zeros too."""
    names = (*_STATISTICS, *(_OF_OUTPUTS if is_output else ()))
    return {name: f"{place}.{name}" for name in names}


class CallRows:
    """Measures the tensors of the calls of one step; ``has_bits``: their CRC-32 in place of statistics."""

    def __init__(self, numbers: HostNumbers, has_bits: bool) -> None:
        self._numbers = numbers
        self._has_bits = has_bits
        self._noted: list[Noted] = []
        self._rows: dict[str, dict[str, Number]] = {}
        self._limits: dict[str, dict[str, float]] = {}
        self._checksums: dict[str, dict[str, Checksum]] = {}

    def note(self, call: Call, is_backward: bool, place: str, tensor: Any) -> None:
        """Measure a tensor of a call: Max, Min, Mean and Norm; of an output of a forward the part of zeros too."""
        if self._has_bits:
            checksum = self._numbers.checksum(tensor)
            self._checksums.setdefault(call.name(is_backward), {})[place] = checksum
            return
        is_output = not is_backward and place.startswith("output")
        largest = None
        if is_output:
            largest = _LARGEST.get(dtype_name(local_tensor(tensor).dtype))
        held = self._numbers.held(tensor, _OF_OUTPUTS if is_output else ())
        self._noted.append(Noted(call, is_backward, place, is_output, largest, held))

    def settle(self) -> None:
        """Make numbers of the tensors that were noted so far, and let these go."""
        waiting = self._noted
        self._noted = []
        for noted in waiting:
            entry = noted.call.name(noted.is_backward)
            row = self._rows.setdefault(entry, {})
            found = noted.numbers()
            for name, column in columns(noted.place, noted.is_output).items():
                row[column] = found[name]
            if noted.largest is not None:
                self._limits.setdefault(entry, {})[noted.place] = noted.largest

    def end(self) -> StepCalls:
        """End the step and return its numbers."""
        self.settle()
        ended = StepCalls(self._rows, self._limits, self._checksums, self._numbers.take())
        self._rows = {}
        self._limits = {}
        self._checksums = {}
        return ended


class StepCalls:
    """The numbers of the calls of a step that has ended.

    Args:
        values: entry -> column -> number.
        limits: entry -> place -> the largest number of the dtype, where a training may leave the range.
        checksums: entry -> place -> CRC-32.
        scalars: the numbers that are still on a device.
    """

    def __init__(
        self,
        values: dict[str, dict[str, Number]],
        limits: Mapping[str, Mapping[str, float]],
        checksums: dict[str, dict[str, Checksum]],
        scalars: list[Any],
    ) -> None:
        self._values = values
        self._limits = limits
        self._checksums = checksums
        self.scalars = scalars

    @property
    def is_open(self) -> bool:
        """Whether something is still on a device."""
        every = (item for row in self._checksums.values() for item in row.values())
        return bool(self.scalars) or any(callable(item) for item in every)

    def finish(self, fetched: list[float]) -> dict[str, dict[str, float]]:
        """Return the numbers of each entry by their places, with the part of the dtype's range that is used."""
        found: dict[str, dict[str, float]] = {}
        for name, row in self._values.items():
            numbers = known(row, fetched)
            for place, largest in self._limits.get(name, {}).items():
                peak = max(abs(numbers[f"{place}.max"]), abs(numbers[f"{place}.min"]))
                numbers[f"{place}.peak"] = peak / largest
            found[name] = numbers
        for name, sums in self._checksums.items():
            found[name] = {}
            for place, checksum in sums.items():
                bits = checksum() if callable(checksum) else checksum
                # a float32 holds 16 of the 32 bits
                found[name][f"{place}.{HIGH}"] = float(bits >> 16)
                found[name][f"{place}.{LOW}"] = float(bits & 0xFFFF)
        return found
