# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""MindSpore's objects: its PyNative executor in each version, operations of the tool, the living objects of classes."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")

#: since 2.9, and before; importing the old one in a new MindSpore prints a warning
HOMES = ("mindspore.graph.api", "mindspore.common.api")


def found_in(name: str, *homes: str) -> Any:
    """Return an object of MindSpore from the first module that has it, of those of the executor; None in none."""
    for home in homes or HOMES:
        with contextlib.suppress(ImportError, AttributeError):
            return getattr(importlib.import_module(home), name)
    return None


def living(*kinds: type) -> list[Any]:
    """Return the living objects of these classes and of their subclasses."""
    classes: dict[type, None] = {}
    waiting = list(kinds)
    while waiting:
        kind = waiting.pop()
        if kind not in classes:
            classes[kind] = None
            waiting += type.__subclasses__(kind)
    # by the type: isinstance would ask objects that pretend to be of another class. ``gc.get_objects`` would hold every
    # tuple that another thread is just building, and so break it: CPython raises SystemError there
    return [found for found in gc.get_referrers(*classes) if type(found) in classes]


def pynative_executor() -> Any:
    """Return MindSpore's PyNative executor."""
    found = found_in("_pynative_executor")
    if found is None:
        raise ImportError(f"none of {', '.join(HOMES)} has _pynative_executor")
    return found


@functools.cache
def _thread() -> threading.local:
    """Return the marks of the threads on which an operation of the tool runs, whoever runs it."""
    return threading.local()


class OwnOperations:
    """Runs operations of the tool: no gradient is recorded, and no input is cast."""

    def __init__(self) -> None:
        self._thread = _thread()
        self._lacks = ""
        try:
            from mindspore._c_expression import MixedPrecisionType

            executor = pynative_executor()
            self._enable_grad: Callable[[], bool] = executor.enable_grad
            self._set_enable_grad: Callable[[bool], None] = executor.set_enable_grad
            self._set_mixed_precision: Callable[..., None] = executor.set_mixed_precision_type
            self._no_cast = MixedPrecisionType.NOTSET
        except (
            ImportError,
            AttributeError,
        ) as error:  # a new MindSpore: all that needs no operation goes on
            self._lacks = str(error)

    @property
    def is_running(self) -> bool:
        """Whether an operation of the tool runs on this thread: nobody records it."""
        return getattr(self._thread, "is_running", False)

    def run(self, operation: Callable[..., Result], *args: Any) -> Result:
        """Run an operation and return its result; raise AttributeError when this MindSpore lacks a private name."""
        if self._lacks:
            raise AttributeError(self._lacks)
        recording = self._enable_grad()
        was_running = self.is_running
        self._thread.is_running = True
        if recording:
            self._set_enable_grad(False)
        # inside a Cell with ``to_float`` or under ``amp``, MindSpore casts the inputs of every operation, also of ours
        self._set_mixed_precision(self._no_cast)
        try:
            return operation(*args)
        finally:
            self._set_mixed_precision(self._no_cast, False)
            self._thread.is_running = was_running
            if recording:
                self._set_enable_grad(True)
