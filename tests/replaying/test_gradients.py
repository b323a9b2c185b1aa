# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Gradients beside central differences: wrong backwards of a user's own are named, right ones are not."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.common._grad_function import _Function

from probe.__main__ import main
from probe.reading.dumps.run import open as open_run
from probe.replaying.composing import program_of
from probe.replaying.described import CannotReplayError, not_replayed
from probe.replaying.worker import replay_call
from tests.support.nets import build

pytestmark = pytest.mark.medium


def results(folder, word=""):
    """Return name -> the result of each backward entry, checked in this process."""
    found = {}
    for call in next(iter(open_run(str(folder)))):
        if (
            call.direction == "backward"
            and word in call.name
            and call.parts.kind in ("api", "cell")
        ):
            try:
                found[call.name] = replay_call(program_of(call))
            except CannotReplayError as error:
                found[call.name] = not_replayed(error.reason)
    return found


def cell(forward, backward):
    """Return a Cell with a bprop."""

    class Own(nn.Cell):
        def construct(self, *args):
            return forward(*args)

        def bprop(self, *args):
            return backward(*args)

    return Own()


def function(forward, backward):
    """Return a function with a backward; both are given the inputs, as those of ``cell`` are."""

    class Own(_Function):
        @staticmethod
        def forward(ctx, *args):
            ctx.save_for_backward(*args)
            return forward(*args)

        @staticmethod
        def backward(ctx, dout):
            found = backward(*ctx.saved_tensors, None, dout)
            return found if len(found) > 1 else found[0]

    return lambda *args: Own.apply(*args)  # as a training calls it


def numbers(*shape, seed=0):
    return Tensor(np.random.RandomState(seed).uniform(0.5, 1.5, shape).astype(np.float32))


def signed(*shape, seed=0):
    return Tensor(np.random.RandomState(seed).randn(*shape).astype(np.float32))


def normed(x):
    return (x - x.mean(-1, True)) / ops.sqrt(((x - x.mean(-1, True)) ** 2).mean(-1, True) + 1e-5)


def normed_gradient(x, out, dout):
    scale = 1 / ops.sqrt(((x - x.mean(-1, True)) ** 2).mean(-1, True) + 1e-5)
    y = normed(x)
    return ((dout - dout.mean(-1, True) - y * (dout * y).mean(-1, True)) * scale,)


def gelu(x):
    return x * 0.5 * (1 + ops.erf(x / 2**0.5))


