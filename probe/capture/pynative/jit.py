# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""jit functions; patches are removed while MindSpore compiles.

A function that is compiled from its source is recorded as one call. A function whose bytecode is captured while it runs
is not captured between start and stop: it runs as written, and the APIs in it are recorded.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
from collections.abc import Callable
from typing import Any

from probe.capture.patches import Patch, PatchSet
from probe.capture.pynative.apis import ApiHooks
from probe.capture.pynative.context import CaptureContext
from probe.naming import JIT, clean

#: the executor method that is called right before a compilation
_BEFORE = "_set_compile_cache_dep_files"


def jit_patches(context: CaptureContext) -> PatchSet:
    """Return the patches of MindSpore's ways to compile."""
    found = []
    executor = _find("_JitExecutor", "mindspore.graph.api", "mindspore.common.api")
    if executor is not None:
        told = hasattr(executor, _BEFORE)
        found.append(Patch(executor, "__call__", functools.partial(_wrap, context, told)))
        if told:
            found.append(Patch(executor, _BEFORE, functools.partial(_compiles, context)))
    compiler = _find("_CellGraphExecutor", "mindspore.graph.api", "mindspore.common.api")
    if compiler is not None:  # Cell.compile, export, and a Cell called in GRAPH_MODE
        found.append(Patch(compiler, "compile", functools.partial(_undisturbed, context)))
    capture = _find("PIJitCaptureContext", "mindspore.graph._utils.pijit_context", "mindspore.common._pijit_context")
    if capture is not None:
        found += [Patch(capture, "__enter__", _nothing), Patch(capture, "__exit__", _nothing)]
    return PatchSet(found)


def _find(name: str, *modules: str) -> Any:
    """Return a class from the first module that has it: since 2.9, before."""
    for module in modules:
        with contextlib.suppress(ImportError, AttributeError):
            return getattr(importlib.import_module(module), name)
    return None


def copy_patches(context: CaptureContext) -> PatchSet:
    """Return the patch that lets a Cell be copied as it is: what is in its copy would stay there."""
    from mindspore import nn

    return PatchSet([Patch(nn.Cell, "__deepcopy__", functools.partial(_clean_copy, context), absent=True)])


def _undisturbed(context: CaptureContext, original: Callable[..., Any]) -> Callable[..., Any]:
    def undisturbed(*args: Any, **kwargs: Any) -> Any:
        with context.hooks.suspended():
            return original(*args, **kwargs)

    return functools.update_wrapper(undisturbed, original)


def _clean_copy(context: CaptureContext, original: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return what copies a Cell without our hooks; Cell itself has no such method, copy.deepcopy does it."""

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        with context.hooks.suspended():
            return copy.deepcopy(self, memo) if original is None else original(self, memo)

    return __deepcopy__


def _nothing(original: Callable[..., Any]) -> Callable[..., Any]:
    def do_nothing(*args: Any) -> None:
        """Stand in for the begin and the end of a capture."""

    return functools.update_wrapper(do_nothing, original)


def _compiles(context: CaptureContext, original: Callable[..., Any]) -> Callable[..., Any]:
    def about_to_compile(*args: Any, **kwargs: Any) -> Any:
        context.hooks.suspend()
        return original(*args, **kwargs)

    return functools.update_wrapper(about_to_compile, original)


def _unseen(context: CaptureContext, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return what runs a compiled function without recording anything in it, and undisturbed from a compilation on."""
    state = context.state

    def unseen(*args: Any, **kwargs: Any) -> Any:
        inside, state.in_recorded_call = state.in_recorded_call, True
        suspended = context.hooks.is_suspended
        try:
            return original(*args, **kwargs)
        finally:
            state.in_recorded_call = inside
            if not suspended:
                context.hooks.resume()

    return functools.update_wrapper(unseen, original)


def _wrap(context: CaptureContext, told: bool, original: Any) -> Any:
    from mindspore import nn

    apis, state = ApiHooks(context, is_compiled=True), context.state

    undisturbed = (_unseen if told else _undisturbed)(context, original)

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        owner = args[0] if args and isinstance(args[0], nn.Cell) else None
        if (
            state.in_recorded_call
            or isinstance(owner, nn.Optimizer)
            or isinstance(getattr(self, "obj", None), nn.Optimizer)
        ):
            return undisturbed(self, *args, **kwargs)
        name = getattr(self.fn, "__name__", "") or "JitFunction"
        if name == "construct" and owner is not None:
            name = type(owner).__name__
        return apis.call(clean(f"{JIT}.{name}"), undisturbed, (self, *args), kwargs, skip_args=1)

    return __call__
