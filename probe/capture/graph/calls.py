# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Events of compiled graphs become calls, and calls become entries."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from probe.capture.graph.sites import Plan
from probe.capture.graph.values import HostValue
from probe.entry import Kind
from probe.measure.tensor_reader import Array
from probe.recording.call import Call
from probe.recording.step_recorder import StepRecorder

_SILENT = (
    "no Cell of the model has reported: none ran in a graph between start and stop, or it was compiled before the "
    "first start(model). A compiled graph cannot be changed: call start(model) before the first step"
)


class GraphCall:
    """One run of a compiled Cell, from its begin to its last gradient.

    Args:
        recorder: the recorder of the step.
        call: the call.
        inputs: the plan of its inputs.

    Attributes:
        is_open: its backward entry has begun and not ended.
        outputs: the plan of its outputs, once its forward has returned.
        early: gradients that came before that: a graph may run both in any order.
    """

    def __init__(self, recorder: StepRecorder, call: Call, inputs: Plan) -> None:
        self.recorder, self.call = recorder, call
        self.is_open = False
        self.outputs: Plan | None = None
        self.early: list[tuple[bool, int, Array]] = []
        self._inputs = inputs
        self._awaited = set(inputs.differentiable)
        self._found: dict[tuple[bool, int], Any] = {}
        self._is_wanted: bool | None = None
        self._passes = 0

    def is_around(self, other: Call | None) -> bool:
        """Return whether another call is this one, or runs inside it."""
        while other is not None and other is not self.call:
            other = other.cell
        return other is not None

    def lacks(self, is_input: bool, place: int) -> bool:
        """Return whether a gradient has not arrived."""
        return (is_input, place) not in self._found

    def begin_backward(self) -> bool:
        """Begin the backward entry with its first gradient; return whether it is recorded."""
        if self._is_wanted is None:
            self._is_wanted = self.is_open = self.call.watched and self.recorder.begin_backward(self.call)
        return self._is_wanted

    def add_gradient(self, is_input: bool, place: int, array: Array) -> None:
        """Record a gradient.

        Args:
            is_input: whether it is a gradient of an output: an input of the backward.
            place: the number of the tensor among the outputs or inputs.
            array: the gradient.
        """
        plan = self.outputs if is_input else self._inputs
        if plan is None:
            return
        if (is_input, place) in self._found:  # a gradient of a gradient
            if is_input:
                self._passes += 1
                self.recorder.note_later_pass(self.call, self._passes)
            return
        value = plan.leaves[place].value(array)
        self._found[is_input, place] = self.recorder.task.gradient(self.call, plan.layout.slots[place], value)
        if not is_input:
            self._awaited.discard(place)
        if not self.is_open or (not is_input and not self._awaited):
            self.end_backward()  # a late gradient is written into the entry that has ended

    def end_backward(self) -> None:
        """Write the backward entry; slots without a gradient are null."""
        self.is_open = False
        of_outputs = Plan(self._inputs.key, ()) if self.outputs is None else self.outputs
        inputs = [self._found.get((True, place)) for place in range(len(of_outputs.leaves))]
        outputs = [self._found.get((False, place)) for place in range(len(self._inputs.leaves))]
        self.recorder.end_backward(self.call, of_outputs.layout, inputs, self._inputs.layout, outputs)


class GraphCalls:
    """Receives the events of compiled graphs, in the order of their execution. It may be on any thread.

    Attributes:
        recorder: the recorder of the step, also between stop and step; None while no step is open.
    """

    def __init__(self) -> None:
        self.recorder: StepRecorder | None = None
        self._records = False
        self._numbers = itertools.count(1)
        self._called: set[str] = set()
        self._calls: dict[int, GraphCall] = {}
        self._running: list[tuple[int, GraphCall]] = []
        self._backward: list[GraphCall] = []

    def begin(self, recorder: StepRecorder) -> None:
        """Record the calls that begin from now on."""
        self.recorder, self._records = recorder, True

    def stop(self) -> None:
        """Record no further call. Gradients of recorded calls still arrive."""
        self._records = False

    def enter(self, plan: Plan, arrays: Sequence[Array]) -> int:
        """Begin a call; return its number, or 0 if it is not recorded."""
        recorder = self.recorder
        if recorder is None or not self._records:
            return 0
        self._end_backward()
        args, kwargs = plan.fill(arrays)
        around = self._running[-1][1].call if self._running else None
        call = recorder.begin(Kind.CELL, plan.key, args, kwargs, around, stack=plan.stack)
        if call is None:
            return 0
        number = next(self._numbers)
        opened = self._calls[number] = GraphCall(recorder, call, plan)
        self._running.append((number, opened))
        self._called.add(plan.key)
        return number

    def leave(self, number: int, plan: Plan, arrays: Sequence[Array]) -> None:
        """End a call that has returned."""
        opened = self._calls.get(number)
        if opened is None:
            return
        while self._running and self._running.pop()[0] != number:
            pass  # a call inside it did not return
        result, parameters = plan.fill(arrays)
        opened.outputs = plan
        opened.recorder.end(opened.call, result, dict(zip(plan.names, parameters)))
        early, opened.early = opened.early, []
        for gradient in early:
            self.gradient(number, *gradient)

    def latest(self, key: str, is_input: bool, place: int) -> int:
        """Return the number of the latest call of a Cell that lacks a gradient, or 0: the backward runs in reverse."""
        for number in reversed(self._calls):
            found = self._calls[number]
            if found.call.key == key and found.lacks(is_input, place):
                return number
        return 0

    def gradient(self, number: int, is_input: bool, place: int, array: Array) -> None:
        """Take a gradient of a call's output, or of its input."""
        found = self._calls.get(number)
        if found is None or found.recorder.closed:
            return
        if found.outputs is None:
            found.early.append((is_input, place, array.copy()))
            return
        self._end_backward(found.call)
        if found.begin_backward():
            if found.is_open and found not in self._backward:
                self._backward.append(found)
            found.add_gradient(is_input, place, array)

    def parameter_gradient(self, owners: Iterable[tuple[str, str]], value: HostValue) -> None:
        """Take a gradient that enters an optimizer.

        Args:
            owners: the keys of the parameter's Cells, and its names there.
            value: the gradient.
        """
        if self.recorder is None:
            return
        self._end_backward()
        for key, name in owners:
            if key in self._called:  # a Cell in the other branch of an `if` has a gradient of zeros
                self.recorder.parameter_gradient(key, name, value)

    def end_step(self) -> None:
        """End every entry; forget the calls and the recorder."""
        self._end_backward()
        if self.recorder is not None and not self._called:
            self.recorder.writer.errors.note("no report", _SILENT)
        self.detach()

    def detach(self) -> None:
        """Forget the calls and the recorder."""
        self.recorder, self._records = None, False
        for found in (self._calls, self._called, self._running, self._backward):
            found.clear()

    def _end_backward(self, current: Call | None = None) -> None:
        """End the backward entries of calls that are complete: those that are not around the current one."""
        kept = []
        for opened in reversed(self._backward):
            if not opened.is_open:
                continue
            if current is not None and opened.is_around(current):
                kept.append(opened)
            else:
                opened.end_backward()
        self._backward = kept[::-1]
