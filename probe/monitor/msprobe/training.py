# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The steps of a training that TrainerMon watches: which are measured, with which settings, and their alerts."""

from __future__ import annotations

import json
import logging
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from probe.capture.training.events import TrainingHooks
from probe.config.settings import Settings
from probe.findings.sentence import say, table
from probe.monitor.cell_values import CellValues
from probe.monitor.msprobe.config import ConfigSource, TrainerConfig
from probe.monitor.msprobe.parts import Models, Watched, chosen_cells, chosen_parameters
from probe.monitor.msprobe.values import TrainerValues
from probe.monitor.numbers import Rows, new_numbers
from probe.process.signals import call_in_forked_child
from probe.series.msprobe_csv import CsvFiles, Tables
from probe.series.table import MSPROBE
from probe.store import file_io
from probe.store.error_log import ErrorLog


class Training:
    """Counts the steps from ``first`` on, and measures those that the settings select."""

    def __init__(self, source: ConfigSource, watched: Watched, rank: int, folder: str, first: int) -> None:
        self._source, self._watched, self._rank, self._folder = source, watched, rank, folder
        self._errors = ErrorLog(folder, set())
        self._config = TrainerConfig()
        self._step, self._first, self._left = first, first, 0
        self._measuring: _Measuring | None = None
        call_in_forked_child(weakref.WeakMethod(self.detach))
        begin = source.first
        self._use(begin or TrainerConfig(collect_times=0), begin.start_step if begin else first)

    def _use(self, config: TrainerConfig, first: int) -> None:
        """Use these settings from this step on."""
        self.close()
        if config.module_ranks and self._rank not in config.module_ranks:
            config = TrainerConfig(collect_times=0)
        self._config, self._first, self._left = config, first, config.collect_times
        self._measuring = _Measuring(config, self._watched, self._rank, self._folder, self._errors)
        self._measuring.values.ended = self._ended
        self._measuring.begin(self._wants)

    @property
    def _wants(self) -> bool:
        distance = self._step - self._first
        return self._left > 0 and distance >= 0 and distance % self._config.step_interval == 0

    def _ended(self) -> None:
        """End the step: the optimizer was called."""
        measuring = self._measuring
        if measuring is None:
            return
        if measuring.values.is_on:
            self._left -= 1
            measuring.end(self._step)
        self._step += 1
        edited = self._source.changed()
        if edited is not None:
            self._use(edited, self._step)
        elif self._config.collect_times and self._left <= 0:
            self._source.turn_off()
            if self._source.first is None:
                self._use(TrainerConfig(collect_times=0), self._step)
            else:
                self.close()
        else:
            measuring.begin(self._wants)

    def close(self) -> None:
        """Watch no more, and write everything."""
        measuring, self._measuring = self._measuring, None
        if measuring is not None:
            measuring.close()

    def detach(self) -> None:
        """Watch no more in a forked child: the files are the parent's."""
        measuring, self._measuring = self._measuring, None
        if measuring is not None:
            measuring.hooks.end_step()


class _Measuring:
    """Measures the steps of a training with the same settings."""

    def __init__(self, config: TrainerConfig, watched: Watched, rank: int, folder: str, errors: ErrorLog) -> None:
        self._errors, self._models, numbers = errors, Models(watched.models), new_numbers()
        is_used = bool(config.collect_times)
        parameters = chosen_parameters(watched.models, config.targets) if is_used else {}
        has_cells = is_used and config.xy_distribution and not (config.forward_only and config.backward_only)
        every = config.all_xy or not config.targets
        cells = chosen_cells(watched.models, config.targets, every) if has_cells else {}
        self.values = TrainerValues(config, watched, parameters, cells, numbers, errors)
        self.hooks = TrainingHooks(self.values, numbers.on_cpu, errors)
        self._cells = CellValues(_settings(config, cells), errors, self.values.note_cell) if cells else None
        rules, is_written = config.alert
        alarms = os.path.join(os.path.dirname(folder), "anomaly_detected") if is_written else ""
        files = CsvFiles(folder, config.ndigits, config.step_count_per_record)
        self._rows, self._output = Rows(numbers, errors), (files.write, Alerts(rules, alarms, rank).look)
        if config.wg_distribution:
            self.hooks.watch({text: parameter for text, (_, parameter) in parameters.items()})
        self.hooks.install()

    def begin(self, is_on: bool) -> None:
        """Begin a step, and measure it or not."""
        self.values.is_on = is_on
        if is_on and self._cells is not None:
            with self._errors.guard("watching Cells"):
                self._cells.install(self._models)

    def end(self, step: int) -> None:
        """End a step that was measured."""
        row = self.values.end()
        self._end_cells()
        self._write(self._rows.add(step, row))

    def _write(self, rows: Iterator[tuple[int, Tables]]) -> None:
        for step, tables in rows:
            for take in self._output:
                with self._errors.guard("writing a step"):
                    take(step, tables)

    def _end_cells(self) -> None:
        if self._cells is not None:
            with self._errors.guard("removing the hooks of Cells"):
                self._cells.end_step()

    def close(self) -> None:
        """Watch no more, and write everything."""
        self.values.is_on = False
        self._end_cells()  # first: these hooks lie above the others
        self._write(self._rows.finish())
        with self._errors.guard("removing the hooks"):
            self.hooks.end_step()


