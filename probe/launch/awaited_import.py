# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Waits for an import of the program."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


class AwaitedImport:
    """Calls a function once, when the program has imported a module.

    MindSpore is not imported before: that takes its time, and the program may set variables of the environment first.
    """

    def __init__(self, name: str, function: Callable[[], None]) -> None:
        self._name = name
        self._function = function

    def install(self) -> None:
        """Begin to wait. If the module is there already, call the function."""
        if self._name in sys.modules:
            self._function()
        else:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Wait no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        """Find the module as Python does, and wrap what executes it."""
        if name != self._name:
            return None
        self.remove()
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module
            own = vars(loader).get("exec_module")

            def exec_module(module: ModuleType) -> None:
                if (
                    vars(loader).get("exec_module") is exec_module
                ):  # else a hook of the program's has replaced it
                    del loader.exec_module
                if own is not None:  # of a hook of the program's, which may remove it
                    loader.exec_module = own
                execute(module)
                self._function()

            loader.exec_module = exec_module
        return spec
