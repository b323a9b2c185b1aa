# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The life of a debugger of task "monitor": every step has a row, and an alarm starts a dump."""

from __future__ import annotations

import logging
import os
import shlex
from collections import deque
from dataclasses import replace
from typing import Any

from probe.capture.backend import is_graph_mode
from probe.config.settings import ConfigFile, Settings
from probe.errors import AlarmError, UsageError
from probe.measure.tensor_reader import to_number
from probe.monitor.monitor import Monitor
from probe.recording.step_recorder import StepRecorder
from probe.series.file import last_step
from probe.series.rules import Alarm
from probe.session.session import Session
from probe.session.session_state import State, serialized
from probe.store.file_names import MONITOR, SERIES, rank_name

_log = logging.getLogger("probe")


class MonitorSession(Session):
    """Implements start, stop and step of task "monitor"; see ``Session``, which makes the dumps after alarms."""

    def __init__(self, settings: Settings, source: ConfigFile, before: Session | None = None) -> None:
        super().__init__(settings, source, before)
        self._watch = _Watch(settings)
        self._choose()

    @property
    def given(self) -> Settings:
        """The settings that the user gave."""
        return self._watch.given

    def _choose(self) -> None:
        """Choose how this step is recorded: as a dump after an alarm, into memory, or not at all."""
        level = self._watch.given.alarm_level if self._watch.steps else self._watch.given.level
        kept = 0 if self._watch.steps else self._watch.given.keep_steps
        snapshot = self._watch.given.snapshot and not kept
        chosen = replace(self._watch.given, task="statistics", level=level, keep_steps=kept, snapshot=snapshot)
        if chosen != self._run.settings:
            self._run, self._backends.current = self._run.with_settings(chosen), None

    def _reload(self) -> bool:
        is_new = super()._reload()
        if is_new:
            self._watch.given = self._run.settings
            self._choose()
        return is_new

    def _start(self, token_range: Any) -> None:
        if token_range is not None:
            raise UsageError('start(): token_range is not allowed with task "monitor", which looks at whole steps')
        if self._models is None:
            raise UsageError('start(): task "monitor" needs the model: debugger.start(model)')
        if is_graph_mode():
            raise UsageError('task "monitor" needs PyNative mode: ms.set_context(mode=ms.PYNATIVE_MODE)')
        if not self._window.wants(self._watch.given, self._run.ranks.rank() if self._watch.given.rank else None):
            return
        self._report.is_reached = True
        if self._watch.steps or self._watch.given.keep_steps:
            super()._start(None)
        self._unless_disabled("monitoring", self._begin_monitor)  # last: the capture differentiates to test itself

    def _begin_monitor(self) -> None:
        if self._watch.monitor is None:
            given, rank = self._watch.given, rank_name(self._run.ranks.rank())
            last = last_step(os.path.join(given.dump_path, MONITOR, rank, SERIES))
            self._run.folders.claim_monitor(given.dump_path, rank, self._window.init_step, last, given.overwrite)
            self._watch.monitor = Monitor(given.dump_path, rank, given)
            self._watch.monitor.alarms.function = self._watch.function
        self._watch.monitor.begin(self._window.step, self._models)

    @serialized
    def stop(self) -> None:
        """Watch no more."""
        if self._watch.monitor is not None:
            self._watch.monitor.pause()
        super().stop()

    def _write(self, recorder: StepRecorder) -> bool:
        if not self._run.settings.keep_steps:
            return super()._write(recorder)
        return True

    def _end_step(self, wait: bool = True) -> None:
        recorder, step = self._recorder, self._window.step
        try:
            super()._end_step(wait)
            if self._watch.monitor is not None:
                self._watch.monitor.wait()
        finally:
            self._unless_disabled("monitoring", lambda: self._end_row(step, recorder))
        if self._watch.monitor is not None:
            self._watch.monitor.raise_pending()

    def _end_row(self, step: int, recorder: StepRecorder | None) -> None:
        if recorder is not None and self._run.settings.keep_steps:
            self._watch.kept.append(recorder)
        if self._watch.steps and recorder is not None:
            self._watch.steps -= 1
        alarms = [] if self._watch.monitor is None else self._watch.monitor.end_step(step)
        try:
            if alarms:
                self._act(step, alarms)
        finally:
            if recorder is not None or self._watch.steps:  # else nothing has changed
                self._choose()

    def _act(self, step: int, alarms: list[Alarm]) -> None:
        for recorder in self._watch.kept:
            with recorder.guard("writing the documents"):
                recorder.write(end_of_step=True)
        self._watch.kept.clear()
        own = self._watch.given
        if own.on_alarm == "raise":
            raise AlarmError(f"{alarms[0].rule}: {alarms[0].series}: {alarms[0].sentence}")
        if (
            own.on_alarm == "dump"
            and not self._watch.steps
            and (not own.max_alarms or self._watch.count < own.max_alarms)
        ):
            self._watch.steps, self._watch.count = own.alarm_steps, self._watch.count + 1
            last = step + own.alarm_steps
            steps = f"step {last} is" if last == step + 1 else f"steps {step + 1} to {last} are"
            path = shlex.quote(self.folder)
            _log.warning("%s recorded now; then look with: probe nan %s, probe trend %s", steps, path, path)

    @serialized
    def log(self, name: Any, number: Any) -> None:
        """Add a number to the row of this step."""
        if not isinstance(name, str) or not name:
            raise UsageError(f"log(): name is {name!r}. Allowed: a text")
        try:
            value = float(to_number(number) if hasattr(number, "asnumpy") else number)
        except (TypeError, ValueError):
            raise UsageError(f"log(): {name!r} is {type(number).__name__}. Allowed: a number") from None
        if self._watch.monitor is not None:
            self._watch.monitor.log(name, value)

    @serialized
    def set_alarm_function(self, function: Any) -> None:
        """Set the function that is called for each alarm."""
        if function is not None and not callable(function):
            raise UsageError(f"on_alarm(): {type(function).__name__} is no function")
        self._watch.function = function
        if self._watch.monitor is not None:
            self._watch.monitor.alarms.function = function

    def close(self) -> None:
        """Complete the open step, release everything, and say where the rows are."""
        monitor = self._watch.monitor
        if monitor is not None and monitor.steps and not self._report.said and not self._watch.given.quiet:
            self._report.said = True
            if not self._run.ranks.rank():
                path = shlex.quote(self._watch.given.dump_path)
                _log.info("%d steps in %s; look with: probe watch %s", monitor.steps, monitor.folder, path)
        super().close()

    def hand_over(self) -> None:
        """Complete the open step: another session continues."""
        is_open = self.state is not State.CLOSED
        super().hand_over()
        if is_open and self._watch.monitor is not None:
            self._watch.monitor.close()

    def _detach(self) -> None:
        if self._watch.monitor is not None:
            self._watch.monitor.detach()
            self._watch.monitor = None
        super()._detach()


class _Watch:
    """The parts of a session that only the monitor has.

    Attributes:
        given: the settings that the user gave.
        monitor: measures the steps; None until the first start().
        kept: the recorders of the last steps, whose documents are written after an alarm.
        steps: the number of steps that are still to be dumped.
        count: the number of alarms that have started a dump.
        function: the user's function, or None.
    """

    def __init__(self, settings: Settings) -> None:
        self.given = settings
        self.monitor: Monitor | None = None
        self.kept: deque[StepRecorder] = deque(maxlen=settings.keep_steps)
        self.steps = self.count = 0
        self.function: Any = None
