# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Recompute runs a forward again inside the backward: these calls are repeated, not new; see ``ReplayLog``."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from probe.capture.patches import HookGroup, Patch, around
from probe.capture.pynative.context import CaptureContext
from probe.capture.pynative.thread_state import ReplayLog

RECOMPUTE_MODULE = "mindspore.common.recompute"


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
            found.append(Patch(getattr(module, owner), name, around(functools.partial(wrap, context))))
    return HookGroup(found)


def _first_run(context: CaptureContext, original: Callable[..., Any], cell: Any, *args: Any, **kwargs: Any) -> Any:
    log = ReplayLog()
    context.replay_logs[id(cell)].append(log)
    return _during(context.state.logs, log, original, cell, *args, **kwargs)


def _second_run(context: CaptureContext, original: Callable[..., Any], cell: Any, *args: Any, **kwargs: Any) -> Any:
    logs = context.replay_logs.get(id(cell))
    log = logs.pop() if logs else ReplayLog()  # empty if the first run was not recorded
    return _during(context.state.replays, log, original, cell, *args, **kwargs)


def _during(logs: list[ReplayLog], log: ReplayLog, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run the original while the log is the innermost of these logs."""
    logs.append(log)
    try:
        return original(*args, **kwargs)
    finally:
        logs.pop()


def _unseen_begin(context: CaptureContext, original: Callable[..., Any], hook: Any) -> Any:
    context.state.replays.append(ReplayLog())
    return original(hook)


def _unseen_end(context: CaptureContext, original: Callable[..., Any], hook: Any, *error: Any) -> Any:
    if context.state.replays:
        context.state.replays.pop()
    return original(hook, *error)
