# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Statistics of one's own in records: their numbers, their errors, and the training, which they never change."""

from __future__ import annotations

import random
import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

import probe
from tests.support.own import none_registered

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _alone():
    with none_registered():
        yield


def exp_of(debug, array, dtype=None, **settings):
    """Record ``exp`` of an array; return the records of its input and its output."""
    tensor = Tensor(array, dtype)
    _, dump = debug.record(lambda: ops.exp(tensor), level="L1", **settings)
    entry = dump.data["Functional.exp.0.forward"]
    return entry["input_args"][0], entry["output"][0]


@pytest.mark.parametrize("measure", ["host", "device"])
@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_the_number_of_an_array_stands_in_the_record(debug, measure, task):
    probe.register_statistic("largest_row", lambda x: np.abs(x).sum(-1).max())
    array = np.random.RandomState(1).randn(40, 30).astype(np.float32)
    given, made = exp_of(
        debug, array, task=task, measure=measure, summary_mode=["max", "largest_row", "md5"]
    )
    assert given["largest_row"] == pytest.approx(float(np.abs(array).sum(-1).max()))
    assert made["largest_row"] == pytest.approx(float(np.exp(array).sum(-1).max()), rel=1e-5)
    assert list(given)[3:6] == ["Max", "largest_row", "md5"]


def test_on_a_device_the_function_of_a_tensor_is_asked_and_that_of_an_array_for_small_ones(debug):
    seen = []
    probe.register_statistic(
        "spread", lambda x: seen.append(x) or float(x.max() - x.min()), lambda x: x.max() - x.min()
    )
    array = np.arange(400, dtype=np.float32).reshape(20, 20) / 400
    given, _ = exp_of(debug, array, measure="device", summary_mode=["mean", "spread"])
    assert given["spread"] == pytest.approx(399 / 400)
    assert given["Mean"] == pytest.approx(float(array.mean()))
    assert not seen
    debug.path /= "small"
    debug.path.mkdir()
    debug.dump_path = debug.path / "dump"
    given, _ = exp_of(debug, array[0], measure="device", summary_mode=["mean", "spread"])
    assert given["spread"] == pytest.approx(19 / 400)
    assert {type(array) for array in seen} == {np.ndarray}


@pytest.mark.parametrize(
    ("dtype", "seen"),
    [
        (ms.bfloat16, np.float32),
        (ms.float16, np.float16),
        (ms.int8, np.int8),
        (ms.bool_, np.bool_),
        (ms.complex64, np.complex64),
        (ms.float64, np.float64),
    ],
)
def test_the_array_has_the_dtype_and_shape_of_the_tensor(debug, dtype, seen):
    found = []
    probe.register_statistic("seen", lambda x: found.append((x.dtype, x.shape)) or 1)
    _, dump = debug.record(
        lambda: Tensor(np.ones((2, 3)), dtype).reshape(3, 2), level="L1", summary_mode=["seen"]
    )
    record = next(iter(dump.data.values()))["output"][0]
    assert record["seen"] == 1
    assert (np.dtype(seen), (3, 2)) in found


@pytest.mark.parametrize(
    "number", [True, 3, 2.5, np.float32(0.5), np.array([4.0]), np.int64(7), Tensor([1.5])]
)
def test_any_form_of_a_number_is_one(debug, number):
    probe.register_statistic("number", lambda x: number)
    assert exp_of(debug, np.ones(3, np.float32), summary_mode=["number"])[0]["number"] == float(
        number.item() if hasattr(number, "item") else number
    )


def _fails(x):
    raise ValueError("of my own")


