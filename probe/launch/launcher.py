# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Starts a program, and records its training. Some of its imports are waited for; those of msprobe are served."""

from __future__ import annotations

import atexit
import functools
import importlib.machinery
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from probe.capture.patches import HookGroup, Patch, around
from probe.config.settings import ConfigFile
from probe.debugger import PrecisionDebugger
from probe.errors import UsageError, raised_at_caller
from probe.findings.sentence import ENGLISH, NOTHING, Sentence, say
from probe.launch.perturb import Perturbation
from probe.launch.program import TOOL, Program
from probe.process.signals import LastWords

_log = logging.getLogger("probe")


class Launcher:
    """Records a program that does not know probe. ``at_model`` makes each outermost call of a model a step."""

    def __init__(
        self,
        program: Program,
        source: ConfigFile,
        at_model: bool,
        has_settings: bool,
        perturbation: Perturbation,
        first_step: int | None = None,
        language: str = ENGLISH,
    ) -> None:
        self._language = language  # of the line that nothing was recorded
        self._program, self._source, self._perturbation = program, source, perturbation
        self._at_model, self._has_settings = at_model, has_settings
        self._first_step = first_step  # the number of the first step, of a resumed run
        self._is_quiet = source.load().quiet
        self._debugger: PrecisionDebugger | None = None
        self._process = os.getpid()
        self._is_own = self._has_spawned = self._has_reported = False
        self._last_words = LastWords(self._at_sigterm, _wait_for_session)
        self._hooks = HookGroup([Patch(PrecisionDebugger, "__init__", around(self._refuse))])

    def install(self, as_msprobe: bool, joining: str = "") -> None:
        """Begin to watch this process, and those that it spawns: these run the code ``joining``."""
        ServedMsprobe(
            self._served_classes, as_msprobe
        ).install()  # also in place of one that is installed
        self._hooks.add(AwaitedImport("mindspore", self._watch))
        self._hooks.add(AwaitedImport("msprobe.mindspore", self._refuse_installed))
        # not imported before MindSpore: its Cells would then end later than the modules that they need
        self._hooks.add(
            AwaitedImport("multiprocessing.spawn", functools.partial(self._watch_spawned, joining))
        )
        self._hooks.install()

    def run(self) -> None:
        """Become the program."""
        atexit.register(self._report)
        self._last_words.install()
        self._program.run()

    def _watch(self) -> None:
        """Begin to watch MindSpore, which the program has imported."""
        from probe.launch.models import ModelFinder, Rounds
        from probe.launch.watch import Steps, Watch

        rounds = Rounds()
        models = ModelFinder(rounds, self._at_model)
        steps = Steps(self._new_debugger, models, self._perturbation, self._last_words.install)
        self._hooks.add(Watch(steps, models, rounds, self._at_model))

    def _watch_spawned(self, joining: str) -> None:
        spawn = sys.modules["multiprocessing.spawn"]
        self._hooks.add(
            Patch(spawn, "get_command_line", around(functools.partial(self._join, joining)))
        )

    def _join(self, joining: str, original: Callable[..., list[str]], **named: Any) -> list[str]:
        """Return the command that spawns a process, with the code that watches it."""
        self._has_spawned, words = True, original(**named)
        return [
            f"{joining}; {word}" if before == "-c" else word
            for before, word in zip(["", *words], words)
        ]

    def _new_debugger(self) -> PrecisionDebugger:
        self._debugger = PrecisionDebugger.of(self._source)
        if self._first_step is not None:
            self._debugger.set_init_step(self._first_step)
        return self._debugger

    # -- a debugger of the program's own ------------------------------------------------------------------------------

    def _served_classes(self) -> dict[str, type]:
        """Return the classes of the served module: a program that was written for msprobe records itself."""
        from probe.monitor.msprobe.trainer_mon import TrainerMon

        def served(kind: Any, stand_back: Callable[[], object]) -> type:
            class Served(kind):  # type: ignore[misc]
                @raised_at_caller
                def __init__(self, *arguments: Any, **named: Any) -> None:
                    stand_back()
                    super().__init__(*arguments, **named)

            Served.__name__ = Served.__qualname__ = kind.__name__
            Served.__doc__ = kind.__doc__
            return Served

        # without settings the program wants the files of its monitor, and nobody wants a dump
        of_monitor = bool if self._has_settings else self._stand_back
        return {
            _DEBUGGER: served(PrecisionDebugger, self._stand_back),
            "TrainerMon": served(TrainerMon, of_monitor),
        }

    def _stand_back(self) -> None:
        if not self._is_own and self._has_settings:
            told = "%s: the program makes a PrecisionDebugger of its own: the settings of probe run have no effect"
            _log.warning(told, _place())
        self._is_own = True
        self._hooks.remove()

    def _refuse(
        self, original: Callable[..., Any], debugger: PrecisionDebugger, *args: Any, **kwargs: Any
    ) -> None:
        if type(debugger) is PrecisionDebugger:
            self._raise(NOTHING)
        original(debugger, *args, **kwargs)

    def _refuse_installed(self) -> None:
        """Refuse the debugger of an msprobe that is installed: both would record."""
        kind = getattr(sys.modules["msprobe.mindspore"], "PrecisionDebugger", None)
        if isinstance(kind, type) and not issubclass(kind, PrecisionDebugger):
            self._hooks.add(
                Patch(
                    kind, "__init__", around(lambda *_, **__: self._raise(say("run.or_as_msprobe")))
                )
            )

    def _raise(self, further: Sentence) -> None:
        self._is_own = True
        raise UsageError(
            say("run.own_debugger", place=_place(), program=str(self._program), further=further)
        )

    def _at_sigterm(self) -> None:
        """Complete the dump, and say where it is, or why there is none."""
        session = _Living.session()
        if session is not None:
            session.at_sigterm(ends=True)
        self._report()

    def _report(self) -> None:
        """Say why nothing was recorded, where no debugger was made."""
        if (
            self._debugger is not None
            or self._is_own
            or self._is_quiet
            or os.getpid() != self._process
        ):
            return
        if self._has_reported:
            return
        self._has_reported = True
        if "mindspore" not in sys.modules and self._has_spawned:
            return  # the training is in a process that was spawned, which tells its own end
        if "mindspore" not in sys.modules:
            reason = say("run.no_mindspore")
        else:
            reason = say("run.no_cell") if self._at_model else say("run.no_update")
        told = say("run.nothing", reason=reason).text(self._language)
        _log.warning("%s", told)


class _Living(PrecisionDebugger):
    """Gives the session of this process, whoever made it."""

    @classmethod
    def session(cls) -> Any:
        """Return the session of this process, or None."""
        return cls._living_session()


def _wait_for_session(call: Callable[[], None]) -> bool:
    """Return whether no call of the session runs; else it calls the function when that has ended."""
    session = _Living.session()
    return session is None or session.busy.wait(call)


def _place() -> str:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(TOOL):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}, line {frame.f_lineno}"


_TOP, _HOME = "msprobe", "msprobe.mindspore"
_DEBUGGER, _STEPS = "PrecisionDebugger", ("MsprobeInitStep", "MsprobeStep", "seed_all")
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


class ServedMsprobe:
    """Imports probe in place of ``msprobe`` and those of its modules that hold names which probe has."""

    def __init__(self, own: Callable[[], dict[str, type]], is_forced: bool) -> None:
        self._own, self._is_forced = (
            own,
            is_forced,
        )  # gives the classes that are served; hides an installed msprobe

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
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

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
