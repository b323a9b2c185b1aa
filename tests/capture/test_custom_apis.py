# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""register_custom_api: functions of the user's own."""

from __future__ import annotations

import types

import mindspore as ms
import pytest
from mindspore import nn, ops

from probe import PrecisionDebugger, UsageError
from tests.support.tensors import tensor

X = tensor([[1.0, -2.0], [3.0, 0.5]])


class Mine:
    """Functions that a user may want to see."""

    @staticmethod
    def static(x):
        return x * 2

    @classmethod
    def of_the_class(cls, x):
        return x * 3

    def method(self, x, scale=1.0):
        return ops.exp(x) * scale


def test_registered_functions_of_a_module_and_of_a_class_are_recorded(debug):
    module = types.ModuleType("mine")
    module.attention = lambda q, k: ops.softmax(ops.matmul(q, k))
    functions = [(module, "attention"), (Mine, "static"), (Mine, "of_the_class"), (Mine, "method")]
    before = [vars(owner)[name] for owner, name in functions]
    debugger = debug()
    debugger.register_custom_api(module, "attention")
    for name in ("static", "of_the_class", "method"):
        PrecisionDebugger.register_custom_api(Mine, name, api_prefix="My")

    def work(x):
        y = (
            module.attention(x, x)
            + Mine.static(x)
            + Mine.of_the_class(x)
            + Mine().method(x, scale=0.5)
        )
        return y.sum()

    bare = ms.grad(work)(X).asnumpy()
    debugger.start()
    watched = ms.grad(work)(X).asnumpy()
    debugger.stop()
    assert [vars(owner)[name] for owner, name in functions] == before
    assert watched.tobytes() == bare.tobytes()
    debugger.restore_custom_api(Mine, "method")
    debugger.start()
    work(X)
    debugger.step()
    dump = debug.dump()
    for name in ("mine.attention.0", "My.static.0", "My.of_the_class.0", "My.method.0"):
        assert f"{name}.forward" in dump.data
        assert f"{name}.backward" in dump.data
    assert len(dump.data["mine.attention.0.forward"]["input_args"]) == 2
    assert dump.data["My.method.0.forward"]["input_kwargs"]["scale"]["value"] == 0.5
    assert "My.static.1.forward" in dump.data
    assert "My.method.1.forward" not in dump.data
    assert (
        "Functional.exp.0.forward" in dump.data
    )  # of the second run: in the first it was inside one of ours


def test_a_function_that_does_not_exist_is_refused_by_name(debug):
    debugger = debug()
    with pytest.raises(UsageError, match="has no function 'nothing'"):
        debugger.register_custom_api(Mine, "nothing")
    with pytest.raises(UsageError, match="api_prefix 3"):
        debugger.register_custom_api(Mine, "static", 3)
    with pytest.raises(UsageError, match="was not registered"):
        debugger.restore_custom_api(types.ModuleType("mine"), "static")


def test_registered_functions_outlive_the_debugger_and_can_be_named_in_a_scope(debug):
    debug().register_custom_api(Mine, "static", "Old")
    debugger = debug(
        level="L1", task="tensor", scope=["My.static.1.forward", "My.static.1.forward"]
    )
    debugger.register_custom_api(Mine, "static", "My")
    debugger.start()
    for _ in range(3):
        Mine.static(X)
    debugger.step()
    assert list(debug.dump().data) == ["My.static.1.forward"]


def test_classes_and_cells_cannot_be_registered_as_functions(debug):
    net = nn.SequentialCell(nn.ReLU())
    net.act = nn.ReLU()
    module = types.ModuleType("mine")
    module.Kind = type("Kind", (), {})
    for owner, name in ((module, "Kind"), (net, "act")):
        with pytest.raises(UsageError, match="has no function"):
            debug().register_custom_api(owner, name)