X, Y, W = signed(3, 4), numbers(3, 4, seed=1), signed(4, 5, seed=2)
INDEX = Tensor(np.array([[0, 2], [1, 1], [3, 0]], np.int32))
#: name -> forward, right backward, wrong backward, inputs
CASES = {
    "square": (lambda x: x * x, lambda x, o, d: (2 * x * d,), lambda x, o, d: (3 * x * d,), [X]),
    "no dout": (lambda x: x * x, lambda x, o, d: (2 * x * d,), lambda x, o, d: (2 * x,), [X]),
    "exp": (ops.exp, lambda x, o, d: (ops.exp(x) * d,), lambda x, o, d: (ops.exp(-x) * d,), [X]),
    "sign": (lambda x: 1 / x, lambda x, o, d: (-d / x**2,), lambda x, o, d: (d / x**2,), [Y]),
    "one percent": (
        ops.sin,
        lambda x, o, d: (ops.cos(x) * d,),
        lambda x, o, d: (1.01 * ops.cos(x) * d,),
        [X],
    ),
    "second input": (
        lambda x, y: x * y,
        lambda x, y, o, d: (y * d, x * d),
        lambda x, y, o, d: (y * d, y * d),
        [X, Y],
    ),
    "zeros": (
        lambda x, y: x * y,
        lambda x, y, o, d: (y * d, x * d),
        lambda x, y, o, d: (y * d, 0 * x),
        [X, Y],
    ),
    "product": (
        ops.matmul,
        lambda x, w, o, d: (ops.matmul(d, w.T), ops.matmul(x.T, d)),
        lambda x, w, o, d: (ops.matmul(d, w.T), 0.5 * ops.matmul(x.T, d)),
        [X, W],
    ),
    "mean": (
        lambda x: x.mean(-1),
        lambda x, o, d: (ops.ones_like(x) * d.expand_dims(-1) / 4,),
        lambda x, o, d: (ops.ones_like(x) * d.expand_dims(-1) / 3,),
        [X],
    ),
    "norm": (
        normed,
        normed_gradient,
        lambda x, o, d: ((d - d.mean(-1, True)) / ops.sqrt(x.var(-1, keepdims=True)),),
        [X],
    ),
    "gelu": (
        gelu,
        lambda x, o, d: (
            d * (0.5 * (1 + ops.erf(x / 2**0.5)) + x * ops.exp(-x * x / 2) / (2 * np.pi) ** 0.5),
        ),
        lambda x, o, d: (d * 0.5 * (1 + ops.erf(x / 2**0.5)),),
        [X],
    ),
    "kinks": (
        ops.relu,
        lambda x, o, d: (d * (x > 0),),
        lambda x, o, d: (d * (x > -1),),
        [signed(40, 5)],
    ),
    "kinks at zeros": (
        ops.relu,
        lambda x, o, d: (d * (x > 0),),
        lambda x, o, d: (2 * d * (x > 0),),
        [ops.relu(signed(40, 5))],
    ),
    "absolute": (ops.abs, lambda x, o, d: (d * ops.sign(x),), lambda x, o, d: (d,), [X]),
    "clamp": (
        lambda x: x.clamp(-1, 1),
        lambda x, o, d: (d * (x > -1) * (x < 1),),
        lambda x, o, d: (d * (x < 1),),
        [signed(30, 4)],
    ),
    "integers": (
        lambda x, i: ops.gather_elements(x, 1, i) * 2,
        lambda x, i, o, d: (
            ops.tensor_scatter_elements(ops.zeros_like(x), i, 2 * d, 1, "add"),
            ops.zeros_like(i),
        ),
        lambda x, i, o, d: (
            ops.tensor_scatter_elements(ops.zeros_like(x), i, 2 * d, 1),
            ops.zeros_like(i),
        ),
        [X, INDEX],
    ),
    "softmax": (
        lambda x: ops.softmax(x, -1),
        lambda x, o, d: (
            ops.softmax(x, -1) * (d - (d * ops.softmax(x, -1)).sum(-1, keepdims=True)),
        ),
        lambda x, o, d: (ops.softmax(x, -1) * d,),
        [X],
    ),
    "square root": (
        ops.sqrt,
        lambda x, o, d: (0.5 * d / ops.sqrt(x),),
        lambda x, o, d: (0.5 * d * ops.sqrt(x),),
        [Y],
    ),
    "transposed": (
        lambda x: x.T * 3,
        lambda x, o, d: (3 * d.T,),
        lambda x, o, d: (3 * d.reshape(x.shape),),
        [X],
    ),
    "one element": (
        lambda x: x * 2,
        lambda x, o, d: (2 * d,),
        lambda x, o, d: (2 * d * Tensor(np.array([1, 1, 1, 1.5], np.float32)),),
        [signed(1, 4)],
    ),
}


def train(own, inputs):
    weight = Tensor(
        np.random.RandomState(5).uniform(0.5, 2.0, own(*inputs).shape).astype(np.float32)
    )
    floats = tuple(place for place, item in enumerate(inputs) if item.dtype == ms.float32)
    return lambda: ms.grad(lambda *given: (ops.exp(own(*given) * 0.1) * weight).sum(), floats)(
        *inputs
    )


@pytest.mark.parametrize("kind", [cell, function])
@pytest.mark.parametrize("name", CASES)
def test_a_wrong_backward_is_named_and_a_right_one_is_not(debug, name, kind):
    forward, right, wrong, inputs = CASES[name]
    owns = kind(forward, right), kind(forward, wrong)
    both = [train(own, inputs) for own in owns]
    debug.record(lambda: [run() for run in both], level="L1", task="tensor")
    found = list(results(debug.dump_path, "Primitive.fn:").values())
    assert [item.verdict for item in found] == ["ok", "wrong"], [str(item.reason) for item in found]


def test_one_wrong_own_backward_inside_of_another_is_named_alone(debug):
    inner = cell(lambda x: x * x, lambda x, o, d: (3 * x * d,))

    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner, self.dense = inner, nn.Dense(4, 4)

        def construct(self, x):
            return ops.tanh(self.inner(x)) * 2

        def bprop(self, x, out, dout):
            return (4 * x * (1 - ops.tanh(x * x) ** 2) * dout,)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.outer, self.lone = Outer(), inner

        def construct(self, x):
            return self.outer(x).sum() + (self.lone(x) * 0.5).sum()

    net = Net()
    debug.record(lambda: ms.grad(net)(X), net, level="mix", task="tensor")
    found = {name: item.verdict for name, item in results(debug.dump_path, "Primitive.fn:").items()}
    assert sorted(found.values()) == ["ok", "wrong"]


