# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Collects the numbers of one step: loss, gradients, the optimizer's numbers, and at times parameters and states."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from probe.capture.training.optimizer_values import OptimizerValues
from probe.monitor.numbers import HostNumbers, Later, Number, known
from probe.pytree import leaves
from probe.store.error_log import ErrorLog

#: numbers of an optimizer that are no series: they count or choose
_NO_SERIES = frozenset(("global_step", "parameters", "groups"))
_SAME = 1e-6


class Row(NamedTuple):
    """The numbers of a step that has ended; see ``monitor.Watch``."""

    values: dict[str, Number]  # series -> number
    entered: dict[str, dict[str, Number]]  # optimizer -> parameter -> norm of the gradient that entered
    scalars: list[Any]
    scales: Mapping[str, Number] = MappingProxyType({})  # loss -> the loss scale in it

    def finish(self, fetched: list[float]) -> dict[str, float]:
        """Return all numbers with those that follow from them."""
        found = known(self.values, fetched)
        for loss, scale in known(self.scales, fetched).items():
            if scale:
                found[loss] /= scale
                found.setdefault("loss_scale", scale)
        for optimizer, gradients in self.entered.items():
            total = 0.0
            for parameter, norm in known(gradients, fetched).items():
                name = f"{parameter}.grad"
                total += norm * norm
                arrived = found.setdefault(name, norm)
                is_same = norm == arrived or abs(norm - arrived) <= _SAME * min(norm, arrived)
                if not is_same and not (math.isnan(norm) and math.isnan(arrived)):
                    found[f"{parameter}.grad_in"] = norm
            found[f"{optimizer}.global_norm"] = math.sqrt(total)
        return found


class StepValues:
    """The numbers of the step that is open; see ``events.Observer``."""

    def __init__(self, numbers: HostNumbers, errors: ErrorLog) -> None:
        from mindspore import Tensor

        self._tensor, self._numbers, self._errors = Tensor, numbers, errors
        self._guard = functools.lru_cache(None)(functools.partial(errors.guard, "reading a parameter's gradient"))
        self._values: dict[str, Number] = {}
        self._entered: dict[str, dict[str, Number]] = {}
        self._outputs: list[Any] = []
        #: the scale that the running function multiplies its loss by, and those of the losses by their places
        self._scale: Any = None
        self._scales: dict[int, Any] = {}
        self._before: dict[str, Any] = {}
        self._has_parameters, self._began = False, 0.0

    def begin(self, has_parameters: bool) -> None:
        """Begin a step. Parameters, their updates and the states of optimizers are measured if ``has_parameters``."""
        self._has_parameters, self._began = has_parameters, time.perf_counter()

    def log(self, name: str, number: float) -> None:
        """Add a number of the user's."""
        self._values[name] = number

    def wait(self) -> None:
        """Wait for the loss where it is read on the host. Raises a pending error of the training."""
        if self._outputs:
            self._numbers.ready()

    def end(self) -> Row:
        """End the step and return its numbers."""
        self.before_adjust()
        values, self._values = self._values, {}
        scales, self._scales, self._scale = self._scales, {}, None
        entered, self._entered = self._entered, {}
        outputs, self._outputs, self._before = self._outputs, [], {}
        losses: dict[str, Number] = {}
        with self._errors.guard("reading the loss"):
            for place, output in enumerate(outputs):
                losses[f"loss{place or ''}"] = self._numbers.number(output)
        losses["seconds"] = time.perf_counter() - self._began
        by_loss = {name: scales[place] for place, name in enumerate(losses) if place in scales and name != "seconds"}
        return Row({**losses, **values}, entered, self._numbers.take(), by_loss)

    # -- the hooks ------------------------------------------------------------------------------------------------

    def note(self, name: str, tensor: Any) -> None:
        """Measure a tensor of a Cell, or the array of a sum of gradients."""
        self._values[name] = self._numbers.norm(tensor)
        if self._has_parameters:
            self._values.update((f"{name}.{end}", value) for end, value in self._numbers.ends(tensor).items())

    def differentiated(self, output: Any) -> None:
        """Keep the loss until the end of the step: the first output, if it is one number."""
        with self._errors.guard("noting the loss"):
            first = next((leaf for leaf in leaves(output) if isinstance(leaf, self._tensor)), None)
            if first is not None and first.size == 1 and all(first is not output for output in self._outputs):
                self._outputs.append(first)
                if self._scale is not None:
                    self._scales[len(self._outputs) - 1] = self._scale
            self._scale = None

    def scaled(self, scale: Any) -> None:
        """Note the loss scale of the next step."""
        self._numbers.ready()
        with self._errors.guard("reading the loss scale"):
            self._values["loss_scale"] = self._numbers.number(scale)

    def scales(self, scale: Any) -> None:
        """Note the scale by which the running function multiplies its loss."""
        self._scale = scale

    def before_adjust(self) -> None:
        """Read the scales of the losses: the scaler may change them now."""
        for place, scale in self._scales.items():
            if isinstance(scale, self._tensor):
                self._numbers.ready()
                with self._errors.guard("reading the loss scale"):
                    self._scales[place] = self._numbers.number(scale)

    def gradients(self, arrived: Sequence[tuple[str, Any]]) -> None:
        """Measure gradients that arrived."""
        self._numbers.ready()
        for name, gradient in arrived:
            with self._guard(name):
                self.note(f"{name}.grad", gradient)

    def before_update(self, name: str, optimizer: OptimizerValues, gradients: Any) -> None:
        """Measure the gradients that enter an optimizer, and note its numbers."""
        self._numbers.ready()
        with self._errors.guard("reading the gradients of an optimizer", name):
            given = [leaf for leaf in leaves(gradients) if isinstance(leaf, self._tensor)]
            entered = self._entered[name] = {}
            entered.update(zip(optimizer.parameters, map(self._numbers.norm, given)))
        with self._errors.guard("reading the numbers of an optimizer", name):
            self._values.update(_flat(name, optimizer.scalars(self._numbers.number, {})))
        if self._has_parameters:
            with self._errors.guard("copying parameters", name):
                self._before.update((key, self._numbers.copy(value)) for key, value in optimizer.parameters.items())

    def after_update(self, name: str, optimizer: OptimizerValues) -> None:
        """Measure parameters, their updates and states."""
        if not self._has_parameters:
            return
        self._numbers.ready()
        with self._errors.guard("reading the parameters of an optimizer", name):
            for key, parameter in optimizer.parameters.items():
                self._values[f"{key}.param"] = self._numbers.norm(parameter)
                before = self._before.pop(key, None)
                if before is not None:
                    self._values[f"{key}.update"] = self._numbers.change(parameter, before)
            for key, state in optimizer.states.items():
                self._values[f"{name}.{key}"] = self._numbers.norm(state)


def _flat(name: str, scalars: Mapping[str, Any]) -> dict[str, Number]:
    found = {f"{name}.{key}": value for key, value in scalars.items() if _is_series(key, value)}
    for place, group in enumerate(scalars.get("groups", ())):
        found.update((f"{name}.{key}.{place}", value) for key, value in group.items() if _is_series(key, value))
    return found


def _is_series(key: str, value: Any) -> bool:
    if key == "loss_scale" and value == 1.0:
        return False  # the optimizer has none; a loss scaler may have one
    return key not in _NO_SERIES and isinstance(value, (int, float, Later)) and not isinstance(value, bool)
