# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""MindSpore that runs asynchronously: an error appears later, and stays the training's."""

from __future__ import annotations

import json
import os
import sys

import pytest

from tests.support import processes

pytestmark = pytest.mark.slow

FAILS_LATER = """
import sys
import mindspore as ms, numpy as np
from mindspore import nn, ops, Tensor
from probe import PrecisionDebugger
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w, self.d = ms.Parameter(Tensor(np.ones((5, 4), np.float32))), nn.Dense(4, 1)
    def construct(self, i):
        return self.d(ops.gather(self.w, i, 0)).sum()

net = Net()
debugger = PrecisionDebugger(dump_path=sys.argv[1], level=sys.argv[2])
debugger.start(net)
loss, gradients = ms.value_and_grad(net, None, net.trainable_params())(Tensor([1, 9], ms.int32))  # 9 is out of range
debugger.stop()
debugger.step()
print("LOSS", loss.asnumpy())
"""


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_an_asynchronous_error_reaches_the_training_and_is_not_logged_as_probes(tmp_path, level):
    (tmp_path / "later.py").write_text(FAILS_LATER)
    command = [sys.executable, str(tmp_path / "later.py"), str(tmp_path / "dump"), level]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = processes.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "'input_indices' should be in the range [0, 5)" in done.stderr
    assert not list(tmp_path.rglob("dump_error_info.log"))
    data = json.loads((tmp_path / "dump/step0/rank/dump.json").read_text())["data"]
    if level != "L0":
        assert "'input_indices'" in data["Functional.gather.0.forward"]["raised"]
    else:
        assert (
            "Cell.d.Dense.forward.0" not in data
            or "'input_indices'" in data["Cell.d.Dense.forward.0"]["raised"]
        )


SYNCHRONIZE = """
import sys
import mindspore as ms
import numpy as np
from mindspore import ops
from probe import PrecisionDebugger
PrecisionDebugger(config_path=sys.argv[1])
weight, index = ms.Tensor(np.ones((5, 4), np.float32)), ms.Tensor([1, 9], ms.int32)  # 9 is out of range
try:
    result = ops.gather(weight, index, 0)
    print("the call returned")
    result.asnumpy()
except Exception as error:
    words = "'input_indices' should be in the range [0, 5)", "GatherV2 failed"  # of CPU, and of a device
    print("the index is refused" if any(text in str(error) for text in words) else repr(error))
"""


@pytest.mark.parametrize("synchronize", [True, False])
def test_an_error_comes_with_its_call_where_pynative_was_made_synchronous(tmp_path, synchronize):
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps({"synchronize": synchronize, "dump_path": str(tmp_path / "dump"), "quiet": True})
    )
    command = [sys.executable, "-c", SYNCHRONIZE, str(config)]
    done = processes.run(command, capture_output=True, text=True, check=True, timeout=100)
    returned = [] if synchronize else ["the call returned"]
    assert done.stdout.splitlines() == [*returned, "the index is refused"]


PENDING = """
import sys
import mindspore as ms
import numpy as np
from mindspore import mint, ops
from probe import PrecisionDebugger
ms.set_context(mode=ms.PYNATIVE_MODE)
debugger = PrecisionDebugger(dump_path=sys.argv[1])
x = ms.Tensor(np.ones(3, np.float32))
debugger.start()
ops.relu(x)
debugger.stop()
mint.norm(x)  # has no kernel on CPU, which shows later
try:
    debugger.step()
except RuntimeError:
    print("raised")
debugger.start()
ops.exp(x)
debugger.step()
"""


def test_a_step_ends_although_step_raises_a_pending_error_of_the_training(tmp_path):
    command = [sys.executable, "-c", PENDING, str(tmp_path)]
    done = processes.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.split() == ["raised"]
    calls = [
        list(json.loads((tmp_path / f"step{i}/rank/dump.json").read_text())["data"]) for i in (0, 1)
    ]
    assert calls == [["Functional.relu.0.forward"], ["Functional.exp.0.forward"]]
