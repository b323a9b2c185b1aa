# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The operators of a graph that report tensors: on CPU callbacks into Python, on Ascend files of ops.TensorDump."""

from __future__ import annotations

import functools
import inspect
import os
import shutil
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Union

import numpy as np

from probe.capture.graph import dumped_files, templates
from probe.capture.graph.calls import GraphCalls
from probe.capture.graph.dumped_files import (
    END,
    ENTER,
    LEAVE,
    MARKER,
    OF_INPUT,
    OF_OUTPUT,
    UPDATE,
    DumpedFile,
    Event,
)
from probe.capture.graph.sites import OUTPUT, GraphPlan, Leaf, Plan
from probe.capture.graph.templates import CODES, DumpOperators
from probe.measure.tensor_reader import Array

MOST = 48  # the most tensors that one operator reports
WATCHED = 16  # the most tensors of a call whose gradients are watched
_PLACES = (
    range(WATCHED),
    range(OUTPUT, OUTPUT + WATCHED),
)  # the places of these gradients: of inputs, and of outputs
_GRADIENTS = {
    ENTER: OF_INPUT,
    LEAVE: OF_OUTPUT,
}  # the kind of the gradients that are watched at a place
_NEVER = 2**31  # a step that does not come: TensorDump writes nothing
_LATE = (
    "files of ops.TensorDump have not arrived for {:.0f} s; values are null. The device sends them asynchronously: "
    "docs/compiled.md has MS_DUMP_SLICE_SIZE and MS_DUMP_WAIT_TIME"
)
_PAUSE = 0.01  # the seconds between two looks at the folder


class CallbackOperators:
    """Calls Python with the values of tensors, on a thread of MindSpore's. ``FileOperators`` has the same methods.

    In PyNative mode (``is_split``), forward and backward of a Cell are two graphs. ``recomputes`` tells whether
    GRAPH_MODE compiles a Cell that is recomputed. The operators that begin a call, ``enter``, and those that end it,
    ``leave``, are numbered by their tensors. ``update`` takes a gradient of an optimizer.
    """

    def __init__(self, events: GraphCalls, is_split: bool) -> None:
        self.is_split = is_split
        self.recomputes = False
        self._events = events
        self._thread = threading.local()
        self.enter = tuple(self._operator(self._enter, count + 1) for count in range(MOST + 1))
        self.leave = tuple(self._operator(self._leave, count + 2) for count in range(MOST + 1))
        self.update = self._operator(self._update, 3)
        self._report = self._operator(self._gradient, 3)

    def graph_plan(self, plan: GraphPlan, key: str, kind: str) -> GraphPlan:
        """Return a plan of a Cell as the graph has it: as it is. The kind is "enter", "leave" or "update"."""
        return plan

    def cell_construct(
        self, inner: Any, inputs: Any, outputs: Any, parameters: tuple[Any, ...]
    ) -> Any:
        """Return the construct of a Cell whose calls are reported.

        While MindSpore compiles, ``inputs`` makes the plan of (arguments, keyword arguments), ``outputs`` that of
        (result, parameters).
        """
        watchers = self._watching_cells() if self.recomputes else self._watchers
        return templates.cell_construct(
            inner, inputs, outputs, parameters, self.enter, self.leave, *watchers
        )

    def optimizer_construct(self, inner: Any, describe: Any) -> Any:
        """Return the construct of an optimizer whose gradients are reported."""
        return templates.optimizer_construct(inner, describe, self.update)

    def begin(self) -> None:
        """Do nothing when a recorded step begins: the values arrive while the graph runs."""

    def replay(self) -> None:
        """Do nothing: no value waits in a file."""

    def end(self) -> None:
        """Do nothing when a recorded step ends."""

    def close(self) -> None:
        """Do nothing: there are no files."""

    def _watching_cells(self) -> list[tuple[tuple[Any, ...], ...]]:
        make = functools.partial(templates.watching_cell, self._report)
        return [(tuple(map(make, places)),) * len(CODES) for places in _PLACES]

    @functools.cached_property
    def _watchers(self) -> list[tuple[tuple[Any, ...], ...]]:
        """Operators that report the gradient of each input of a Cell, and of each output: by code and number."""
        return [
            tuple(
                tuple(templates.gradient_watcher(self._report, place, code) for place in places)
                for code in CODES
            )
            for places in _PLACES
        ]

    @property
    def is_running(self) -> bool:
        """Whether a callback runs on this thread."""
        return getattr(self._thread, "is_running", False)

    def _enter(self, plan: Array, *arrays: Array) -> int:
        return self._events.enter(int(plan[0]), arrays)

    def _leave(self, call: Array, plan: Array, *arrays: Array) -> int:
        if call[0]:
            self._events.leave(int(call[0]), int(plan[0]), arrays)
        return int(call[0])

    def _gradient(self, call: Array, place: Array, array: Array) -> None:
        if call[0]:
            self._events.gradient(int(call[0]), int(place[0]), array)

    def _update(self, plan: Array, number: Array, array: Array) -> None:
        self._events.update(int(plan[0]), int(number[0]), array)

    def _operator(self, function: Callable[..., Any], count: int) -> Any:
        """Return an operator that calls a function with so many arrays. No error leaves it."""
        import mindspore
        from mindspore import ops

        def report(*arrays: Array) -> Array:
            number = 0
            self._thread.is_running = True
            try:
                number = function(*arrays) or 0
            except BaseException as error:
                self._events.fail(error)
            finally:
                self._thread.is_running = False
            return np.array([number], np.int32)

        # MindSpore packs the arrays of a function with *arguments, unless its signature names them
        names = [
            inspect.Parameter(f"array{i}", inspect.Parameter.POSITIONAL_ONLY) for i in range(count)
        ]
        report.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]  # functions take attributes
        operator = ops.Custom(
            report, lambda *_: (1,), lambda *_: mindspore.int32, func_type="pyfunc"
        )
        operator.add_prim_attr("side_effect_io", True)  # it is neither removed nor moved
        return operator


