# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Events of compiled graphs become calls, and calls become entries."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Sequence
from typing import Any

from probe.capture.graph.sites import OUTPUT, Plan, Plans
from probe.entry import Kind
from probe.measure.tensor_reader import Array
from probe.pytree import SlotLayout
from probe.recording.call import Call
from probe.recording.step_recorder import StepRecorder
from probe.store.error_log import ErrorGuard

_log = logging.getLogger("probe")

_SILENT = (
    "no Cell of the model has reported: none ran in a graph between start and stop, or it was compiled before the "
    "first start(model). A compiled graph cannot be changed: call start(model) before the first step"
)
_UNASSIGNED = (
    "{} is called several times in a graph, which does not tell the calls of its gradients: "
    "these gradients are null"
)


class GraphCall:
    """One run of a compiled Cell, from its begin to its last gradient."""

    def __init__(self, recorder: StepRecorder, call: Call, inputs: Plan) -> None:
        self.recorder = recorder
        self.call = call
        self.is_open = False  # its backward entry has begun and not ended
        self.outputs: Plan | None = None  # the plan of its outputs, once its forward has returned
        #: gradients that came before that: a graph may run both in any order
        self.early: list[tuple[bool, int, Array]] = []
        self._inputs = inputs  # the plan of its inputs
        self._possible = inputs.returns  # the plans that its outputs may have
        self._awaited = set(inputs.differentiable)
        self._found: dict[tuple[bool, int], Any] = {}
        self._measured: dict[tuple[bool, int], Any] = {}  # the records of early gradients
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
            self._is_wanted = self.is_open = self.call.watched and self.recorder.begin_backward(
                self.call
            )
        return self._is_wanted

    def add_early(self, is_input: bool, place: int, array: Array) -> None:
        """Keep a gradient that came before the forward has returned, and write it into the journal."""
        self.early.append((is_input, place, array.copy()))
        if is_input:
            fitting = (plan for plan in self._possible if place < len(plan.leaves))
            self._possible = [plan for plan in fitting if plan.leaves[place].accepts(array)]
        plan = self._likely_outputs if is_input else self._inputs
        if plan is not None and self.call.watched and (is_input, place) not in self._measured:
            self._measured[is_input, place] = self._measure(plan, place, array)
            self._write_draft()

    def returned(self, plan: Plan) -> None:
        """Take the plan of the outputs. Early gradients that were measured for another one are measured again."""
        likely = self._likely_outputs
        self.outputs = plan
        if likely is None or not likely.is_like(plan):
            self._measured = {
                slot: record for slot, record in self._measured.items() if not slot[0]
            }

    def add_gradient(self, is_input: bool, place: int, array: Array) -> None:
        """Record a gradient of the output or input of this number; that of an output is an input of the backward."""
        plan = self.outputs if is_input else self._inputs
        if plan is None:
            return
        if (is_input, place) in self._found:  # a gradient of a gradient
            if is_input:
                self._passes += 1
                self.recorder.note_later_pass(self.call, self._passes)
            return
        early = self._measured.pop((is_input, place), None)
        self._found[is_input, place] = self._measure(plan, place, array) if early is None else early
        if not is_input:
            self._awaited.discard(place)
        if not self.is_open or (not is_input and not self._awaited):
            self.end_backward()  # a late gradient is written into the entry that has ended
        else:
            self._write_draft()

    @property
    def _likely_outputs(self) -> Plan | None:
        """The plan of the outputs; before the forward has returned, one that fits the gradients so far."""
        return self.outputs or (self._possible[0] if self._possible else None)

    def _measure(self, plan: Plan, place: int, array: Array) -> Any:
        return self.recorder.task.gradient(
            self.call, plan.layout.slots[place], plan.leaves[place].value(array)
        )

    def _write_draft(self) -> None:
        in_layout, inputs, out_layout, outputs = self._slots()
        parts = self.recorder.task.backward(
            in_layout.fill(inputs), out_layout.fill(outputs), out_layout.fill_keywords(outputs)
        )
        self.recorder.draft(self.call, parts, backward=True)

    def end_backward(self) -> None:
        """Write the backward entry; slots without a gradient are null."""
        self.is_open = False
        self.recorder.end_backward(self.call, *self._slots())

    def _slots(self) -> tuple[SlotLayout, list[Any], SlotLayout, list[Any]]:
        """Return the layout and the records of the gradients of the outputs, then those of the inputs."""
        of_outputs = self._likely_outputs or Plan(self._inputs.key, ())
        found = {**self._measured, **self._found}
        inputs = [found.get((True, place)) for place in range(len(of_outputs.leaves))]
        outputs = [found.get((False, place)) for place in range(len(self._inputs.leaves))]
        return of_outputs.layout, inputs, self._inputs.layout, outputs


