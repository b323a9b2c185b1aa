# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Computes the learning rate of a step from its schedule, on the host. Compiled optimizers do not show it.

The formulas are those of the documentation of ``mindspore.nn``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from probe.measure.tensor_reader import to_number, to_numpy

_MODULE = "mindspore.nn.learning_rate_schedule"


def value_of(schedule: Any, step: int, may_run: bool) -> float | None:
    """Return the number that a schedule gives for a step, the number of updates before; None if it is unknown.

    ``may_run`` allows a schedule of the user's own: on CPU, where it costs little and waits for nothing.
    """
    listed = getattr(schedule, "learning_rate", None)
    if type(schedule).__name__ == "_IteratorLearningRate" and listed is not None:
        values = to_numpy(listed)
        value = values[min(step, len(values) - 1)]
    elif type(schedule).__name__ == "_ConvertToCell" and listed is not None:
        return to_number(listed)
    elif type(schedule).__module__ == _MODULE and type(schedule).__name__ in _FORMULAS:
        value = _FORMULAS[type(schedule).__name__](schedule, step)
    elif may_run:
        return _run(schedule, step)
    else:
        return None
    return float(str(np.float32(value)))


def _run(schedule: Any, step: int) -> float | None:
    from mindspore import Tensor, dtype

    result = schedule(Tensor([step], dtype.int32))
    return to_number(result) if isinstance(result, Tensor) and result.size == 1 else None


def _part(schedule: Any, step: int) -> float:
    part = step / schedule.decay_steps
    return float(math.floor(part) if schedule.is_stair else part)


def _natural(schedule: Any, step: int) -> float:
    stairs = step // schedule.decay_steps * schedule.decay_steps if schedule.is_stair else step
    return float(schedule.learning_rate * math.exp(-schedule.decay_rate * stairs))


def _cosine(schedule: Any, step: int) -> float:
    part = min(step, schedule.decay_steps) / schedule.decay_steps
    return float(schedule.min_lr + 0.5 * (schedule.max_lr - schedule.min_lr) * (1 + math.cos(math.pi * part)))


def _polynomial(schedule: Any, step: int) -> float:
    steps, end = schedule.decay_steps, schedule.end_learning_rate
    if schedule.update_decay_steps:
        steps *= max(math.ceil(step / steps), 1)
    part = min(step, steps) / steps
    return float((schedule.start_learning_rate - end) * (1 - part) ** schedule.power + end)


_FORMULAS: Mapping[str, Callable[[Any, int], float]] = {
    "ExponentialDecayLR": lambda schedule, step: schedule.learning_rate * schedule.decay_rate ** _part(schedule, step),
    "NaturalExpDecayLR": _natural,
    "InverseDecayLR": lambda schedule, step: schedule.learning_rate / (1 + schedule.decay_rate * _part(schedule, step)),
    "CosineDecayLR": _cosine,
    "PolynomialDecayLR": _polynomial,
    "WarmUpLR": lambda schedule, step: (
        schedule.learning_rate * min(step, schedule.warmup_steps) / schedule.warmup_steps
    ),
}
