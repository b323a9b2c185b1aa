# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Collects the numbers of one step of TrainerMon, under the names of msprobe's monitor, and those of its parts."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from probe.capture.training.events import optimizer_kinds
from probe.capture.training.optimizer_values import OptimizerValues
from probe.errors import UsageError
from probe.layers.layer import SeveralModels, is_model, modules_of, placed_parameters, prefix_of
from probe.measure import features
from probe.measure.dtype_name import dtype_name
from probe.monitor.msprobe.config import TrainerConfig
from probe.monitor.numbers import FOUR, HostNumbers, Later, single
from probe.naming import ADAM_STATES, clean
from probe.pytree import leaves
from probe.series.msprobe_csv import Cell, Place, Tables, without_lone_numbers
from probe.series.series_name import Slot
from probe.store.error_log import ErrorLog

#: a name begins at the last of these parts that has a part before it; the first that fits counts
_BEGINNINGS = tuple(
    re.compile(rf".*\.(?={part})", re.DOTALL)
    for part in (r"layers?\.", r"embeddings?\.", "final", "output", "norm")
)
_HOLDERS = (
    "chained_optimizers",
    "optimizer",
)  # attributes by which an object holds an optimizer, or several


class Watched(NamedTuple):
    """The parts of a training."""

    models: list[Any]
    optimizers: list[Any]  # a step ends with the last one
    accumulated: int  # the number of backwards of a step
    tensor_group: Any  # the tensor-parallel group, or None
    data_group: Any  # the data-parallel group, or None

    def is_duplicate(self, parameter: Any) -> bool:
        """Return whether another rank writes the gradient that enters the optimizer for this parameter."""
        from mindspore.communication import get_rank

        is_split = getattr(parameter, "tensor_model_parallel", False)
        groups = (self.data_group, None if is_split else self.tensor_group)
        return any(group and get_rank(group) != 0 for group in groups)


def watched(
    model: Any, optimizer: Any, accumulated: Any, tensor_group: Any, data_group: Any
) -> Watched:
    """Return the parts of a training; raise UsageError when one is wrong."""
    if not is_model(model):
        raise UsageError(
            f"set_monitor(): model is {type(model).__name__}. Allowed: a Cell, a list of Cells"
        )
    if type(accumulated) is not int or accumulated < 1:
        raise UsageError(
            f"set_monitor(): grad_acc_steps is {accumulated!r}. Allowed: a whole number from 1"
        )
    optimizers = _optimizers(optimizer)
    if not optimizers:
        name = type(optimizer).__name__
        raise UsageError(
            f"set_monitor(): optimizer is {name}. Allowed: an optimizer of MindSpore, or its holder"
        )
    models = list(model) if isinstance(model, (list, tuple)) else [model]
    return Watched(models, optimizers, accumulated, tensor_group, data_group)


def _optimizers(given: Any) -> list[Any]:
    if isinstance(given, optimizer_kinds()):
        return [given]
    if isinstance(given, (list, tuple)):
        return [found for item in given for found in _optimizers(item)]
    held = next(
        (getattr(given, name) for name in _HOLDERS if getattr(given, name, None) is not None), None
    )
    return [] if held is None else _optimizers(held)


def shortened(name: str) -> str:
    """Return a name without the parts that wrap a model.

    >>> shortened("net.backbone.layers.0.weight"), shortened("fc.weight")
    ('layers.0.weight', 'fc.weight')
    """
    for beginning in _BEGINNINGS:
        found = beginning.match(name)
        if found:
            return name[found.end() :]
    return name


def chosen_parameters(models: Sequence[Any], targets: Sequence[str]) -> dict[str, Any]:
    """Return the parameters that are trained and begin with a target, by their names."""
    found: dict[str, Any] = {}
    for stage, model in enumerate(models):
        for path, parameter in placed_parameters(model):
            short = f"{stage}:{shortened(path)}"
            whole = f"{stage}:{path}"
            is_target = not targets or any(
                name.startswith(tuple(targets)) for name in (path, short, whole)
            )
            if parameter.requires_grad and is_target:
                found[whole if short in found else short] = parameter
    return found