@pytest.mark.parametrize("measure", ["host", "device"])
@pytest.mark.parametrize(
    ("function", "told"),
    [
        (_fails, "ValueError: of my own"),
        (lambda x: sys.exit(3), "SystemExit: 3"),
        (lambda x: "text", "str of shape"),
        (lambda x: None, "NoneType of shape"),
        (lambda x: np.ones(2), "ndarray of shape \\(2,\\)"),
        (lambda x: 1j, "complex of shape"),
    ],
)
def test_a_failure_is_null_and_is_told_once(debug, caplog, measure, function, told):
    probe.register_statistic("fails", function, function)
    given, made = exp_of(
        debug, np.ones((40, 40), np.float32), measure=measure, summary_mode=["max", "fails"]
    )
    assert given["fails"] is made["fails"] is None
    assert (given["Max"], made["Max"]) == (1.0, pytest.approx(np.e))
    (record,) = [record for record in caplog.records if "fails" in record.getMessage()]
    assert record.getMessage().startswith("the statistic fails failed, its number is null")
    assert pytest.raises(type(record.exc_info[1]), match=told) is not None
    assert told.partition(":")[0].split()[0] in caplog.text
    assert not (debug.dump_path / "step0" / "rank" / "dump_error_info.log").exists()


def test_an_array_without_elements_is_not_given(debug):
    probe.register_statistic("largest", lambda x: x.max())
    given, _ = exp_of(debug, np.zeros((0, 2), np.float32), summary_mode=["largest"])
    assert given["largest"] is None


def test_a_module_and_function_of_the_setting(debug, tmp_path, monkeypatch):
    (tmp_path / "own_numbers_of_a_test.py").write_text(
        "def double(x):\n    return 2 * float(x.max())\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    given, _ = exp_of(
        debug, np.ones(3, np.float32), summary_mode=["max", "own_numbers_of_a_test:double"]
    )
    assert given["double"] == 2.0


class Net(nn.Cell):
    """Two layers and dropout, which draws random numbers."""

    def __init__(self):
        super().__init__()
        self.first, self.drop, self.last = nn.Dense(30, 20), nn.Dropout(p=0.3), nn.Dense(20, 2)

    def construct(self, x):
        return self.last(self.drop(ops.relu(self.first(x))))


def trained(debugger):
    """Train three steps; return bytes of losses and weights, and the random numbers that follow."""
    ms.set_seed(5)
    np.random.seed(6)
    random.seed(7)
    net = Net().set_train()
    optimizer, loss = nn.Adam(net.trainable_params(), 1e-2), nn.CrossEntropyLoss()
    grad = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)
    found = []
    for _ in range(3):
        x, y = (
            np.random.randn(16, 30).astype(np.float32),
            np.random.randint(0, 2, 16).astype(np.int32),
        )
        if debugger:
            debugger.start(net)
        value, gradients = grad(Tensor(x), Tensor(y))
        optimizer(gradients)
        if debugger:
            debugger.stop()
            debugger.step()
        found += [value.asnumpy().tobytes(), random.random()]
    return found + [parameter.asnumpy().tobytes() for parameter in net.trainable_params()]


def _meddles(x):
    """Write into the array, and draw random numbers."""
    x[...] = 0 if x.dtype != bool else True
    random.seed(0)
    return np.random.rand()


@pytest.mark.parametrize("measure", ["host", "device"])
@pytest.mark.parametrize("task", ["statistics", "monitor"])
def test_a_function_that_meddles_changes_no_bit_of_the_training(debug, task, measure):
    plain = trained(None)
    probe.register_statistic("meddles", _meddles, lambda x: x.add_(1).mean())
    settings = {"level": "mix"} if task == "statistics" else {}
    assert (
        trained(debug(task=task, measure=measure, summary_mode=["max", "meddles"], **settings))
        == plain
    )


def test_operations_inside_a_function_are_not_recorded(debug):
    probe.register_statistic(
        "inner", lambda x: ops.abs(Tensor(x)).sum(), lambda x: ops.abs(x).sum()
    )
    for measure in ("host", "device"):
        debug.dump_path = debug.path / measure
        tensor = Tensor(np.ones((40, 40), np.float32))
        _, dump = debug.record(
            lambda tensor=tensor: ops.exp(tensor), measure=measure, summary_mode=["inner"]
        )
        assert list(dump.data) == ["Functional.exp.0.forward"]
        assert dump.data["Functional.exp.0.forward"]["input_args"][0]["inner"] == 1600.0
