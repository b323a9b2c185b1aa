# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Numbers that MindSpore's own operations compute, as on an accelerator: the host's. Here they run on CPU kernels."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import threading

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn

from probe.measure.device import DeviceMeasurer
from probe.measure.host import HostMeasurer
from probe.measure.measurer import Role
from probe.measure.reductions import Reductions
from tests.support import interference, nets, processes

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


def agree(ours, theirs, tolerance=1e-5):
    if isinstance(theirs, float) and isinstance(ours, float):
        return math.isclose(ours, theirs, rel_tol=tolerance) or (
            math.isnan(ours) and math.isnan(theirs)
        )
    return type(ours) is type(theirs) and ours == theirs


def recorded(debug, function, measure, **settings):
    debug.dump_path = debug.path / measure
    return debug.record(function, measure=measure, **settings)


def record_of(debug, value, measure, **settings):
    _, dump = recorded(debug, lambda: value.reshape(value.shape), measure, **settings)
    return dump.data["Tensor.reshape.0.forward"]["input_args"][0]


@pytest.mark.parametrize("name", VALUES)
def test_small_tensors_have_the_numbers_of_the_host(debug, name):
    value = ms.Tensor(VALUES[name])
    host, device = (record_of(debug, value, measure) for measure in ("host", "device"))
    assert list(host) == list(device)
    assert {
        key: (host[key], device[key]) for key in host if not agree(device[key], host[key])
    } == {}


#: the sum of their squares leaves the range of float32
FAR = ("largest", "smallest")


@pytest.mark.parametrize("precision", ["low", "high"])
@pytest.mark.parametrize("name", [name for name in VALUES if name != "empty"])
def test_reduced_tensors_have_the_numbers_of_the_host_but_no_counts(debug, name, precision):
    value = ms.Tensor(np.resize(VALUES[name], (3, 1000)))
    host, device = (
        record_of(debug, value, measure, precision=precision) for measure in ("host", "device")
    )
    counts = {} if name in ("double", "complex") else {"nan_count": None, "inf_count": None}
    expected = {key: number for key, number in host.items() if key not in counts}
    assert list(expected) == list(device)
    wrong = {
        key: (number, device[key])
        for key, number in expected.items()
        if not agree(device[key], number)
    }
    if precision == "low" and name in FAR:
        lost = (
            (math.inf, math.inf)
            if name == "largest"
            else (pytest.approx(host["Mean"]), pytest.approx(0, abs=1e-17))
        )
        assert (device["Mean"], device["Norm"]) == lost
        wrong = {key: both for key, both in wrong.items() if key not in ("Mean", "Norm")}
    assert wrong == {}


def test_counts_are_recorded_where_they_are_asked_for(debug):
    value = ms.Tensor(np.resize(VALUES["nan"], (1000,)))
    names = ["max", "nan count", "positive inf count", "zero count", "count"]
    host, device = (
        record_of(debug, value, measure, summary_mode=names) for measure in ("host", "device")
    )
    assert (host["nan_count"], host["positive_inf_count"]) == (500, 250)
    assert {key: number for key, number in device.items() if key != "Max"} == {
        key: number for key, number in host.items() if key != "Max"
    }
    assert math.isnan(device["Max"])


OPERATIONS = {
    "float32": (5, 4),
    "float16": (6, 4),
    "bfloat16": (6, 4),
    "int8": (6, 5),
    "int32": (6, 5),
    "int64": (6, 5),
    "bool_": (1, 1),
}


class Counted:
    """Runs an operation of MindSpore, and counts it."""

    def __init__(self, ran, name, operation):
        self._ran, self._name, self._operation = ran, name, operation

    def __call__(self, *args):
        self._ran.append(self._name)
        return self._operation(*args)


def counted(on_cpu, scaled=False):
    """Return reductions, and the list of the operations that they have run. CPU has no kernel for the norm."""
    reductions, ran = Reductions(on_cpu, scaled), []
    operations = vars(reductions._ops)
    square, total, cast = operations["Square"], operations["SumExt"], operations["Cast"]
    if not on_cpu:
        operations["LinalgVectorNorm"] = lambda x, *_: (
            total(square(cast(x, ms.float32)), None, False, ms.float32) ** 0.5
        )
        for name in ("Max", "Min"):  # nor for the extrema of bfloat16
            kernel = operations[name]
            operations[name] = lambda x, kernel=kernel: (
                cast(kernel(cast(x, ms.float32)), x.dtype) if x.dtype == ms.bfloat16 else kernel(x)
            )
    for name, operation in list(operations.items()):
        operations[name] = Counted(ran, name, operation)
    return reductions, ran


def measured(tensor, reductions):
    measurer = DeviceMeasurer(HostMeasurer(md5=False), reduces=True, reductions=reductions)
    record = measurer.tensor(tensor, "", None, Role.OUTPUT)
    count = len(measurer._reductions._ops.Max._ran)
    measurer.complete(lambda operation: contextlib.nullcontext())
    return json.loads(record.text("")), count


@pytest.mark.parametrize("dtype", OPERATIONS)
@pytest.mark.parametrize("on_cpu", [True, False], ids=["cpu", "device"])
def test_few_operations_reduce_a_tensor(dtype, on_cpu):
    values = np.arange(-700, 700) % 3
    tensor = ms.Tensor(values, getattr(ms, dtype))
    reductions, _ = counted(on_cpu)
    record, count = measured(tensor, reductions)
    assert count == OPERATIONS[dtype][0 if on_cpu else 1]
    if dtype == "bool_":
        assert (record["Max"], record["Min"], record["Mean"], record["Norm"]) == (
            True,
            False,
            None,
            None,
        )
    else:
        assert (record["Max"], record["Min"]) == (2, 0)
        assert record["Mean"] == pytest.approx(values.mean(), rel=1e-6)
        assert record["Norm"] == pytest.approx(np.linalg.norm(values), rel=1e-6)