class FileOperators:
    """Writes tensors into files, and sends the events that the files stand for: as they arrive, the last at ``replay``.

    A folder for the files is made in ``dump_path``, and removed at ``close``. The wait for files ends after
    ``patience`` seconds without any new one. ``recomputes`` is of no use here; see ``CallbackOperators``.
    """

    def __init__(
        self,
        events: GraphCalls,
        operators: DumpOperators,
        is_split: bool,
        dump_path: str,
        patience: float = 60.0,
    ) -> None:
        self.is_split = is_split
        self.recomputes = False
        self._events = events
        self._operators = operators
        self._dump_path = dump_path
        self._patience = patience
        self._folder = ""
        self._mark_end: Callable[..., Any] | None = None
        self._replay: FileReplay | None = None  # of the step that is open
        self._follower = FileFollower(self._send_arrived)
        self._sender = 0  # the thread that sends events

    # -- while MindSpore compiles -----------------------------------------------------------------------------------

    def graph_plan(self, plan: GraphPlan, key: str, kind: str) -> tuple[Any, ...]:
        """Return a plan as the graph has it: paths and operators in place of codes and numbers, and a marker's path."""
        if plan[0] < 0:
            return plan
        folder = self._make_folder()

        def path(kind: str, number: int) -> str:
            return os.path.join(folder, dumped_files.base_name(key, kind, plan[0], number))

        written = tuple((place, path(kind, number)) for number, (place, _) in enumerate(plan[1]))
        watch = self._operators.watch
        watched = tuple(
            (place, watch(path(_GRADIENTS[kind], number))) for place, number, _ in plan[2]
        )
        return plan[0], written, watched, path(kind, MARKER)

    def cell_construct(
        self, inner: Any, inputs: Any, outputs: Any, parameters: tuple[Any, ...]
    ) -> Any:
        """Return the construct of a Cell whose calls are written; see ``CallbackOperators``."""
        return templates.writing_construct(inner, inputs, outputs, parameters, self._operators)

    def optimizer_construct(self, inner: Any, describe: Any) -> Any:
        """Return the construct of an optimizer whose gradients are written."""
        return templates.writing_optimizer(inner, describe, self._operators)

    def _make_folder(self) -> str:
        if not self._folder:
            os.makedirs(self._dump_path, exist_ok=True)
            self._folder = tempfile.mkdtemp(prefix=".tensordump-", dir=self._dump_path)
            if self._replay is None:
                self._pause(True)
            else:
                self._follower.start()
        return self._folder

    @property
    def is_running(self) -> bool:
        """Whether events are sent on this thread."""
        return self._sender == threading.get_ident()

    # -- a recorded step --------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a step: files from now on belong to it, those of earlier runs are removed."""
        self._follower.stop()
        self._replay = FileReplay(self._events)
        with self._events.guard():
            self._pause(False)
            if self._folder:
                self._wait()
                dumped_files.remove_files(dumped_files.list_files(self._folder))
                self._follower.start()

    def replay(self) -> None:
        """Send the events of all files of the step so far."""
        replay = self._replay
        if replay is None or not self._folder:
            return
        self._follower.stop()
        with self._events.guard():
            self._wait()
            self._send(replay, dumped_files.list_files(self._folder))
            self._follower.start()

    def _send_arrived(self) -> None:
        """Send the events of the files that have arrived, while the step goes on."""
        replay = self._replay
        with self._events.guard():
            if replay is not None:
                self._send(
                    replay,
                    dumped_files.arrived(dumped_files.list_files(self._folder), replay.count),
                )

    def _send(self, replay: FileReplay, files: list[DumpedFile]) -> None:
        self._sender = threading.get_ident()
        try:
            replay.run(files)
        finally:
            self._sender = 0
            dumped_files.remove_files(files)

    def end(self) -> None:
        """End the step: the graphs write nothing until the next ``begin``."""
        self._follower.stop()
        with self._events.guard():
            if self._replay is not None and self._folder:
                self._pause(True)
        self._replay = None

    def close(self) -> None:
        """Remove the folder. The graphs write nothing more."""
        self.end()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _pause(self, is_paused: bool) -> None:
        """Let TensorDump write nothing; it has no public switch. The graphs stay as they are."""
        from mindspore._c_expression import _tensordump_set_step

        _tensordump_set_step([_NEVER] if is_paused else [])

    def _wait(self) -> None:
        """Wait until all files have arrived: a last one, of a graph of its own, comes after them."""
        import mindspore

        if self._mark_end is None:
            path = os.path.join(self._folder, dumped_files.base_name("", END, 0, 0))
            self._mark_end = templates.end_marker(path, self._operators)
        dumped_files.remove_files(
            file for file in dumped_files.list_files(self._folder) if file.kind == END
        )
        self._mark_end(mindspore.Tensor(np.zeros(1, np.int32))).asnumpy()
        if dumped_files.wait_for_end(self._folder, self._patience) is None:
            self._events.fail(TimeoutError(_LATE.format(self._patience)))


