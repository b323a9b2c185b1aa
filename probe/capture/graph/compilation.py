# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Replaces the constructs while MindSpore compiles, and only then."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
from collections.abc import Callable
from typing import Any

from probe.capture.graph.constructs import Constructs
from probe.capture.patches import HookGroup, Patch, around
from probe.executor import HOMES

_log = logging.getLogger("probe")

#: the method of both executors that is called right before a compilation
_BEFORE = "_set_compile_cache_dep_files"


class CompilationHooks(HookGroup):
    """Patches MindSpore's two executors of compiled code."""

    def __init__(self, constructs: Constructs) -> None:
        patches = []
        for name in ("_CellGraphExecutor", "_JitExecutor"):
            for home in HOMES:
                with contextlib.suppress(ImportError, AttributeError):
                    executor = getattr(importlib.import_module(home), name)
                    patches.append(Patch(executor, "compile", around(self._compile)))
                    patches.append(Patch(executor, _BEFORE, around(self._begin)))
                    break
        super().__init__(patches)
        self._constructs, self._is_refused = constructs, False

    def _begin(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Replace the constructs: MindSpore parses them next."""
        if not self._is_refused:
            self._constructs.install()
        return original(*args, **kwargs)

    def _compile(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Compile; if that fails with our constructs, compile without them."""
        if self._constructs.is_installed:  # a compilation inside a compilation
            return original(*args, **kwargs)
        try:
            return original(*args, **kwargs)
        except Exception as error:
            if not self._constructs.is_installed:
                raise
            self._constructs.remove()
            result = self._again(functools.partial(original, *args, **kwargs))
            first = str(error).strip().partition("\n")[0]
            _log.error("a graph could not be compiled with its Cells watched, and is not recorded: %s", first)
            return result
        finally:
            self._constructs.remove()

    def _again(self, compile_bare: Callable[[], Any]) -> Any:
        self._is_refused = True
        try:
            return compile_bare()
        finally:
            self._is_refused = False
