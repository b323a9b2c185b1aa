# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The number that a schedule gives for an update. A compiled optimizer does not show it, so it is computed again.

Schedules of MindSpore are computed by their formulas, on a device by their own operations: nothing waits there. A
schedule of the user's own runs once more only on CPU, and only if it does nothing but compute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from probe.capture.training.plain_functions import MayDoMore, check_schedule
from probe.executor import OwnOperations
from probe.measure.tensor_reader import element_count, to_number, to_numpy

_SCHEDULES = "mindspore.nn.learning_rate_schedule"
_OPTIMIZERS = (
    "mindspore.nn.optim.optimizer"  # its classes that hold a list, a constant, a weight decay
)
_LIST = "_IteratorLearningRate"
_CONSTANT = "_ConvertToCell"
_DECAY = "_WrappedWeightDecay"


class NoNumber(Exception):
    """A number of an optimizer cannot be read. The text is the reason."""


class Schedules:
    """Computes the numbers of schedules. ``may_run``: this is a CPU, where a schedule of the user's own may run."""

    def __init__(self, may_run: bool) -> None:
        self._may_run = may_run
        self._own = OwnOperations()

    def number(self, schedule: Any, step: int) -> float:
        """Return the number for a step, which is the number of updates before; raise NoNumber if it is unknown."""
        return float(str(np.float32(self._value(schedule, step))))

    def tensor(self, schedule: Any, step: Any) -> Any:
        """Return the same as a tensor that a device computes from the step; raise NoNumber if it is unknown."""
        kind = kind_of(schedule)
        inner = schedule
        while kind == _DECAY:
            inner = inner.weight_decay
            kind = kind_of(inner)
        if not kind:
            name = type(inner).__name__
            raise NoNumber(f"the schedule {name} is not MindSpore's. It would run on the device")
        return self._own.run(_on_device, schedule, step)

    def _value(self, schedule: Any, step: int) -> Any:
        kind = kind_of(schedule)
        if kind == _LIST:
            values = to_numpy(schedule.learning_rate)
            return values[min(step, len(values) - 1)]
        if kind == _CONSTANT:  # MindSpore adds 1 and subtracts it again, and so changes the number
            one = np.float32(1)
            return to_numpy(schedule.learning_rate).reshape(-1)[0].astype(np.float32) + one - one
        if kind == _DECAY:
            return np.float32(self._value(schedule.weight_decay, step)) * np.float32(
                to_number(schedule.loss_scale)
            )
        return _FORMULAS[kind](schedule, step) if kind else self._run(schedule, step)

    def _run(self, schedule: Any, step: int) -> Any:
        from mindspore import Tensor, dtype

        name = type(schedule).__name__
        if not self._may_run:
            raise NoNumber(f"the schedule {name} is not MindSpore's. It would run on the device")
        try:
            check_schedule(schedule)
        except MayDoMore as error:
            raise NoNumber(
                f"the schedule {name} may do more than compute ({error}), so probe does not run it"
            ) from None
        result = self._own.run(schedule, Tensor([step], dtype.int32))
        if isinstance(result, (bool, int, float)):
            return result
        if not isinstance(result, Tensor) or element_count(result) != 1:
            raise NoNumber(f"the schedule {name} gives no single number")
        return to_number(result)


def kind_of(schedule: Any) -> str:
    """Return the name of a schedule whose formula is known, or "".

    >>> from mindspore import nn
    >>> kind_of(nn.WarmUpLR(0.1, 4)), kind_of(nn.Dense(2, 3))
    ('WarmUpLR', '')
    """
    kind = type(schedule)
    if kind.__module__ == _SCHEDULES and kind.__name__ in _FORMULAS:
        return kind.__name__
    is_inner = kind.__module__ == _OPTIMIZERS and kind.__name__ in (_LIST, _CONSTANT, _DECAY)
    return kind.__name__ if is_inner else ""


def is_schedule(value: Any) -> bool:
    """Return whether a value is a schedule by its class."""
    from mindspore.nn import learning_rate_schedule

    return isinstance(value, learning_rate_schedule.LearningRateSchedule)


def _on_device(schedule: Any, step: Any) -> Any:
    from mindspore import mint, ops

    if kind_of(schedule) == _LIST:
        values = schedule.learning_rate
        place = mint.clamp(
            step, max=values.shape[0] - 1
        )  # behind the list the training itself fails
        return ops.gather(values, place, 0)
    if kind_of(schedule) == _DECAY:
        return _on_device(schedule.weight_decay, step) * schedule.loss_scale
    return schedule.construct(step)


def _part(schedule: Any, step: int) -> float:
    part = step / schedule.decay_steps
    return float(math.floor(part) if schedule.is_stair else part)


def _natural(schedule: Any, step: int) -> float:
    stairs = step // schedule.decay_steps * schedule.decay_steps if schedule.is_stair else step
    return float(schedule.learning_rate * math.exp(-schedule.decay_rate * stairs))


def _cosine(schedule: Any, step: int) -> float:
    part = min(step, schedule.decay_steps) / schedule.decay_steps
    return float(
        schedule.min_lr + 0.5 * (schedule.max_lr - schedule.min_lr) * (1 + math.cos(math.pi * part))
    )


def _polynomial(schedule: Any, step: int) -> float:
    steps = schedule.decay_steps
    end = schedule.end_learning_rate
    if schedule.update_decay_steps:
        steps *= max(math.ceil(step / steps), 1)
    part = min(step, steps) / steps
    return float((schedule.start_learning_rate - end) * (1 - part) ** schedule.power + end)


_FORMULAS: Mapping[str, Callable[[Any, int], float]] = {
    "ExponentialDecayLR": lambda it, step: it.learning_rate * it.decay_rate ** _part(it, step),
    "NaturalExpDecayLR": _natural,
    "InverseDecayLR": lambda it, step: it.learning_rate / (1 + it.decay_rate * _part(it, step)),
    "CosineDecayLR": _cosine,
    "PolynomialDecayLR": _polynomial,
    "WarmUpLR": lambda it, step: it.learning_rate * min(step, it.warmup_steps) / it.warmup_steps,
}
