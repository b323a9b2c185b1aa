# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Operations, fetches and waits of a step under the monitor, as the simulated device counts them."""

from __future__ import annotations

import json
import sys

import pytest

from tests.support import processes
from tests.support.paths import environment

pytestmark = [pytest.mark.slow, pytest.mark.ascend]

#: prints one line of JSON
PROGRAM = """
import csv, json, os, sys
import mindspore as ms
import numpy as np
from pathlib import Path
from mindspore import Tensor, nn
from probe import PrecisionDebugger, TrainerMon
from probe.series.series import open_series
from tests.ascend.simulator import Device, by_kind

folder = Path(sys.argv[1])
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("Ascend")
device = Device()

def seen(block):
    ms.runtime.synchronize()
    with device.record() as lines:
        block()
        ms.runtime.synchronize()
    while lines and lines[-1].startswith("wait"):
        lines.pop()
    return lines

def training():
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 4))
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
    x = Tensor(np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32))
    def train():
        loss, gradients = gradient(x)
        optimizer(gradients)
        return loss, gradients
    net.__dict__["optimizer"] = optimizer  # no Cell below the net
    return net, train

def run(steps, interval=None):
    net, train = training()
    debugger, inside, end, losses, norms = None, [], [], [], []
    if interval:
        config = folder / f"{interval}.json"
        monitor = {"interval": interval}
        config.write_text(json.dumps({"task": "monitor", "dump_path": str(folder / str(interval)), "monitor": monitor}))
        debugger = PrecisionDebugger(config_path=str(config))
    for _ in range(steps):
        ms.runtime.synchronize()
        if debugger:
            debugger.start(net)
        kept = []
        inside.append(seen(lambda: kept.append(train())))
        if debugger:
            debugger.stop()
            end.append(seen(debugger.step))
        losses.append(float(kept[0][0].asnumpy()))
        norms.append([float(np.linalg.norm(g.asnumpy())) for g in kept[0][1]])
    if debugger:
        PrecisionDebugger.close()
    parameters = [p.asnumpy().tobytes().hex() for p in net.get_parameters()]
    count = {"inside": [by_kind(lines) for lines in inside], "end": [by_kind(lines) for lines in end],
             "waits": [sum(line.startswith("wait") for line in lines) for lines in inside],
             "back": [sum("device to host" in line for line in lines) for lines in end],
             "back_inside": [sum("device to host" in line for line in lines) for lines in inside]}
    return {**count, "losses": losses, "norms": norms, "parameters": parameters,
            "names": [p.name for p in net.trainable_params()]}

def read(interval):
    (series,) = open_series(str(folder / str(interval)))
    return {name: dict(zip(*(values.tolist() for values in series[name]))) for name in series.names}

def trainer():
    os.environ["MONITOR_OUTPUT_DIR"] = str(folder / "csv")
    config = folder / "trainer.json"
    flags = ("wg_distribution", "mv_distribution", "param_distribution", "xy_distribution")
    ops = ["norm", "min", "max", "mean", "zeros", "nans"]
    config.write_text(json.dumps({**dict.fromkeys(flags, True), "ops": ops}))
    net, train = training()
    net.set_train()
    monitor = TrainerMon(str(config))
    monitor.set_monitor(net, net.optimizer)
    norms = []
    for _ in range(6):
        loss, gradients = train()
        norms.append([float(np.linalg.norm(g.asnumpy())) for g in gradients])
    monitor.close()
    rows = []
    for path in sorted(folder.glob("csv/*-rank0-*/*.csv")):
        with path.open(newline="") as file:
            rows += [{**row, "kind": path.name.rpartition("_")[0]} for row in csv.DictReader(file)]
    return {"rows": rows, "norms": norms, "parameters": [p.asnumpy().tobytes().hex() for p in net.get_parameters()]}

result = {"trainer": trainer(), "bare": run(6), "seldom": run(6, 1000), "always": run(6, 1)}
result["seldom_rows"], result["always_rows"] = read(1000), read(1)
result["errors"] = [path.read_text() for path in folder.rglob("dump_error_info.log")]
print(json.dumps(result))
"""
PARAMETERS = 4


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path_factory.mktemp("monitor"))]
    done = processes.run(command, capture_output=True, text=True, env=environment(), timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def added(found, name, step):
    """Return the launches of a step under the monitor that the bare one has not: within it, and at its end."""
    inside = found[name]["inside"][step].get("launch", 0) - found["bare"]["inside"][step].get(
        "launch", 0
    )
    return inside, found[name]["end"][step].get("launch", 0)


def test_the_monitor_runs_on_the_device_and_changes_no_bit(found):
    assert found["errors"] == []
    for name in ("seldom", "always"):
        assert found[name]["losses"] == found["bare"]["losses"]
        assert found[name]["parameters"] == found["bare"]["parameters"]


def test_the_rows_have_the_numbers_of_the_training(found):
    rows = found["always_rows"]
    assert [
        rows["loss"][str(float(step))]
        if str(float(step)) in rows["loss"]
        else rows["loss"][str(step)]
        for step in range(6)
    ] == pytest.approx(found["bare"]["losses"], rel=1e-5)
    for place, name in enumerate(found["bare"]["names"]):
        values = list(rows[f"{name}.grad"].values())
        assert values == pytest.approx(
            [norms[place] for norms in found["bare"]["norms"]], rel=1e-4, abs=1e-7
        )
        assert len(rows[f"{name}.param"]) == len(rows[f"{name}.update"]) == 6


def test_a_step_has_at_most_two_operations_a_tensor(found):
    # each gradient as it arrives and as it enters, the numbers of the optimizer
    for step in range(2, 6):
        inside, end = added(found, "seldom", step)
        assert inside <= 2 * PARAMETERS + 4, (step, inside)
        assert end <= 8, (step, end)  # the loss, and the numbers are joined for one fetch
    # besides that the norm of a parameter, a copy, the change and its norm, and of two states each
    for step in range(2, 6):
        inside, _ = added(found, "always", step)
        assert inside <= (2 + 4 + 2) * PARAMETERS + 4, (step, inside)


def test_a_step_waits_for_nothing_and_fetches_once(found):
    for name in ("seldom", "always"):
        for step in range(2, 6):
            assert found[name]["waits"][step] == found["bare"]["waits"][step]
            assert found[name]["back_inside"][step] == found["bare"]["back_inside"][step]
            assert found[name]["back"][step] == 1


def test_trainer_mon_writes_the_numbers_of_the_training_and_changes_no_bit(found):
    trainer, names = found["trainer"], found["bare"]["names"]
    assert trainer["parameters"] == found["bare"]["parameters"]
    kinds = {row["kind"] for row in trainer["rows"]}
    params = {
        "grad_unreduced",
        "grad_reduced",
        "param_origin",
        "param_updated",
        "exp_avg",
        "exp_avg_sq",
    }
    assert kinds == {*params, "actv", "actv_grad"}
    for kind in ("grad_unreduced", "grad_reduced"):
        rows = {
            (row["name"], int(row["step"])): float(row["norm"])
            for row in trainer["rows"]
            if row["kind"] == kind
        }
        wanted = {
            (name, step): trainer["norms"][step][place]
            for step in range(6)
            for place, name in enumerate(names)
        }
        assert rows == pytest.approx(wanted, rel=1e-4, abs=2e-6)
    assert all(
        float(row["nans"]) == 0 and float(row["min"]) <= float(row["mean"])
        for row in trainer["rows"]
    )


FAILING = """
import json, sys
import mindspore as ms
import numpy as np
from pathlib import Path
from mindspore import Tensor, nn
from probe import PrecisionDebugger, TrainerMon
from tests.ascend.simulator import Device

way, folder = sys.argv[1], Path(sys.argv[2])
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("Ascend")
device = Device()
net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 4))
optimizer = nn.Adam(net.trainable_params(), 0.01)
gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
x = Tensor(np.ones((4, 8), np.float32))
config, debugger, raised = folder / "config.json", None, 0
if way == "monitor":
    config.write_text(json.dumps({"task": "monitor", "dump_path": str(folder / "watched")}))
    debugger = PrecisionDebugger(config_path=str(config))
elif way == "trainer":
    config.write_text(json.dumps({"wg_distribution": True}))
    TrainerMon(str(config)).set_monitor(net, optimizer)
for step in range(8):
    if step == 4:
        device.plan("fail-once run aclnnRelu 1 1")
    try:
        if debugger:
            debugger.start(net)
        loss, gradients = gradient(x)
        optimizer(gradients)
        if debugger:
            debugger.step()
    except RuntimeError:
        raised += 1
try:
    loss.asnumpy()
except RuntimeError:
    raised += 1
print(raised)
"""


@pytest.mark.parametrize("way", ["bare", "monitor", "trainer"])
def test_an_error_that_the_device_tells_once_reaches_the_training(way, tmp_path):
    variables = environment(MONITOR_OUTPUT_DIR=str(tmp_path / "csv"))
    command = [sys.executable, "-c", FAILING, way, str(tmp_path)]
    done = processes.run(command, capture_output=True, text=True, env=variables, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "1"
