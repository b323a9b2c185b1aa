# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Hooks on leaves of the graph, such as parameters, that MindSpore's compiler never meets.

The compiler builds the hook of a Parameter into the graph wherever it differentiates inside of it (``jvp``, ``jacfwd``,
``@jit`` of a gradient), and wherever a Parameter is an argument of the compiled function. It cannot read our hooks, and
the training would end. So they are off while anything is compiled, and the hooks of the training stay.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from probe.capture.autograd.nodes import preserve_hook_version, remove_hooks
from probe.capture.compilation import (
    cells_compiled,
    functions_compiled,
    functions_to_compile,
    is_announced,
)
from probe.capture.method_event import Listener
from probe.capture.patches import HookGroup
from probe.layers.layer import layers
from probe.store.error_log import ErrorGuard

Hook = Callable[[Any], Any]
_log = logging.getLogger("probe")


class LeafHooks:
    """Hooks on tensors that persist in the graph, between ``register`` and ``remove``.

    The patches of the compiler stay as long as there is a hook: a backward, and so a compilation, may come after stop.
    """

    def __init__(self) -> None:
        self._hooks: list[
            tuple[Callable[[], Any], Hook]
        ] = []  # each with a weak reference of its tensor
        self._handles: list[Any] = []  # of the hooks that are on now
        self._ids: set[int] = set()  # identities of the tensors
        self._is_off = False
        self._compilation = HookGroup(
            [
                Listener(functions_compiled(), self._during_look),
                Listener(functions_to_compile(), self._before_compilation),
                Listener(cells_compiled(), self._during_compilation),
            ]
        )

    def __bool__(self) -> bool:
        """Whether there is a hook, on or off."""
        return bool(self._hooks)

    def register(self, hooks: Iterable[tuple[Any, Hook]]) -> None:
        """Register hooks on tensors. Hooks that are registered while something is compiled begin after it."""
        with preserve_hook_version():
            for tensor, hook in hooks:
                if not self._hooks:
                    self._compilation.install()
                self._hooks.append((weakref.ref(tensor), hook))
                self._ids.add(id(tensor))
                if not self._is_off:
                    self._handles.append(_registered(tensor, hook))

    def remove(self) -> None:
        """Remove all hooks, and the patches of the compiler."""
        self._hooks = []
        self._ids = set()
        try:
            remove_hooks(self._handles)
        finally:
            self._compilation.remove()

    def _before_compilation(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._turn_off()
        return original(*args, **kwargs)

    def _during_look(
        self, original: Callable[..., Any], executor: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """MindSpore below 2.10 knows a compiled function by the hooks of its arguments, among other things."""
        was_off = self._is_off
        if not is_announced() or any(id(value) in self._ids for value in (*args, *kwargs.values())):
            self._turn_off()
        try:
            return original(executor, *args, **kwargs)
        finally:
            if not was_off:
                self._turn_on()

    def _during_compilation(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        was_off = self._is_off
        self._turn_off()
        try:
            return original(*args, **kwargs)
        finally:
            if not was_off:
                self._turn_on()

    def _turn_off(self) -> None:
        """Take the hooks off. An error of ours never reaches the compilation, which is the training's."""
        self._is_off = True
        with ErrorGuard(_report, "taking hooks off parameters for a compilation"):
            remove_hooks(self._handles)

    def _turn_on(self) -> None:
        if not self._is_off:
            return
        self._is_off = False
        with (
            ErrorGuard(_report, "putting hooks on parameters after a compilation"),
            preserve_hook_version(),
        ):
            for tensor, hook in self._hooks:
                held = tensor()
                if held is not None:
                    self._handles.append(_registered(held, hook))


def _registered(tensor: Any, hook: Hook) -> Any:
    """Register a hook on a tensor; return its handle. Torch on MindSpore has put another method in the place."""
    home = type(tensor).register_hook.__module__.partition(".")[0]
    if not any(home in layer.packages for layer in layers()):
        return tensor.register_hook(hook)
    from mindspore._c_expression import TensorPy
    from mindspore.common.hook_handle import _TensorHookHandle

    handle = _TensorHookHandle(tensor)
    handle.id = TensorPy.register_hook(tensor, hook)
    return handle


def _report(operation: str, error: BaseException) -> None:
    _log.error(
        "%s failed; gradients may be missing: %s: %s", operation, type(error).__name__, error
    )
