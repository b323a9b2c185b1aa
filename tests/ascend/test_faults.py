# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Faults of probe that showed on the simulated Ascend first."""

from __future__ import annotations

import json
import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import ops

from tests.support import processes
from tests.support.dumps import Dump
from tests.support.paths import environment

pytestmark = [pytest.mark.slow, pytest.mark.ascend]

VALUES = np.random.RandomState(5).randn(40, 30)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("precision", ["low", "high"])
def test_half_floats_have_the_norm_of_the_host(debug, dtype, precision):
    value = ms.Tensor(VALUES, getattr(ms, dtype))
    found = {}
    for measure in ("host", "device"):
        debug.dump_path = debug.path / measure
        _, dump = debug.record(lambda: value.reshape(-1), measure=measure, precision=precision)
        found[measure] = dump.data["Tensor.reshape.0.forward"]["output"][0]
    assert found["device"]["Norm"] == pytest.approx(found["host"]["Norm"], rel=1e-6)
    largest = found["host"]["Max"]
    assert found["device"]["Mean"] == pytest.approx(
        found["host"]["Mean"], rel=0, abs=1e-6 * largest
    )


def test_setitem_records_the_tensor_that_it_changed(debug):
    def loss(x):
        y = x * 2
        y[1] = 5.0
        return (y * y).sum()

    x = ms.Tensor(np.arange(12, dtype=np.float32).reshape(4, 3))
    _, dump = debug.record(lambda: ms.grad(loss)(x), task="tensor", measure="host")
    expected = x.asnumpy() * 2
    expected[1] = 5.0
    output = dump.data["Tensor.__setitem__.0.forward"]["output"][0]
    assert dump.array(output["data_name"]).tolist() == expected.tolist()
    arrived = dump.data["Tensor.__setitem__.0.backward"]["input"][0]
    assert dump.array(arrived["data_name"]).tolist() == (2 * expected).tolist()


def test_a_gradient_that_the_backward_changes_in_place_is_read_before(debug):
    def loss(x):
        y = x * 3
        y.fill_diagonal_(7.0)
        return (y * y).sum()

    x = ms.Tensor(np.arange(12, dtype=np.float32).reshape(4, 3))
    _, dump = debug.record(lambda: ms.grad(loss)(x), task="tensor", measure="host")
    entry = dump.data["Tensor.fill_diagonal_.0.backward"]
    arrived, left = (dump.array(entry[side][0]["data_name"]) for side in ("input", "output"))
    assert np.diag(arrived).tolist() == [14.0, 14.0, 14.0]
    assert np.diag(left).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("measure", ["host", "device"])
def test_a_seed_that_shares_memory_with_the_generator_is_only_read(
    debug, device, measure, monkeypatch
):
    """An operation on it frees memory that the generator writes later: MindSpore does so without probe too."""
    monkeypatch.setenv("ASCEND_SIM_UNKNOWN", "fill")
    ms.manual_seed(7)
    x = ms.Tensor(VALUES[:4, :8].reshape(1, 4, 8), ms.float16)
    outputs, dump = debug.record(
        lambda: ops.speed_fusion_attention(x, x, x, 2, "BSH"), task="tensor", measure=measure
    )
    with device.record() as lines:
        seed = int(outputs[4].asnumpy())
    assert lines == [], "it stands in the memory of the host, as without probe"
    record = dump.data["Functional.speed_fusion_attention.0.forward"]["output"][4]
    assert seed == 7 == record["Max"] == dump.array(record["data_name"])


#: a training of one step, in which an operation fails; the arguments are the plan, where numbers are obtained, a folder
FAILING = """
import sys
import mindspore as ms
import numpy as np
from mindspore import nn, ops
from tests.ascend.simulator import Device
from tests.support.dumps import Debug
from pathlib import Path

plan, measure, mode, folder = sys.argv[1:5]
ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=mode == "synchronous")
ms.set_device("Ascend")
x = ms.Tensor(np.random.RandomState(0).rand(40, 30).astype(np.float32))
ops.tanh(ops.relu(x * 2)).asnumpy()
debugger = Debug(Path(folder))(measure=measure) if measure != "bare" else None
if debugger:
    debugger.start()
Device().plan(plan)
try:
    result = ops.sigmoid(ops.tanh(ops.relu(x * 2)))
    if debugger:
        debugger.stop()
    result.asnumpy()
except RuntimeError as error:
    print("raised", str(error).split(chr(10))[0])
print("the program goes on")
"""


def fail(tmp_path, plan, measure, mode="asynchronous"):
    command = [sys.executable, "-c", FAILING, plan, measure, mode, str(tmp_path)]
    return processes.run(command, capture_output=True, text=True, env=environment(), timeout=100)


@pytest.mark.parametrize("measure", ["host", "device"])
@pytest.mark.parametrize("plan", ["fail run aclnnTanh", "fail launch aclnnTanh"])
def test_an_error_of_the_device_is_raised_once_and_the_entries_are_on_disk(tmp_path, plan, measure):
    done = fail(tmp_path, plan, measure)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("raised") == 1 and done.stdout.endswith("the program goes on\n"), (
        done.stdout
    )
    assert "Exception ignored" not in done.stderr and "Traceback" not in done.stderr
    dump = Dump(tmp_path / "dump" / "step0" / "rank")
    names = ["Tensor.__mul__.0.forward", "Functional.relu.0.forward", "Functional.tanh.0.forward"]
    assert list(dump.data)[:3] == names
    if measure == "host":
        assert dump.data[names[1]]["output"][0]["Max"] > 0  # what was read before the failure
        assert "raised" in dump.data[names[2]] and "output" not in dump.data[names[2]]
    else:  # nobody knows which operations were run: no number is better than one of memory that was never written
        assert dump.data[names[2]]["output"] == [None]


def test_an_error_raised_by_a_synchronous_call_leaves_the_numbers_of_the_others(tmp_path):
    done = fail(tmp_path, "fail launch aclnnTanh", "device", "synchronous")
    assert done.stdout.count("raised") == 1 and "Traceback" not in done.stderr, done.stderr
    dump = Dump(tmp_path / "dump" / "step0" / "rank")
    assert dump.data["Functional.relu.0.forward"]["output"][0]["Max"] > 0
    assert "raised" in dump.data["Functional.tanh.0.forward"]


def test_a_device_that_fails_is_reported_by_every_later_call_too(device, debug):
    x = ms.Tensor(VALUES, ms.float32)
    debugger = debug(measure="device")
    debugger.start()
    device.plan("fail run aclnnTanh")
    with pytest.raises(RuntimeError, match="simulated Ascend"):  # this process is synchronous
        ops.tanh(x)
    with pytest.raises(RuntimeError, match="simulated Ascend"):
        ops.relu(x)
    device.plan()
    debugger.stop()
    debugger.step()
    assert json.loads((debug.dump_path / "step0" / "rank" / "dump.json").read_text())["data"]
