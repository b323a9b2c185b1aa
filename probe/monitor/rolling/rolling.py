# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Records a share of the calls of each step, for the whole training."""

from __future__ import annotations

import json
import logging
import os
import time
from collections import deque
from dataclasses import replace
from typing import Any

from probe.capture.pynative.counted_calls import CountedCalls
from probe.capture.pynative.pynative_capture import PyNativeCapture
from probe.config.settings import Settings
from probe.measure.device import select_measurers
from probe.monitor.cell_values import NoEntries
from probe.monitor.numbers import new_numbers
from probe.monitor.rolling.call_rows import CallRows, CallTask, StepCalls
from probe.monitor.rolling.golden_calls import GoldenCalls
from probe.monitor.rolling.shares import Shares
from probe.monitor.rolling.stride import Stride
from probe.recording.call_stacks import CallStacks
from probe.recording.measurement_queue import MeasurementQueue
from probe.recording.step_recorder import StepRecorder
from probe.series.alarm import Alarm
from probe.series.call_file import CallFile, Rows
from probe.store import file_io
from probe.store.error_log import ErrorLog
from probe.store.file_names import CALLS, ROLLING

_log = logging.getLogger("probe")


class Rolling:
    """Records rows of calls into a folder. ``rolling`` of the settings is the number of steps of a round."""

    def __init__(
        self, folder: str, settings: Settings, errors: ErrorLog, golden: GoldenCalls | None
    ) -> None:
        self._settings = replace(
            settings,
            task="statistics",
            extra_info=False,
            optimizer="off",
            snapshot=False,
            saved_tensors=False,
            scope=(),
            list=(),
            exclude=(),
        )
        self._errors = errors
        self._folder = folder
        self._rounds: list[dict[str, int]] = []  # the steps from which a round has so many steps
        self._numbers = new_numbers(settings.measure)
        self._rows = CallRows(self._numbers)
        self._counted = CountedCalls()
        self._capture = PyNativeCapture(self._settings, counted=self._counted)
        self._measurers = select_measurers(self._settings)
        self._stride = Stride(settings.rolling, settings.budget)
        self._shares = Shares(self._stride.every, settings.rolling_seed)
        self.file = CallFile(os.path.join(folder, CALLS), self._shares.steps, settings.max_disk)
        #: the calls of a golden run; None without one, and after the first difference
        self._golden = golden
        self._differences: list[Alarm] = []
        self._recorder: StepRecorder | None = None
        self._models: list[Any] = []
        self._is_bare = False
        self._keys: set[str] = set()  # of all calls that can be chosen
        self._has_census = False  # the calls were counted once
        self._began = 0.0
        self._step = 0
        self._written: dict[str, float] = {}  # series -> value, since ``take``
        #: steps whose numbers may still be on a device
        self._ended: deque[tuple[int, StepCalls]] = deque()

    # -- a step ---------------------------------------------------------------------------------------------------

    def begin(self, step: int, models: Any) -> None:
        """Begin to record; also again within a step."""
        if self._recorder is None:
            self._begin_step(step, models)
        if self._recorder is not None and not self._is_bare:
            self._capture.install(self._recorder)

    def _begin_step(self, step: int, models: Any) -> None:
        counted = self._counted
        self._step = step
        self._began = time.perf_counter()
        given = list(models) if isinstance(models, (list, tuple)) else [models]
        # a loop may write them as a new list in each step
        if len(given) != len(self._models) or any(a is not b for a, b in zip(given, self._models)):
            self._models = given
            self._has_census = False
        self._capture.watch(models)
        is_census = not self._has_census
        self._is_bare = not is_census and self._stride.is_bare(step)
        if is_census:
            self._has_census = True
            self._note_rounds(step)
            self._keys = self._capture.keys
            self._capture.choose(None)
            counted.begin_step({}, is_census=True)
        else:
            wanted = {} if self._is_bare else self._shares.of(step)
            callers = (counted.callers.get(key, ()) for key in wanted)
            self._capture.choose(set(wanted).union(*callers))
            counted.begin_step(wanted, is_census=False)
            self._is_bare = self._is_bare or not wanted
        sink = NoEntries(self._errors)
        queue = MeasurementQueue(
            *self._measurers, self._capture.wait, sink.accept, self._errors.guard
        )
        task = CallTask(self._settings.data_mode, self._rows.note)
        self._recorder = StepRecorder(self._settings, task, queue, sink, CallStacks(), counted)

    def pause(self) -> None:
        """Record nothing but gradients of a backward that may follow."""
        if not self._is_bare:
            self._capture.remove()

    def take(self) -> dict[str, float]:
        """Return the numbers that were written since the last time, each with the name of its series."""
        written = self._written
        self._written = {}
        return written

    def end_step(self) -> None:
        """End the step: write its rows."""
        recorder = self._recorder
        self._recorder = None
        if recorder is None:
            return
        self._capture.end_step()
        recorder.close()
        if self._counted.end_step():
            self._shares.know(self._counted.known, self._keys)
        self._ended.append((self._step, self._rows.end()))
        self._hand_on(keep=bool(self._ended[-1][1].scalars))
        if self._counted.is_census:
            return
        every = self._stride.take(time.perf_counter() - self._began, self._is_bare)
        if every is not None:
            self._begin_rounds(every)

    def _note_rounds(self, step: int) -> None:
        """Write how many steps a round has from a step on: a budget changes the number."""
        self._rounds.append(
            {"step": step, "every": self._stride.every, "round": self._shares.steps}
        )
        noted = {
            "budget": self._settings.budget,
            "seed": self._settings.rolling_seed,
            "rounds": self._rounds,
        }
        with self._errors.guard("writing the rounds of rolling records"):
            file_io.make_dirs(self._folder)
            with file_io.atomic_write(os.path.join(self._folder, ROLLING)) as file:
                json.dump(noted, file, indent=1)

    def _begin_rounds(self, every: int) -> None:
        self._shares = Shares(every, self._settings.rolling_seed)
        self._shares.know(self._counted.known, self._keys)
        self.file.steps = self._shares.steps
        self._note_rounds(self._step + 1)
        _log.info(
            "rolling: from step %d on a round has %d steps", self._step + 1, self._shares.steps
        )

    def _hand_on(self, keep: bool) -> None:
        while len(self._ended) > keep:
            step, calls = self._ended.popleft()
            rows = calls.finish(self._numbers.fetch(calls.scalars))
            if rows:
                self.file.write(step, rows)
            self._compare(step, rows)
            for entry, row in rows.items():
                self._written.update((f"{entry}.{place}", value) for place, value in row.items())

    def _compare(self, step: int, rows: Rows) -> None:
        found = None if self._golden is None else self._golden.look(step, rows)
        if found is not None:
            self._differences.append(found)
            self._golden = None

    def differences(self) -> list[Alarm]:
        """Return the first difference from the golden run, once."""
        found = self._differences
        self._differences = []
        return found

    def raise_pending(self) -> None:
        """Raise an error of the training that a fetch has met first."""
        self._numbers.raise_pending()

    def close(self) -> None:
        """Write what is left, and release the file."""
        self._capture.end_step()
        self._hand_on(keep=False)
        self.file.close()
        if self._golden is not None and not self._golden.count:
            _log.warning(
                "golden: no call was recorded in the same step: are rolling and seed equal?"
            )

    def detach(self) -> None:
        """Release everything in a forked child: the file is the parent's."""
        self._capture.detach()
        self._recorder = None
