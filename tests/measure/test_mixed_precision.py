# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Mixed precision casts the inputs of operations. The tool's own operations are not cast: records equal the host's."""

from __future__ import annotations

import math
import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

pytestmark = pytest.mark.slow

LARGE = 70000.5  # float16 ends at 65504


class Inner(nn.Cell):
    """Operations on tensors of several dtypes, some with values that float16 does not have."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(6, 4)
        self.mask = Tensor(np.arange(6) % 2 == 0)
        self.index = Tensor(np.arange(6), ms.int32)
        self.brain = Tensor(np.full((5, 6), 1e38), ms.bfloat16)

    def construct(self, x):
        large = ops.abs(x)
        small = ops.mul(large, Tensor(1e-5, ms.float32))
        masked = ops.where(self.mask, small, ops.zeros_like(small))
        indexed = ops.gather(masked, self.index, 1)
        hidden = self.dense(indexed)
        return ops.relu(hidden), ops.isfinite(large), ops.reshape(self.brain, (6, 5))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.head = nn.Dense(4, 3)

    def construct(self, x):
        hidden, _, _ = self.inner(x)
        return ops.cast(self.head(hidden), ms.float32).sum()


def build(precision):
    ms.set_seed(3)
    net = Net()
    if precision == "to_float":
        net.inner.to_float(ms.float16)
        net.head.to_float(ms.float16)
        return net
    return ms.amp.auto_mixed_precision(net, precision)


def records_of(value, place=""):
    if isinstance(value, dict):
        if "dtype" in value:
            yield place, value
            return
        value = value.items()
    elif isinstance(value, list):
        value = enumerate(value)
    else:
        return
    for key, item in value:
        yield from records_of(item, f"{place}.{key}")


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=1e-6) or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("precision", ["to_float", "O0", "O1", "O2", "O3", "auto"])
@pytest.mark.parametrize(
    "settings", [{"measure": "device"}, {"async_dump": True}], ids=["device", "async_dump"]
)
def test_records_under_mixed_precision_equal_the_hosts(debug, precision, settings, monkeypatch):
    monkeypatch.chdir(debug.path)  # O1 writes the rewritten network there
    monkeypatch.setattr(sys, "path", [*sys.path])  # and adds folders of MindSpore to the path
    x = Tensor(np.linspace(-1.0, 1.0, 30).reshape(5, 6).astype(np.float32) * LARGE)
    net = build(precision)
    train = ms.value_and_grad(net, 0, net.trainable_params())
    dumps = []
    for place, chosen in (("host", {"measure": "host"}), ("other", settings)):
        debug.dump_path = debug.path / place
        dumps.append(debug.record(lambda: train(x), model=net, level="mix", **chosen)[1].data)
    host, other = (dict(records_of(dump)) for dump in dumps)
    assert list(host) == list(other)
    wrong = {
        place: (record, other[place])
        for place, record in host.items()
        if list(record) != list(other[place])
        or not all(same(record[key], other[place][key]) for key in record)
    }
    assert wrong == {}
    assert len(host) > 40
    assert any(record["dtype"] == "Float32" and record["Max"] == LARGE for record in host.values())
    assert sum(".backward" in place for place in host) > 10
