# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Notes the arguments of the functions that are differentiated: labels and masks enter there, not at the model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from probe.capture.patches import HookGroup, Patch, around
from probe.capture.pynative.context import CaptureContext
from probe.executor import pynative_executor


class _Depth(threading.local):
    """How many functions are being differentiated on this thread, each inside of another."""

    count = 0


class GradientFunctions(HookGroup):
    """Sees where MindSpore begins the graph of a function that is differentiated. Those inside of another are no batch.

    A Cell that is differentiated is noted too, unless it is a model: its inputs are noted by its call.
    """

    def __init__(self, context: CaptureContext, models: Any) -> None:
        super().__init__()
        self._context = context
        self._models = models if isinstance(models, (list, tuple)) else [models]
        self._depth = _Depth()
        executor = type(pynative_executor())
        self.add(Patch(executor, "new_graph", around(self._begin)))
        self.add(Patch(executor, "end_graph", around(self._end)))

    def install(self) -> None:
        """Begin to watch. A function that an exception has left is forgotten."""
        self._depth = _Depth()
        super().install()

    def _begin(
        self, original: Callable[..., Any], executor: Any, function: Any, *args: Any, **kwargs: Any
    ) -> Any:
        recorder = self._context.recorder
        depth = self._depth
        if recorder is not None and not depth.count and not self._is_model(function):
            recorder.note_arguments(name_of(function), names_of(function), args, kwargs)
        depth.count += 1
        return original(executor, function, *args, **kwargs)

    def _end(self, original: Callable[..., Any], executor: Any, *args: Any, **kwargs: Any) -> Any:
        self._depth.count = max(self._depth.count - 1, 0)
        return original(executor, *args, **kwargs)

    def _is_model(self, function: Any) -> bool:
        return any(function is model for model in self._models)


def name_of(function: Any) -> str:
    """Return the name of a function; of a Cell, or another object that is called, its class."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def names_of(function: Any) -> Sequence[str]:
    """Return the names of a function's positional arguments; none where its code does not tell them.

    >>> names_of(lambda images, labels, weight=1.0: None), names_of(len)
    (('images', 'labels', 'weight'), ())
    """
    bound = getattr(function, "__func__", function)
    code = getattr(bound, "__code__", None)
    if code is None:
        return ()
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount]
    return names if bound is function else names[1:]
