# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Starts a program, and records its training."""

from __future__ import annotations

import atexit
import functools
import logging
import os
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from probe.capture.patches import HookGroup, Patch, around
from probe.config.config_file import ConfigFile
from probe.debugger import living_session, open_session
from probe.findings.sentence import ENGLISH, NOTHING, Sentence, say
from probe.findings.system import foreign
from probe.launch.awaited_import import AwaitedImport
from probe.launch.program import Program
from probe.launch.program_debuggers import OwnDebuggers
from probe.launch.served_msprobe import ServedMsprobe
from probe.launch.training_change import TrainingChange
from probe.layers.layer import PACKAGES
from probe.process.signals import LastWords

if TYPE_CHECKING:
    from probe.launch.watch import Watch
    from probe.session.session import Session

_log = logging.getLogger("probe")
#: the variable that makes sums over ranks deterministic
_COLLECTIVES = "HCCL_DETERMINISTIC"


class Launcher:
    """Records a program that does not know probe. ``at_model`` makes each outermost call of a model a step."""

    def __init__(
        self,
        program: Program,
        source: ConfigFile,
        at_model: bool,
        own: OwnDebuggers,
        new_change: Callable[[HookGroup], TrainingChange],
        first_step: int | None = None,
        language: str = ENGLISH,
    ) -> None:
        self._language = language  # of the line that nothing was recorded
        self._program = program
        self._source = source
        self._own = own
        self._new_change = new_change
        self._at_model = at_model
        self._first_step = first_step  # the number of the first step, of a resumed run
        self._is_quiet = source.load().quiet
        self._session: Session | None = None
        self._process = os.getpid()
        self._has_spawned = False
        self._has_reported = False
        self._error = NOTHING  # how the program has ended, if with an error
        self._last_words = LastWords(self._at_sigterm, _wait_for_session)
        self._hooks = HookGroup()
        self._watching: Watch | None = None

    def install(self, as_msprobe: bool, joining: str = "") -> None:
        """Begin to watch this process, and those that it spawns: these run the code ``joining``."""
        # also in place of one that is installed
        ServedMsprobe(self._own.served_classes, as_msprobe).install()
        self._own.watch(self._hooks)
        self._hooks.add(AwaitedImport("mindspore", self._watch))
        for package in PACKAGES:
            self._hooks.add(AwaitedImport(package, self._meet_layers))
        # not imported before MindSpore: its Cells would then end later than the modules that they need
        self._hooks.add(
            AwaitedImport("multiprocessing.spawn", functools.partial(self._watch_spawned, joining))
        )
        self._hooks.install()

    def seed(self, seed: int) -> None:
        """Seed all generators before the program begins, which may seed them again; see ``seed_all``."""
        from probe.seeding import seed_all

        collectives = os.environ.get(_COLLECTIVES)
        seed_all(seed)
        if collectives is not None:  # seed_all switches them off, but the user has chosen
            os.environ[_COLLECTIVES] = collectives
        self._source.header["seeded"] = seed
        _log.warning(
            "THIS TRAINING IS CHANGED: probe.seed_all(%d) comes before it. Its losses are others.",
            seed,
        )

    def run(self) -> None:
        """Become the program."""
        atexit.register(self._report)
        self._last_words.install()
        try:
            self._program.run()
        finally:
            self._error = _told(sys.exc_info()[1])

    def _watch(self) -> None:
        """Begin to watch MindSpore, which the program has imported."""
        from probe.launch.models import ModelFinder, Rounds
        from probe.launch.watch import Steps, Watch

        rounds = Rounds()
        models = ModelFinder(rounds, self._at_model)
        change = self._new_change(self._hooks)
        steps = Steps(lambda: self._open_session(change), models, change, self._last_words.install)
        self._watching = Watch(steps, models, rounds, self._at_model)
        self._hooks.add(self._watching)

    def _meet_layers(self) -> None:
        """Watch a layer above MindSpore that the program has imported. A process may import torch alone."""
        if self._watching is not None:
            self._watching.meet_layers()

    def _watch_spawned(self, joining: str) -> None:
        spawn = sys.modules["multiprocessing.spawn"]
        self._hooks.add(
            Patch(spawn, "get_command_line", around(functools.partial(self._join, joining)))
        )

    def _join(self, joining: str, original: Callable[..., list[str]], **named: Any) -> list[str]:
        """Return the command that spawns a process, with the code that watches it."""
        self._has_spawned = True
        words = original(**named)
        return [
            f"{joining}; {word}" if before == "-c" else word
            for before, word in zip(["", *words], words)
        ]

    def _open_session(self, change: TrainingChange) -> Session:
        self._session = open_session(self._source, change)
        if self._first_step is not None:
            self._session.begin_at(self._first_step)
        return self._session

    def _at_sigterm(self) -> None:
        """Complete the dump, and say where it is, or why there is none."""
        session = living_session()
        if session is not None:
            session.at_sigterm(ends=True)
        self._report()

    def _report(self) -> None:
        """Say why nothing was recorded, where no session was opened."""
        if (
            self._session is not None
            or self._own.is_made
            or self._is_quiet
            or os.getpid() != self._process
        ):
            return
        if self._has_reported:
            return
        self._has_reported = True
        if "mindspore" not in sys.modules and self._has_spawned:
            return  # the training is in a process that was spawned, which tells its own end
        if self._error:
            reason = say("run.ended_early", said=self._error)
        elif "mindspore" not in sys.modules:
            reason = say("run.no_mindspore")
        else:
            reason = say("run.no_cell") if self._at_model else say("run.no_update")
        told = say("run.nothing", reason=reason).text(self._language)
        _log.warning("%s", told)


def _told(error: BaseException | None) -> Sentence:
    """Return how a program has ended, in one line; NOTHING without an error. An object of the program is not asked."""
    if error is None:
        return NOTHING
    if not isinstance(error, SystemExit):
        lines = traceback.format_exception_only(type(error), error)
        return foreign(lines[-1].strip().partition("\n")[0])
    code = error.code
    if isinstance(code, str) and code.strip():
        return foreign(code.strip().partition("\n")[0])
    if code is None or (isinstance(code, int) and code == 0):
        return NOTHING
    return say("run.exit_status", status=code if isinstance(code, int) else 1)


def _wait_for_session(call: Callable[[], None]) -> bool:
    """Return whether no call of the session runs; else it calls the function when that has ended."""
    session = living_session()
    return session is None or session.busy.wait(call)