class GraphCalls:
    """Receives the events of compiled graphs, in the order of their execution. It may be on any thread."""

    def __init__(self, plans: Plans) -> None:
        #: the recorder of the step, also between stop and step; None while no step is open
        self.recorder: StepRecorder | None = None
        self.plans = plans
        self._records = False
        self._has_failed = False
        self._numbers = itertools.count(1)
        self._called: set[str] = set()
        self._calls: dict[int, GraphCall] = {}
        self._running: list[tuple[int, GraphCall]] = []
        self._backward: list[GraphCall] = []
        #: calls that lack a gradient of one tensor -> how many such gradients came
        self._unassigned: dict[tuple[tuple[int, ...], bool, int], int] = {}
        self._lock = (
            threading.RLock()
        )  # MindSpore's threads report at the same time, while the main thread ends a step

    def begin(self, recorder: StepRecorder) -> None:
        """Record the calls that begin from now on."""
        with self._lock:
            self.recorder = recorder
            self._records = True

    def stop(self) -> None:
        """Record no further call. Gradients of recorded calls still arrive."""
        with self._lock:
            self._records = False

    def enter(self, plan: int, arrays: Sequence[Array | None]) -> int:
        """Begin a call; return its number, or 0 if it is not recorded. A value that is unknown is None."""
        with self._lock:
            recorder = self.recorder
            site = self.plans[plan]
            if recorder is None or not self._records:
                return 0
            self._end_backward()
            args, kwargs = site.fill(arrays)
            around = self._running[-1][1].call if self._running else None
            call = recorder.begin(Kind.CELL, site.key, args, kwargs, around, stack=site.stack)
            if call is None:
                return 0
            if call.recorded:
                recorder.draft(call, call.parts)
            number = next(self._numbers)
            opened = self._calls[number] = GraphCall(recorder, call, site)
            self._running.append((number, opened))
            self._called.add(site.key)
            return number

    def leave(self, call: int, plan: int, arrays: Sequence[Array | None]) -> None:
        """End a call that has returned."""
        with self._lock:
            opened = self._calls.get(call)
            site = self.plans[plan]
            if opened is None:
                return
            while self._running and self._running.pop()[0] != call:
                pass  # a call inside it did not return
            result, parameters = site.fill(arrays)
            opened.returned(site)
            opened.recorder.end(opened.call, result, dict(zip(site.names, parameters)))
            early = opened.early
            opened.early = []
            for gradient in early:
                self._gradient(call, *gradient)

    def gradient_of(self, calls: Sequence[int], place: int, array: Array) -> None:
        """Take a gradient of a tensor of one of these calls. If several lack one, all have null: none is its owner."""
        is_input = place >= OUTPUT
        place = place % OUTPUT
        with self._lock:
            known = [number for number in calls if number in self._calls]
            lacking = [number for number in known if self._calls[number].lacks(is_input, place)]
            if len(lacking) > 1:
                slot = tuple(lacking), is_input, place
                self._unassigned[slot] = self._unassigned.get(slot, 0) + 1
                first = self._calls[lacking[0]]
                first.recorder.sink.errors.note(
                    "assigning gradients of graphs", _UNASSIGNED.format(first.call.key)
                )
            elif known:
                self._gradient((lacking or known)[-1], is_input, place, array)

    def gradient(self, call: int, place: int, array: Array) -> None:
        """Take a gradient of a tensor of a call; see ``OUTPUT``."""
        with self._lock:
            self._gradient(call, place >= OUTPUT, place % OUTPUT, array)

    def _gradient(self, number: int, is_input: bool, place: int, array: Array) -> None:
        found = self._calls.get(number)
        if found is None or found.recorder.closed:
            return
        if found.outputs is None:
            found.add_early(is_input, place, array)
            return
        self._end_backward(found.call)
        if found.begin_backward():
            if found.is_open and found not in self._backward:
                self._backward.append(found)
            found.add_gradient(is_input, place, array)

    def update(self, plan: int, number: int, array: Array) -> None:
        """Take a gradient that enters an optimizer."""
        leaf = self.plans[plan].reported[number]
        owners = self.plans[plan].owners
        if len(leaf.path) != 3 or leaf.path[2] >= len(
            owners
        ):  # argument 0 of all, gradient of this number
            return
        with self._lock:
            if self.recorder is None:
                return
            self._end_backward()
            for key, name in owners[leaf.path[2]]:
                if (
                    key in self._called
                ):  # a Cell in the other branch of an `if` has a gradient of zeros
                    self.recorder.parameter_gradient(key, name, leaf.value(array))

    def guard(self) -> ErrorGuard:
        """Return a context in which an error of the tool ends."""
        return ErrorGuard(lambda _, error: self.fail(error), "")

    def fail(self, error: BaseException) -> None:
        """Report an error of the tool; never raise."""
        recorder = self.recorder
        if recorder is not None:
            recorder.report("recording a compiled graph", error, None, False, "")
        elif not self._has_failed:
            self._has_failed = True
            _log.error(
                "watching a compiled graph failed; training continues: %s: %s",
                type(error).__name__,
                error,
            )

    def end_step(self) -> None:
        """End every entry; forget the calls and the recorder."""
        with self._lock:
            self._end_backward()
            for (numbers, _, _), count in self._unassigned.items():
                if count >= len(numbers):  # each of them has had a backward
                    calls = [self._calls[number] for number in numbers]
                    self._backward += [call for call in calls if call.begin_backward()]
            self._end_backward()
            if self.recorder is not None and not self._called:
                self.recorder.sink.errors.note("no report", _SILENT)
            self._forget()

    def detach(self) -> None:
        """Forget the calls and the recorder in a forked child: another thread of the parent may hold the lock."""
        self._lock = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        self.recorder = None
        self._records = False
        for found in (self._calls, self._called, self._running, self._backward, self._unassigned):
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
