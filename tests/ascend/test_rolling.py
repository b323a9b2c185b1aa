# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Operations, fetches and waits of rolling records, as the simulated device counts them."""

from __future__ import annotations

import json
import sys

import pytest

from tests.support import processes
from tests.support.paths import environment

pytestmark = [pytest.mark.slow, pytest.mark.ascend]

#: the rows of a dump of each step beside those of rolling records; prints one line of JSON
PROGRAM = """
import json, sys
import mindspore as ms
import numpy as np
from pathlib import Path
from mindspore import Tensor, nn, ops
from probe import PrecisionDebugger
from probe.series.series import open_series
from tests.ascend.simulator import Device, by_kind

folder = Path(sys.argv[1])
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("Ascend")
device = Device()
STEPS = 13

def seen(block):
    ms.runtime.synchronize()
    with device.record() as lines:
        block()
        ms.runtime.synchronize()
    while lines and lines[-1].startswith("wait"):
        lines.pop()
    return lines

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Dense(256, 512), nn.Dense(512, 4)
    def construct(self, x):
        return self.last(ops.relu(self.first(x)))

def run(name, **own):
    ms.set_seed(1)
    net = Net()
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
    x = Tensor(np.random.default_rng(0).normal(size=(4, 256)).astype(np.float32))
    debugger = None
    if own:
        config = folder / f"{name}.json"
        settings = {"task": "statistics", "level": "mix", "dump_path": str(folder / name), "statistics": own}
        config.write_text(json.dumps(settings))
        debugger = PrecisionDebugger(config_path=str(config))
    inside, end, losses = [], [], []
    def train():
        loss, gradients = gradient(x)
        optimizer(gradients)
        losses.append(loss)
    for _ in range(STEPS):
        ms.runtime.synchronize()
        if debugger:
            debugger.start(net)
        inside.append(seen(train))
        if debugger:
            debugger.stop()
            end.append(seen(debugger.step))
    if debugger:
        PrecisionDebugger.close()
    counts = {part: [by_kind(lines) for lines in found] for part, found in (("inside", inside), ("end", end))}
    back = [sum("device to host" in line for line in lines) for lines in inside]
    bits = [loss.asnumpy().tobytes().hex() for loss in losses]
    bits += [p.asnumpy().tobytes().hex() for p in net.get_parameters()]
    return {**counts, "back": back, "bits": bits}

def calls(name):
    content = open_series(str(folder / name))[0].calls
    return {step: {head.entry: dict(zip(head.columns, map(float, values))) for head, values in records}
            for step, records in content.records()}

def dumped(name):
    paths = folder.glob(f"{name}/step*/rank*/dump.json")
    return {int(path.parent.parent.name[4:]): json.loads(path.read_text())["data"] for path in paths}

result = {"bare": run("bare"), "rolled": run("rolled", rolling=3),
          "bits": run("bits", rolling=3, summary_mode="md5")}
run("whole", summary_mode="statistics")
run("whole_bits", summary_mode="md5")
result["rows"], result["dump"] = calls("rolled"), dumped("whole")
result["bit_rows"], result["bit_dump"] = calls("bits"), dumped("whole_bits")
result["errors"] = [path.read_text() for path in folder.rglob("dump_error_info.log")]
print(json.dumps(result))
"""
STATISTICS = {"max": "Max", "min": "Min", "mean": "Mean", "norm": "Norm"}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path_factory.mktemp("rolling"))]
    done = processes.run(command, capture_output=True, text=True, env=environment(), timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_rolling_records_run_on_the_device_and_change_no_bit(found):
    assert found["errors"] == []
    assert found["rolled"]["bits"] == found["bare"]["bits"]
    assert found["bits"]["bits"] == found["bare"]["bits"]


def records(value, key):
    if isinstance(value, dict) and value.get(key) is not None:
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from records(item, key)


def test_the_rows_have_the_numbers_of_a_dump(found):
    compared = 0
    for step, rows in found["rows"].items():
        for entry, row in rows.items():
            whole = found["dump"][step][entry]  # of a Cell its parameters too
            sides = [whole.get("input_args", whole.get("input")), whole["output"]]
            known = list(records(sides, "Norm"))
            for name, key in STATISTICS.items():
                values = [value for column, value in row.items() if column.endswith(f".{name}")]
                assert values == pytest.approx([it[key] for it in known], rel=1e-5, abs=1e-7), entry
                compared += len(values)
    assert compared > 100


def test_md5_rows_have_the_bits_of_a_dump(found):
    compared = 0
    for step, rows in found["bit_rows"].items():
        for entry, row in rows.items():
            halves = list(row.values())
            bits = [f"{int(a):04x}{int(b):04x}" for a, b in zip(halves[::2], halves[1::2])]
            known = {it["md5"] for it in records(found["bit_dump"][step][entry], "md5")}
            assert bits and set(bits) <= known, entry
            compared += len(bits)
    assert compared > 20


@pytest.mark.parametrize("way", ["rolled", "bits"])
def test_a_step_waits_for_nothing_and_fetches_nothing_within_it(found, way):
    bare = found["bare"]
    for step in range(2, len(bare["inside"])):
        own = found[way]["inside"][step]
        assert own.get("wait", 0) == bare["inside"][step].get("wait", 0)
        assert found[way]["back"][step] == bare["back"][step]


def test_a_chosen_tensor_costs_few_operations_and_the_others_none(found):
    launches = [
        (own.get("launch", 0) - bare.get("launch", 0), len(found["rows"].get(str(step), {})))
        for step, (own, bare) in enumerate(zip(found["rolled"]["inside"], found["bare"]["inside"]))
    ]
    for added, entries in launches[1:]:
        tensors = 4 * entries  # at most
        assert added <= 6 * tensors, launches
        assert entries or not added, launches
