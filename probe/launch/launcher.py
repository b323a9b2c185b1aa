# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Starts a program, and records its training."""

from __future__ import annotations

import atexit
import functools
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from probe.capture.patches import HookGroup, Patch, around
from probe.config.settings import ConfigFile
from probe.debugger import PrecisionDebugger
from probe.errors import UsageError, raised_at_caller
from probe.launch.imports import AwaitedImport, ServedMsprobe
from probe.launch.program import TOOL, Program

_log = logging.getLogger("probe")


class Launcher:
    """Records a program that does not know probe. ``at_model`` makes each outermost call of a model a step."""

    def __init__(self, program: Program, source: ConfigFile, at_model: bool, has_settings: bool) -> None:
        self._program, self._source = program, source
        self._at_model, self._has_settings = at_model, has_settings
        self._is_quiet = source.load().quiet
        self._debugger: PrecisionDebugger | None = None
        self._process = os.getpid()
        self._is_own = self._has_spawned = False
        self._hooks = HookGroup([Patch(PrecisionDebugger, "__init__", around(self._refuse))])

    def install(self, as_msprobe: bool, joining: str = "") -> None:
        """Begin to watch this process, and those that it spawns: these run the code ``joining``.

        ``as_msprobe`` imports probe in place of msprobe, also where msprobe is installed.
        """
        ServedMsprobe(self._served_classes, as_msprobe).install()
        self._hooks.add(AwaitedImport("mindspore", self._watch))
        self._hooks.add(AwaitedImport("msprobe.mindspore", self._refuse_installed))
        # not imported before MindSpore: its Cells would then end later than the modules that they need
        self._hooks.add(AwaitedImport("multiprocessing.spawn", functools.partial(self._watch_spawned, joining)))
        self._hooks.install()

    def run(self) -> None:
        """Become the program."""
        atexit.register(self._report)
        self._program.run()

    def _watch(self) -> None:
        """Begin to watch MindSpore, which the program has imported."""
        from probe.launch.models import ModelFinder
        from probe.launch.rounds import Rounds
        from probe.launch.steps import Steps
        from probe.launch.watch import Watch

        rounds = Rounds()
        models = ModelFinder(rounds, self._at_model)
        self._hooks.add(Watch(Steps(self._new_debugger, models), models, rounds, self._at_model))

    def _watch_spawned(self, joining: str) -> None:
        spawn = sys.modules["multiprocessing.spawn"]
        self._hooks.add(Patch(spawn, "get_command_line", around(functools.partial(self._join, joining))))

    def _join(self, joining: str, original: Callable[..., list[str]], **named: Any) -> list[str]:
        """Return the command that spawns a process, with the code that watches it."""
        self._has_spawned, words = True, original(**named)
        return [f"{joining}; {word}" if before == "-c" else word for before, word in zip(["", *words], words)]

    def _new_debugger(self) -> PrecisionDebugger:
        self._debugger = PrecisionDebugger.of(self._source)
        return self._debugger

    # -- a debugger of the program's own ------------------------------------------------------------------------------

    def _served_classes(self) -> dict[str, type]:
        """Return the classes of the served module: a program that was written for msprobe records itself."""
        from probe.monitor.msprobe.trainer_mon import TrainerMon

        stand_back, has_settings = self._stand_back, self._has_settings

        class Debugger(PrecisionDebugger):
            @raised_at_caller
            def __init__(self, *arguments: Any, **named: Any) -> None:
                stand_back()
                super().__init__(*arguments, **named)

        Debugger.__name__ = Debugger.__qualname__ = PrecisionDebugger.__name__
        Debugger.__doc__ = PrecisionDebugger.__doc__

        class Monitor(TrainerMon):
            @raised_at_caller
            def __init__(self, *arguments: Any, **named: Any) -> None:
                if not has_settings:  # the program wants the files of its monitor, and nobody wants a dump
                    stand_back()
                super().__init__(*arguments, **named)

        Monitor.__name__ = Monitor.__qualname__ = TrainerMon.__name__
        Monitor.__doc__ = TrainerMon.__doc__
        return {PrecisionDebugger.__name__: Debugger, TrainerMon.__name__: Monitor}

    def _stand_back(self) -> None:
        if not self._is_own and self._has_settings:
            told = "%s: the program makes a PrecisionDebugger of its own: the settings of probe run have no effect"
            _log.warning(told, _place())
        self._is_own = True
        self._hooks.remove()

    def _refuse(self, original: Callable[..., Any], debugger: PrecisionDebugger, *args: Any, **kwargs: Any) -> None:
        if type(debugger) is PrecisionDebugger:
            self._raise("")
        original(debugger, *args, **kwargs)

    def _refuse_installed(self) -> None:
        """Refuse the debugger of an msprobe that is installed: both would record."""
        kind = getattr(sys.modules["msprobe.mindspore"], "PrecisionDebugger", None)
        if isinstance(kind, type) and not issubclass(kind, PrecisionDebugger):
            self._hooks.add(Patch(kind, "__init__", around(lambda *_, **__: self._raise(", or with --as-msprobe"))))

    def _raise(self, further: str) -> None:
        self._is_own = True
        raise UsageError(
            f"{_place()}: the program makes a PrecisionDebugger of its own. Start it without probe run: "
            f"python {self._program}{further}"
        )

    def _report(self) -> None:
        """Say why nothing was recorded, where no debugger was made."""
        if self._debugger is not None or self._is_own or self._is_quiet or os.getpid() != self._process:
            return
        if "mindspore" not in sys.modules and self._has_spawned:
            return  # the training is in a process that was spawned, which tells its own end
        if "mindspore" not in sys.modules:
            reason = "this process did not import MindSpore"
        elif self._at_model:
            reason = "no Cell with parameters was called"
        else:
            reason = "no optimizer of MindSpore made an update. For inference there is --step-at model"
        _log.warning("nothing was recorded: %s", reason)


def _place() -> str:
    """Return the program's line that is running."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(TOOL):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}, line {frame.f_lineno}"
