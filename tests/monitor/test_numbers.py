# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The numbers of tensors and of a step: norms of any size, NaN, gradients that change on their way."""

from __future__ import annotations

import math

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor

from probe.capture.training.events import TrainingHooks
from probe.monitor.numbers import DeviceNumbers, HostNumbers, Later, Row
from probe.store.error_log import ErrorLog

KINDS = {
    "host": lambda: HostNumbers(lambda: None, on_cpu=True),
    "device": lambda: DeviceNumbers(lambda: None, on_cpu=True),
}


def number(numbers, value):
    """Return a number, which may still have to be fetched."""
    return Row({"x": value}, {}, []).finish(numbers.fetch(numbers.take()))["x"]


@pytest.mark.parametrize("size", [1e-30, 1e-22, 1.0, 1e18, 1e25])
@pytest.mark.parametrize("is_array", [False, True])
def test_the_norm_of_numbers_of_any_size(size, is_array):
    """The square of a small or a large one is outside of float32."""
    array = (np.array([3.0, -4.0]) * size).astype(np.float32)
    numbers = KINDS["host"]()
    found = number(numbers, numbers.norm(array if is_array else Tensor(array)))
    assert found / size == pytest.approx(5.0, rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("value", "is_known"),
    [(math.nan, math.isnan), (math.inf, lambda found: not math.isfinite(found))],
)
def test_nan_and_inf_are_seen_in_a_norm(kind, value, is_known):
    numbers = KINDS[kind]()
    assert is_known(number(numbers, numbers.norm(Tensor(np.array([1.0, value, 2.0], np.float32)))))


@pytest.mark.parametrize("kind", KINDS)
def test_the_change_of_a_parameter(kind):
    numbers, tensor = KINDS[kind](), Tensor(np.array([1.0, 2.0], np.float32))
    before = numbers.copy(tensor)
    tensor[0] = 4.0
    assert number(numbers, numbers.change(tensor, before)) == pytest.approx(3.0)


@pytest.mark.parametrize(("after", "expected"), [(4e22, 5e22), (math.inf, math.inf)])
def test_the_change_of_a_parameter_that_diverges(after, expected):
    """The squares are outside of float32, the norm is in it."""
    numbers, tensor = KINDS["host"](), Tensor(np.array([0.0, 0.0], np.float32))
    before = numbers.copy(tensor)
    tensor[0] = 3e22
    tensor[1] = after
    assert number(numbers, numbers.change(tensor, before)) == pytest.approx(expected, rel=1e-5)


NAN = math.nan


@pytest.mark.parametrize(
    ("arrived", "entered", "told"),
    [
        (2.0, 2.0, False),
        (2.0, 1.0, True),
        (2.0, 2.0 * (1 + 1e-7), False),
        (NAN, 1.0, True),
        (1.0, NAN, True),
        (NAN, NAN, False),
        (None, 1.0, False),
        (0.0, 1e-9, True),
        (0.0, 0.0, False),
        (math.inf, 1.0, True),
        (1.0, math.inf, True),
        (math.inf, math.inf, False),
    ],
)
def test_a_gradient_that_enters_changed_has_a_series_of_its_own(arrived, entered, told):
    values = {} if arrived is None else {"w.grad": arrived}
    found = Row(values, {"optimizer": {"w": entered}}, []).finish([])
    assert ("w.grad_in" in found) is told
    assert found["w.grad"] == pytest.approx(entered if arrived is None else arrived, nan_ok=True)


def test_the_global_norm_is_that_of_each_optimizer():
    found = Row({}, {"one": {"a": 3.0, "b": 4.0}, "two": {"c": 2.0}}, []).finish([])
    assert (found["one.global_norm"], found["two.global_norm"]) == (5.0, 2.0)


def test_numbers_on_the_device_are_taken_by_their_places():
    row = Row({"a": Later(1, False), "b": Later(0, True)}, {}, [object(), object()])
    assert row.finish([9.0, 2.0]) == {"a": 2.0, "b": 3.0}


@pytest.fixture
def hooks(tmp_path):
    made = TrainingHooks(None, True, ErrorLog(str(tmp_path), set()))
    parameters = {
        name: Parameter(Tensor([1.0], ms.float32), name=name)
        for name in ("a", "b", "frozen", "other")
    }
    parameters["frozen"].requires_grad = False
    made.watch({name: parameter for name, parameter in parameters.items() if name != "other"})
    return made, parameters


@pytest.mark.parametrize("kind", [tuple, list])
@pytest.mark.parametrize("with_inputs", [False, True])
def test_the_gradients_of_a_backward_have_the_names_of_their_parameters(hooks, kind, with_inputs):
    """The gradients of inputs, where they are asked for too, stand before those of the parameters."""
    made, parameters = hooks
    weights = kind([parameters["b"], parameters["other"], parameters["frozen"], parameters["a"]])
    gradients = ("gb", "go", "gf", "ga")
    result = (("gx",), gradients) if with_inputs else gradients
    assert list(made._returned(weights, result)) == [("b", "gb"), ("a", "ga")]


@pytest.mark.parametrize("result", ["ga", (("gx",), "ga")])
def test_the_gradient_of_one_parameter_alone(hooks, result):
    made, parameters = hooks
    assert list(made._returned(parameters["a"], result)) == [("a", "ga")]
