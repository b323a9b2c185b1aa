# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The steps of a training that TrainerMon watches: which of them are measured, and with which settings."""

from __future__ import annotations

import os
import weakref

from probe.capture.autograd.nodes import AutogradNodes
from probe.monitor.msprobe.alerts import Alerts
from probe.monitor.msprobe.cell_rows import CellRows
from probe.monitor.msprobe.collector import Collector
from probe.monitor.msprobe.config import ConfigSource, TrainerConfig
from probe.monitor.msprobe.csv_files import CsvFiles
from probe.monitor.msprobe.measuring import DeviceOps, HostOps
from probe.monitor.msprobe.names import chosen_cells, chosen_parameters
from probe.monitor.msprobe.watched import Watched
from probe.monitor.training_hooks import TrainingHooks
from probe.process.signals import call_in_forked_child
from probe.store.error_log import ErrorLog


class Training:
    """Counts the steps, and measures those that the settings select.

    Args:
        source: the settings.
        watched: the parts of the training.
        rank: the rank.
        folder: the folder of its files.
        first: the number of the first step.
    """

    def __init__(self, source: ConfigSource, watched: Watched, rank: int, folder: str, first: int) -> None:
        self._source, self._watched, self._rank, self._folder = source, watched, rank, folder
        self._errors = ErrorLog(folder, set())
        self._config = TrainerConfig()
        self._step, self._first, self._left = first, first, 0
        self._hooks: TrainingHooks | None = None
        self._collector: Collector | None = None

    def begin(self) -> None:
        """Begin with the first step."""
        call_in_forked_child(weakref.WeakMethod(self.detach))
        if self._source.first is None:
            self._use(TrainerConfig(collect_times=0), self._step)
        else:
            self._use(self._source.first, self._source.first.start_step)

    def _use(self, config: TrainerConfig, first: int) -> None:
        """Use these settings from this step on."""
        self._release()
        if config.module_ranks and self._rank not in config.module_ranks:
            config = TrainerConfig(collect_times=0)
        self._config, self._first, self._left = config, first, config.collect_times
        self._collector = self._new_collector(config)
        self._collector.begin(self._wants)

    def _new_collector(self, config: TrainerConfig) -> Collector:
        from mindspore import get_context

        parameters = chosen_parameters(self._watched.models, config.targets)
        if not config.collect_times:
            parameters = {}
        on_cpu, wait = get_context("device_target") == "CPU", AutogradNodes().synchronize
        ops = HostOps(config.ops, config.eps, wait) if on_cpu else DeviceOps(config.ops, config.eps, wait, on_cpu)
        files = CsvFiles(self._folder, config.ops, config.ndigits, config.step_count_per_record)
        rules, is_written = config.alert
        alarms = os.path.join(os.path.dirname(self._folder), "anomaly_detected") if is_written else ""
        output = files, Alerts(rules, alarms, self._rank)
        collector = Collector(config, self._watched, parameters, self._cells(config), ops, output, self._errors)
        collector.ended = self._ended
        self._hooks = TrainingHooks(collector, on_cpu, self._errors)
        if config.wg_distribution:
            self._hooks.watch({text: parameter for text, (_, parameter) in parameters.items()})
        self._hooks.install()
        return collector

    def _cells(self, config: TrainerConfig) -> CellRows | None:
        both = config.forward_only and config.backward_only
        if not config.xy_distribution or not config.collect_times or both:
            return None
        cells = chosen_cells(self._watched.models, config.targets, config.all_xy or not config.targets)
        return CellRows(config, self._watched, cells, self._errors, self._folder) if cells else None

    @property
    def _wants(self) -> bool:
        distance = self._step - self._first
        return self._left > 0 and distance >= 0 and distance % self._config.step_interval == 0

    def _ended(self) -> None:
        """End the step: the optimizer was called."""
        collector = self._collector
        if collector is None:
            return
        if collector.is_on:
            self._left -= 1
            collector.end(self._step)
        self._step += 1
        edited = self._source.changed()
        if edited is not None:
            self._use(edited, self._step)
        elif self._config.collect_times and self._left <= 0:
            self._source.turn_off()
            if self._source.first is None:
                self._use(TrainerConfig(collect_times=0), self._step)
            else:
                self._release()
        else:
            collector.begin(self._wants)

    def _release(self) -> None:
        hooks, self._hooks = self._hooks, None
        collector, self._collector = self._collector, None
        if hooks is not None and collector is not None:
            with self._errors.guard("writing the last step"):
                collector.stop()  # first: the hooks of Cells lie above the others
            with self._errors.guard("removing the hooks"):
                hooks.end_step()

    def close(self) -> None:
        """Watch no more, and write everything."""
        self._release()

    def detach(self) -> None:
        """Watch no more in a forked child: the files are the parent's."""
        hooks, self._hooks, self._collector = self._hooks, None, None
        if hooks is not None:
            hooks.end_step()
