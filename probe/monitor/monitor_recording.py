# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Task "monitor": every step has a row, and an alarm starts a dump, or makes the step again."""

from __future__ import annotations

import copy
import logging
import shlex
import sys
from collections import deque
from dataclasses import replace
from typing import Any

from probe.capture.backend import is_graph_mode
from probe.config.settings import Settings
from probe.errors import AlarmError, DifferenceError, UsageError
from probe.findings.sentence import NOTHING, say
from probe.measure.tensor_reader import to_number
from probe.monitor.alarms import AlarmFunction
from probe.monitor.monitor import Monitor
from probe.monitor.rolling.golden_calls import GOLDEN
from probe.process.rank import world_size
from probe.repeats.repeat import Run, again
from probe.series.alarm import Alarm
from probe.session.dump_recording import DumpRecording
from probe.session.recording import OpenStep, Recording, SessionParts
from probe.store import file_io
from probe.store.file_names import rank_name

_log = logging.getLogger("probe")


class MonitorRecording(Recording):
    """Watches each step; see ``Recording``. It holds a recording of its own, which makes the dumps after alarms.

    ``steps`` is the number of steps that are still to be dumped.
    """

    def __init__(self, settings: Settings, parts: SessionParts) -> None:
        super().__init__(settings, parts)
        self.steps = self._count = 0  # the second: alarms that have started a dump
        self._monitor: Monitor | None = None  # until the first start()
        self._function: AlarmFunction | None = None
        #: those of the last steps, whose documents are written after an alarm
        self._kept: deque[OpenStep] = deque(maxlen=settings.keep_steps)
        self._dump = DumpRecording(self._chosen(), parts)

    def _chosen(self) -> Settings:
        """Return how this step is recorded: as a dump after an alarm, into memory, or not at all."""
        given = self.settings
        kept = 0 if self.steps else self.settings.keep_steps
        is_again = given.on_alarm == "again"
        level = given.alarm_level if self.steps or is_again else given.level
        if is_again:  # bits are compared, of all calls
            words = (
                ("md5",) if isinstance(given.summary_mode, str) else (*given.summary_mode, "md5")
            )
            given = replace(
                given,
                summary_mode=words[0] if len(words) == 1 else words,
                list=(),
                async_dump=False,
            )
        return replace(
            given,
            task="statistics",
            level=level,
            keep_steps=kept,
            snapshot=given.snapshot and not kept,
        )

    def with_settings(self, settings: Settings) -> MonitorRecording:
        """Return what goes on under other settings; see ``Recording``."""
        found = copy.copy(self)
        found.settings = settings
        found._dump = self._dump.with_settings(found._chosen())
        return found

    def start(self, token_range: Any) -> None:
        """Begin to watch; see ``Recording``."""
        settings = self.settings
        parts = self.parts
        if token_range is not None:
            raise UsageError(
                'start(): token_range is not allowed with task "monitor", which looks at whole steps'
            )
        if parts.models is None:
            raise UsageError('start(): task "monitor" needs the model: debugger.start(model)')
        if is_graph_mode():
            raise UsageError(
                'task "monitor" needs PyNative mode: ms.set_context(mode=ms.PYNATIVE_MODE)'
            )
        if not parts.window.wants(settings, parts.ranks.rank() if settings.rank else None):
            return
        parts.report.is_reached = True
        if self.steps or settings.keep_steps:
            self._dump.start(None)
        parts.unless_disabled("monitoring", self._make)
        if self._monitor is not None:
            self._monitor.wait(parts.window.step)
        parts.unless_disabled(
            "monitoring", self._begin
        )  # last: the capture differentiates to test itself

    def _make(self) -> None:
        settings = self.settings
        if self._monitor is None:
            folders = self.parts.folders
            is_new = self.parts.choose_root(settings)
            monitor = Monitor(
                self.parts.root,
                rank_name(self.parts.ranks.rank()),
                settings,
                self.parts.busy.seconds,
            )
            folders.note(monitor.folder)
            if is_new:
                folders.lock(file_io.make_dirs(monitor.folder))
            monitor.alarms.function = self._function
            self._monitor = monitor

    def _begin(self) -> None:
        if self._monitor is not None:
            self._monitor.begin(
                self.parts.window.step,
                self.parts.models,
                self.parts.has_other_model(),
                is_dumped=self.parts.window.open_step is not None,
            )

    def stop(self) -> None:
        """Watch no more."""
        if self._monitor is not None:
            self._monitor.pause()
        self._dump.stop()

    def end_step(self, is_last: bool = False) -> None:
        """Write the row of the step, and act on its alarms; see ``Recording``."""
        opened = self.parts.window.open_step
        try:
            self._dump.end_step(is_last)
            if self._monitor is not None:
                self._monitor.values.wait()
        finally:
            may_repeat = not is_last and sys.exc_info()[0] is None
            self.parts.unless_disabled("monitoring", lambda: self._end_row(opened, may_repeat))
        if self._monitor is not None:
            self._monitor.watch.numbers.raise_pending()
            if self._monitor.rolling is not None:
                self._monitor.rolling.raise_pending()
            if is_last:
                self._monitor.close()

    def _end_row(self, opened: OpenStep | None, may_repeat: bool) -> None:
        step = self.parts.window.step
        if opened is not None and self._dump.settings.keep_steps:
            self._kept.append(opened)
        if self.steps and opened is not None:
            self.steps -= 1
        alarms = [] if self._monitor is None else self._monitor.end_step(step)
        try:
            if alarms:
                self._act(step, alarms)
                if may_repeat and self.settings.on_alarm == "again":
                    self._again(step, alarms[0], opened)
        finally:
            if self._monitor is not None and self._monitor.held is not None:
                self._monitor.held.end_step()
            chosen = (
                self._chosen() if opened is not None or self.steps else None
            )  # else nothing has changed
            if chosen is not None and chosen != self._dump.settings:
                self._dump = self._dump.with_settings(chosen)

    def _act(self, step: int, alarms: list[Alarm]) -> None:
        for opened in self._kept:
            with opened.recorder.guard("writing the documents"):
                opened.write(end_of_step=True)
        self._kept.clear()
        own = self.settings
        differs = next((alarm for alarm in alarms if alarm.rule == GOLDEN), None)
        if differs is not None and own.on_difference == "raise":
            raise DifferenceError(f"{differs.series}: {differs.sentence}")
        if own.on_alarm == "raise":
            raise AlarmError(f"{alarms[0].rule}: {alarms[0].series}: {alarms[0].sentence}")
        records = differs is not None and own.on_difference == "record"
        if (
            (own.on_alarm == "dump" or records)
            and not self.steps
            and (not own.max_alarms or self._count < own.max_alarms)
        ):
            self.steps = own.alarm_steps
            self._count = self._count + 1
            last = step + own.alarm_steps
            steps = f"step {last} is" if last == step + 1 else f"steps {step + 1} to {last} are"
            path = shlex.quote(self.parts.root)
            _log.warning(
                "%s recorded now; then look with: probe nan %s, probe trend %s", steps, path, path
            )

    def _again(self, step: int, alarm: Alarm, opened: OpenStep | None) -> None:
        own = self.settings
        monitor = self._monitor
        if (
            monitor is None
            or monitor.held is None
            or (own.max_alarms and self._count >= own.max_alarms)
        ):
            return
        held = monitor.held
        reason = held.reason or (NOTHING if held.calls else say("again.unseen"))
        reason = say("again.ranks") if world_size() > 1 else reason
        if reason:
            self.parts.log_once(str(reason))
            return
        self._count += 1
        kept = opened.writer.folder if opened is not None and own.keep_steps else ""
        dump = self._dump.with_settings(
            replace(self._chosen(), keep_steps=0, snapshot=own.snapshot and not kept)
        )
        said = say("again.raised")
        with monitor.errors.guard("making a step again"):
            said = again(monitor.measure_again, held, dump, Run(monitor.watch.row, kept))
        _log.warning("%s", say("again.line", step=step, said=said))
        monitor.alarms.tell(Alarm("again", alarm.series, step, said))

    def begin_training(self, network: Any, loss: Any) -> Any:
        """Discard earlier calls; see ``Recording``."""
        return self._dump.begin_training(network, loss)

    def record_next(self, steps: int) -> None:
        """Record so many of the next steps as a whole."""
        self.steps = steps

    def log(self, name: Any, number: Any) -> None:
        """Add a number to the row of this step."""
        if not isinstance(name, str) or not name:
            raise UsageError(f"log(): name is {name!r}. Allowed: a text")
        try:
            value = float(to_number(number) if hasattr(number, "asnumpy") else number)
        except (TypeError, ValueError):
            raise UsageError(
                f"log(): {name!r} is {type(number).__name__}. Allowed: a number"
            ) from None
        if self._monitor is not None:
            self._monitor.values.put({name: value})

    def held_bytes(self) -> int | None:
        """Return the bytes of the copies that making a step again needs; see ``Recording``."""
        return (
            self._monitor.held.nbytes
            if self._monitor is not None and self._monitor.held is not None
            else None
        )

    def set_alarm_function(self, function: Any) -> None:
        """Set the function that is called for each alarm."""
        if function is not None and not callable(function):
            raise UsageError(f"on_alarm(): {type(function).__name__} is no function")
        self._function = function
        if self._monitor is not None:
            self._monitor.alarms.function = function

    def last_line(self) -> str:
        """Say where the rows are; see ``Recording``."""
        monitor = self._monitor
        if monitor is None or not monitor.file.count:
            return ""
        count = monitor.file.count
        steps = f"{count} step{'s' * (count != 1)}"
        return f"{steps} in {monitor.folder}; look with: probe watch {shlex.quote(self.parts.root)}"

    def detach(self) -> None:
        """Release everything in a forked child; see ``Recording``."""
        if self._monitor is not None:
            self._monitor.detach()
            self._monitor = None
        self._dump.detach()
