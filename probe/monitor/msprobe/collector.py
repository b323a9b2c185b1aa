# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Measures the steps of a training that TrainerMon watches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from probe.capture.optimizer_values import OptimizerValues
from probe.monitor.msprobe.alerts import Alerts
from probe.monitor.msprobe.cell_rows import CellRows, without_lone_numbers
from probe.monitor.msprobe.config import TrainerConfig
from probe.monitor.msprobe.csv_files import CsvFiles
from probe.monitor.msprobe.measuring import Cells, Fetched, HostOps
from probe.monitor.msprobe.names import Name
from probe.monitor.msprobe.watched import Watched
from probe.naming import ADAM_STATES
from probe.pytree import leaves
from probe.store.error_log import ErrorLog

#: kind -> (name, part of the step) -> the numbers
Tables = dict[str, dict[tuple[Name, str], Cells]]


class Step(NamedTuple):
    """The numbers of a step.

    Attributes:
        number: its number.
        tables: its numbers.
        waiting: those that are still on the device.
    """

    number: int
    tables: Tables
    waiting: list[Fetched]


class Collector:
    """Collects the numbers of each step and writes them; see ``training_hooks.Observer``.

    Args:
        config: the settings.
        watched: the parts of the training.
        parameters: the parameters with their names, by the texts of these.
        cells: watches the Cells, or None.
        ops: measures tensors.
        output: the files, and the alarms.
        errors: reports errors of the tool.

    Attributes:
        is_on: whether this step is measured.
        ended: is called when the last optimizer has ended.
    """

    def __init__(
        self,
        config: TrainerConfig,
        watched: Watched,
        parameters: Mapping[str, tuple[Name, Any]],
        cells: CellRows | None,
        ops: HostOps,
        output: tuple[CsvFiles, Alerts],
        errors: ErrorLog,
    ) -> None:
        self._config, self._watched, self._cells, self._ops = config, watched, cells, ops
        self._output, self._errors = output, errors
        self._names: dict[int | str, Name] = {id(parameter): name for name, parameter in parameters.values()}
        self._names.update((text, name) for text, (name, _) in parameters.items())
        self._parts: dict[str, int] = {}  # the backwards of this step, by parameter
        self._tables: Tables = {}
        self._steps: deque[Step] = deque()
        self.is_on = False
        self.ended: Callable[[], None] = lambda: None

    def begin(self, is_on: bool) -> None:
        """Begin a step, and measure it or not."""
        self.is_on = is_on
        if is_on and self._cells is not None:
            with self._errors.guard("watching Cells"):
                self._cells.begin(self._note)

    def _note(self, kind: str, name: Name, tensor: Any, micro: str = "") -> None:
        self._tables.setdefault(kind, {})[name, micro] = self._ops.measure(tensor)

    # -- the hooks ------------------------------------------------------------------------------------------------

    def differentiated(self, output: Any) -> None:
        """The loss is in no file."""

    def scaled(self, scale: Any) -> None:
        """Nor is the loss scale."""

    def gradients(self, arrived: Sequence[tuple[str, Any]]) -> None:
        """Measure gradients that arrived: the last one of the step, or each."""
        for name, gradient in arrived:
            self._gradient(name, gradient)

    def _gradient(self, name: str, gradient: Any) -> None:
        part = self._parts.get(name, 0)
        self._parts[name] = (part + 1) % self._watched.accumulated
        each = self._config.monitor_mbs_grad
        if self.is_on and (each or part + 1 == self._watched.accumulated):
            self._ops.ready()
            with self._errors.guard("reading a parameter's gradient", name):
                self._note("grad_unreduced", self._names[name], gradient, str(part) if each else "")

    def before_update(self, name: str, optimizer: OptimizerValues, gradients: Any) -> None:
        """Measure the gradients that enter an optimizer, its parameters and states."""
        if not self.is_on or not self._is_watched(optimizer):
            return
        self._ops.ready()
        with self._errors.guard("reading an optimizer", name):
            if self._config.wg_distribution:
                given = (leaf for leaf in leaves(gradients) if hasattr(leaf, "asnumpy"))
                for parameter, gradient in zip(optimizer.parameters.values(), given):
                    own = self._names.get(id(parameter))
                    if own is not None and not self._watched.is_duplicate(parameter):
                        self._note("grad_reduced", own, gradient)
            if self._config.mv_distribution:
                self._note_states(optimizer)
            if self._config.param_distribution:
                self._note_parameters("param_origin", optimizer)

    def after_update(self, name: str, optimizer: OptimizerValues) -> None:
        """Measure the parameters, and end the step with the last optimizer."""
        if self.is_on and self._config.param_distribution and self._is_watched(optimizer):
            self._ops.ready()
            with self._errors.guard("reading parameters", name):
                self._note_parameters("param_updated", optimizer)
        if optimizer.is_of(self._watched.optimizers[-1]):
            with self._errors.guard("ending a step"):
                self.ended()
            self._ops.fetcher.raise_pending()

    def _is_watched(self, optimizer: OptimizerValues) -> bool:
        return any(optimizer.is_of(known) for known in self._watched.optimizers)

    def _note_states(self, optimizer: OptimizerValues) -> None:
        for key, state in optimizer.states.items():
            state_name, _, parameter = key.partition(".")
            own = self._names.get(id(optimizer.parameters[parameter]))
            if state_name in ADAM_STATES and own is not None:
                self._note(ADAM_STATES[state_name], own, state)

    def _note_parameters(self, kind: str, optimizer: OptimizerValues) -> None:
        for parameter in optimizer.parameters.values():
            own = self._names.get(id(parameter))
            if own is not None:
                self._note(kind, own, parameter)

    # -- the end of a step ----------------------------------------------------------------------------------------

    def end(self, step: int) -> None:
        """End a step that was measured: write it, or the one before it while its numbers are on the device."""
        self._end_cells()
        tables, self._tables, self.is_on = self._tables, {}, False
        for kind in ("actv", "actv_grad"):
            if kind in tables:
                tables[kind] = without_lone_numbers(tables[kind])
        self._steps.append(Step(step, tables, self._ops.take()))
        self.write(keep=bool(self._steps[-1].waiting))

    def write(self, keep: bool) -> None:
        """Write the steps that have ended; ``keep`` leaves out the last one."""
        files, alerts = self._output
        while len(self._steps) > keep:
            step = self._steps.popleft()
            with self._errors.guard("writing a step"):
                self._ops.fetch(step.waiting)
                call = 0
                for kind, rows in step.tables.items():
                    files.write(kind, step.number, rows)
                    for (name, micro), cells in rows.items():
                        numbers = {op: cell for op, cell in zip(self._ops.ops, cells) if isinstance(cell, float)}
                        alerts.look(kind, name, micro, numbers, step.number, call)
                        call += 1

    def _end_cells(self) -> None:
        if self._cells is not None:
            with self._errors.guard("removing the hooks of Cells"):
                self._cells.end()

    def stop(self) -> None:
        """Watch no Cell any more, and write everything."""
        self._end_cells()
        self.is_on = False
        self.write(keep=False)
