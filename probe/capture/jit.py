# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Compiled functions: recorded as one call; while one is compiled the compiler must see MindSpore as it is."""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

from probe.capture.apis import Watch
from probe.capture.patches import Patch, Patches
from probe.naming import JIT, clean

if TYPE_CHECKING:
    from probe.capture.collection import Collection


def patches(collection: Collection) -> Patches:
    """Return the patch of the executor of functions compiled from their source (``@jit`` with its default capture)."""
    executor = _executor()
    return Patches([] if executor is None else [Patch(executor, "__call__", functools.partial(_wrap, collection))])


def _executor() -> Any:
    for module in ("mindspore.graph.api", "mindspore.common.api"):  # since 2.9, before
        try:
            found = getattr(importlib.import_module(module), "_JitExecutor", None)
        except ImportError:
            continue
        if found is not None:
            return found
    return None


def _wrap(collection: Collection, original: Any) -> Any:
    from mindspore import nn

    watch, state = Watch(collection), collection.state

    def undisturbed(*args: Any, **kwargs: Any) -> Any:
        with collection.suspended():
            return original(*args, **kwargs)

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        owner = args[0] if args and isinstance(args[0], nn.Cell) else None
        if state.inside or isinstance(owner, nn.Optimizer) or isinstance(getattr(self, "obj", None), nn.Optimizer):
            return undisturbed(self, *args, **kwargs)
        name = getattr(self.fn, "__name__", "") or "JitFunction"
        if name == "construct" and owner is not None:
            name = type(owner).__name__
        return watch.call(clean(f"{JIT}.{name}"), undisturbed, (self, *args), kwargs, visible=1)

    return __call__
