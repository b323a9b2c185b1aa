# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A schedule of the user's own runs once more only if it does nothing but compute."""

from __future__ import annotations

import math
import random

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, mint, nn, ops
from mindspore.nn.learning_rate_schedule import LearningRateSchedule

from probe.capture.training.plain_functions import MayDoMore, check_schedule

seen = []


def counted(value):
    seen.append(value)
    return value


def scaled(value):
    return ops.mul(value, 0.5)


class Schedule(LearningRateSchedule):
    """Holds what the schedules below use."""

    def __init__(self):
        super().__init__()
        self.rate, self.limits, self.calls = 0.1, (0.01, 1.0), 0
        self.count = Parameter(Tensor(0.0, ms.float32), name="count")
        self.cos, self.assign, self.drop = ops.Cos(), ops.Assign(), ops.Dropout()
        self.warm, self.dense = nn.WarmUpLR(0.1, 3), nn.Dense(1, 1)
        self.buffer = np.zeros(1, np.float32)

    @property
    def noted(self):
        seen.append(1)
        return 0.1

    def helper(self, step):
        return scaled(step) + self.rate


class Numbers(Schedule):
    def construct(self, step):
        if step < 2 and not self.calls:
            return self.warm(step)
        low, high = self.limits
        values = [self.rate * place for place in range(3)]
        x = self.cos(ops.cast(step, ms.float32)) * math.pi + sum(values)
        return ops.clip_by_value(self.helper(x), low, high)


class Primitives(Schedule):
    def construct(self, step):
        return mint.cos(ops.Cast()(step, ms.float32)).reshape(()).astype(ms.float32) * np.sqrt(2.0)


class Above(nn.CosineDecayLR):
    def construct(self, step):
        return super().construct(step) * 0.5


class Assigns(Schedule):
    def construct(self, step):
        self.calls = self.calls + 1
        return self.rate


class Adds(Schedule):
    def construct(self, step):
        step += 1
        return self.rate * step


class AssignsParameter(Schedule):
    def construct(self, step):
        self.assign(self.count, self.count + 1)
        return self.rate


class InPlace(Schedule):
    def construct(self, step):
        return self.count.add_(1.0)


class WritesArray(Schedule):
    def construct(self, step):
        return np.add(1.0, 1.0, self.buffer)


class Item(Schedule):
    def construct(self, step):
        self.buffer[0] = 1
        return self.rate


class Draws(Schedule):
    def construct(self, step):
        return self.rate * random.random()


class Drops(Schedule):
    def construct(self, step):
        return self.drop(step)[0]


class Prints(Schedule):
    def construct(self, step):
        print(step)
        return self.rate


class Imports(Schedule):
    def construct(self, step):
        import os

        return self.rate * len(os.environ)


class CallsNet(Schedule):
    def construct(self, step):
        return self.dense(step)


class CallsFunction(Schedule):
    def construct(self, step):
        return counted(self.rate)


class Reads(Schedule):
    def construct(self, step):
        return self.noted


class Waits(Schedule):
    def construct(self, step):
        try:
            return self.rate
        finally:
            seen.append(1)


class Called(Schedule):
    def __call__(self, step):
        seen.append(1)
        return super().__call__(step)

    def construct(self, step):
        return self.rate


@pytest.mark.parametrize(
    "make", [Numbers, Primitives, lambda: Above(0.0, 0.1, 4), lambda: nn.WarmUpLR(0.1, 3)]
)
def test_a_schedule_that_computes_may_run(make):
    schedule = make()
    check_schedule(schedule)
    assert schedule(Tensor([1], ms.int32)) is not None


@pytest.mark.parametrize(
    "kind",
    [
        Assigns,
        Adds,
        AssignsParameter,
        InPlace,
        WritesArray,
        Item,
        Draws,
        Drops,
        Prints,
        Imports,
        CallsNet,
        CallsFunction,
        Reads,
        Waits,
        Called,
    ],
)
def test_a_schedule_that_may_do_more_does_not_run(kind):
    with pytest.raises(MayDoMore):
        check_schedule(kind())
    assert not seen


def test_a_schedule_with_a_hook_does_not_run():
    schedule = Numbers()
    check_schedule(schedule)
    schedule.warm.register_forward_hook(lambda *_: seen.append(1))
    with pytest.raises(MayDoMore, match="hooks"):
        check_schedule(schedule)


def test_a_schedule_without_a_source_does_not_run():
    names = {"LearningRateSchedule": LearningRateSchedule}
    exec(
        "class Given(LearningRateSchedule):\n    def construct(self, step):\n        return 0.1\n",
        names,
    )
    with pytest.raises(MayDoMore, match="source"):
        check_schedule(names["Given"]())
