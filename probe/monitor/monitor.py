# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Watches the steps of one training: hooks, numbers, the file, the alarms."""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Optional

from probe.capture.pynative.cells import ModelAndLoss, iter_cells
from probe.capture.training.events import Observer, TrainingHooks
from probe.config.settings import Settings
from probe.layers.layer import parameters_below
from probe.measure.statistics import OwnNumbers
from probe.monitor.alarms import Alarms
from probe.monitor.cell_values import CellTask, CellValues
from probe.monitor.mechanisms import Mechanisms
from probe.monitor.numbers import HostNumbers, StepValues, new_numbers
from probe.monitor.rolling.golden_calls import GoldenCalls
from probe.monitor.rolling.rolling import Rolling
from probe.parameter_names import ParameterNames
from probe.private_names import installed_parts
from probe.repeats.held_call import HeldCalls
from probe.series.alarm import Alarm
from probe.series.file import SeriesFile
from probe.store.error_log import ErrorLog
from probe.store.file_names import MONITOR

Take = Callable[
    [int, Any], Optional[list[Alarm]]
]  # takes a step and its numbers, and may return alarms


_UNJUDGED = {"seconds"}  # series that no rule looks at


class Watch:
    """Measures steps, and gives their numbers to ``takes``."""

    def __init__(
        self, values: Observer, numbers: HostNumbers, errors: ErrorLog, *takes: Take
    ) -> None:
        self.values: Any = (
            values  # receives what the hooks see; its ``end`` returns the row of a step
        )
        self.cells: list[CellValues] = []  # watch Cells; others may take their place between steps
        self.numbers = numbers
        self._errors = errors
        self._takes = takes
        self.hooks = TrainingHooks(values, numbers.on_cpu, errors)
        #: ``scalars`` are still on a device; ``finish`` gets them when the next step ends: nothing waits within a step
        self._rows: deque[tuple[int, Any]] = deque()
        self.row: Any = {}  # the numbers of the last step that was handed on
        self.is_prompt = False  # the numbers of a step are fetched when it ends: that waits

    def install(self, models: Any) -> None:
        """Begin to watch; also again within a step."""
        for cells in self.cells:
            cells.install(models)
        self.hooks.install()

    def remove(self) -> None:
        """Watch nothing but the gradients of a backward that may follow."""
        with self._errors.guard("removing the hooks"):
            self.hooks.remove()
            for cells in self.cells:
                cells.remove()

    def end_cells(self) -> list[str]:
        """End the step of the Cells; return the names in ``list`` that none has matched."""
        with self._errors.guard("removing the hooks of Cells"):
            return [name for cells in self.cells for name in cells.end_step()]
        return []

    def end_step(self, step: int) -> list[Alarm]:
        """End the step; return the alarms of the steps whose numbers are complete."""
        row = self.values.end()
        self._rows.append((step, row))
        return self._hand_on(keep=bool(row.scalars) and not self.is_prompt)

    def _hand_on(self, keep: bool) -> list[Alarm]:
        found: list[Alarm] = []
        while len(self._rows) > keep:
            step, row = self._rows.popleft()
            self.row = {}
            with self._errors.guard("reading the numbers of a step"):
                self.row = row.finish(self.numbers.fetch(row.scalars))
            for take in self._takes:
                with self._errors.guard("writing the row of a step"):
                    found += take(step, self.row) or ()
        return found

    def close(self) -> None:
        """Watch no more, and hand everything on."""
        self.end_cells()  # first: these hooks lie above the others
        with self._errors.guard("removing the hooks"):
            self.hooks.end_step()
        self._hand_on(keep=False)


