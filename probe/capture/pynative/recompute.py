# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Recompute runs a forward again inside the backward: these calls are repeated, not new; see ``ReplayLog``."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from probe.capture.patches import Patch, PatchSet, around
from probe.capture.pynative.context import CaptureContext
from probe.capture.pynative.thread_state import ReplayLog

RECOMPUTE_MODULE = "mindspore.common.recompute"


def recompute_patches(context: CaptureContext) -> PatchSet:
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
    return PatchSet(found)


def _first_run(context: CaptureContext, original: Callable[..., Any], cell: Any, *args: Any, **kwargs: Any) -> Any:
    log = ReplayLog()
    context.replay_logs[id(cell)].append(log)
    context.state.logs.append(log)
    try:
        return original(cell, *args, **kwargs)
    finally:
        context.state.logs.pop()


def _second_run(context: CaptureContext, original: Callable[..., Any], cell: Any, *args: Any, **kwargs: Any) -> Any:
    logs = context.replay_logs.get(id(cell))
    with context.state.replaying(logs.pop() if logs else ReplayLog()):  # empty if the first run was not recorded
        return original(cell, *args, **kwargs)


def _unseen_begin(context: CaptureContext, original: Callable[..., Any], hook: Any) -> Any:
    context.state.replay_stack.append(context.state.replay)
    context.state.replay = ReplayLog()
    return original(hook)


def _unseen_end(context: CaptureContext, original: Callable[..., Any], hook: Any, *error: Any) -> Any:
    state = context.state
    state.replay = state.replay_stack.pop() if state.replay_stack else None
    return original(hook, *error)
