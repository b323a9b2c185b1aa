# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Recorded calls that are made again: right ones are ok, planted faults are named, hostile dumps do nothing."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from probe.reading.run import open as open_run
from probe.replaying.describing import describe
from probe.replaying.refusals import RefusedError
from probe.replaying.worker import replay_call
from tests.support.nets import build

pytestmark = pytest.mark.medium
RNG = np.random.RandomState(5)
DTYPES = {"float32": ms.float32, "float16": ms.float16, "bfloat16": ms.bfloat16}
ROUNDING = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def verdicts(folder, name=None):
    """Return entry name -> the result of each call in a dump, made again in this process."""
    found = {}
    for dump in open_run(folder):
        for call in dump:
            if call.parts.kind not in ("api", "cell") or (name and name not in call.name):
                continue
            try:
                found[call.name] = replay_call(describe(call))
            except RefusedError as error:
                found[call.name] = {"verdict": "not replayable", "reason": str(error), "outputs": []}
    return found


def replayed(found, direction):
    """Return how many entries of APIs and Primitives there are, and how many were replayed."""
    judged = {name: it for name, it in found.items() if name.endswith(f".{direction}")}
    return len(judged), sum(it["verdict"] != "not replayable" for it in judged.values())


@pytest.mark.parametrize("net", ["gpt", "digits", "lenet"])
def test_all_calls_of_a_training_are_replayed_and_ok(debug, net):
    model, train = build(net)
    debug.record(lambda: train(0), model, level="mix", task="tensor")
    found = verdicts(debug.dump_path)
    bad = {name: it for name, it in found.items() if it["verdict"] in ("wrong", "worse than expected")}
    assert bad == {}
    for direction, share in (("forward", 0.95), ("backward", 0.9)):
        total, done = replayed(found, direction)
        assert total > 5
        assert done >= share * total, [it["reason"] for it in found.values()]
    assert all(it["reason"] for it in found.values() if it["verdict"] == "not replayable")


def tensor(*shape, dtype="float32"):
    return Tensor(RNG.randn(*shape).astype(np.float32)).astype(DTYPES[dtype])


def change(debug, name, function):
    """Change the values of an array of a dump. Equal arrays are links to one file: the others stay."""
    path = debug.dump().folder / "dump_tensor_data" / f"{name}.npy"
    values = np.array(function(np.load(path)))
    path.unlink()
    np.save(path, values)


def plant_and_name(debug, calls, name, function):
    """Record calls, change one array, and return the names of the calls that are not ok."""
    debug.record(calls, level="L1", task="tensor")
    before = verdicts(debug.dump_path)
    assert {it["verdict"] for it in before.values()} <= {"ok", "not replayable"}, before
    change(debug, name, function)
    return {
        entry: it["verdict"]
        for entry, it in verdicts(debug.dump_path).items()
        if it["verdict"] not in ("ok", "not replayable")
    }


def rounded(values, dtype):
    """Return float32 values rounded to a dtype."""
    return Tensor(values.astype(np.float32)).astype(DTYPES[dtype]).astype(ms.float32).asnumpy().astype(values.dtype)


def calls(dtype):
    """Return a function that calls operations of several kinds, with gradients."""
    x, y, w = tensor(8, 64, dtype=dtype), tensor(8, 64, dtype=dtype), tensor(64, 16, dtype=dtype)
    norm = nn.LayerNorm((64,), epsilon=1e-5)

    def forward(x, y, w):
        a = ops.exp(x)
        b = ops.softmax(y, -1)
        c = ops.matmul(a * b, w)
        d = ops.tanh(x)
        return c.sum() + (ops.transpose(d, (1, 0)) * 2.0).mean()

    def run():
        norm(tensor(8, 64))
        ms.grad(forward, (0, 1, 2))(x, y, w)

    return run


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "entry", ["Functional.exp.0", "Functional.softmax.0", "Functional.matmul.0", "Functional.tanh.0"]
)
def test_20_roundings_in_an_output_are_named_and_nothing_else(debug, dtype, entry):
    found = plant_and_name(
        debug, calls(dtype), f"{entry}.forward.output.0", lambda v: rounded(v * (1 + 20 * ROUNDING[dtype]), dtype)
    )
    assert list(found) == [f"{entry}.forward"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("entry", ["Functional.exp.0", "Functional.softmax.0", "Functional.matmul.0"])
def test_a_halved_gradient_is_wrong_and_nothing_else(debug, dtype, entry):
    found = plant_and_name(debug, calls(dtype), f"{entry}.backward.output.0", lambda v: v / 2)
    assert found == {f"{entry}.backward": "wrong"}


def one_element(values):
    values = values.copy()
    values[(0,) * (values.ndim - 1) + (1,)] += 1
    return values


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("Functional.exp.0.forward.output.0", one_element),
        ("Functional.transpose.0.forward.output.0", lambda v: v[:, ::-1]),
        ("Functional.matmul.0.forward.output.0", lambda v: np.full_like(v, np.nan)),
        ("Primitive.fn:LayerNorm.LayerNorm.0.forward.output.0", lambda v: v * (1 - 5e-5)),  # eps 1e-4 in place of 1e-5
    ],
)
def test_other_faults_are_named(debug, name, function):
    found = plant_and_name(debug, calls("float32"), name, function)
    assert list(found) == [name.removesuffix(".output.0")]


def test_an_exchanged_axis_is_wrong(debug):
    x = tensor(16, 16)
    found = plant_and_name(debug, lambda: ops.cumsum(x, 0), "Functional.cumsum.0.forward.output.0",
                           lambda v: np.cumsum(x.asnumpy(), 1))  # fmt: skip
    assert found == {"Functional.cumsum.0.forward": "wrong"}


def test_an_integer_that_differs_is_wrong(debug):
    x = Tensor(np.arange(100, dtype=np.int32))
    found = plant_and_name(debug, lambda: x * 3, "Tensor.__mul__.0.forward.output.0", one_element)
    assert found == {"Tensor.__mul__.0.forward": "wrong"}
