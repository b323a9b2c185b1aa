# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Serves the imports of msprobe: a program that was written for it runs with probe."""

from __future__ import annotations

import functools
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

_TOP = "msprobe"
_HOME = "msprobe.mindspore"
_DEBUGGER = "PrecisionDebugger"
_STEPS = ("MsprobeInitStep", "MsprobeStep", "seed_all")
#: modules of msprobe -> the names in them that probe serves
_HOMES = {
    _HOME: (_DEBUGGER, "TrainerMon", *_STEPS),
    f"{_HOME}.common.utils": _STEPS,
    f"{_HOME}.debugger.precision_debugger": (_DEBUGGER,),
    f"{_HOME}.dump.debugger.precision_debugger": (_DEBUGGER,),
    f"{_HOME}.monitor.module_hook": ("TrainerMon",),
    f"{_TOP}.core.config_check": (),
}
#: modules of msprobe that serve no name -> their remedy
_REMEDIES = {
    f"{_TOP}.core.config_check": "each run writes its run.json itself, and `probe check GOLDEN MINE` compares two runs",
}


class ServedMsprobe:
    """Imports probe in place of ``msprobe`` and those of its modules that hold names which probe has."""

    def __init__(self, own: Callable[[], dict[str, type]], is_forced: bool) -> None:
        self._own = own  # gives the classes that are served
        self._is_forced = is_forced  # hides an installed msprobe

    def install(self) -> None:
        """Begin to serve."""
        sys.meta_path.insert(0 if self._is_forced else len(sys.meta_path), self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        """Return the spec of a module; raise ImportError for one, or a name of one, that probe lacks."""
        top, _, below = name.partition(".")
        loader = getattr(getattr(sys.modules.get(top), "__spec__", None), "loader", None)
        if top != _TOP or (below and loader is not self):
            return None  # of another package, or of an msprobe that is installed
        if not any(f"{home}.".startswith(f"{name}.") for home in _HOMES):
            # Python asks for a module where a package has no such name
            raise ImportError(_refusal(*name.rsplit(".", 1)))
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]  # Python asks for no more of a loader

    def create_module(self, spec: Any) -> None:
        """Let Python make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module."""
        name = module.__name__
        if name == _HOME:
            import probe

            module.__dict__.update(
                {served: getattr(probe, served) for served in _HOMES[_HOME]}, **self._own()
            )
        elif name in _HOMES:
            module.__dict__.update(
                {served: getattr(sys.modules[_HOME], served) for served in _HOMES[name]}
            )
        module.__dict__["__getattr__"] = functools.partial(_refuse, name)


def _refuse(module: str, name: str) -> Any:
    raise AttributeError(_refusal(module, name))


def _refusal(module: str, name: str) -> str:
    remedy = _REMEDIES.get(module)
    return f"probe serves {module} here, and has no {name}: {remedy or 'see docs/from-msprobe.md'}"
