# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Gradients of compiled calls: each one stands in the slot of its argument, and nowhere else."""

from __future__ import annotations

import functools
import gc
import logging
import weakref

import mindspore as ms
import numpy as np
import pytest
from mindspore import jit, nn

from tests.support.compiled_calls import (
    PARAMETER,
    A,
    B,
    C,
    Live,
    Model,
    Owner,
    Plain,
    X,
    Y,
    check,
    container_first,
    differentiate,
    expected,
    flat,
    in_order,
    leaves,
    patterns,
    recorded,
    sums,
    times,
)
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("task", thorough_but(["statistics"], ["statistics", "tensor"]))
@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize("pattern", patterns())
def test_every_gradient_of_a_compiled_call_stands_in_the_slot_of_its_argument(
    debug, pattern, level, task
):
    function, args, kwargs, weights = patterns()[pattern]
    model = Model(function if isinstance(function, (Owner, Plain)) else jit(function))
    work = functools.partial(differentiate, model, args, kwargs, weights)
    _, dump = debug.record(work, model, level=level, task=task)
    if level != "L0":
        (name,) = dump.names("Jit.", ".backward")
        ordered = in_order(function, kwargs)
        check(dump, recorded(dump.data[name], ordered), expected(function, args, ordered, weights))
    if (
        level != "L1" and pattern != "its own Parameter as an argument"
    ):  # a Cell's entry has the sum of both uses
        gradients = sums(expected(function, args, kwargs, weights), leaves([args, kwargs]))
        check(dump, recorded(dump.data["Cell.around.Around.backward.0"], kwargs), gradients)


def twice(function, first, second, times_of_second=1):
    differentiate(function, first, {}, [])
    for _ in range(times_of_second):
        differentiate(function, second, {}, [])


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize(
    "second", [[A, B], [A, C], [C, B], [PARAMETER, A]], ids=["two", "first", "last", "parameter"]
)
@pytest.mark.parametrize("first", [[C, A], [A, B], [A, C]], ids=["last", "two", "first"])
def test_a_function_compiled_for_some_arguments_is_used_for_others(debug, first, second, level):
    model = Model(jit(times))
    _, dump = debug.record(lambda: twice(model, first, second), model, level=level)
    for number, args in enumerate([first, second]):
        name = (
            f"Cell.around.Around.backward.{number}"
            if level == "L0"
            else f"Jit.times.{number}.backward"
        )
        check(dump, recorded(dump.data[name]), expected(times, args, {}, []))


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if "null" in record.getMessage()]


def of_three(pair, p, x):
    return pair[0] * pair[1] * p * x


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_gradients_that_cannot_be_assigned_are_null_and_one_line_says_so(debug, level, caplog):
    # MindSpore counts the arguments wrongly where a tuple stands before one without gradient, from the second call on
    caplog.set_level(logging.WARNING, "probe")
    function, args = jit(of_three), [(C, A), PARAMETER, B]
    model = Model(function)

    def work():
        for _ in range(3):
            differentiate(model, args, {}, [])

    _, dump = debug.record(work, model, level=level)
    names = dump.names("Jit.of_three", "backward")
    assert len(names) == 3
    right = expected(
        of_three, args, {}, [PARAMETER]
    )  # MindSpore computes all of them in the first call
    check(dump, recorded(dump.data[names[0]]), right)
    for name in names[1:]:
        assert recorded(dump.data[name]) == [None] * len(right)
        assert dump.data[name]["input"][0]["shape"] == [3]
    assert len(warnings(caplog)) == 1


def of_four(pair, p, q, c):
    return pair[0] * pair[1] * p * q * q * c


def test_gradients_that_mindspore_hands_to_the_wrong_arguments_are_null(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    function, args = jit(of_four), [(A, B), Live(0), Live(1), C]
    _, dump = debug.record(lambda: differentiate(function, args, {}, []), level="L1")
    assert recorded(dump.data["Jit.of_four.0.backward"]) == [None] * 5
    assert len(warnings(caplog)) == 1


def test_half_of_the_gradients_of_one_tensor_are_assigned_to_no_argument(debug, caplog):
    # a function compiled for a constant and a tensor loses the first gradient from the second other call on
    caplog.set_level(logging.WARNING, "probe")
    function = jit(times)
    _, dump = debug.record(lambda: twice(function, [C, A], [A, A], 2), level="L1")
    check(dump, recorded(dump.data["Jit.times.1.backward"]), expected(times, [A, A], {}, []))
    assert recorded(dump.data["Jit.times.2.backward"]) == [None, None]
    assert len(warnings(caplog)) == 1


def test_a_differentiated_input_in_a_tuple_is_a_constant_for_mindspore(debug):
    function = jit(container_first)
    result, dump = debug.record(lambda: ms.grad(lambda x: function((x,), x).sum())(X), level="L1")
    in_tuple, beside = recorded(dump.data["Jit.container_first.0.backward"])
    assert in_tuple is None
    assert beside["Max"] == result.asnumpy().max()


def test_a_compiled_call_whose_gradient_never_comes_keeps_nothing_alive(debug):
    class Mark:
        """Lives as long as the graph before the call."""

    marks = []
    function = jit(times)

    def loss(x):
        mark, before = Mark(), x * 1.0
        before._grad_node.register_hook(lambda gi, go, kept=mark: None)
        marks.append(weakref.ref(mark))
        function(C, before)
        return (x * x).sum()

    debug.record(lambda: ms.grad(loss)(X), level="L1")
    gc.collect()
    assert marks[0]() is None


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_a_training_with_a_loss_scaler_has_all_its_gradients(debug, kind, level, task):
    scaler = (
        ms.amp.StaticLossScaler(8.0) if kind == "static" else ms.amp.DynamicLossScaler(8.0, 2, 10)
    )

    class Scaled(nn.Cell):
        """A Cell that scales and unscales."""

        def construct(self, x, y):
            scaled, unscaled = scaler.scale(x * 2.0), scaler.unscale((x * 3.0, C, y * 5.0))
            return scaled, unscaled[0], unscaled[2]

    class Training(nn.Cell):
        """A model with it."""

        def __init__(self):
            super().__init__()
            self.inner = Scaled()

        def construct(self, x, y):
            return self.inner(x * 1.0, y * 1.0)

    model = Training()

    def loss(x, y):
        scaled, one, two = model(x, y)
        return (scaled * 7.0 + one * 11.0 + two * 13.0).sum()

    gradients, dump = debug.record(
        lambda: ms.grad(loss, (0, 1))(X, Y), model, level=level, task=task
    )
    np.testing.assert_allclose(
        gradients[0].asnumpy(), np.full(3, 8 * 2 * 7 + 3 * 11 / 8), rtol=1e-6
    )
    np.testing.assert_allclose(gradients[1].asnumpy(), np.full(3, 5 * 13 / 8), rtol=1e-6)
    full = functools.partial(np.full, 3, dtype=np.float32)
    if level != "L1":
        check(
            dump,
            flat(dump.data["Cell.inner.Scaled.backward.0"]["output"]),
            [g.asnumpy() for g in gradients],
        )
    if level != "L0":
        scale, unscale = (
            dump.data["Jit._grad_scale_map.0.backward"],
            dump.data["Jit._grad_unscale_map.0.backward"],
        )
        check(dump, recorded(scale), [None, full(56.0)])
        check(dump, recorded(unscale), [None, full(11 / 8), None, full(13 / 8)])
