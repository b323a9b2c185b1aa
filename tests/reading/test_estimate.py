# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""PrecisionDebugger.estimate: the size of a dump with arrays, from one without."""

from __future__ import annotations

import mindspore as ms
import nets
import pytest
from conftest import tensor
from mindspore import ops

from probe import PrecisionDebugger, UsageError


def _size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", ["lenet", "gpt"])
@pytest.mark.parametrize("level", ["L0", "mix"])
def test_within_five_percent(debug, name, level, tmp_path):
    net, train = nets.build(name)
    sizes = {}
    for task in ("statistics", "structure", "tensor"):
        debug.dump_path = tmp_path / task
        debugger = debug(task=task, level=level)
        debugger.start(net)
        train(0)
        debugger.step()
        sizes[task] = debugger.estimate() if task != "tensor" else _size(tmp_path / task / "step0")
    assert sizes["statistics"] == pytest.approx(sizes["tensor"], rel=0.05)
    assert sizes["structure"] == pytest.approx(sizes["tensor"], rel=0.05)


@pytest.mark.parametrize("exact", [True, False])
def test_of_bfloat16(debug, tmp_path, exact):
    x = tensor([1.0] * 100_000).astype(ms.bfloat16)
    debug.record(lambda: ops.reshape(x, (100, 1000)), exact_dtypes=exact)
    guess = PrecisionDebugger.estimate()
    debug.dump_path = tmp_path / "tensor"
    debug.record(lambda: ops.reshape(x, (100, 1000)), task="tensor", exact_dtypes=exact)
    assert guess == pytest.approx(_size(tmp_path / "tensor"), rel=0.05)


def test_before_a_step_it_is_not_known(debug):
    with pytest.raises(UsageError, match="it needs a step"):
        debug().estimate()
