# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Watches the steps of one training: hooks, numbers, the file, the alarms."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from probe.capture.pynative.cells import ModelAndLoss
from probe.capture.training.events import TrainingHooks
from probe.config.settings import Settings
from probe.monitor.alarms import Alarms
from probe.monitor.cell_values import CellValues
from probe.monitor.numbers import Rows, new_numbers
from probe.monitor.step_values import StepValues
from probe.series.file import SeriesFile
from probe.series.rules import Alarm
from probe.store.error_log import ErrorLog
from probe.store.file_names import MONITOR


class Monitor:
    """Measures each step."""

    def __init__(self, dump_path: str, rank: str, settings: Settings) -> None:
        self.folder = os.path.join(dump_path, MONITOR, rank)
        self._errors = ErrorLog(self.folder, set())
        self._file = SeriesFile(self.folder)
        self.alarms = Alarms(self.folder, self._errors)
        self._numbers = new_numbers(settings.measure)
        self._values = StepValues(self._numbers, self._errors)
        self._hooks = TrainingHooks(self._values, self._numbers.on_cpu, self._errors)
        self._rows = Rows(self._numbers, self._errors)
        self._interval = settings.interval
        self._cells: CellValues | None = None
        if settings.list:
            of_cells = replace(settings, task="statistics", level="L0", extra_info=False, keep_steps=0)
            note = self._values.note
            self._cells = CellValues(of_cells, self._errors, lambda slot, tensor: note(str(slot), tensor))
        self._models: Any = None
        self._is_open = False

    @property
    def steps(self) -> int:
        """The number of rows that were written."""
        return self._file.count

    def begin(self, step: int, models: Any) -> None:
        """Begin to watch; also again within a step."""
        if models is not self._models:
            self._models = models
            self._hooks.watch(_parameters(models))
        if not self._is_open:
            self._is_open = True
            self._values.begin(step % self._interval == 0)
        if self._cells is not None:
            self._cells.install(models)
        self._hooks.install()

    def pause(self) -> None:
        """Watch nothing but the gradients of a backward that may follow."""
        with self._errors.guard("removing the hooks"):
            self._hooks.remove()
            if self._cells is not None:
                self._cells.remove()

    def log(self, name: str, number: float) -> None:
        """Add a number of the user's to this step."""
        self._values.log(name, number)

    def wait(self) -> None:
        """Wait for the numbers of the step. Raises a pending error of the training."""
        self._values.wait()

    def raise_pending(self) -> None:
        """Raise an error of the training that the monitor has met first."""
        self._numbers.raise_pending()

    def end_step(self, step: int) -> list[Alarm]:
        """End the step: write its row, and return its alarms."""
        with self._errors.guard("removing the hooks"):
            self._hooks.end_step()
            for name in self._cells.end_step() if self._cells is not None else ():
                self._errors.note(name, f"no Cell has matched {name!r} of the setting list")
        if not self._is_open:
            return []
        self._is_open = False
        return self._write(self._rows.add(step, self._values.end()))

    def _write(self, rows: Iterator[tuple[int, dict[str, float]]]) -> list[Alarm]:
        """Write rows; return their alarms."""
        found: list[Alarm] = []
        for step, values in rows:
            with self._errors.guard("writing the row of a step"):
                self._file.write(step, values)
            found += self.alarms.look(step, values)
        return found

    def close(self) -> None:
        """Release everything."""
        with self._errors.guard("removing the hooks"):
            self._hooks.end_step()
        self._write(self._rows.finish())
        with self._errors.guard("closing the file"):
            self._file.close()
        self._models = None

    def detach(self) -> None:
        """Release everything in a forked child: the file is the parent's."""
        self._hooks.end_step()
        self._is_open, self._models = False, None


def _parameters(models: Any) -> Mapping[str, Any]:
    several = models if isinstance(models, (list, tuple)) and not isinstance(models, ModelAndLoss) else [models]
    cells = [models.model, models.loss] if isinstance(models, ModelAndLoss) else several
    return {parameter.name: parameter for cell in cells for parameter in cell.trainable_params()}
