# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Faults behind the backward are named on a device too: mint.optim.AdamW has kernels there only.

An early trial of a simulated CANN saw other losses with AdamWeightDecay than CPU: it is compared in many ways.
"""

from __future__ import annotations

import json
import sys

import pytest

from tests.support import processes
from tests.support.paths import ROOT, environment, program

pytestmark = [pytest.mark.slow, pytest.mark.ascend]


def test_faults_behind_the_backward_are_named_and_harmless_changes_are_not():
    command = [*program("optimizers.planted"), "--device", "Ascend", "--kinds", "mint.AdamW"]
    done = processes.run(
        command,
        fresh="the device is another",
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(),
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("mint.AdamW | ")]
    assert len(lines) > 15, done.stderr[-2000:]
    assert not [line for line in lines if " | yes | " not in line]
    assert done.returncode == 0


#: arguments: the device, a folder; prints (losses, both digests) of each way. test_trainings.py runs synchronously.
ADAM_WEIGHT_DECAY = """
import functools, hashlib, json, sys
from pathlib import Path
import mindspore as ms
from mindspore import nn

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device(sys.argv[1])
from tests.ascend.trainings import mlp
from tests.support.dumps import Debug

make = functools.partial(mlp, nn.AdamWeightDecay)

def of_groups(parameters):
    first, rest = list(parameters[:3]), list(parameters[3:])
    groups = [{"params": first, "weight_decay": 0.0}, {"params": rest, "lr": 0.05}]
    return nn.AdamWeightDecay(groups, learning_rate=0.01, weight_decay=0.1)

ways = {
    "plain": lambda: make(learning_rate=0.01, weight_decay=0.1),
    "no decay": lambda: make(learning_rate=0.01, weight_decay=0.0),
    "list": lambda: make(learning_rate=[0.01, 0.02, 0.03, 0.04], weight_decay=0.1),
    "schedule": lambda: make(learning_rate=nn.ExponentialDecayLR(0.1, 0.9, 4), weight_decay=0.1),
    "groups": lambda: mlp(of_groups),
    "betas": lambda: make(learning_rate=0.01, beta1=0.5, beta2=0.6, eps=1e-3, weight_decay=0.3),
    "parts": lambda: make(parts=4, learning_rate=0.01, weight_decay=0.1),
}

def train(way, debugger=None):
    net, step = ways[way]()
    losses, digest = [], hashlib.sha256()
    for i in range(4):
        if debugger:
            debugger.start(net)
        loss, gradients = step(i)
        if debugger:
            debugger.stop()
            debugger.step()
        losses.append(float(loss.asnumpy()))
        for tensor in (loss, *gradients, *net.get_parameters()):
            digest.update(tensor.asnumpy().tobytes())
    return losses, digest.hexdigest()

found = {}
for way in ways:
    losses, bare = train(way)
    folder = Path(sys.argv[2]) / way
    folder.mkdir(parents=True)
    debugger = Debug(folder)(level="mix", optimizer="states")
    found[way] = losses, bare, train(way, debugger)[1]
    debugger.close()
print(json.dumps(found))
"""


def test_adam_weight_decay_has_the_losses_of_cpu_and_its_bits_with_probe(tmp_path):
    found = {}
    for device in ("CPU", "Ascend"):
        command = [sys.executable, "-c", ADAM_WEIGHT_DECAY, device, str(tmp_path / device)]
        done = processes.run(
            command, capture_output=True, text=True, env=environment(), timeout=200
        )
        assert done.returncode == 0, done.stderr[-2000:]
        found[device] = json.loads(done.stdout.splitlines()[-1])
    assert not list(tmp_path.rglob("dump_error_info.log"))
    for way, (losses, bare, recorded) in found["Ascend"].items():
        assert losses == pytest.approx(found["CPU"][way][0], rel=1e-5), way
        assert bare == recorded, way


#: prints for each kind of rate: the waits and copies to the host of an update, bare and recorded; the numbers of groups
WAITS = """
import json, sys
from pathlib import Path
import mindspore as ms
from mindspore import nn

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("Ascend")
from tests.ascend.simulator import Device
from tests.support.dumps import Debug

device, debug = Device(), Debug(Path(sys.argv[1]))
x = ms.Tensor([[1.0, 2.0, 3.0]], ms.float32)

def update(rate, name):
    net = nn.SequentialCell(nn.Dense(3, 4), nn.Dense(4, 2))
    groups = [{"params": net[0].trainable_params(), "lr": rate}, {"params": net[1].trainable_params()}]
    optimizer = nn.Momentum(groups, 0.1, 0.9)
    gradient = ms.value_and_grad(lambda: (net(x) ** 2).mean(), None, optimizer.parameters)
    debugger = debug(level="L1", measure="device", dump_path=str(debug.path / name)) if name else None
    for step in range(3):
        if debugger:
            debugger.start(net)
        gradients = gradient()[1]
        ms.runtime.synchronize()
        with device.record() as lines:
            optimizer(gradients)
        if debugger:
            debugger.stop()
            debugger.step()
    if debugger:
        debugger.close()
    return [line for line in lines if line.startswith("wait") or "device to host" in line]

found = {}
for name, make in {"list": lambda: [0.1, 0.2, 0.3], "cosine": lambda: nn.CosineDecayLR(0.0, 0.1, 4)}.items():
    waits = [update(make(), "") , update(make(), name)]
    data = json.loads((debug.path / name / "step2" / "rank" / "dump.json").read_text())["data"]
    groups = data["Cell.optimizer.Momentum.forward.0"]["input_kwargs"]["groups"]
    found[name] = waits, [group["learning_rate"]["Max"] for group in groups]
print(json.dumps(found))
"""


def test_the_rates_of_groups_wait_for_nothing(tmp_path):
    command = [sys.executable, "-c", WAITS, str(tmp_path)]
    done = processes.run(command, capture_output=True, text=True, env=environment(), timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]
    for name, ((bare, recorded), rates) in json.loads(done.stdout.splitlines()[-1]).items():
        assert recorded == bare, name
        assert rates == pytest.approx([{"list": 0.3, "cosine": 0.05}[name], 0.1], rel=1e-5)
