# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Two things about the program's imports: some are waited for, and ``msprobe.mindspore`` is served."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

#: the names of ``msprobe.mindspore`` that probe serves
_SERVED = ("MsprobeInitStep", "MsprobeStep", "TrainerMon", "seed_all")
_MISSING = ("save", "save_grad", "step")


class AwaitedImport:
    """Calls a function once, when the program has imported a module.

    MindSpore is not imported before: that takes its time, and the program may set variables of the environment first.
    """

    def __init__(self, name: str, function: Callable[[], None]) -> None:
        self._name, self._function = name, function

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
            execute, own = loader.exec_module, vars(loader).get("exec_module")

            def exec_module(module: ModuleType) -> None:
                if vars(loader).get("exec_module") is exec_module:  # else a hook of the program's has replaced it
                    del loader.exec_module
                if own is not None:  # of a hook of the program's, which may remove it
                    loader.exec_module = own
                execute(module)
                self._function()

            loader.exec_module = exec_module
        return spec


class ServedMsprobe:
    """Imports probe in place of ``msprobe`` and ``msprobe.mindspore``; if forced, an installed msprobe is hidden."""

    def __init__(self, debugger: Callable[[], type], is_forced: bool) -> None:
        self._debugger, self._is_forced = debugger, is_forced

    def install(self) -> None:
        """Begin to serve."""
        at = 0 if self._is_forced else len(sys.meta_path)
        sys.meta_path.insert(at, self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        """Return the spec of one of the two modules."""
        if name not in ("msprobe", "msprobe.mindspore"):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=name == "msprobe")  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> None:
        """Let Python make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module."""
        if module.__name__ == "msprobe":
            return
        import probe

        module.__dict__.update({name: getattr(probe, name) for name in _SERVED}, PrecisionDebugger=self._debugger())
        module.__dict__["__getattr__"] = _refuse


def _refuse(name: str) -> Any:
    """Tell a name of msprobe that probe lacks."""
    if name in _MISSING:
        raise ImportError(f"probe serves msprobe.mindspore here, and has no {name}: see docs/from-msprobe.md")
    raise AttributeError(f"module 'msprobe.mindspore', which probe serves, has no attribute {name!r}")
