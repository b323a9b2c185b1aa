# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Two things about the program's imports: some are waited for, and those of msprobe are served."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

_TOP, _HOME = "msprobe", "msprobe.mindspore"
_DEBUGGER, _STEPS = "PrecisionDebugger", ("MsprobeInitStep", "MsprobeStep", "seed_all")
#: modules of msprobe -> the names in them that probe serves
_HOMES = {
    _HOME: (_DEBUGGER, "TrainerMon", *_STEPS),
    f"{_HOME}.common.utils": _STEPS,
    f"{_HOME}.debugger.precision_debugger": (_DEBUGGER,),
    f"{_HOME}.dump.debugger.precision_debugger": (_DEBUGGER,),
    f"{_HOME}.monitor.module_hook": ("TrainerMon",),
}


class AwaitedImport:
    """Calls a function once, when the program has imported a module.

    MindSpore is not imported before: that takes its time, and the program may set variables of the environment first.

    Args:
        name: the module.
        function: the function.
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
    """Imports probe in place of ``msprobe`` and those of its modules that hold names which probe has.

    Args:
        own: returns the classes that probe serves in place of its own, by name.
        is_forced: whether an installed msprobe is hidden.
    """

    def __init__(self, own: Callable[[], dict[str, type]], is_forced: bool) -> None:
        self._own, self._is_forced = own, is_forced

    def install(self) -> None:
        """Begin to serve."""
        at = 0 if self._is_forced else len(sys.meta_path)
        sys.meta_path.insert(at, self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        """Return the spec of a module.

        Raises:
            ImportError: for a module, or a name of one, that probe lacks. Python asks for a module where a package
                has no such name.
        """
        top, _, below = name.partition(".")
        if top != _TOP or (below and getattr(sys.modules[top].__spec__, "loader", None) is not self):
            return None  # of another package, or of an msprobe that is installed
        if not any(f"{home}.".startswith(f"{name}.") for home in _HOMES):
            raise ImportError(_refusal(*name.rsplit(".", 1)))
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> None:
        """Let Python make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module."""
        name = module.__name__
        if name == _HOME:
            import probe

            module.__dict__.update({served: getattr(probe, served) for served in _HOMES[_HOME]}, **self._own())
        elif name in _HOMES:
            module.__dict__.update({served: getattr(sys.modules[_HOME], served) for served in _HOMES[name]})
        module.__dict__["__getattr__"] = functools.partial(_refuse, name)


def _refuse(module: str, name: str) -> Any:
    raise AttributeError(_refusal(module, name))


def _refusal(module: str, name: str) -> str:
    return f"probe serves {module} here, and has no {name}: see docs/from-msprobe.md"
