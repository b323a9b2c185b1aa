# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""What is chosen by a setting or a word, in a whole training: it changes nothing and shows what the training did."""

from __future__ import annotations

import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

import probe
from tests.support import nets

pytestmark = pytest.mark.slow

STEPS = 2


def build(forward=None):
    """Return a net for the digits whose hidden layer is ``forward``'s, and what trains it by one step."""
    ms.set_seed(3)
    np.random.seed(3)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.hidden, self.out = nn.Dense(64, 32), nn.Dense(32, 10)

        def construct(self, x):
            x = self.hidden(x.reshape(x.shape[0], -1))
            return self.out(ops.relu(x) if forward is None else forward(x))

    net = Net()
    net.set_train()
    loss_of = nn.CrossEntropyLoss()
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
    data = nets.digits()

    def train(step):
        loss, gradients = gradient(*data[step])
        optimizer(gradients)
        return [tensor.asnumpy().copy() for tensor in (loss, *gradients, *net.get_parameters())]

    return net, train


def watched(debugger, net, train):
    """Train under a debugger; return the numbers of every step."""
    numbers = []
    for step in range(STEPS):
        debugger.start(net)
        numbers.append(train(step))
        debugger.stop()
        debugger.step()
    return numbers


def same(first, second):
    return all(
        np.array_equal(a, b) for one, other in zip(first, second) for a, b in zip(one, other)
    )


class Functions:
    """Functions of a user's own, as a class holds them."""

    @staticmethod
    def swish(x, slope):
        return x * ops.sigmoid(slope * x)


def own(x):
    """One of a module of the user's own, this one."""
    return Functions.swish(x, 1.5) + 0.1


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_custom_functions_of_a_training_are_recorded(debug, level):
    module = sys.modules[__name__]
    bare = build(lambda x: module.own(x))
    expected = [bare[1](step) for step in range(STEPS)]
    net, train = build(lambda x: module.own(x))
    debugger = debug(task="tensor", level=level)
    debugger.register_custom_api(module, "own", "Mine")
    debugger.register_custom_api(Functions, "swish")  # inside the other: the outer one is recorded
    assert same(watched(debugger, net, train), expected)
    debugger.restore_custom_api(module, "own")
    assert same(watched(debugger, *build(lambda x: module.own(x))), expected)
    debugger.restore_custom_api(Functions, "swish")
    for step in range(STEPS):
        dump = debug.dump(step)
        entry, backward = (dump.data[f"Mine.own.0.{way}"] for way in ("forward", "backward"))
        given, made = (
            dump.array(part[0]["data_name"]) for part in (entry["input_args"], entry["output"])
        )
        assert given.shape == (32, 32)
        np.testing.assert_allclose(
            made, given / (1 + np.exp(-1.5 * given)) + 0.1, rtol=1e-5, atol=1e-6
        )
        arrived, left = (dump.array(backward[part][0]["data_name"]) for part in ("input", "output"))
        sigmoid = 1 / (1 + np.exp(-1.5 * given))
        np.testing.assert_allclose(
            left, arrived * (sigmoid + 1.5 * given * sigmoid * (1 - sigmoid)), rtol=1e-4, atol=1e-7
        )
        assert not dump.names("Functions.swish")
        later = debug.dump(STEPS + step)
        assert not later.names("Mine.own")
        assert np.array_equal(
            later.array(later.data["Functions.swish.0.forward"]["input_args"][0]["data_name"]),
            given,
        )


@pytest.mark.parametrize("exact", [True, False])
def test_half_precision_of_a_training_comes_back_as_it_was(debug, exact):
    seen = []

    def half(x):
        low = ops.cast(x, ms.bfloat16)
        seen.append(low.float().asnumpy().copy())
        return ops.cast(low, ms.float32)

    _, train = build(half)
    expected = [train(step) for step in range(STEPS)]
    seen.clear()
    net, train = build(half)
    assert same(watched(debug(task="tensor", level="L1", exact_dtypes=exact), net, train), expected)
    for step in range(STEPS):
        dump = debug.dump(step)
        record = dump.data["Functional.cast.0.forward"]["output"][0]
        assert record["dtype"] == "BFloat16"
        path = dump.folder / "dump_tensor_data" / record["data_name"]
        array = probe.load(path)
        assert array.dtype.name == "bfloat16"
        assert np.array_equal(array.astype(np.float32), seen[step])
        assert path.stat().st_size == 128 + array.size * (2 if exact else 4)


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_token_range_in_a_loop_that_generates_tokens(debug, level):
    ms.set_seed(5)
    net = nets.Gpt()
    net.set_train(False)

    def generate():
        tokens, given = [3, 1, 4], []
        for _ in range(5):
            given.append(list(tokens))
            padded = (tokens + [0] * 16)[:16]
            logits = net(Tensor([padded], ms.int32)).asnumpy().reshape(16, -1)
            tokens.append(int(logits[len(tokens) - 1].argmax()))
        return tokens, given

    expected, given = generate()
    debugger = debug(task="tensor", level=level)
    debugger.start(net, token_range=[1, 2])
    assert generate() == (expected, given)
    debugger.stop()
    debugger.step()
    dump = debug.dump()
    embeddings = [name for name in dump.data if ".Embedding.forward." in name]
    tables = len({name.partition(".forward.")[0] for name in embeddings})
    assert len(embeddings) == 2 * tables
    shown = [
        dump.array(dump.data[name]["input_args"][0]["data_name"]).ravel() for name in embeddings
    ]
    for tokens in given[1:3]:
        assert any(list(array[: len(tokens)]) == tokens for array in shown)