#: the operators that a graph reports with, and the constructs that have them
GraphOperators = Union[CallbackOperators, FileOperators]


class FileFollower:
    """Calls a function again and again on a thread of its own. A forked child has no such thread."""

    def __init__(self, send: Callable[[], None]) -> None:
        self._send = send  # sends the events of the files that have arrived: a killed process has them in its journal
        self._thread: threading.Thread | None = None
        self._goes_on = False

    def start(self) -> None:
        """Begin to follow, if it has not begun."""
        if self._thread is None:
            self._goes_on = True
            self._thread = threading.Thread(
                target=self._run, name="probe follows the files of graphs", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Follow no more; return when the thread has ended."""
        thread = self._thread
        self._thread = None
        self._goes_on = False  # no lock: a forked child may stop it too
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while self._goes_on:
            self._send()
            time.sleep(_PAUSE)


class FileReplay:
    """Sends the events of one step. A file that is missing, cut off or of another tensor leaves null."""

    def __init__(self, receiver: GraphCalls) -> None:
        self._receiver = receiver
        self._running: list[tuple[str, int]] = []
        self._calls: defaultdict[int, list[int]] = defaultdict(
            list
        )  # plan -> calls that were at its place

    def run(self, files: Iterable[DumpedFile]) -> None:
        """Send the events of further files, which are in the order of their arrival."""
        for event in dumped_files.events(files, self.count):
            with self._receiver.guard():
                self._send(event)

    def count(self, plan: int) -> int:
        """Return how many files an event of this plan has."""
        return max(1, len(self._receiver.plans[plan].reported))

    def _send(self, event: Event) -> None:
        plan = self._receiver.plans[event.plan]
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
            raise ValueError(
                f"{plan.key} has returned and was not called: files are missing or in another order"
            )
        while True:
            key, number = self._running.pop()
            if key == plan.key:
                break
        self._calls[event.plan].append(number)
        if number:
            self._receiver.leave(number, event.plan, arrays)

    def _arrays(self, event: Event, plan: Plan) -> tuple[Array | None, ...]:
        """Return the arrays of an event, in the order of the plan."""
        return tuple(
            self._array(event.files.get(place), leaf) for place, leaf in enumerate(plan.reported)
        )

    def _array(self, file: DumpedFile | None, leaf: Leaf) -> Array | None:
        """Return the array of a file, or None where it does not hold the tensor of the plan."""
        array: Array | None = None
        with self._receiver.guard():
            if file is None:
                raise FileNotFoundError("a file of ops.TensorDump is missing: its tensor has null")
            read = file.read()
            if read.shape != leaf.shape or file.dtype != leaf.dtype.lower():
                expected = f"{leaf.dtype.lower()} {leaf.shape}"
                raise ValueError(
                    f"{file.path} holds {file.dtype} {read.shape} in place of {expected}"
                )
            array = read
        return array