def test_ten_operations_reduce_data_of_any_magnitude():
    reductions, _ = counted(on_cpu=True, scaled=True)
    record, count = measured(ms.Tensor(np.full(1000, 1e30, np.float32)), reductions)
    assert count == 10
    assert record["Norm"] == pytest.approx(1e30 * 1000**0.5, rel=1e-6)


def test_a_small_tensor_is_copied_and_not_reduced():
    reductions, _ = counted(on_cpu=False)
    record, count = measured(ms.Tensor(np.arange(256, dtype=np.float32)), reductions)
    assert (count, record["Max"], record["Mean"]) == (0, 255.0, 127.5)


def test_tensors_that_another_thread_adds_during_a_fetch_wait_for_the_next_one():
    measurer = DeviceMeasurer(HostMeasurer(md5=False), True, Reductions(True, False))
    tensor, late = ms.Tensor(np.arange(1000, dtype=np.float32)), []

    @contextlib.contextmanager
    def guard(operation):
        yield
        if operation.startswith("fetching"):
            other = threading.Thread(
                target=lambda: late.append(measurer.tensor(tensor, "", None, Role.OUTPUT))
            )
            other.start()
            other.join()

    early = measurer.tensor(tensor, "", None, Role.OUTPUT)
    measurer.complete(guard)
    assert json.loads(early.text(""))["Max"] == 999.0 and late[0].record is None
    measurer.complete(guard)
    assert json.loads(late[0].text(""))["Max"] == 999.0


@pytest.mark.parametrize("kind", ["float", "int", "bool"])
def test_small_tensors_are_fetched_together(kind):
    dtypes = {
        "float": (ms.float32, ms.float16, ms.float32),
        "int": (ms.int8, ms.int64, ms.int8),
        "bool": (ms.bool_,) * 3,
    }
    tensors = [
        ms.Tensor(values, dtype)
        for values, dtype in zip(([[1, 0], [3, 4]], 1, [[5], [0]]), dtypes[kind])
    ]
    reductions, ran = counted(on_cpu=False)
    found = reductions.fetch(tensors, kind)
    assert [array.tolist() for array in found] == [tensor.asnumpy().tolist() for tensor in tensors]
    assert ran.count("Concat") == len(set(dtypes[kind])) + 1


WAITING = """
import sys, time
import mindspore as ms
import numpy as np
ms.set_context(mode=ms.PYNATIVE_MODE)
from probe.measure.device import DeviceMeasurer
from probe.measure.host import HostMeasurer
from probe.measure.measurer import Role
from probe.measure.reductions import Reductions
x = ms.Tensor(np.ones((1500, 1500), np.float32) * 1e-3)
measurer = DeviceMeasurer(HostMeasurer(md5=False), True, Reductions(True, False))
begun = lambda: measurer.tensor(x, "", None, Role.OUTPUT)
begun()
(x @ x).asnumpy()
shares = []
for _ in range(5):  # another process may hold this one up in one of them
    began = time.perf_counter()
    y = x
    for _ in range(6):
        y = y @ x
    issued = time.perf_counter()
    measurer.tensor(y, "", None, Role.OUTPUT)
    measured = time.perf_counter()
    y.asnumpy()
    shares.append((measured - issued) / (time.perf_counter() - began))
print(min(shares))
"""


def test_measuring_does_not_wait_for_a_slow_operation():
    done = processes.run(
        [sys.executable, "-c", WAITING], capture_output=True, text=True, check=True
    )
    assert float(done.stdout.split()[-1]) < 0.3


@pytest.mark.parametrize(
    "settings", [{"measure": "device"}, {"async_dump": True}], ids=["device", "async_dump"]
)
def test_a_net_that_is_made_while_the_step_is_recorded_is_initialized_as_ever(debug, settings):
    def make():
        return nn.Dense(40, 30).weight.asnumpy().shape

    shape, dump = debug.record(make, **settings)
    assert shape == (30, 40)
    assert dump.data["Tensor.assign_value.0.forward"]["input_args"][1]["Max"] > 0


TRAININGS = [
    ("gpt", "tensor"),
    *((name, "statistics") for name in ("gpt", "lenet", "digits", *interference.NETS)),
]


@pytest.mark.parametrize(("training", "task"), TRAININGS)
def test_a_training_measured_on_the_device_has_its_bits_and_the_numbers_of_the_host(
    debug, training, task
):
    results, dumps = {}, {}
    for measure in ("host", "device"):
        net, step = (
            interference.NETS[training]() if training in interference.NETS else nets.build(training)
        )
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
                assert agree(theirs[key], ours[key], 1e-6), (name, place, key, ours, theirs)
            if ours["Mean"] is not None:
                assert theirs["Mean"] == pytest.approx(ours["Mean"], rel=0.0, abs=1e-6 * largest)
    assert compared > (500 if training == "gpt" else 5)


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
x = ms.Tensor(np.arange(1000, dtype=np.float32) % 3)
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
def test_an_error_of_the_training_reaches_it_once_and_an_error_of_probe_never(
    tmp_path, mode, whose
):
    command = [sys.executable, "-c", ERRORS, str(tmp_path), mode, whose]
    done = processes.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()[-2:] == [str(int(whose == "theirs")), "999.0"]
    data = json.loads((tmp_path / "dump" / "step0" / "rank" / "dump.json").read_text())["data"]
    relu = data["Functional.relu.0.forward"]
    assert ("error" in relu) == (whose == "ours")
    assert "raised" not in relu
    if whose == "ours":
        assert "Allocate memory failed" in done.stderr