@pytest.mark.parametrize("backward", [True, False])
def test_token_range_counts_the_forwards_of_a_training_step(debug, backward):
    net, train = build()
    expected = [train(0), train(1), train(2)]
    net, train = build()
    debugger = debug(level="mix", data_mode=["all"] if backward else ["forward"])
    debugger.start(net, token_range=[1, 1])
    assert same([train(0), train(1), train(2)], expected)
    debugger.stop()
    debugger.step()
    dump = debug.dump()
    assert dump.names("Cell.hidden.", ".forward") == ["Cell.hidden.Dense.forward.0"]
    assert len(dump.names("Cell.hidden.", ".backward")) == int(backward)


def corner(array):
    """Return what the slices below leave of an array."""
    array = array[2:5] if array.ndim and array.shape[0] == 32 else array
    return array[:, -4:] if array.ndim > 1 else array


def spaced(array):
    """Return seven evenly spaced elements, of what has more."""
    places = np.linspace(0, array.size - 1, 7).round().astype(int)
    return array.ravel()[places] if array.size > 7 else array


SAMPLES = {
    "slice": (
        {"slice": [{"dim": 0, "begin": 2, "end": 5, "size": 32}, {"dim": 1, "begin": -4}]},
        corner,
    ),
    "sample": ({"sample_mode": 1, "sample_num": 7}, spaced),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_slice_writes_a_part_of_every_array_of_a_training(debug, kind, tmp_path):
    settings, part = SAMPLES[kind]
    whole_path = tmp_path / "whole"
    expected = watched(debug(task="tensor", level="mix", dump_path=str(whole_path)), *build())
    assert same(watched(debug(task="tensor", level="mix", **settings), *build()), expected)
    for step in range(STEPS):
        dump = debug.dump(step)
        folder = whole_path / f"step{step}" / "rank" / "dump_tensor_data"
        files = sorted(path.name for path in (dump.folder / "dump_tensor_data").iterdir())
        assert files == sorted(path.name for path in folder.iterdir())
        assert len(files) > 30
        for name in files:
            assert np.array_equal(dump.array(name), part(np.load(folder / name))), name


def test_a_parameter_in_half_precision_is_recorded(debug):
    """exact_dtypes in the gradients too, where MindSpore's kernels take bfloat16."""
    try:
        (Tensor([1.0], ms.bfloat16) * Tensor([1.0], ms.bfloat16)).float().asnumpy()
    except TypeError as error:
        pytest.skip(f"this MindSpore multiplies no bfloat16 on CPU: {str(error).splitlines()[0]}")
    weight = Parameter(Tensor(np.linspace(-2, 2, 32), ms.bfloat16), name="weight")

    def scaled(x):
        return ops.cast(ops.cast(x, ms.bfloat16) * weight, ms.float32)

    _, train = build(scaled)
    expected = [train(step) for step in range(STEPS)]
    assert same(
        watched(debug(task="tensor", level="L1", exact_dtypes=True), *build(scaled)), expected
    )
    dump = debug.dump()
    backward = dump.data["Tensor.__mul__.0.backward"]
    gradient = probe.load(dump.folder / "dump_tensor_data" / backward["output"][0]["data_name"])
    arrived = probe.load(dump.folder / "dump_tensor_data" / backward["input"][0]["data_name"])
    assert gradient.dtype.name == arrived.dtype.name == "bfloat16"
    product = arrived.astype(np.float32) * weight.asnumpy().astype(np.float32)
    assert np.array_equal(
        gradient.astype(np.float32), product.astype(gradient.dtype).astype(np.float32)
    )
