# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The files of one step become the events that a graph with callbacks would have sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from probe.capture.graph.dumped_files import ENTER, LEAVE, OF_OUTPUT, UPDATE, DumpedFile, Event, events
from probe.capture.graph.operators import OUTPUT, GraphEvents
from probe.capture.graph.sites import Leaf, Plan, Plans
from probe.measure.tensor_reader import Array
from probe.store.error_log import ErrorGuard


class FileReplay:
    """Sends the events of one step. A file that is missing, cut off or of another tensor leaves null."""

    def __init__(self, receiver: GraphEvents, plans: Plans) -> None:
        self._receiver, self._plans = receiver, plans
        self._running: list[tuple[str, int]] = []
        self._calls: defaultdict[int, list[int]] = defaultdict(list)  # plan -> calls that were at its place

    def run(self, files: Iterable[DumpedFile]) -> None:
        """Send the events of further files, which are in the order of their arrival."""
        for event in events(files, self.count):
            with ErrorGuard(self._fail, "reading the files of a graph"):
                self._send(event)

    def _fail(self, _: str, error: BaseException) -> None:
        self._receiver.fail(error)

    def count(self, plan: int) -> int:
        """Return how many files an event of this plan has."""
        return max(1, len(self._plans[plan].reported))

    def _send(self, event: Event) -> None:
        plan = self._plans[event.plan]
        if event.kind == ENTER:
            number = self._receiver.enter(event.plan, self._arrays(event, plan))
            self._running.append((plan.key, number))
            self._calls[event.plan].append(number)
        elif event.kind == LEAVE:
            self._leave(event, plan)
        else:
            ((number, file),) = event.files.items()
            leaves = plan.reported if event.kind == UPDATE else plan.leaves
            array = self._array(file, leaves[number])
            if array is None:
                return
            if event.kind == UPDATE:
                self._receiver.update(event.plan, number, array)
            else:
                place = number + OUTPUT * (event.kind == OF_OUTPUT)
                self._receiver.gradient_of(self._calls[event.plan], place, array)

    def _leave(self, event: Event, plan: Plan) -> None:
        """End the innermost call of this Cell; calls inside it have not returned."""
        arrays = self._arrays(event, plan)
        if all(key != plan.key for key, _ in self._running):
            raise ValueError(f"{plan.key} has returned and was not called: files are missing or in another order")
        while True:
            key, number = self._running.pop()
            if key == plan.key:
                break
        self._calls[event.plan].append(number)
        if number:
            self._receiver.leave(number, event.plan, arrays)

    def _arrays(self, event: Event, plan: Plan) -> tuple[Array | None, ...]:
        """Return the arrays of an event, in the order of the plan."""
        return tuple(self._array(event.files.get(place), leaf) for place, leaf in enumerate(plan.reported))

    def _array(self, file: DumpedFile | None, leaf: Leaf) -> Array | None:
        """Return the array of a file, or None where it does not hold the tensor of the plan."""
        array: Array | None = None
        with ErrorGuard(self._fail, "reading the files of a graph"):
            if file is None:
                raise FileNotFoundError("a file of ops.TensorDump is missing: its tensor has null")
            read = file.read()
            if read.shape != leaf.shape or file.dtype != leaf.dtype.lower():
                expected = f"{leaf.dtype.lower()} {leaf.shape}"
                raise ValueError(f"{file.path} holds {file.dtype} {read.shape} in place of {expected}")
            array = read
        return array
