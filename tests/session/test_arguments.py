# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An argument of a method is accepted, or one error names the method, the value and the allowed values."""

from __future__ import annotations

import math

import pytest
from mindspore import nn

from probe import UsageError
from probe.session.session import check_init_step, check_save, check_start, custom_api


@pytest.mark.parametrize("number", [0, 1, 10**9])
def test_whole_numbers_from_zero_are_accepted(number):
    check_init_step(number)
    check_start(None, None, number)


@pytest.mark.parametrize("number", [-1, 1.0, True, "0", math.nan])
def test_other_numbers_are_refused_by_the_method_that_got_them(number):
    with pytest.raises(
        UsageError,
        match=r"^set_init_step\(\): .* is not allowed\. Allowed: a whole number from 0\.$",
    ):
        check_init_step(number)
    with pytest.raises(
        UsageError,
        match=r"^start\(\): rank_id .* is not allowed\. Allowed: a whole number from 0\.$",
    ):
        check_start(None, None, number)


@pytest.mark.parametrize("model", [None, nn.ReLU(), [nn.ReLU()], (nn.ReLU(), nn.Dense(2, 2))])
def test_a_cell_and_lists_of_cells_are_models(model):
    check_start(model, [0, 0], None)


@pytest.mark.parametrize(
    ("model", "token_range"), [("net", None), ([1], None), (None, [2, 1]), (None, [0]), (None, 3)]
)
def test_other_models_and_ranges_are_refused(model, token_range):
    with pytest.raises(UsageError, match=r"^start\(\): "):
        check_start(model, token_range, None)


@pytest.mark.parametrize(("name", "save_backward"), [("", True), (3, True), ("loss", 1)])
def test_wrong_arguments_of_save_are_refused(name, save_backward):
    with pytest.raises(UsageError, match=r"^save\(\): "):
        check_save(name, save_backward)


def test_a_function_of_ones_own_has_its_owner_as_prefix():
    assert custom_api(math, "sqrt", None).key == "math.sqrt"
    with pytest.raises(UsageError, match="has no function 'root'"):
        custom_api(math, "root", None)
