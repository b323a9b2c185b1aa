# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Numbers that MindSpore's own operations compute, as on an accelerator: the host's. Here they run on CPU kernels."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import mindspore as ms
import numpy as np
import pytest

from tests.support import nets

pytestmark = pytest.mark.slow

RNG = np.random.RandomState(5)
VALUES = {
    "float": RNG.randn(40, 30).astype(np.float32),
    "one": np.array(2.5, np.float32),
    "zeros": np.zeros(7, np.float32),
    "largest": np.full(8, 1e38, np.float32),
    "smallest": np.array([1e-20, -3e-20], np.float32),
    "nan": np.array([1.0, np.nan, np.inf, np.nan], np.float32),
    "inf": np.array([1.0, np.inf], np.float32),
    "infinities": np.array([-np.inf, np.inf], np.float32),
    "minus_inf": np.array([[-np.inf, 3.0]], np.float32),
    "half": RNG.randn(50).astype(np.float16),
    "double": RNG.randn(50),
    "complex": np.array([3 + 4j, 0], np.complex64),
    "int64": np.array([2**53 + 1, -5, 7]),
    "int8": np.array([-128, 127], np.int8),
    "uint8": np.arange(250, dtype=np.uint8),
    "uint64": np.array([2**64 - 1], np.uint64),
    "bool": np.array([True, False]),
    "empty": np.zeros((0, 3), np.float32),
}


def agree(ours, theirs):
    if isinstance(theirs, float) and isinstance(ours, float):
        return math.isclose(ours, theirs, rel_tol=1e-5) or (math.isnan(ours) and math.isnan(theirs))
    return type(ours) is type(theirs) and ours == theirs


def recorded(debug, function, measure, **settings):
    debug.dump_path = debug.path / measure
    return debug.record(function, measure=measure, **settings)


@pytest.mark.parametrize("name", VALUES)
def test_records_measured_on_the_device_equal_those_of_the_host(debug, name):
    value = ms.Tensor(VALUES[name])
    records = [
        recorded(debug, lambda: value.reshape(value.shape), measure)[1].data["Tensor.reshape.0.forward"]["input_args"][
            0
        ]
        for measure in ("host", "device")
    ]
    host, device = records
    assert list(host) == list(device)
    assert {key: (host[key], device[key]) for key in host if not agree(device[key], host[key])} == {}


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_measuring_on_the_device_changes_no_bit_of_a_training(debug, task):
    results, dumps = {}, {}
    for measure in ("host", "device"):
        net, step = nets.build("gpt")
        (loss, gradients), dumps[measure] = recorded(
            debug, lambda step=step: step(0), measure, model=net, level="mix", task=task
        )
        results[measure] = [tensor.asnumpy().tobytes() for tensor in (loss, *gradients)]
    assert results["host"] == results["device"]
    host, device = dumps["host"].data, dumps["device"].data
    assert list(host) == list(device)
    compared = 0
    for name, entry in host.items():
        for (place, ours), (other, theirs) in zip(records_of(entry), records_of(device[name])):
            compared += 1
            assert place == other
            largest = max(abs(ours["Max"] or 0), abs(ours["Min"] or 0))
            for key in ("Max", "Min", "Norm"):
                assert agree(theirs[key], ours[key]), (name, place, key, ours, theirs)
            if ours["Mean"] is not None:
                assert theirs["Mean"] == pytest.approx(ours["Mean"], rel=1e-5, abs=1e-6 * largest)
    assert compared > 500


def records_of(value, place=""):
    if isinstance(value, dict) and "Norm" in value:
        yield place, value
    elif isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from records_of(item, f"{place}.{key}")


def test_md5_on_the_device_is_computed_from_a_copy(debug):
    """What is changed after it was recorded, before the numbers are fetched, is recorded as it was."""

    def train():
        x = ms.Tensor(np.ones(4, np.float32))
        y = ms.ops.exp(x)
        x[0] = 5.0
        return y

    for summary in ("statistics", "md5"):
        _, host = recorded(debug, train, "host", summary_mode=summary, overwrite=True)
        _, device = recorded(debug, train, "device", summary_mode=summary, overwrite=True)
        given = [dump.data["Functional.exp.0.forward"]["input_args"][0] for dump in (host, device)]
        assert given[0]["Max"] == given[1]["Max"] == 1.0
        assert given[0].get("md5") == given[1].get("md5")


ERRORS = """
import json, os, sys
import mindspore as ms
import numpy as np
from mindspore import mint, ops
ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=sys.argv[2] == "synchronous")
from probe import PrecisionDebugger
config = sys.argv[1] + "/config.json"
open(config, "w").write(json.dumps({"dump_path": sys.argv[1] + "/dump", "measure": "device"}))
debugger = PrecisionDebugger(config_path=config)
x = ms.Tensor(np.arange(3.0, dtype=np.float32))
if sys.argv[3] == "ours":
    from probe.measure.device import DeviceMeasurer
    def fail(self, kind, tensor):
        raise RuntimeError("Allocate memory failed\\n C++ Call Stack")
    DeviceMeasurer._reduce = fail
debugger.start()
caught = 0
if sys.argv[3] == "theirs":
    try:
        mint.norm(x).asnumpy()
    except RuntimeError:
        caught = 1
y = ops.relu(x)
debugger.stop()
debugger.step()
print(caught, y.asnumpy().sum())
"""


@pytest.mark.parametrize("mode", ["synchronous", "asynchronous"])
@pytest.mark.parametrize("whose", ["theirs", "ours"])
def test_an_error_of_the_training_reaches_it_once_and_an_error_of_probe_never(tmp_path, mode, whose):
    command = [sys.executable, "-c", ERRORS, str(tmp_path), mode, whose]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()[-2:] == [str(int(whose == "theirs")), "3.0"]
    data = json.loads((tmp_path / "dump" / "step0" / "rank" / "dump.json").read_text())["data"]
    relu = data["Functional.relu.0.forward"]
    assert ("error" in relu) == (whose == "ours")
    assert "raised" not in relu
    if whose == "ours":
        assert "Allocate memory failed" in done.stderr
