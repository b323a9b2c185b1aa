# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Recompute runs a forward a second time inside the backward: the same calls again, not new ones; see replay.py."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from probe.capture.patches import Patch, PatchSet
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
        # without reentry, since 2.8: the first run has the graph, the second only fills in its values
        ("_RecomputationHook", "__enter__", _unseen_begin),
        ("_RecomputationHook", "__exit__", _unseen_end),
    ):
        if hasattr(getattr(module, owner, None), name):
            found.append(Patch(getattr(module, owner), name, functools.partial(wrap, context)))
    return PatchSet(found)


def _first_run(context: CaptureContext, original: Callable[..., Any]) -> Callable[..., Any]:
    state, logs = context.state, context.replay_logs

    def construct(self: Any, *args: Any, **kwargs: Any) -> Any:
        state.logs.append(logs.new(self))
        try:
            return original(self, *args, **kwargs)
        finally:
            state.logs.pop()

    return functools.update_wrapper(construct, original)


def _second_run(context: CaptureContext, original: Callable[..., Any]) -> Callable[..., Any]:
    def bprop(self: Any, *args: Any, **kwargs: Any) -> Any:
        with context.state.replaying(context.replay_logs.pop(self)):
            return original(self, *args, **kwargs)

    return functools.update_wrapper(bprop, original)


def _unseen_begin(context: CaptureContext, original: Callable[..., Any]) -> Callable[..., Any]:
    state = context.state

    def __enter__(self: Any) -> Any:
        state.replay_stack.append(state.replay)
        state.replay = ReplayLog()
        return original(self)

    return functools.update_wrapper(__enter__, original)


def _unseen_end(context: CaptureContext, original: Callable[..., Any]) -> Callable[..., Any]:
    state = context.state

    def __exit__(self: Any, *error: Any) -> Any:
        state.replay = state.replay_stack.pop() if state.replay_stack else None
        return original(self, *error)

    return functools.update_wrapper(__exit__, original)
