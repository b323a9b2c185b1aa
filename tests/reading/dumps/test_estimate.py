# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""PrecisionDebugger.estimate: the size of a dump with arrays, from one without."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

from probe import PrecisionDebugger, UsageError
from tests.support import nets
from tests.support.tensors import tensor

pytestmark = pytest.mark.slow


def _size(folder):
    found = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return sum({status.st_ino: status.st_size for status in found}.values())


@pytest.mark.parametrize("name", ["lenet", "gpt"])
@pytest.mark.parametrize("level", ["L0", "mix"])
@pytest.mark.parametrize("link", [True, False])
def test_the_estimate_is_within_five_percent_of_the_dump(debug, name, level, link, tmp_path):
    net, train = nets.build(name)
    sizes = {}
    for task in ("statistics", "tensor"):
        debug.dump_path = tmp_path / task
        debugger = debug(task=task, level=level, link_equal=link)
        debugger.start(net)
        train(0)
        debugger.step()
        sizes[task] = debugger.estimate() if task != "tensor" else _size(tmp_path / task / "step0")
    assert sizes["statistics"] == pytest.approx(sizes["tensor"], rel=0.05)


@pytest.mark.parametrize("exact", [True, False])
def test_the_estimate_counts_bfloat16_as_it_is_written(debug, tmp_path, exact):
    x = tensor([1.0] * 100_000).astype(ms.bfloat16)
    debug.record(lambda: ops.reshape(x, (100, 1000)), exact_dtypes=exact)
    guess = PrecisionDebugger.estimate()
    debug.dump_path = tmp_path / "tensor"
    debug.record(lambda: ops.reshape(x, (100, 1000)), task="tensor", exact_dtypes=exact)
    assert guess == pytest.approx(_size(tmp_path / "tensor"), rel=0.05)


class Sum(nn.Cell):
    def construct(self, x):
        return x + 1


@pytest.mark.parametrize("first", [np.nan, np.inf, -np.inf, 1j, 0.0])
def test_the_estimate_is_never_far_below_the_dump(debug, tmp_path, first):
    values = (
        np.random.RandomState(0)
        .randn(100, 1000)
        .astype(np.complex64 if first == 1j else np.float32)
    )
    values[0, 0] = first
    net = nn.SequentialCell(*[Sum() for _ in range(10)])
    debug.record(lambda: net(ms.Tensor(values)), net, level="mix")
    guess = PrecisionDebugger.estimate()
    debug.dump_path = tmp_path / "tensor"
    debug.record(lambda: net(ms.Tensor(values)), net, level="mix", task="tensor")
    found = _size(tmp_path / "tensor" / "step0")
    assert found * 0.95 < guess < found * (4 if first == 1j or np.isnan(first) else 1.05)


def test_estimate_before_the_first_step_is_refused(debug):
    with pytest.raises(UsageError, match="it needs a step"):
        debug().estimate()
