# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Collects the numbers of one step: loss, gradients, the optimizer's numbers, and at times parameters and states."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from probe.capture.optimizer_values import OptimizerValues
from probe.measure.tensor_reader import to_number
from probe.monitor.numbers import FastNumbers
from probe.pytree import leaves
from probe.store.error_log import ErrorLog

#: numbers of an optimizer that are no series: they count or choose
_NO_SERIES = frozenset(("global_step", "parameters", "groups"))
_SAME = 1e-6


class StepValues:
    """The numbers of the step that is open; see ``training_hooks.Observer``.

    Args:
        wait: waits for asynchronous work; raises a pending error of the training.
        errors: reports errors of the tool.
    """

    def __init__(self, wait: Callable[[], None], errors: ErrorLog) -> None:
        from mindspore import Tensor

        self._tensor, self._wait, self._errors = Tensor, wait, errors
        self._numbers = FastNumbers()
        self._values: dict[str, float] = {}
        self._outputs: list[Any] = []
        self._before: dict[str, Any] = {}
        self._has_parameters, self._began = False, 0.0

    def begin(self, has_parameters: bool) -> None:
        """Begin a step.

        Args:
            has_parameters: whether the parameters, their updates and the optimizers' states are measured too.
        """
        self._has_parameters, self._began = has_parameters, time.perf_counter()

    def log(self, name: str, number: float) -> None:
        """Add a number of the user's."""
        self._values[name] = number

    def end(self) -> dict[str, float]:
        """End the step and return its numbers."""
        values, self._values = self._values, {}
        outputs, self._outputs, self._before = self._outputs, [], {}
        losses: dict[str, float] = {}
        if outputs:
            self._wait()
        with self._errors.guard("reading the loss"):
            for place, output in enumerate(outputs):
                losses[f"loss{place or ''}"] = float(to_number(output))
        losses["seconds"] = time.perf_counter() - self._began
        return {**losses, **values}

    # -- the hooks ------------------------------------------------------------------------------------------------

    def note(self, name: str, tensor: Any) -> None:
        """Measure a tensor of a Cell, or the array of a sum of gradients."""
        self._measure(name, tensor)

    def differentiated(self, output: Any) -> None:
        """Keep the loss until the end of the step: the first output, if it is one number."""
        with self._errors.guard("noting the loss"):
            first = next((leaf for leaf in leaves(output) if isinstance(leaf, self._tensor)), None)
            if first is not None and first.size == 1 and all(first is not output for output in self._outputs):
                self._outputs.append(first)

    def scaled(self, scale: Any) -> None:
        """Note the loss scale of the next step."""
        self._wait()
        with self._errors.guard("reading the loss scale"):
            self._values["loss_scale"] = float(to_number(scale))

    def gradient(self, name: str, gradient: Any) -> None:
        """Measure a gradient as it arrives."""
        self._wait()
        with self._errors.guard("reading a parameter's gradient", name):
            self._measure(f"{name}.grad", gradient)

    def _measure(self, name: str, tensor: Any) -> None:
        if self._has_parameters:
            norm, self._values[f"{name}.max"], self._values[f"{name}.min"] = self._numbers.ends(tensor)
        else:
            norm = self._numbers.norm(tensor)
        self._values[name] = norm

    def before_update(self, name: str, optimizer: OptimizerValues, gradients: Any) -> None:
        """Measure the gradients that enter an optimizer, and note its numbers."""
        self._wait()
        with self._errors.guard("reading the gradients of an optimizer", name):
            given = [leaf for leaf in leaves(gradients) if isinstance(leaf, self._tensor)]
            self._enter(name, zip(optimizer.parameters, given))
        with self._errors.guard("reading the numbers of an optimizer", name):
            self._values.update(_flat(name, optimizer.scalars(to_number, {})))
        if self._has_parameters:
            with self._errors.guard("copying parameters", name):
                self._before = {key: self._numbers.copy(value) for key, value in optimizer.parameters.items()}

    def _enter(self, name: str, gradients: Iterable[tuple[str, Any]]) -> None:
        total = 0.0
        for parameter, gradient in gradients:
            norm = self._numbers.norm(gradient)
            total += norm * norm
            arrived = self._values.get(f"{parameter}.grad")
            if arrived is None:
                self._values[f"{parameter}.grad"] = norm
            elif not abs(norm - arrived) <= _SAME * arrived and not (math.isnan(norm) and math.isnan(arrived)):
                self._values[f"{parameter}.grad_in"] = norm
        self._values[f"{name}.global_norm"] = math.sqrt(total)

    def after_update(self, name: str, optimizer: OptimizerValues) -> None:
        """Measure parameters, their updates and states."""
        if not self._has_parameters:
            return
        self._wait()
        with self._errors.guard("reading the parameters of an optimizer", name):
            for key, parameter in optimizer.parameters.items():
                self._values[f"{key}.param"] = self._numbers.norm(parameter)
                before = self._before.pop(key, None)
                if before is not None:
                    after = self._numbers.copy(parameter)
                    difference = np.subtract(after, before, dtype=np.float32)
                    self._values[f"{key}.update"] = float(np.linalg.norm(difference))
            for key, state in optimizer.states.items():
                self._values[f"{name}.{key}"] = self._numbers.norm(state)


def _flat(name: str, scalars: Mapping[str, Any]) -> dict[str, float]:
    found = {f"{name}.{key}": float(value) for key, value in scalars.items() if _is_series(key, value)}
    for place, group in enumerate(scalars.get("groups", ())):
        found.update((f"{name}.{key}.{place}", float(value)) for key, value in group.items() if _is_series(key, value))
    return found


def _is_series(key: str, value: Any) -> bool:
    return key not in _NO_SERIES and isinstance(value, (int, float)) and not isinstance(value, bool)
