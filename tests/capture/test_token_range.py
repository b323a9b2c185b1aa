# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""token_range: some forwards of the model within a step."""

from __future__ import annotations

import os

import pytest
from mindspore import nn, ops

from probe import UsageError
from tests.support.tensors import tensor

X = tensor([[1.0, -2.0], [3.0, 0.5]])


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_token_range_records_the_forwards_of_the_model_in_the_range(debug, level):
    net = nn.SequentialCell(nn.Dense(2, 2), nn.ReLU())
    debugger = debug(level=level)
    call = nn.Cell.__call__
    debugger.start(net, token_range=[1, 2])
    x = X
    for token in range(5):
        x = net(ops.exp(x) if token == 1 else ops.tanh(x) if token == 2 else ops.sin(x))
    debugger.stop()
    assert nn.Cell.__call__ is call
    debugger.step()
    dump = debug.dump()
    if level != "L1":
        assert len(dump.names("Cell.0.Dense.forward")) == 2
    if level != "L0":
        assert len(dump.names("Primitive.matmul")) == 2
        assert dump.names("tanh")  # between the first forward and the last
        assert not dump.names("sin")
        assert not dump.names("exp")


class Same(nn.Cell):
    """Runs no kernel: in a forked child, MindSpore's kernels may wait for threads that only the parent has."""

    def construct(self, x):
        return x


def test_a_forked_child_writes_nothing_in_a_token_range(debug):
    net = nn.SequentialCell(Same())
    debugger = debug(level="L0", task="tensor")
    debugger.start(net, token_range=[1, 1])
    net(X)
    child = os.fork()
    if not child:
        net(X)  # the second forward: a parent would record it
        os._exit(0)
    os.waitpid(child, 0)
    assert not list(debug.dump_path.rglob("*.npy"))
    net(X)
    debugger.step()
    assert debug.dump().names("Cell.0.Same.forward")


@pytest.mark.parametrize("wrong", [[2, 1], [-1, 2], [1], 3, ["1", "2"], [True, 2]])
def test_a_wrong_token_range_is_named(debug, wrong):
    with pytest.raises(UsageError, match=r"start\(\): token_range .* Allowed: \[a, b\]"):
        debug(level="L0").start(nn.SequentialCell(nn.ReLU()), token_range=wrong)


def test_token_range_needs_the_model(debug):
    with pytest.raises(UsageError, match="token_range needs the model"):
        debug().start(token_range=[0, 1])
