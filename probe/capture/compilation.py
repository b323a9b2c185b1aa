# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The moments at which MindSpore compiles: all that it must not meet then is taken away.

All that compiles in PyNative mode passes one of two executors: ``@jit``, ``jvp``, ``jacfwd``, ``jacrev``, ``vmap``, a
gradient inside a compiled function (``_JitExecutor``), and ``Cell.compile`` and ``export`` (``_CellGraphExecutor``).
"""

from __future__ import annotations

import functools

from probe.capture.method_event import Event
from probe.executor import found_in

_BEFORE = "_set_compile_cache_dep_files"  # the method that is called right before a compilation


@functools.cache
def functions_compiled() -> Event:
    """Return the looks at a function or Cell for ``@jit``: most find that it is compiled already."""
    return _event("_JitExecutor", "compile")


@functools.cache
def functions_to_compile() -> Event:
    """Return the moments right before such a compilation, inside of ``functions_compiled``."""
    return _event("_JitExecutor", _BEFORE)


@functools.cache
def cells_compiled() -> Event:
    """Return the compilations of whole Cells: ``Cell.compile``, ``export``, and a Cell called in GRAPH_MODE."""
    return _event("_CellGraphExecutor", "compile")


def is_announced() -> bool:
    """Return whether this MindSpore has a method for ``functions_to_compile``."""
    return hasattr(found_in("_JitExecutor"), _BEFORE)


def _event(owner: str, method: str) -> Event:
    found = found_in(owner)
    return Event([found] if found is not None else [], method)
