# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Puts hooks for saved tensors under those of the training, on MindSpore's stack of each thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from probe.capture.patches import HookGroup, Patch, around
from probe.executor import pynative_executor


class _Thread(threading.local):
    """The stack of one thread.

    Attributes:
        is_armed: the hooks are on it.
        above: hooks of others that were pushed later.
    """

    def __init__(self) -> None:
        self.is_armed = False
        self.above: list[tuple[Any, Any]] = []


class HookStack:
    """The training sees its own hooks alone: MindSpore's recompute asks whether there are any.

    MindSpore crashes if a thread ends that still has hooks: only the main thread has them between its calls.

    Args:
        pack: is called for a tensor that is kept, where the training has no hooks.
        unpack: receives its result in the backward, and returns the tensor.
    """

    def __init__(self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        self._executor, self._hooks = pynative_executor(), (pack, unpack)
        kind = type(self._executor)
        self._push, self._pop = kind.push_saved_tensor_hook, kind.pop_saved_tensor_hook
        self._is_active = kind.is_saved_tensor_hook_active
        self._thread = _Thread()
        wrapped: dict[str, Callable[..., Any]] = {
            "push_saved_tensor_hook": self._pushed,
            "pop_saved_tensor_hook": self._popped,
            "is_saved_tensor_hook_active": self._is_asked,
            "disable_saved_tensor_hook": self._disabled,
        }
        self._patches = HookGroup([Patch(kind, name, around(function)) for name, function in wrapped.items()])
        self._is_installed = self._has_main = self._had_pipeline = False

    def install(self) -> None:
        """Begin to keep the hooks apart, and put them on the stack of the main thread."""
        if not self._is_installed:
            self._is_installed = True
            self._had_pipeline = not self._executor.disable_frontend_and_bprop_pipeline()
            self._patches.install()
        if _is_main_thread():
            self._has_main = self.arm() or self._has_main

    def remove(self) -> None:
        """Undo ``install``. Another thread cannot do that for the main thread, which does it at the end of the step."""
        if not self._is_installed or (self._has_main and not _is_main_thread()):
            return
        self._is_installed = self._has_main = False
        self._patches.remove()
        above = list(self._thread.above)
        self.disarm()
        for hooks in above:
            self._push(self._executor, *hooks)
        if self._had_pipeline and not above:
            self._executor.enable_frontend_and_bprop_pipeline()

    def arm(self) -> bool:
        """Put the hooks on the stack of this thread, unless there are some; return whether that was done."""
        thread = self._thread
        if thread.is_armed or self._is_active(self._executor):
            return False
        thread.is_armed, thread.above = True, []
        self._push(self._executor, *self._hooks)
        return True

    def disarm(self) -> None:
        """Take the hooks from the stack of this thread, and those above them."""
        thread = self._thread
        if thread.is_armed:
            for _ in range(len(thread.above) + 1):
                self._pop(self._executor)
            thread.is_armed, thread.above = False, []

    # -- instead of MindSpore's functions ---------------------------------------------------------------------------

    def _pushed(self, original: Callable[..., Any], executor: Any, pack: Any, unpack: Any) -> Any:
        result = original(executor, pack, unpack)
        self._thread.above.append((pack, unpack))
        return result

    def _popped(self, original: Callable[..., Any], executor: Any) -> Any:
        if self._thread.above:
            self._thread.above.pop()
        return original(executor)

    def _is_asked(self, original: Callable[..., Any], executor: Any) -> Any:
        return bool(self._thread.above) if self._thread.is_armed else original(executor)

    def _disabled(self, original: Callable[..., Any], executor: Any, *arguments: Any) -> Any:
        if not self._thread.above:
            self.disarm()
        return original(executor, *arguments)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
