# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""probe nan says why a call makes NaN or Inf: which elements of which input."""

from __future__ import annotations

import logging

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

import probe
from probe.reading.one_run.nan import look_at_all


def twos(*zeros):
    """Return a tensor of 5 x 4 twos, with zeros at some rows."""
    array = np.full((5, 4), 2.0, np.float32)
    array[list(zeros), 1] = 0
    return Tensor(array)


IGNORED = Tensor(np.full(28, -100, np.int32))
CALLS = {
    "division": (
        lambda: ops.div(twos(), twos(3, 4)),
        "the divisor is 0 in 2 of 20 elements, first [3, 1]",
    ),
    "other side": (lambda: 1.0 / twos(2), "the divisor is 0 in 1 of 20 elements, first [2, 1]"),
    "negative": (
        lambda: ops.log(twos(1) - 1.0),
        "the logarithm of a negative number in 1 of 20 elements, first [1, 1]",
    ),
    "logarithm": (lambda: ops.log(twos(0)), "the logarithm of 0 in 1 of 20 elements, first [0, 1]"),
    "root": (
        lambda: ops.sqrt(twos(0) - 1.0),
        "the square root of a negative number in 1 of 20 elements, first [0, 1]",
    ),
    "slope": (
        lambda: ms.grad(lambda x: ops.sqrt(x).sum())(twos(0, 2)),
        "the slope of a square root at 0 is infinite in 2 of 20 elements, first [0, 1]",
    ),
    "exponential": (
        lambda: ops.exp(twos(0) * 50.0),
        "exp of a number above 88 in 19 of 20 elements, first [0, 0]",
    ),
    "labels": (
        lambda: ops.cross_entropy(Tensor(np.ones((28, 3), np.float32)), IGNORED),
        "all 28 labels are ignore_index (-100), so the mean is 0 / 0",
    ),
    "half": (
        lambda: ops.mul(twos().astype(ms.float16) * 200, twos().astype(ms.float16) * 200),
        "the result is beyond 65504, the largest number of Float16",
    ),
    "power": (
        lambda: (twos(0) - 1.0) ** 0.5,
        "a power of a negative number with an exponent that is no whole number in 1 of 20 elements, first [0, 1]",
    ),
    "power of 0": (
        lambda: twos(1) ** -1,
        "a power of 0 with an exponent below 0 in 1 of 20 elements, first [1, 1]",
    ),
    "slope of a power": (
        lambda: ms.grad(lambda x: ops.pow(x, 0.5).sum())(twos(0, 2)),
        "a power of 0 with an exponent below 0 in 2 of 20 elements, first [0, 1]",
    ),
    "large square": (
        lambda: (twos(0) * -2e21) ** 2,
        "the result is beyond 3.40282e+38, the largest number of Float32",
    ),
    "large product": (
        lambda: ops.matmul(twos() * 1e20, twos().T * 1e20),
        "the result is beyond 3.40282e+38, the largest number of Float32",
    ),
}


@pytest.mark.parametrize("name", list(CALLS))
def test_the_arrays_tell_which_elements(debug, name):
    call, reason = CALLS[name]
    debug.record(call, task="tensor", level="L1")
    said = probe.first_nan(probe.open(debug.dump_path)).sentence
    assert said.endswith(f"; {reason}")


def test_the_statistics_tell_the_ends_of_the_input(debug):
    debug.record(CALLS["division"][0], level="L1")
    said = probe.first_nan(probe.open(debug.dump_path)).sentence
    assert said.endswith("; the divisor has a 0 (input.1 is between 0 and 2)")


def test_the_log_of_nan_check_has_the_reason(debug, caplog):
    with caplog.at_level(logging.WARNING, logger="probe"):
        debug.record(CALLS["division"][0], task="nan_check", level="L1")
    assert "The divisor is 0 in 2 of 20 elements, first [3, 1]." in caplog.text


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_a_whole_power_of_a_negative_number_is_not_blamed_for_inf(debug, task):
    debug.record(lambda: (twos(0) * -2e21) ** 2, task=task, level="L1")
    said = probe.first_nan(probe.open(debug.dump_path)).sentence
    assert said.endswith("; the result is beyond 3.40282e+38, the largest number of Float32")


def test_inf_of_moderate_inputs_has_no_reason_that_may_be_wrong(debug):
    debug.record(lambda: (twos() * 1e10) / 1e-30, level="L1")
    said = probe.first_nan(probe.open(debug.dump_path)).sentence
    assert "makes Inf of finite inputs" in said
    assert ";" not in said


@pytest.mark.parametrize("dtype", [ms.float16, ms.float32])
def test_a_result_of_an_infinite_input_is_not_told_as_too_large(debug, dtype):
    given = Tensor(np.array([np.inf, 1e4], np.float32)).astype(dtype)
    debug.record(lambda: ops.sub(ops.add(given, given), given), level="L1")
    found = look_at_all(probe.open(debug.dump_path))
    assert found[0].origins
    assert not any("largest number" in origin.sentence for origin in found[0].origins)