def chosen_cells(
    models: Sequence[Any], targets: Sequence[str], every: bool
) -> dict[str, tuple[str, Any]]:
    """Return the Cells that are targets, or every Cell, with their names, by the keys of their calls."""
    found: dict[str, tuple[str, Any]] = {}
    taken: set[str] = set()
    prefix = prefix_of(models)
    for path, cell in modules_of(SeveralModels(models)):
        if path:
            stage, _, below = path.partition(".")
            names = [f"{stage}:{shortened(below)}", f"{stage}:{below}"]
            accepted = [
                name for name in names if name in targets or name.partition(":")[2] in targets
            ]
            if every or accepted:
                name = next((name for name in accepted or names if name not in taken), names[1])
                taken.add(name)
                found[clean(f"{prefix}.{path}.{type(cell).__name__}")] = name, cell
    return found


class StepTables(NamedTuple):
    """The numbers of a step that has ended; see ``monitor.Watch``."""

    tables: Mapping[
        str, Mapping[Place, Mapping[str, Any]]
    ]  # the beginning of the file's name -> its rows
    scalars: list[Any]
    ops: Sequence[str]  # the numbers that are written, in the order of the columns

    def finish(self, fetched: list[float]) -> Tables:
        """Return the rows."""
        return {
            kind: {
                place: self._row(row, fetched)
                for place, row in without_lone_numbers(kind, rows).items()
            }
            for kind, rows in self.tables.items()
        }

    def _row(self, found: Mapping[str, Any], fetched: list[float]) -> dict[str, Cell]:
        row = {
            op: single(cell.of(fetched)) if isinstance(cell, Later) else cell
            for op, cell in found.items()
        }
        if isinstance(found.get("norm"), Later) and math.isnan(
            row["norm"]
        ):  # the others of a device may leave NaN out
            row.update(dict.fromkeys(FOUR, math.nan))
        return {op: row[op] for op in self.ops if op in row} or row  # a feature


