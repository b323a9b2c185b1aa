# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Patches: installed while a step is recorded, and removed without a trace."""

from __future__ import annotations

import gc
from types import FunctionType

import mindspore as ms
import numpy as np
import pytest
from mindspore import mint, nn, ops

from tests.support import nets
from tests.support.tensors import tensor

X = tensor(np.arange(6.0).reshape(2, 3))


def _namespaces():
    from mindspore.communication import comm_func

    functions = (mint.nn.functional, mint.linalg, mint.special, mint.distributed, comm_func)
    return (ms.Tensor, ms.Parameter, nn.Cell, ops, mint, *functions)


def _snapshot(net):
    cells = [cell for _, cell in net.cells_and_names()]
    primitives = [
        value for cell in cells for value in vars(cell).values() if isinstance(value, ops.Primitive)
    ]
    return (
        [dict(vars(namespace)) for namespace in _namespaces()],
        [(len(cell._forward_pre_hook), len(cell._forward_hook)) for cell in cells],
        [type(primitive) for primitive in primitives],
        [
            (value.__code__, *map(id, vars(value).values()))
            for namespace in _namespaces()
            for value in vars(namespace).values()
            if isinstance(value, FunctionType)
        ],
    )


def _same(before, after):
    for old, new in zip(before[0], after[0]):
        assert old.keys() == new.keys()
        moved = [name for name in old if old[name] is not new[name]]
        assert set(moved) <= {"total_instance_count"}  # MindSpore counts its Cells there
    assert before[1:] == after[1:]


@pytest.mark.parametrize(
    ("level", "early_names"), [("L0", True), ("L1", True), ("mix", True), ("mix", False)]
)
def test_after_a_step_and_in_steps_that_are_not_recorded_every_function_is_the_original(
    debug, level, early_names
):
    net, train = nets.build("digits")
    gelu, call = ops.gelu, nn.Cell.__call__
    code = gelu.__code__
    train(0)  # MindSpore imports some names at their first use
    before = _snapshot(net)
    debugger = debug(level=level, step=[0, 2], early_names=early_names)
    for step in range(4):
        debugger.start(net)
        assert (getattr(ops, "gelu") is gelu) == (early_names or step in (1, 3))  # noqa: B009
        installed = [getattr(ops, "gelu").__code__ is not code, nn.Cell.__call__ is not call]  # noqa: B009
        # at L1 the model's calls are watched for the snapshot
        assert installed == ([level != "L0", True] if step in (0, 2) else [False, False])
        train(step)
        debugger.stop()
        _same(before, _snapshot(net))
        assert ops.gelu is gelu and gelu.__code__ is code
        debugger.step()
        assert not any(parameter.hooks() for parameter in net.trainable_params())


def test_wrapped_functions_have_the_name_and_docstring_of_the_originals(debug):
    debugger = debug(early_names=False)
    names = {name: getattr(ops, name) for name in ("relu", "concat", "matmul")}
    debugger.start()
    for name, original in names.items():
        wrapped = getattr(ops, name)
        assert wrapped is not original and wrapped.__wrapped__ is original
        assert (wrapped.__name__, wrapped.__doc__, wrapped.__module__) == (
            original.__name__,
            original.__doc__,
            original.__module__,
        )
    debugger.stop()


def test_the_garbage_collector_is_left_as_the_user_set_it(debug):
    before = gc.get_threshold()
    debugger = debug()
    debugger.start()
    assert gc.isenabled()
    gc.disable()
    debugger.stop()
    assert not gc.isenabled()
    gc.enable()
    assert gc.get_threshold() == before
