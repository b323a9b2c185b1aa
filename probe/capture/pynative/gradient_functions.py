# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Notes the arguments of the functions that are differentiated: labels and masks enter there, not at the model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from probe.capture.patches import HookGroup, Patch, around
from probe.capture.pynative.context import CaptureContext
from probe.executor import pynative_executor

#: the function of MindSpore that runs what is differentiated
_FORWARD_RUN = "_pynative_forward_run"


class GradientFunctions(HookGroup):
    """Sees where MindSpore begins the graph of a function that is differentiated. Those inside of another are no batch.

    A Cell that is differentiated is noted too, unless it is a model: its inputs are noted by its call. The end of the
    graph is not watched: a patch of ``end_graph`` keeps the graphs of later steps alive, where a Cell ran before
    without a gradient.
    """

    def __init__(self, context: CaptureContext, models: Any) -> None:
        super().__init__()
        self._context = context
        self._models = models if isinstance(models, (list, tuple)) else [models]
        self.add(Patch(type(pynative_executor()), "new_graph", around(self._begin)))

    def _begin(
        self, original: Callable[..., Any], executor: Any, function: Any, *args: Any, **kwargs: Any
    ) -> Any:
        recorder = self._context.recorder
        if recorder is not None and not self._is_model(function) and _depth() <= 1:
            # a class of the user's own may raise anything when it is asked for its name
            named = recorder.safely("naming a gradient function", None, _named, function)
            name, names = named or ("", ())
            recorder.note_arguments(name, names, args, kwargs)
        return original(executor, function, *args, **kwargs)

    def _is_model(self, function: Any) -> bool:
        return any(function is model for model in self._models)


def _depth() -> int:
    """Return how many functions are being differentiated on this thread, each inside of another.

    It is 0 where a Cell runs first, and its gradient is taken behind it, as ``Model.train`` does.
    """
    count = 0
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        count += frame.f_code.co_name == _FORWARD_RUN
        frame = frame.f_back
    return count


def _named(function: Any) -> tuple[str, Sequence[str]]:
    """Return the name of a function, and those of its positional arguments."""
    return name_of(function), names_of(function)


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