def _settings(config: TrainerConfig, cells: Mapping[str, Any]) -> Settings:
    """Return the settings by which Cells are watched; without targets, all are."""
    modes = {"input", "output", "forward", "backward"}
    modes -= {"backward"} if config.forward_only else {"forward"} if config.backward_only else set()
    wanted = () if config.all_xy or not config.targets else tuple(f"{key}." for key in cells)
    return Settings(
        level="L0", extra_info=False, optimizer="off", snapshot=False, list=wanted, data_mode=frozenset(modes)
    )


_log = logging.getLogger("probe")

#: the part of the older mean in the running mean
_KEPT = 0.99
#: most alarms in anomaly.json, which is written anew with each
_MOST = 1000
#: the words of msprobe for the kinds of numbers, where they are not those of the files
_TAGS = {"grad_unreduced": "acc_grad", "grad_reduced": "post_grad"}


class Alerts:
    """Compares each number with the running mean of its series.

    Args:
        rules: the rules with their thresholds; of several that hold, the first counts.
        folder: the folder of anomaly.json; "" where it is not written.
        rank: the rank.
    """

    def __init__(self, rules: Sequence[tuple[str, float | None]], folder: str, rank: int) -> None:
        table()  # as in Alarms
        self._rules, self._folder, self._rank = rules, folder, rank
        self._means: dict[tuple[str, str], float] = {}
        self._found: dict[str, dict[str, Any]] = {}

    def look(self, step: int, tables: Tables) -> None:
        """Look at the numbers of a step."""
        found = len(self._found)
        places = ((kind, place, row) for kind, rows in tables.items() for place, row in rows.items())
        for call, (kind, (name, part), row) in enumerate(places if self._rules else ()):
            tag = f"{name}{':' if part else ''}{part}/rank{self._rank}/{_TAGS.get(kind, kind)}"
            for op, value in row.items():
                text = self._judge(tag, op, value, step) if isinstance(value, float) else ""
                if text and self._folder and len(self._found) < _MOST:
                    self._found["_".join((tag, "step", str(step), "call", str(call)))] = {
                        "rank": self._rank, "step": step, "micro_step": 0, "pp_stage": 0, "vpp_stage": name.stage,
                        "call_id": call, "tag_name": tag, "message": text, "group_mates": [self._rank],
                    }  # fmt: skip
        if len(self._found) > found:
            self._write()

    def _judge(self, tag: str, op: str, value: float, step: int) -> str:
        """Return what the first rule that holds says, after it was told; "" where none does."""
        mean = self._means.setdefault((tag, op), abs(value))
        self._means[tag, op] = _KEPT * mean + (1 - _KEPT) * abs(value)
        for rule, threshold in self._rules:
            ops, holds = MSPROBE[rule]
            if (not ops or op in ops) and holds(value, mean, threshold):
                facts = {"op": op, "value": value, "mean": mean, "step": step}
                text = str(say("alarm.msprobe", rule=rule, tag=tag, **facts))
                _log.warning("alarm: %s", text)
                return text
        return ""

    def _write(self) -> None:
        folder = file_io.make_dirs(os.path.join(self._folder, f"rank{self._rank}"))
        with file_io.atomic_write(os.path.join(folder, "anomaly.json")) as file:
            json.dump(self._found, file, indent=1)
