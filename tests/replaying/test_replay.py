# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Recorded calls that are made again: right ones are ok, planted faults are named."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

from probe.reading.dumps.run import open as open_run
from probe.replaying.described import CannotReplayError, not_replayed
from probe.replaying.describing import describe
from probe.replaying.replay import Replayed
from probe.replaying.worker import replay_call
from tests.replaying.device import ROUNDING, Device, number, record, rounded, softmax
from tests.support.nets import build
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.medium


def verdicts(folder, name=""):
    """Return entry name -> the result of each call in a dump, made again in this process."""
    found = {}
    for dump in open_run(folder):
        for call in dump:
            if call.parts.kind not in ("api", "cell") or name not in call.name:
                continue
            try:
                result = replay_call(describe(call))
            except CannotReplayError as error:
                result = not_replayed(error.reason)
            found[call.name] = Replayed(dump.step, dump.rank, call.name, *result).to_dict()
    return found


@pytest.mark.parametrize("net", thorough_but(["gpt", "digits"], ["gpt", "digits", "lenet"]))
def test_all_calls_of_a_training_are_replayed_and_ok(debug, net):
    model, train = build(net)
    debug.record(lambda: train(0), model, level="mix", task="tensor")
    found = verdicts(debug.dump_path)
    assert {
        name: it for name, it in found.items() if it["verdict"] in ("wrong", "worse than expected")
    } == {}
    assert all(it["reason"] for it in found.values() if it["verdict"] == "not replayable")
    for direction, share in (("forward", 0.95), ("backward", 0.9)):
        # the calls inside of a Cell stand for it
        those = [it for name, it in found.items() if name.endswith(f".{direction}")]
        assert len(those) > 5
        assert sum(it["verdict"] == "ok" for it in those) >= share * len(those), [
            it["reason"] for it in those
        ]


@pytest.fixture(scope="module", params=ROUNDING)
def device(request, tmp_path_factory):
    """A dump of a precise device, of one dtype."""
    made = record(tmp_path_factory.mktemp("device") / "dump", request.param)
    made.write()
    made.dtype = request.param
    return made


def test_a_precise_device_is_ok(device):
    found = verdicts(device.path)
    assert {name: it for name, it in found.items() if it["verdict"] != "ok"} == {}


def planted(device, name, function):
    """Return the verdict on an entry after a change of one of its arrays."""
    path = device.arrays / f"{name}.npy"
    values = np.load(path)
    changed = np.asarray(function(values.astype(np.float64)))
    floats = values.dtype.kind == "f"
    np.save(
        path,
        rounded(changed, device.dtype).astype(values.dtype)
        if floats
        else changed.astype(values.dtype),
    )
    try:
        ((_, result),) = verdicts(device.path, name[: name.index("ward") + 4]).items()
        return result["verdict"]
    finally:
        np.save(path, values)


def one_element(values):
    values = values.copy()
    values.flat[1] += np.abs(values).max()
    return values


#: array -> fault; the operations of a CPU that are inexact hide small ones: see the errors of exp and tanh in float32
WRONG = {
    "one element": ("Functional.exp.0.forward.output.0", one_element),
    "another element": ("Functional.matmul.0.forward.output.0", lambda v: one_element(v) * 1.0),
    "exchanged axis": ("Functional.softmax.0.forward.output.0", lambda v: softmax(np.log(v), 0)),
    "moved": ("Functional.transpose.0.forward.output.0", lambda v: v[::-1]),
    "halved gradient": ("Functional.matmul.0.backward.output.0", lambda v: v / 2),
    "halved gradient of the weight": ("Functional.matmul.0.backward.output.1", lambda v: v / 2),
    "other axis": ("Functional.cumsum.0.forward.output.0", lambda v: v.T.copy().reshape(v.shape)),
    "NaN": ("Functional.square.0.forward.output.0", lambda v: np.where(v == v.max(), np.nan, v)),
    "zeros": ("MintFunctional.layer_norm.0.forward.output.0", lambda v: v * 0),
    "integer": ("Functional.add.0.forward.output.0", one_element),
    "index": ("Functional.argmax.0.forward.output.0", one_element),
}
ROUNDED = [
    "Functional.exp.0.forward.output.0", "Functional.tanh.0.forward.output.0", "Functional.square.0.forward.output.0",
    "Functional.relu.0.forward.output.0", "Functional.matmul.0.forward.output.0", "Tensor.__add__.0.forward.output.0",
    "Functional.softmax.0.forward.output.0", "Functional.cumsum.0.forward.output.0",
    "MintFunctional.layer_norm.0.forward.output.0", "Functional.matmul.0.backward.output.0",
]  # fmt: skip


def test_planted_faults_are_wrong(device):
    found = {fault: planted(device, *how) for fault, how in WRONG.items()}
    assert found == dict.fromkeys(WRONG, "wrong")


def test_20_roundings_are_named(device):
    found = {
        name: planted(device, name, lambda v: v * (1 + 20 * ROUNDING[device.dtype]))
        for name in ROUNDED
    }
    assert [name for name, verdict in found.items() if verdict == "ok"] == []


def test_another_eps_is_named(tmp_path):
    made = record(tmp_path / "dump", "Float32")
    made.data["MintFunctional.layer_norm.0.forward"]["input_args"][4]["value"] = 1e-4
    assert (
        verdicts(made.write(), "layer_norm")["MintFunctional.layer_norm.0.forward"]["verdict"]
        != "ok"
    )


