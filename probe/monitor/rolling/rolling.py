# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Records a share of the calls of each step, for the whole training."""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from probe.capture.pynative.counted_calls import CountedCalls
from probe.capture.pynative.pynative_capture import PyNativeCapture
from probe.config.settings import Settings
from probe.measure.device import select_measurers
from probe.monitor.cell_values import NoEntries
from probe.monitor.numbers import new_numbers
from probe.monitor.rolling.call_output import CallOutput
from probe.monitor.rolling.call_rows import CallRows, CallTask
from probe.monitor.rolling.golden_calls import GoldenCalls
from probe.monitor.rolling.rounds import Rounds
from probe.monitor.rolling.stride import StepTimes
from probe.recording.call_stacks import CallStacks
from probe.recording.measurement_queue import MeasurementQueue
from probe.recording.step_recorder import StepRecorder
from probe.series.alarm import Alarm
from probe.store.error_log import ErrorLog

#: Cells and Primitives that a model got since are looked for every so many steps: a look costs 2 % of a small step
_LOOK = 50
#: so many sets of models are remembered whose calls were counted: a loop may train two in turn
_SETS = 8


class Rolling:
    """Records rows of calls into a folder. ``own_seconds`` returns the processor time of all our calls so far."""

    def __init__(
        self,
        folder: str,
        settings: Settings,
        errors: ErrorLog,
        golden: GoldenCalls | None,
        own_seconds: Callable[[], float],
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
        self._numbers = new_numbers(settings.measure)
        self._rows = CallRows(self._numbers, has_bits=settings.summary_mode == "md5")
        self._task = CallTask(self._settings.data_mode, self._rows.note)
        self._counted = CountedCalls()
        self._capture = PyNativeCapture(self._settings, counted=self._counted)
        self._measurers = select_measurers(self._settings)
        self._rounds = Rounds(folder, settings, errors)
        self._output = CallOutput(
            folder, self._numbers, golden, self._rounds.steps, settings.max_disk
        )
        self._recorder: StepRecorder | None = None
        self._models: list[Any] = []
        #: weak references, as models of an earlier training must not stay in memory
        self._counted_models: deque[list[Any]] = deque(maxlen=_SETS)
        self._since_look = 0  # steps
        self._is_open = False
        self._is_census = False
        self._is_installed = False
        self._keys: set[str] = set()  # of all calls that can be chosen
        self._owed: dict[str, set[int]] = {}  # the shares of steps that were left out
        self._own_seconds = own_seconds
        self._began = 0.0  # of the step, in seconds
        self._own_at_begin = 0.0  # of the step: our seconds so far
        self._own_at_end = own_seconds()  # of the last step
        self._step = 0

    # -- a step ---------------------------------------------------------------------------------------------------

    def begin(self, step: int, models: Any) -> None:
        """Begin to record; also again within a step."""
        if not self._is_open:
            self._is_open = True
            self._began = time.perf_counter()
            self._own_at_begin = self._own_seconds()
            self._begin_step(step, models)
        if self._recorder is not None:
            self._is_installed = True
            self._capture.install(self._recorder)

    def _begin_step(self, step: int, models: Any) -> None:
        """Begin a step. One that records nothing has no recorder."""
        self._step = step
        self._is_census = self._watch(models)
        if self._is_census:
            self._rounds.note(step)
            self._capture.choose(None)
            self._counted.begin_step({}, is_census=True)
            self._recorder = self._new_recorder()
        elif wanted := self._wanted(step):
            self._capture.choose(self._with_callers(wanted))
            self._counted.begin_step(wanted, is_census=False)
            self._recorder = self._new_recorder()

    def _with_callers(self, keys: Iterable[str]) -> set[str]:
        """Return these keys, and those of the functions that call them."""
        chosen = set(keys)
        callers = self._counted.callers
        for key in keys if callers else ():
            if key in callers:
                chosen |= callers[key]
        return chosen

    def _wanted(self, step: int) -> Mapping[str, set[int]]:
        """Return the numbers of the calls to record, by their keys; none in a step that is measured as a bare one."""
        if self._rounds.is_bare(step):
            self.skip(step)
            return {}
        owed = self._owed
        self._owed = {}
        return _joined(self._rounds.of(step), owed) if owed else self._rounds.of(step)

    def _new_recorder(self) -> StepRecorder:
        sink = NoEntries(self._errors)
        queue = MeasurementQueue(
            *self._measurers, self._capture.wait, sink.accept, self._errors.guard
        )
        return StepRecorder(self._settings, self._task, queue, sink, CallStacks(), self._counted)

    def _watch(self, models: Any) -> bool:
        """Watch the models; return whether their calls are to be counted, as in the first step that has them."""
        # a loop may write them as a new list in each step
        given = list(models) if isinstance(models, (list, tuple)) else [models]
        is_other = not _are_same(given, self._models)
        self._models = given
        self._since_look += 1
        if is_other or self._since_look >= _LOOK:
            self._since_look = 0
            self._capture.watch(models)
            self._take_new_keys()
        if not is_other or any(
            _are_same(given, [reference() for reference in known]) for known in self._counted_models
        ):
            return False
        self._counted_models.append([weakref.ref(model) for model in given])
        return True

    def _take_new_keys(self) -> None:
        """Let the calls of Cells and Primitives that a model got since have their turn."""
        new = self._capture.keys - self._keys
        if new:
            self._keys = self._keys | new
            self._rounds.know(self._counted.known, self._keys)

    def skip(self, step: int) -> None:
        """Leave out a step, as one that a dump records: the next one records its share too."""
        self._owed = _joined(self._owed, self._rounds.of(step))

    def pause(self) -> None:
        """Record nothing but gradients of a backward that may follow."""
        if self._is_installed:
            try:
                self._rows.settle()  # the garbage collector, which runs again, has less to look at
            finally:
                self._capture.remove()
                self._is_installed = False

    def end_step(self) -> None:
        """End the step: write its rows."""
        if not self._is_open:
            return
        recorder = self._recorder
        self._recorder = None
        self._is_open = False
        if recorder is not None:
            self._capture.end_step()
            self._is_installed = False
            recorder.close()
            if self._counted.end_step():
                self._rounds.know(self._counted.known, self._keys)
        self._output.put(self._step, self._rows.end())
        seconds = time.perf_counter() - self._began
        own = self._own_seconds()
        inside = own - self._own_at_begin
        overhead = own - self._own_at_end
        self._own_at_end = own
        if self._is_census:
            return
        times = StepTimes(seconds, inside, overhead, recorder is not None)
        if self._rounds.take(times):
            self._rounds.know(self._counted.known, self._keys)
            self._rounds.note(self._step + 1)
            self._output.file.steps = self._rounds.steps

    # -- what was recorded ----------------------------------------------------------------------------------------

    def take(self) -> dict[str, Mapping[str, float]]:
        """Return the numbers that were written since the last time, by their entries."""
        return self._output.take()

    def differences(self) -> list[Alarm]:
        """Return the first difference from the golden run, once."""
        return self._output.differences()

    def raise_pending(self) -> None:
        """Raise an error of the training that a fetch has met first."""
        self._numbers.raise_pending()

    def close(self) -> None:
        """Write what is left, and release the file."""
        self._capture.end_step()
        self._output.close()

    def detach(self) -> None:
        """Release everything in a forked child: the file is the parent's."""
        self._capture.detach()
        self._recorder = None
        self._is_open = False
        self._counted_models.clear()


def _are_same(left: list[Any], right: list[Any]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right))


def _joined(left: Mapping[str, set[int]], right: Mapping[str, set[int]]) -> dict[str, set[int]]:
    """Return the numbers of calls of both, by their keys.

    >>> _joined({"Functional.relu": {1}}, {"Functional.relu": {2}, "Tensor.add": {0}})
    {'Functional.relu': {1, 2}, 'Tensor.add': {0}}
    """
    keys = dict.fromkeys((*left, *right))
    return {key: left.get(key, set()) | right.get(key, set()) for key in keys}