class TrainerValues:
    """The numbers of the step that is open; see ``events.Observer``. The loss and its scale are in no file."""

    def __init__(
        self,
        config: TrainerConfig,
        watched: Watched,
        parameters: Mapping[str, Any],
        cells: Any,
        numbers: HostNumbers,
        errors: ErrorLog,
        ended: Callable[[], None],
    ) -> None:
        self._config = config
        self._watched = watched
        self.cells = cells
        self._numbers = numbers
        self._errors = errors
        self._names = {id(parameter): name for name, parameter in parameters.items()}
        self._backwards: dict[str, int] = defaultdict(int)  # those of this step, by parameter
        self._tables: dict[str, dict[Place, Mapping[str, Any]]] = defaultdict(dict)
        self._ended = ended  # called after the last optimizer
        self.is_on = False  # whether this step is measured

    def end(self) -> StepTables:
        """End the step and return its numbers."""
        tables = self._tables
        self._tables = defaultdict(dict)
        self.is_on = False
        self.cells.forget()
        return StepTables(tables, self._numbers.take(), self._config.ops)

    def _note(self, kind: str, name: str | None, tensor: Any, part: str = "") -> None:
        if name is not None:
            self._tables[kind][name, part] = self._measured(tensor)

    def _measured(self, tensor: Any) -> dict[str, Any]:
        found = self._numbers.several(tensor, self._config.ops, self._config.eps)
        return {**found, "shape": str(tuple(tensor.shape)), "dtype": dtype_of(tensor)}

    def _note_parameters(self, kind: str, optimizer: OptimizerValues) -> None:
        for parameter in optimizer.parameters.values():
            self._note(kind, self._names.get(id(parameter)), parameter)

    def _note_updates(self, optimizer: OptimizerValues) -> None:
        """Measure the updates that Adam makes of its moments: the mean by the root of the mean square."""
        common = optimizer.scalars(lambda tensor: tensor)
        moments = _moments(optimizer)
        for group in [{**common, **group} for group in common.get("groups", [common])]:
            for key in (
                group["parameters"]
                if {"beta1", "beta2", "eps", "global_step"} <= group.keys()
                else ()
            ):
                name = self._name(optimizer, key)
                own = [states[key] for states in moments.values() if key in states]
                if name is not None and len(own) == 2:
                    made = self._numbers.made(features.adam, *own, group["global_step"], group)
                    self._note("ur_distribution", f"{name}.update", made[0])
                    self._note("ur_distribution", f"{name}.ratio", made[1])

    # -- the hooks ------------------------------------------------------------------------------------------------

    def differentiated(self, output: Any) -> None:
        """Note nothing of a loss; see ``Observer``."""

    def scaled(self, scale: Any) -> None:
        """Note nothing of a loss scale; see ``Observer``."""

    def scales(self, scale: Any) -> None:
        """Note nothing of a loss scale; see ``Observer``."""

    def before_adjust(self) -> None:
        """Note nothing of a loss scaler; see ``Observer``."""

    def note_cell(self, slot: Slot, tensor: Any) -> None:
        """Measure a tensor of a Cell or of a collective, or the gradient of one."""
        if self.is_on:
            for kind, name, part, row in self.cells.rows(slot, tensor, self._measured):
                self._tables[kind][name, part] = row

    def gradients(self, arrived: Sequence[tuple[str, Any]]) -> None:
        """Measure gradients that arrived: the last one of the step, or each."""
        each = self._config.monitor_mbs_grad
        last = self._watched.accumulated - 1
        for name, gradient in arrived:
            part = self._backwards[name]
            self._backwards[name] = 0 if part == last else part + 1
            if self.is_on and (each or part == last):
                self._numbers.ready()
                with self._errors.guard("reading a parameter's gradient", name):
                    self._note("grad_unreduced", name, gradient, str(part) if each else "")

    def before_update(self, name: str, optimizer: OptimizerValues, gradients: Any) -> None:
        """Measure the gradients that enter an optimizer, its parameters and states."""
        if not self.is_on or not self._is_watched(optimizer):
            return
        self._numbers.ready()
        with self._errors.guard("reading an optimizer", name):
            given = (leaf for leaf in leaves(gradients) if hasattr(leaf, "asnumpy"))
            moments = _moments(optimizer)
            for key, gradient in zip(optimizer.parameters, given):
                known = self._name(optimizer, key)
                if self._config.wg_distribution and not self._watched.is_duplicate(
                    optimizer.parameters[key]
                ):
                    self._note("grad_reduced", known, gradient)
                if self._config.mg_direction and known is not None and key in moments["exp_avg"]:
                    row = self._numbers.computed(
                        features.direction, moments["exp_avg"][key], gradient
                    )
                    self._tables["mg_direction"][known, ""] = row
            for kind, states in moments.items() if self._config.mv_distribution else ():
                for key, state in states.items():
                    self._note(kind, self._name(optimizer, key), state)
            if self._config.param_distribution:
                self._note_parameters("param_origin", optimizer)

    def after_update(self, name: str, optimizer: OptimizerValues) -> None:
        """Measure the parameters and their updates, and end the step with the last optimizer."""
        if self.is_on and self._is_watched(optimizer):
            self._numbers.ready()
            with self._errors.guard("reading parameters", name):
                if self._config.param_distribution:
                    self._note_parameters("param_updated", optimizer)
                if self._config.ur_distribution:
                    self._note_updates(optimizer)
        if optimizer.is_of(self._watched.optimizers[-1]):
            with self._errors.guard("ending a step"):
                self._ended()
            self._numbers.raise_pending()

    def _name(self, optimizer: OptimizerValues, parameter: str) -> str | None:
        return self._names.get(id(optimizer.parameters[parameter]))

    def _is_watched(self, optimizer: OptimizerValues) -> bool:
        return any(optimizer.is_of(known) for known in self._watched.optimizers)


def _moments(optimizer: OptimizerValues) -> dict[str, dict[str, Any]]:
    """Return the first and the second moments by the names of the parameters."""
    found: dict[str, dict[str, Any]] = {"exp_avg": {}, "exp_avg_sq": {}}
    for key, state in optimizer.states.items():
        kind, _, parameter = key.partition(".")
        found.get(ADAM_STATES.get(kind, ""), {})[parameter] = state
    return found


def dtype_of(tensor: Any) -> str:
    """Return the dtype of a tensor or an array, as MindSpore writes it."""
    dtype = dtype_name(tensor.dtype)
    return "BFloat16" if dtype == "bfloat16" else dtype[:1].upper() + dtype[1:]