class Monitor:
    """Measures each step, for task "monitor". ``held`` can make a step again, where the setting wants it.

    ``own_seconds`` returns the processor time of all our calls so far.
    """

    def __init__(
        self, dump_path: str, rank: str, settings: Settings, own_seconds: Callable[[], float]
    ) -> None:
        self.folder = os.path.join(dump_path, MONITOR, rank)
        self.errors = ErrorLog(self.folder, set())
        self.file = SeriesFile(self.folder)
        self.alarms = Alarms(self.folder, self.errors)
        numbers = new_numbers(settings.measure)
        self._settings = settings
        numbers.own = OwnNumbers(
            () if isinstance(settings.summary_mode, str) else settings.summary_mode
        )
        self.values = values = StepValues(numbers, self.errors)
        of_cells = replace(settings, task="statistics", level="L0", extra_info=False, keep_steps=0)
        task = CellTask(settings.data_mode, lambda slot, tensor: values.note(str(slot), tensor))
        self._listed = [CellValues(of_cells, self.errors, task)] if settings.list else []
        self._mechanisms = Mechanisms(numbers, self.errors, values)
        self.held: HeldCalls | None = None
        if settings.on_alarm == "again":
            new_held = functools.partial(HeldCalls, numbers.on_cpu, self.errors)
            self.held = installed_parts().make("the step once more", new_held, None)
        self.watch = Watch(
            values,
            numbers,
            self.errors,
            self._mechanisms.add_ratios,
            self.file.write,
            self._look,
        )
        self.watch.is_prompt = self.held is not None
        #: a dump with ``rolling`` has no numbers of gradients and updates
        self._has_numbers = settings.task == "monitor"
        self.rolling: Rolling | None = None
        if settings.is_rolling:
            golden = GoldenCalls(settings.golden, rank) if settings.golden else None
            new_rolling = functools.partial(
                Rolling, self.folder, settings, self.errors, golden, own_seconds
            )
            self.rolling = installed_parts().make("rolling records", new_rolling, None)
        self._models = None
        self._is_open = False
        self._names = ParameterNames()  # those of the parameters

    def wait(self, step: int) -> None:
        """Wait before a step whose weights are read. Raises a pending error of the training: no guard may end it."""
        if not self._is_open and self._settings.mechanisms and step % self._settings.interval == 0:
            self.watch.numbers.ready()

    def _look(self, step: int, row: Mapping[str, float]) -> list[Alarm]:
        if self.rolling is None:
            return self.alarms.look(step, row)
        apart = self.rolling.differences()
        of_calls = self.rolling.take()
        if not of_calls and not apart and row.keys() <= _UNJUDGED:
            return []  # most steps of a dump with ``rolling``
        return [
            *self.alarms.look(step, row, of_calls),
            *self.alarms.told(apart),
        ]

    def begin(
        self, step: int, models: Any, is_other: bool = False, is_dumped: bool = False
    ) -> None:
        """Begin to watch; also again within a step.

        ``is_other``: the parameters of earlier models keep their names. ``is_dumped``: a dump records this step.
        """
        if models is not self._models or (self._has_numbers and not self._names.are_current):
            self._models = models
            if not is_other:
                self._names = ParameterNames(iter_cells(models))
            self.watch.hooks.watch(_parameters(models, self._names), self._names)
            has_mechanisms = self._settings.mechanisms and self._has_numbers
            self._mechanisms.find(models if has_mechanisms else None, self._names)
        is_first = not self._is_open
        if is_first:
            self._is_open = True
            self.values.begin(is_measured := step % self._settings.interval == 0)
            self.watch.cells = [*self._listed, *(self._mechanisms.begin() if is_measured else ())]
        if self._has_numbers:
            self.watch.install(models)
        if self.held is not None:
            self.held.install()
        if self.rolling is not None and is_dumped:
            self.rolling.skip(step)
        elif self.rolling is not None:
            self.rolling.begin(step, models)

    def pause(self) -> None:
        """Watch nothing but the gradients of a backward that may follow."""
        if self.rolling is not None:
            with self.errors.guard("removing the hooks of rolling records"):
                self.rolling.pause()
        self.watch.remove()
        if self.held is not None:
            with self.errors.guard("removing the hooks"):
                self.held.remove()

    def measure_again(self, run: Callable[[], Any]) -> dict[str, float]:
        """Return the numbers of gradient functions that are called again. No row has them."""
        values = StepValues(self.watch.numbers, self.errors)
        hooks = TrainingHooks(values, self.watch.numbers.on_cpu, self.errors)
        hooks.watch(_parameters(self._models, self._names), self._names)
        hooks.install()
        try:
            run()
            values.wait()
        finally:
            hooks.end_step()
        row = values.end()
        return row.finish(self.watch.numbers.fetch(row.scalars))

    def end_step(self, step: int) -> list[Alarm]:
        """End the step: write its row, and return its alarms."""
        if self.rolling is not None:
            with self.errors.guard("writing the records of a step"):
                self.rolling.end_step()
        with self.errors.guard("removing the hooks"):
            self.watch.hooks.end_step()
        for name in set(self.watch.end_cells()).intersection(self._settings.list):
            self.errors.note(name, f"no Cell has matched {name!r} of the setting list")
        is_open = self._is_open
        self._is_open = False
        return self.watch.end_step(step) if is_open else []

    def close(self) -> None:
        """Release everything."""
        if self.rolling is not None:
            with self.errors.guard("closing the file of calls"):
                self.rolling.close()
        self.watch.close()
        with self.errors.guard("closing the file"):
            self.file.close()
        if self.held is not None:
            self.held.close()
        self._models = None
        self._names = ParameterNames()

    def detach(self) -> None:
        """Release everything in a forked child: the file is the parent's."""
        if self.rolling is not None:
            self.rolling.detach()
        self.watch.hooks.end_step()
        if self.held is not None:
            self.held.close()
        self._is_open = False
        self._models = None


def _parameters(models: Any, names: ParameterNames) -> Mapping[str, Any]:
    """Return the parameters of models that are trained, by their names."""
    several = (
        models
        if isinstance(models, (list, tuple)) and not isinstance(models, ModelAndLoss)
        else [models]
    )
    cells = [models.model, models.loss] if isinstance(models, ModelAndLoss) else several
    return {
        names.of(parameter): parameter
        for cell in cells
        for parameter in parameters_below(cell)
        if parameter.requires_grad
    }
