# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""TrainerMon: msprobe's monitor of a training, with its settings file and its csv files."""

from __future__ import annotations

import atexit
import os
import time
import uuid
import weakref
from typing import Any

from probe.config.loading import PathLike
from probe.errors import UsageError, raised_at_caller
from probe.layers.layer import SeveralModels
from probe.monitor.alarms import Alerts
from probe.monitor.monitor import Watch
from probe.monitor.msprobe.cell_rows import CellRows
from probe.monitor.msprobe.config import TIME, ConfigSource, TrainerConfig, folder_between
from probe.monitor.msprobe.values import TrainerValues, Watched, chosen_parameters, watched
from probe.monitor.numbers import new_numbers
from probe.process.rank import RankResolver
from probe.process.signals import call_in_forked_child
from probe.series.msprobe_csv import CsvFiles
from probe.store.error_log import ErrorLog

#: the variable of the environment that names the folder, and the folder where it is not set
_OUTPUT = "MONITOR_OUTPUT_DIR"
_DEFAULT = "./monitor_output"
_CLOCK = 8 * 3600  # the clock of the folders' names, in seconds from UTC


class TrainerMon:
    """Writes numbers of the steps of a training to csv files, as msprobe's monitor does.

    Task "monitor" of PrecisionDebugger is probe's own: it costs less, and tells by itself which step to look at.

    Args:
        config_file_path: the settings file, with the keys of msprobe's monitor.
        process_group: accepted, without effect.
        params_have_main_grad: accepted, without effect: an optimizer's gradients are those that it is called with.

    Raises:
        SettingsError: when the file cannot be read, or a value in it is wrong.

    Example::

        monitor = TrainerMon("monitor.json")
        monitor.set_monitor(model, optimizer)
    """

    @raised_at_caller
    def __init__(
        self,
        config_file_path: PathLike,
        process_group: Any = None,
        params_have_main_grad: bool = True,
    ) -> None:
        self._source = ConfigSource(config_file_path)
        base = os.path.abspath(os.environ.get(_OUTPUT) or _DEFAULT)
        self._folder = os.path.join(base, time.strftime(TIME, time.gmtime(time.time() + _CLOCK)))
        self._parts = Watched([], [], 1, None, None)
        self._watch: Watch | None = None

    @raised_at_caller
    def set_monitor(
        self,
        model: Any,
        optimizer: Any,
        grad_acc_steps: int = 1,
        tp_group: Any = None,
        dp_group: Any = None,
        start_iteration: int = 0,
    ) -> None:
        """Watch a training from now on. A step ends with the call of the optimizer.

        Args:
            model: a Cell, or a list of Cells.
            optimizer: an optimizer of MindSpore, or an object that holds one.
            grad_acc_steps: the number of backwards of a step.
            tp_group: the tensor-parallel group. Only its first rank writes grad_reduced of parameters that all hold.
            dp_group: the data-parallel group. Only its first rank writes grad_reduced.
            start_iteration: the number of the first step.

        Raises:
            UsageError: when an argument is wrong, or this object watches a training already.
        """
        parts = watched(model, optimizer, grad_acc_steps, tp_group, dp_group)
        if type(start_iteration) is not int or start_iteration < 0:
            raise UsageError(
                f"set_monitor(): start_iteration is {start_iteration!r}. Allowed: a whole number from 0"
            )
        if self._parts.models:
            raise UsageError(
                "set_monitor(): this TrainerMon watches a training already: make another one"
            )
        self._parts = parts
        self._step = start_iteration
        self._rank = RankResolver().rank() or 0
        found = folder_between(
            os.path.dirname(self._folder), self._rank, self._source.config.append_output
        )
        self._folder = found or f"{self._folder}-rank{self._rank}-{uuid.uuid4().hex[:8]}"
        self._errors = ErrorLog(self._folder, set())
        call_in_forked_child(weakref.WeakMethod(self._detach))
        first = self._source.first
        self._use(first, first.start_step if first else start_iteration)
        atexit.register(self.close)

    def close(self) -> None:
        """Watch no more, and write everything. It may be called twice; the end of the process does it too."""
        watch = self._watch
        self._watch = None
        if watch is not None:
            watch.values.is_on = False
            watch.close()

    def _detach(self) -> None:
        """Watch no more in a forked child: the files are the parent's."""
        watch = self._watch
        self._watch = None
        if watch is not None:
            watch.hooks.end_step()

    def _use(self, config: TrainerConfig | None, first: int) -> None:
        """Measure by these settings from the step ``first`` on; None to count the steps alone."""
        self.close()
        if config is None or (config.module_ranks and self._rank not in config.module_ranks):
            config = TrainerConfig(collect_times=0)
        self._config = config
        self._first = first
        self._left = config.collect_times
        self._watch = self._new_watch(config)
        self._begin(self._watch)

    def _new_watch(self, config: TrainerConfig) -> Watch:
        parts = self._parts
        errors = self._errors
        numbers = new_numbers()
        is_used = bool(config.collect_times)
        parameters = chosen_parameters(parts.models, config.targets) if is_used else {}
        cells = CellRows(config, parts, numbers, errors, is_first=True)
        values = TrainerValues(config, parts, parameters, cells, numbers, errors, self._ended)
        alerts = Alerts(config.alert, os.path.dirname(self._folder), self._rank)
        files = CsvFiles(self._folder, config.ndigits, config.step_count_per_record)
        watch = Watch(values, numbers, errors, files.write, alerts.look)
        watch.cells = cells.watching(values.note_cell)
        watch.hooks.watch(parameters if config.wg_distribution else {})
        watch.hooks.install()
        return watch

    def _begin(self, watch: Watch) -> None:
        distance = self._step - self._first
        watch.values.is_on = (
            self._left > 0 and distance >= 0 and distance % self._config.step_interval == 0
        )
        if watch.values.is_on:
            with self._errors.guard("watching Cells"):
                watch.install(SeveralModels(self._parts.models))

    def _ended(self) -> None:
        watch = self._watch
        if watch is None:
            return
        if watch.values.is_on:
            self._left -= 1
            watch.end_step(self._step)
            watch.end_cells()
            cells = watch.values.cells
            if cells.structure is not None:  # it is complete: fewer Cells are watched
                with self._errors.guard("writing stack_info.csv and module_struct.json"):
                    cells.structure.write(self._folder, self._rank)
                watch.values.cells = cells = CellRows(
                    self._config, self._parts, watch.numbers, self._errors
                )
                watch.cells = cells.watching(watch.values.note_cell)
        self._step += 1
        edited = self._source.changed()
        if edited is not None:
            self._use(edited, self._step)
        elif self._config.collect_times and self._left <= 0:
            self._source.turn_off()
            self.close()
            if self._source.first is None:  # an edit may begin again
                self._use(None, self._step)
        else:
            self._begin(watch)