def test_an_error_within_the_room_of_another_order_of_sums_is_ok(device):
    values = np.random.RandomState(1)
    name = "Functional.matmul.0.forward.output.0"

    def disturb(v):
        return v * (1 + 2 * ROUNDING[device.dtype] * values.uniform(-1, 1, v.shape))

    assert planted(device, name, disturb) == "ok"


def test_equal_elements_may_have_their_indices_in_another_order(debug):
    x = Tensor(np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]], np.float32))
    debug.record(lambda: ops.argmax(x, -1), level="L1", task="tensor")
    (path,) = debug.dump().folder.glob("dump_tensor_data/*argmax.0.forward.output.0.npy")
    found = np.load(path)
    path.unlink()
    np.save(path, np.where(found == [1, 0], [2, 1], found).astype(found.dtype))
    ((_, result),) = verdicts(debug.dump_path).items()
    assert result["verdict"] == "ok"
    assert "another order" in result["outputs"][0]["note"]


def test_outputs_that_batch_norm_keeps_for_its_gradient_are_not_judged(debug):
    net = ms.nn.BatchNorm2d(4).set_train()
    x = Tensor(np.random.RandomState(0).randn(2, 4, 3, 3).astype(np.float32))
    debug.record(lambda: net(x), net, level="mix", task="tensor")
    for place in (3, 4):
        (path,) = debug.dump().folder.glob(
            f"dump_tensor_data/*BatchNorm.0.forward.output.{place}.npy"
        )
        path.unlink()
        np.save(path, np.full(4, 3e30, np.float32))
    ((_, result),) = verdicts(debug.dump_path, "BatchNorm.0.forward").items()
    places = [item["place"] for item in result["outputs"]]
    assert result["verdict"] == "ok", result
    assert "output.0" in places
    assert not {"output.3", "output.4"} & set(places)


def test_known_faults_of_mindspore_on_cpu_are_told(debug):
    x = Tensor(np.linspace(-9, 9, 5000).astype(np.float32))
    y = Tensor(np.ones(4, np.float32))
    debug.record(lambda: (ops.tanh(x), y.add_(y)), level="L1", task="tensor")
    found = {name.split(".")[1]: it for name, it in verdicts(debug.dump_path).items()}
    # tanh is hundreds of roundings off in float32 here, and so is the recorded one
    assert found["tanh"]["verdict"] == "ok"
    assert found["tanh"]["outputs"][0]["roundings_here"] > 100
    assert "inexact" in found["tanh"]["outputs"][0]["note"]
    exact = {"float64": np.tanh(x.asnumpy().astype(np.float64)), "here": ops.tanh(x).asnumpy()}
    assert np.abs(exact["float64"] - exact["here"]).max() > 1e-5
    before = np.ones(4, np.float32)
    left = np.array_equal(
        Tensor(before).add_(Tensor(before)).asnumpy(), before * 2
    ) and np.array_equal(y.asnumpy(), before)
    assert ("leaves its input" in found["add_"]["outputs"][0]["note"]) is bool(left)


def test_lists_and_tuples_are_told_apart_by_the_shape(debug):
    x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
    debug.record(lambda: (x[[1, 0]], x[1, 0], x[1:, None, ..., 2]), level="L1", task="tensor")
    found = verdicts(debug.dump_path, "getitem")
    assert [it["verdict"] for it in found.values()] == ["ok"] * 3


def test_dropout_is_random_in_training_alone(debug):
    x = Tensor(np.ones(100, np.float32))
    debug.record(
        lambda: (ops.dropout(x, 0.5, True), ops.dropout(x, 0.5, False)), level="L1", task="tensor"
    )
    assert [
        (it["verdict"], it["reason"][:6]) for it in verdicts(debug.dump_path, "dropout").values()
    ] == [
        ("not replayable", "random"),
        ("ok", ""),
    ]


def test_a_call_under_mixed_precision_is_ok(debug):
    from mindspore import nn

    net = nn.Dense(32, 16)
    net.to_float(ms.float16)
    x = Tensor(np.random.RandomState(0).randn(8, 32).astype(np.float32))
    debug.record(lambda: net(x), net, level="mix", task="tensor")
    found = verdicts(debug.dump_path)
    assert {
        name: it for name, it in found.items() if it["verdict"] in ("wrong", "worse than expected")
    } == {}
    assert any(it["verdict"] == "ok" for it in found.values())


def in_order(values):
    """Return the sum over the last axis in float32, one element after the other, as no library does it."""
    return np.cumsum(values.astype(np.float32), -1, dtype=np.float32)[..., -1]


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("positive", [False, True])
def test_sums_in_another_order_are_ok(tmp_path, dtype, positive):
    made, rng = Device(tmp_path / "dump"), np.random.RandomState(2)
    x, y = (
        rounded(rng.rand(16, 1024) if positive else rng.randn(16, 1024), dtype) for _ in range(2)
    )
    parts = np.exp(x - x.max(-1, keepdims=True)).astype(np.float32)
    made.forward("Functional.matmul", [x, y.T.copy()], [in_order(x[:, None] * y[None])], dtype)
    made.forward("Functional.softmax", [x, number(-1)], [parts / in_order(parts)[:, None]], dtype)
    made.forward("Functional.sum", [x, number(-1)], [in_order(x)], dtype)
    made.forward(
        "Functional.mean", [x], [np.asarray(in_order(x.reshape(-1)) / np.float32(x.size))], dtype
    )
    made.forward("Functional.logsumexp", [x, number(-1)], [np.log(in_order(np.exp(x)))], dtype)
    found = verdicts(made.write())
    assert {name: it for name, it in found.items() if it["verdict"] != "ok"} == {}