def test_a_recomputed_cell_is_composed_of_its_calls(debug):
    net = nn.SequentialCell(nn.Dense(4, 6), nn.GELU(), nn.Dense(6, 2))
    block = nn.SequentialCell(net, nn.Sigmoid())
    net.recompute()
    debug.record(
        lambda: ms.grad(lambda x: block(x * 1).sum())(X), block, level="mix", task="tensor"
    )
    found = results(debug.dump_path, "Cell.")
    assert found
    assert {item.verdict for item in found.values()} == {"ok"}, found


@pytest.mark.parametrize("net", ["lenet"])
def test_all_gradients_of_a_training_agree(debug, net):
    model, step = build(net)
    debug.record(lambda: step(0), model, level="mix", task="tensor")
    found = results(debug.dump_path)
    verdicts = [item.verdict for item in found.values()]
    assert "wrong" not in verdicts, [
        name for name, item in found.items() if item.verdict == "wrong"
    ]
    assert verdicts.count("ok") > 20


def test_outputs_without_a_gradient_are_not_compared(debug):
    """On CPU no kernel writes two of the outputs of BatchNorm."""
    norm = nn.BatchNorm2d(3).set_train()
    gradient = ms.value_and_grad(lambda x: (norm(x) ** 3).sum(), 0, norm.trainable_params())
    debug.record(
        lambda: gradient(signed(2, 3, 4, 4)), nn.SequentialCell(norm), level="mix", task="tensor"
    )
    found = results(debug.dump_path, "Norm")
    assert len(found) == 2
    assert {item.verdict for item in found.values()} == {"ok"}, found


def test_an_own_backward_whose_calls_were_not_seen_is_not_judged(debug):
    hidden = cell(
        lambda x: Tensor(x.asnumpy() ** 2) * ops.ones_like(x), lambda x, o, d: (2 * x * d,)
    )
    debug.record(train(hidden, [X]), level="L1", task="tensor")
    (found,) = results(debug.dump_path, "Primitive.fn:").values()
    assert found.verdict == "not replayable"


#: name -> a function, and its right gradient; docs/limits.md names those whose gradient MindSpore gets wrong
LISTED = {
    "slice": (lambda x: x[:, ::-1], lambda g: g[:, ::-1]),
    "flip": (lambda x: ops.flip(x, (1,)), lambda g: g[:, ::-1]),
    "strided_slice": (
        lambda x: ops.strided_slice(x, (0, 3), (2, -5), (1, -1)),
        lambda g: g[:, ::-1],
    ),
}


@pytest.mark.parametrize("name", LISTED)
def test_a_wrong_gradient_of_mindspore_itself_is_named(debug, name):
    call, right = LISTED[name]
    x, weights = signed(2, 4), signed(2, 4, seed=1)
    gradient = ms.grad(lambda x: (call(x) * weights).sum())
    is_right = np.allclose(gradient(x).asnumpy(), right(weights.asnumpy()))
    debug.record(lambda: gradient(x), level="L1", task="tensor")
    verdicts = {
        item.verdict
        for key, item in results(debug.dump_path).items()
        if "mul" not in key and "sum" not in key
    }
    assert verdicts == {"ok" if is_right else "wrong"}


def test_the_command_tells_agreement_and_fault(debug, capsys):
    own = cell(lambda x: x * x, lambda x, o, d: (3 * x * d,))
    debug.record(train(own, [X]), level="L1", task="tensor")
    assert (
        main(
            ["replay", str(debug.dump_path), "--all", "--gradients", "--jobs", "1", "--lang", "en"]
        )
        == 1
    )
    said = capsys.readouterr().out
    assert "wrong (1.5 times the gradient)" in said
    assert "0 not checked" in said.splitlines()[-1]
    assert (
        main(
            [
                "replay",
                str(debug.dump_path),
                "--gradients",
                "Functional.exp",
                "--lang",
                "zh",
                "--jobs",
                "1",
            ]
        )
        == 0
    )
    assert "梯度一致" in capsys.readouterr().out
    assert main(["replay", str(debug.dump_path), "--all", "--gradients", "--script", "x.py"]) == 2


@pytest.mark.parametrize(("factor", "verdict"), [(2, "ok"), (3, "wrong")])
@pytest.mark.parametrize("level", ["L1", "mix"])
def test_a_model_that_is_one_cell_with_its_own_bprop_is_checked(debug, level, factor, verdict):
    square = cell(lambda x: x * x, lambda x, o, d: (factor * x * d,))
    debug.record(lambda: ms.grad(square)(X), square, level=level, task="tensor")
    found = results(debug.dump_path, "Primitive.fn:")
    assert [item.verdict for item in found.values()] == [verdict]
