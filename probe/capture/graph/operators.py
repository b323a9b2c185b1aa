# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The operators of a graph that report tensors, on CPU: callbacks into Python."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from probe.capture.graph.calls import GraphCalls
from probe.capture.graph.sites import OUTPUT, GraphPlan
from probe.capture.graph.templates import CODES, cell_construct, gradient_watcher, optimizer_construct, watching_cell
from probe.measure.tensor_reader import Array

#: the most tensors that one operator reports
MOST = 48
#: the most tensors of a call whose gradients are watched
WATCHED = 16
#: the places of these gradients: of inputs, and of outputs
_PLACES = range(WATCHED), range(OUTPUT, OUTPUT + WATCHED)


class CallbackOperators:
    """Calls Python with the values of tensors, on a thread of MindSpore's. ``FileOperators`` has the same methods.

    In PyNative mode (``is_split``), forward and backward of a Cell are two graphs. ``recomputes`` tells whether
    GRAPH_MODE compiles a Cell that is recomputed. The operators that begin a call, ``enter``, and those that end it,
    ``leave``, are numbered by their tensors. ``update`` takes a gradient of an optimizer.
    """

    def __init__(self, events: GraphCalls, is_split: bool) -> None:
        self.is_split, self.recomputes = is_split, False
        self._events, self._thread = events, threading.local()
        self.enter = tuple(self._operator(self._enter, count + 1) for count in range(MOST + 1))
        self.leave = tuple(self._operator(self._leave, count + 2) for count in range(MOST + 1))
        self.update = self._operator(self._update, 3)
        self._report = self._operator(self._gradient, 3)

    def graph_plan(self, plan: GraphPlan, key: str, kind: str) -> GraphPlan:
        """Return a plan of a Cell as the graph has it: as it is. The kind is "enter", "leave" or "update"."""
        return plan

    def cell_construct(self, key: str, inner: Any, inputs: Any, outputs: Any, parameters: tuple[Any, ...]) -> Any:
        """Return the construct of a Cell whose calls are reported.

        While MindSpore compiles, ``inputs`` makes the plan of (arguments, keyword arguments), ``outputs`` that of
        (result, parameters).
        """
        of_inputs, of_outputs = self._watching_cells() if self.recomputes else self._watchers
        return cell_construct(inner, inputs, outputs, self.enter, self.leave, of_inputs, of_outputs, parameters)

    def optimizer_construct(self, inner: Any, describe: Any) -> Any:
        """Return the construct of an optimizer whose gradients are reported."""
        return optimizer_construct(inner, describe, self.update)

    def begin(self) -> None:
        """Do nothing at the begin and end of a recorded step: the values arrive while the graph runs."""

    replay = end = close = begin

    def _watching_cells(self) -> list[tuple[tuple[Any, ...], ...]]:
        make = functools.partial(watching_cell, self._report)
        return [(tuple(map(make, places)),) * len(CODES) for places in _PLACES]

    @functools.cached_property
    def _watchers(self) -> list[tuple[tuple[Any, ...], ...]]:
        """Operators that report the gradient of each input of a Cell, and of each output: by code and number."""
        return [
            tuple(tuple(gradient_watcher(self._report, place, code) for place in places) for code in CODES)
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
        names = [inspect.Parameter(f"array{i}", inspect.Parameter.POSITIONAL_ONLY) for i in range(count)]
        report.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]
        operator = ops.Custom(report, lambda *_: (1,), lambda *_: mindspore.int32, func_type="pyfunc")
        operator.add_prim_attr("side_effect_io", True)  # it is neither removed nor moved
        return operator
