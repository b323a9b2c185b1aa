# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""jit functions, and recomputed Cells; patches are removed while MindSpore compiles.

A function that is compiled from its source is recorded as one call. A function whose bytecode is captured is not
captured between start and stop: it runs as written, and the APIs in it are recorded.

Recompute runs a forward again inside the backward: these calls are repeated, not new; see ``ReplayLog``.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from probe.capture.compilation import cells_compiled, functions_to_compile, is_announced
from probe.capture.method_event import Listener
from probe.capture.patches import HookGroup, Hooks, Patch, around
from probe.capture.pynative.context import ApiHooks, CaptureContext
from probe.capture.pynative.thread_state import ReplayLog
from probe.executor import found_in
from probe.naming import JIT, clean

RECOMPUTE_MODULE = "mindspore.common.recompute"


def jit_patches(context: CaptureContext) -> HookGroup:
    """Return the patches of MindSpore's ways to compile."""
    hooks: list[Hooks] = [
        Listener(functions_to_compile(), functools.partial(_about_to_compile, context)),
        Listener(cells_compiled(), functools.partial(_undisturbed, context)),
    ]
    executor = found_in("_JitExecutor")
    if executor is not None:
        hooks.append(Patch(executor, "__call__", functools.partial(_wrap_executor, context)))
    capture = found_in(
        "PIJitCaptureContext",
        "mindspore.graph._utils.pijit_context",
        "mindspore.common._pijit_context",
    )
    if capture is not None:  # it neither begins nor ends
        hooks += [
            Patch(capture, name, around(lambda *_: None)) for name in ("__enter__", "__exit__")
        ]
    return HookGroup(hooks)


def _undisturbed(
    context: CaptureContext, original: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    with context.hooks.suspended():
        return original(*args, **kwargs)


def _about_to_compile(
    context: CaptureContext, original: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    context.hooks.suspend()
    return original(*args, **kwargs)


def _unseen(
    context: CaptureContext, original: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """Run a compiled function and record nothing inside it. Hooks that a compilation suspended come back after it."""
    was_suspended = context.hooks.is_suspended
    try:
        return context.state.unseen(original, *args, **kwargs)
    finally:
        if not was_suspended:
            context.hooks.resume()


def _wrap_executor(context: CaptureContext, original: Any) -> Any:
    from mindspore import nn

    apis = ApiHooks(context, is_compiled=True)
    state = context.state
    run = functools.partial(_unseen if is_announced() else _undisturbed, context, original)

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        owner = args[0] if args and isinstance(args[0], nn.Cell) else None
        is_optimizer = isinstance(owner, nn.Optimizer) or isinstance(
            getattr(self, "obj", None), nn.Optimizer
        )
        if state.in_recorded_call or is_optimizer:
            with context.codes.restored(self.fn):
                return run(self, *args, **kwargs)
        name = getattr(self.fn, "__name__", "") or "JitFunction"
        if name == "construct" and owner is not None:
            name = type(owner).__name__
        with context.codes.restored(
            self.fn
        ):  # MindSpore reads the code of a function before it compiles it
            return apis.enter(clean(f"{JIT}.{name}"), run, (self, *args), kwargs, args)

    return functools.update_wrapper(__call__, original)


def recompute_patches(context: CaptureContext) -> HookGroup:
    """Return the patches of MindSpore's two ways to recompute."""
    module = importlib.import_module(RECOMPUTE_MODULE)
    found = []
    for owner, name, wrap in (
        ("_RecomputeCell", "construct", _first_run),
        ("_RecomputeCell", "bprop", _second_run),
        # without reentry, since 2.8: the first run makes the graph, the second only computes its values
        ("_RecomputationHook", "__enter__", _unseen_begin),
        ("_RecomputationHook", "__exit__", _unseen_end),
    ):
        if hasattr(getattr(module, owner, None), name):
            found.append(
                Patch(getattr(module, owner), name, around(functools.partial(wrap, context)))
            )
    return HookGroup(found)


def _first_run(
    context: CaptureContext, original: Callable[..., Any], cell: Any, *args: Any, **kwargs: Any
) -> Any:
    log = ReplayLog()
    context.replay_logs[id(cell)].append(log)
    return _during(context.state.logs, log, original, cell, *args, **kwargs)


def _second_run(
    context: CaptureContext, original: Callable[..., Any], cell: Any, *args: Any, **kwargs: Any
) -> Any:
    logs = context.replay_logs.get(id(cell))
    log = logs.pop() if logs else ReplayLog()  # empty if the first run was not recorded
    return _during(context.state.replays, log, original, cell, *args, **kwargs)


def _during(
    logs: list[ReplayLog], log: ReplayLog, original: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """Run the original while the log is the innermost of these logs."""
    logs.append(log)
    try:
        return original(*args, **kwargs)
    finally:
        logs.pop()


def _unseen_begin(context: CaptureContext, original: Callable[..., Any], hook: Any) -> Any:
    context.state.replays.append(ReplayLog())
    return original(hook)


def _unseen_end(
    context: CaptureContext, original: Callable[..., Any], hook: Any, *error: Any
) -> Any:
    if context.state.replays:
        context.state.replays.pop()
    return original(hook, *error)
