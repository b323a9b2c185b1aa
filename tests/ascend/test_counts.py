# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Launches, copies and waits of a recorded step, as the simulated device counts them. Trainings run asynchronously."""

from __future__ import annotations

import json
import sys

import pytest

from tests.support import processes
from tests.support.paths import environment

pytestmark = [pytest.mark.slow, pytest.mark.ascend]

#: the argument is the name of a scenario; prints one line of JSON
PROGRAM = """
import json, sys
import mindspore as ms
import numpy as np
from pathlib import Path
from mindspore import Tensor, nn, ops
from tests.ascend.simulator import Device, by_kind
from tests.ascend import trainings
from tests.support import nets
from tests.support.dumps import Debug

scenario, folder = sys.argv[1], Path(sys.argv[2])
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("Ascend")
device, debug = Device(), Debug(folder)

def seen(block):
    ms.runtime.synchronize()
    with device.record() as lines:
        block()
        ms.runtime.synchronize()  # MindSpore launches from a thread of its own
    while lines and lines[-1].startswith("wait"):
        lines.pop()
    return lines

def statistics_of_one_tensor():
    found = {}
    values = np.arange(-3000, 3000) % 7
    for dtype in ("float32", "float16", "bfloat16", "int32", "int64", "bool_"):
        x = Tensor(values, getattr(ms, dtype))
        x = x.reshape(-1, 2).transpose(1, 0).contiguous()  # it is on the device now
        debugger = debug(measure="device", dump_path=str(folder / dtype))
        debugger.start()
        recorded = seen(lambda: x.reshape(-1, 3))
        debugger.stop()
        debugger.step()
        debugger.close()
        found[dtype] = [line.split()[2] for line in recorded if line.startswith("launch")]
        assert not [line for line in recorded if line.startswith(("wait", "copy"))], recorded
    return found

def step():
    found = {}
    for measure in ("none", "device"):
        net, train = nets.build("lenet")
        train(0)
        settings = {"measure": "device", "level": "mix", "dump_path": str(folder / measure)}
        debugger = debug(**settings) if measure == "device" else None
        for i in (1, 2):  # the second step: what is made once is there
            ms.runtime.synchronize()
            if debugger:
                debugger.start(net)
            inside = seen(lambda: train(i))
            end = []
            if debugger:
                end = seen(debugger.stop)
                debugger.step()
        if debugger:
            debugger.close()
        of_training = {line.split()[1] for line in inside if line.startswith("launch")}
        found[measure] = {"inside": by_kind(inside), "end": by_kind(end), "streams": sorted(of_training),
                          "waits": [line for line in inside if line.startswith("wait")],
                          "back": [line for line in end if "device to host" in line]}
    return found

def memory():
    net, train = trainings.mlp()
    debugger, held = debug(measure="device", level="mix"), []
    for i in range(200):
        debugger.start(net)
        train(i % 5)
        debugger.stop()
        debugger.step()
        ms.runtime.synchronize()
        held.append(ms.runtime.memory_allocated())
    return {"allocated": [held[10], held[100], held[199]], "device": device.bytes_held}

print(json.dumps({"statistics": statistics_of_one_tensor, "step": step, "memory": memory}[scenario]()))
"""


def run(scenario, tmp_path, limit=200):
    command = [sys.executable, "-c", PROGRAM, scenario, str(tmp_path)]
    done = processes.run(command, capture_output=True, text=True, env=environment(), timeout=limit)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_statistics_of_a_tensor_take_at_most_four_operations_and_no_wait(tmp_path):
    found = run("statistics", tmp_path)
    lengths = {dtype: len(launches) for dtype, launches in found.items()}
    # of input and output: Max, Min, Mean, Norm; whole numbers are cast first
    assert lengths == {
        "float32": 8,
        "float16": 8,
        "bfloat16": 8,
        "int32": 10,
        "int64": 10,
        "bool_": 2,
    }, found


def test_a_recorded_step_waits_for_nothing_and_fetches_once(tmp_path):
    found = run("step", tmp_path)
    bare, recorded = found["none"], found["device"]
    assert recorded["waits"] == bare["waits"]
    assert recorded["inside"].get("copy", 0) == bare["inside"].get("copy", 0)
    assert recorded["streams"] == bare["streams"]
    assert len(recorded["back"]) <= 4, recorded[
        "back"
    ]  # floats, wholes, small floats, small wholes


def test_the_device_holds_no_more_memory_after_200_recorded_steps(tmp_path):
    allocated = run("memory", tmp_path)["allocated"]
    assert allocated[0] == allocated[1] == allocated[2], allocated
