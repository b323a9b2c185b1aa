# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The guard of saved tensors on a device: one operation at each end, and no wait before the end of the step."""

from __future__ import annotations

import json
import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

from tests.capture.test_saved_tensors import findings, outcome
from tests.support import processes
from tests.support.paths import environment

pytestmark = pytest.mark.ascend

TWO = np.full((64, 64), 2.0, np.float32)


def train(write, layers=3):
    """Return the gradient of a chain of products whose weight may be written before the backward."""
    weight = ms.Parameter(Tensor(TWO * 0.01), name="weight")

    def forward(x):
        for _ in range(layers):
            x = ops.tanh(ops.matmul(x, weight))
        with ms._no_grad():
            write(weight)
        return x.sum()

    return ms.value_and_grad(forward, None, [weight])(Tensor(TWO))[1][0].asnumpy().tolist()


def change(weight):
    ops.assign(weight, Tensor(TWO))


WRITES = {
    "assign": (change, 3, "Functional.assign"),
    "add_": (lambda weight: weight.add_(1.0), 1, "Tensor.add_"),  # the first use ends the training
    "mul_": (lambda weight: weight.mul_(3.0), 1, "Tensor.mul_"),
    "nothing": (lambda weight: None, 0, ""),
}


@pytest.mark.parametrize("way", WRITES)
def test_a_written_weight_is_found(debug, way):
    write, count, name = WRITES[way]
    bare = outcome(
        lambda: train(write)
    )  # MindSpore itself refuses add_ and mul_ when the backward comes
    debugger = debug(saved_tensors=True)
    debugger.start()
    watched = outcome(lambda: train(write))
    debugger.stop()
    debugger.step()
    debugger.close()
    assert watched == bare
    found = [finding["sentence"] for finding in findings(debug)]
    assert len(found) == count
    assert all(
        f"written by {name}.0.forward (test_saved_tensors.py:" in sentence for sentence in found
    )


#: prints the launches that the guard adds, and the waits and copies of a step without and with it, before its end
PROGRAM = """
import json, sys
from collections import Counter
from pathlib import Path
import mindspore as ms
from mindspore import nn

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("Ascend")
from tests.ascend.simulator import Device, by_kind
from tests.ascend.test_saved_tensors import train
from tests.support.dumps import Debug

device, debug = Device(), Debug(Path(sys.argv[1]))

def seen(guarded):
    debugger = debug(saved_tensors=guarded, overwrite=True, task="structure", level="mix")
    debugger.start(nn.ReLU())
    ms.runtime.synchronize()
    with device.record() as lines:
        train(lambda weight: None)
        ms.runtime.synchronize()  # MindSpore launches from a thread of its own
    while lines and lines[-1].startswith("wait"):
        lines.pop()
    debugger.stop()
    debugger.step()
    debugger.close()
    return by_kind(lines), Counter(line.split()[2] for line in lines if line.startswith("launch"))

seen(True)  # the first time allocates memory
(bare, some), (guarded, more) = seen(False), seen(True)
print(json.dumps([more - some, *[[kinds["wait"], kinds["copy"]] for kinds in (bare, guarded)]]))
"""


@pytest.mark.slow
def test_the_guard_adds_one_launch_at_each_end_and_no_wait_inside_of_a_step(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = processes.run(command, capture_output=True, text=True, env=environment(), timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    launches, bare, guarded = json.loads(done.stdout.splitlines()[-1])
    kept = 3 * 2 + 3  # both inputs of each product, and the outputs of tanh
    assert launches == {"aclnnReduceSum": 2 * kept}
    assert guarded == bare  # waits and copies
