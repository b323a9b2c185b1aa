# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compiled functions and Cells inside a PyNative training: the same values, and what can be seen is recorded."""

from __future__ import annotations

import os
import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import jit, nn, ops

from tests.support import processes
from tests.support.tensors import tensor

pytestmark = pytest.mark.slow

X = tensor(np.arange(6.0).reshape(2, 3) * 0.1)


def plain(x, k=2.0):
    y = ops.relu(x) * k
    return ops.concat([y, y + 1.0]).sum()


INSIDE = [
    "Functional.relu.0",
    "Tensor.__mul__.0",
    "Tensor.__add__.0",
    "Functional.concat.0",
    "Tensor.sum.0",
]


@pytest.mark.parametrize("compiled_before", [False, True])
@pytest.mark.parametrize("capture", ["ast", "bytecode"])
def test_a_compiled_function_gives_the_same_numbers(debug, capture, compiled_before):
    if capture == "bytecode" and sys.version_info >= (3, 12):
        pytest.skip("MindSpore's bytecode capture does not support Python 3.12")

    def function(x, k=2.0):
        return plain(x, k)

    gradient = ms.value_and_grad(jit(function, capture_mode=capture))
    expected = ms.value_and_grad(plain)(X)
    if compiled_before:
        gradient(X)
    result, dump = debug.record(lambda: gradient(X))
    again = gradient(X)
    for mine, bare, later in zip(result, expected, again):
        np.testing.assert_array_equal(mine.asnumpy(), bare.asnumpy())
        np.testing.assert_array_equal(mine.asnumpy(), later.asnumpy())
    if capture == "ast":
        assert list(dump.data) == ["Jit.function.0.forward", "Jit.function.0.backward"]
        assert dump.data["Jit.function.0.forward"]["input_args"][0]["shape"] == [2, 3]
        assert dump.data["Jit.function.0.backward"]["output"][0]["Max"] == result[1].asnumpy().max()
    if capture == "bytecode":
        assert list(dump.data) == [f"{name}.forward" for name in INSIDE] + [
            f"{name}.backward" for name in INSIDE[::-1]
        ]


TRACE = """
import sys
import mindspore as ms, numpy as np
from mindspore import jit, ops
from probe import PrecisionDebugger
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
X = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3) * 0.1)

def plain(x, k=2.0):
    y = ops.relu(x) * k
    return ops.concat([y, y + 1.0]).sum()

gradient = ms.value_and_grad(jit(plain, capture_mode="trace"))
if sys.argv[2] == "True":
    gradient(X)
debugger = PrecisionDebugger(dump_path=sys.argv[1])
debugger.start()
under = gradient(X)
debugger.step()
for mine, bare, later in zip(under, ms.value_and_grad(plain)(X), gradient(X)):
    np.testing.assert_array_equal(mine.asnumpy(), bare.asnumpy())
    np.testing.assert_array_equal(mine.asnumpy(), later.asnumpy())
"""


@pytest.mark.parametrize("compiled_before", [False, True])
def test_a_traced_function_gives_the_same_numbers(tmp_path, compiled_before):
    # a program of its own: MindSpore's tracing fails below frames that have no source, as those of python -m pytest
    (tmp_path / "traced.py").write_text(TRACE)
    command = [
        sys.executable,
        str(tmp_path / "traced.py"),
        str(tmp_path / "dump"),
        str(compiled_before),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = processes.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("dump_error_info.log"))


class Compiled(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 3, weight_init="ones")

    @jit
    def construct(self, x):
        return ops.tanh(self.fc(x))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Dense(3, 3, weight_init="ones"), Compiled()

    def construct(self, x):
        return self.last(self.first(x)).sum()


@pytest.mark.parametrize("compiled_before", [False, True])
@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_a_compiled_cell_in_a_pynative_model_is_one_entry(debug, level, compiled_before):
    ms.set_seed(1)
    bare = Net()
    expected = ms.value_and_grad(bare, None, bare.trainable_params())(X)
    ms.set_seed(1)
    net = Net()
    gradient = ms.value_and_grad(net, None, net.trainable_params())
    if compiled_before:
        gradient(X)
    if level != "L1":
        debug.dump_path = debug.path / "dump" / "pynative"
    result, dump = debug.record(
        lambda: gradient(X), net, level=level, dump_path=str(debug.path / "dump")
    )
    for mine, other in zip((result[0], *result[1]), (expected[0], *expected[1])):
        np.testing.assert_array_equal(mine.asnumpy(), other.asnumpy())
    if level != "L1":
        assert "Cell.first.Dense.backward.0" in dump.data
        assert "Cell.last.Compiled.forward.0" in dump.data
    if level != "L0":
        assert "Jit.Compiled.0.forward" in dump.data
    assert not [name for name in dump.data if ".fc" in name or "tanh" in name]


def test_a_compiled_lambda_has_a_name_that_readers_accept(debug):
    function = lambda x: ops.relu(x) * 2.0  # noqa: E731  # MindSpore reads a lambda from a line of its own
    compiled = jit(function)
    result, dump = debug.record(lambda: compiled(X))
    np.testing.assert_array_equal(result.asnumpy(), X.asnumpy() * 2.0)
    assert list(dump.data) == ["Jit._lambda_.0.forward"]


def test_the_compiled_function_of_an_optimizer_is_not_recorded(debug):
    net = nn.Dense(3, 1)
    optimizer = nn.Adam(net.trainable_params())
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)

    def work():
        optimizer(gradient(X)[1])

    _, dump = debug.record(work, net, level="L1")
    assert not [name for name in dump.data if name.startswith("Jit.")]
