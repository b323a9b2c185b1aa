# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The debuggers that a program makes itself, while it runs under ``probe run``."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any, Protocol

from probe.capture.patches import HookGroup, Patch, around
from probe.debugger import PrecisionDebugger
from probe.errors import UsageError, raised_at_caller
from probe.findings.sentence import NOTHING, Sentence, say
from probe.launch.awaited_import import AwaitedImport
from probe.launch.program import TOOL, Program

_log = logging.getLogger("probe")
_MSPROBE = "msprobe.mindspore"


class OwnDebuggers(Protocol):
    """Handles the debuggers of a program: both would record."""

    is_made: bool  # the program has made one

    def watch(self, hooks: HookGroup) -> None:
        """Begin to watch the program, by these hooks."""

    def served_classes(self) -> dict[str, type]:
        """Return the classes that a program gets which imports msprobe."""


class RefusedDebuggers:
    """Refuses a debugger of probe or of an installed msprobe; one of the served msprobe records in place of the run."""

    def __init__(self, program: Program, has_settings: bool) -> None:
        self.is_made = False
        self._program = program
        self._has_settings = has_settings
        self._hooks = HookGroup()

    def watch(self, hooks: HookGroup) -> None:
        """Begin to watch the program; see ``OwnDebuggers``."""
        self._hooks = hooks
        hooks.add(Patch(PrecisionDebugger, "__init__", around(self._refuse)))
        hooks.add(AwaitedImport(_MSPROBE, self._refuse_installed))

    def served_classes(self) -> dict[str, type]:
        """Return the classes of probe: a program that was written for msprobe records itself."""
        from probe.monitor.msprobe.trainer_mon import TrainerMon

        # without settings the program wants the files of its monitor, and nobody wants a dump
        of_monitor = bool if self._has_settings else self._stand_back
        return {
            "PrecisionDebugger": _served(PrecisionDebugger, self._stand_back),
            "TrainerMon": _served(TrainerMon, of_monitor),
        }

    def _stand_back(self) -> None:
        if not self.is_made and self._has_settings:
            told = "%s: the program makes a PrecisionDebugger of its own: the settings of probe run have no effect"
            _log.warning(told, _place())
        self.is_made = True
        self._hooks.remove()

    def _refuse(
        self, original: Callable[..., Any], debugger: PrecisionDebugger, *args: Any, **kwargs: Any
    ) -> None:
        if type(debugger) is PrecisionDebugger:
            self._raise(NOTHING)
        original(debugger, *args, **kwargs)

    def _refuse_installed(self) -> None:
        kind = getattr(sys.modules[_MSPROBE], "PrecisionDebugger", None)
        if isinstance(kind, type) and not issubclass(kind, PrecisionDebugger):
            refuse = around(lambda *_, **__: self._raise(say("run.or_as_msprobe")))
            self._hooks.add(Patch(kind, "__init__", refuse))

    def _raise(self, further: Sentence) -> None:
        self.is_made = True
        raise UsageError(
            say("run.own_debugger", place=_place(), program=str(self._program), further=further)
        )


def _served(kind: Any, stand_back: Callable[[], object]) -> type:
    """Return a class of probe that lets the run stand back before it begins."""

    class Served(kind):  # type: ignore[misc]  # a class that is known at run time only
        @raised_at_caller
        def __init__(self, *arguments: Any, **named: Any) -> None:
            stand_back()
            super().__init__(*arguments, **named)

    Served.__name__ = Served.__qualname__ = kind.__name__
    Served.__doc__ = kind.__doc__
    return Served


def _place() -> str:
    """Return the file and the line of the program that runs now."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(TOOL):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}, line {frame.f_lineno}"
