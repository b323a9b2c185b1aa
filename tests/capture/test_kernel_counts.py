# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""No operation of probe runs a kernel of the training's once more.

Some CPU kernels divide their work in other ways in their calls 6 to 15, so these have other bits: docs/repeatable.md.
One more call of such a kernel would move this window.
"""

from __future__ import annotations

import json
import sys

import pytest

from tests.support import processes
from tests.support.paths import environment
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow

#: prints the numbers of the calls whose bits are other than those of the first: of three losses and their gradients
PROGRAM = """
import json, sys
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_context(pynative_synchronize=True)
generator = np.random.RandomState(0)
logits = Tensor(generator.randn(4, 12).astype(np.float32))
labels = Tensor(generator.randint(0, 12, 4).astype(np.int32))
row = Tensor(generator.randn(6, 5).astype(np.float32))
net = nn.SequentialCell(nn.Dense(12, 12), nn.ELU())
optimizer = nn.SGD(net.trainable_params(), 1e-3)
LOSSES = [lambda: ops.cross_entropy(logits, labels), lambda: ops.elu(row), lambda: ops.softplus(row)]
settings = json.loads(sys.argv[1])
debugger = None
if settings is not None:
    from probe import PrecisionDebugger
    debugger = PrecisionDebugger(config_path=sys.argv[2])
gradient = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)
seen = [[] for _ in LOSSES]
for step in range(15):
    if debugger is not None:
        debugger.start(net)
    optimizer(gradient(logits)[1])
    for bits, loss in zip(seen, LOSSES):
        bits.append(loss().asnumpy().tobytes())
    if debugger is not None:
        debugger.stop()
        debugger.step()
print(json.dumps([[n for n, one in enumerate(bits) if one != bits[0]] for bits in seen]))
"""

SETTINGS = {
    "L0": {"level": "L0"},
    "L1": {"level": "L1"},
    "mix md5 guard": {"level": "mix", "saved_tensors": True, "statistics": {"summary_mode": "md5"}},
    "tensor": {"level": "mix", "task": "tensor"},
    "nan_check": {"level": "mix", "task": "nan_check"},
    "monitor": {"task": "monitor", "level": "L1"},
    "asynchronous": {"level": "mix", "async_dump": True},
}


def windows(folder, settings):
    """Run the program; return the numbers of the calls with other bits, for each loss."""
    (folder / "program.py").write_text(PROGRAM)
    config = folder / "config.json"
    config.write_text(json.dumps({"dump_path": str(folder / "dump"), **(settings or {})}))
    command = [sys.executable, str(folder / "program.py"), json.dumps(settings), str(config)]
    done = processes.run(command, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    found = windows(tmp_path_factory.mktemp("bare"), None)
    assert any(found), "no kernel of this machine searches: the test could not fail"
    return found


@pytest.mark.parametrize("case", thorough_but(["mix md5 guard", "monitor"], list(SETTINGS)))
def test_no_kernel_runs_once_more(tmp_path, bare, case):
    assert windows(tmp_path, SETTINGS[case]) == bare
