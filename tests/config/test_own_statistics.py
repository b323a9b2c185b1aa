# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Names of statistics of one's own, in register_statistic and in summary_mode."""

from __future__ import annotations

import pytest

import probe
from probe import SettingsError, UsageError
from probe.config.loading import load
from tests.support.own import none_registered


@pytest.fixture(autouse=True)
def _alone():
    with none_registered():
        yield


def test_a_registered_name_may_be_chosen_and_another_one_may_not():
    probe.register_statistic("kurtosis", len)
    assert load(summary_mode=["max", "kurtosis"]).summary_mode == ("max", "kurtosis")
    with pytest.raises(SettingsError) as caught:
        load(summary_mode=["max", "kurtosi"])
    assert str(caught.value).startswith(
        "statistics.summary_mode: 'kurtosi' is not allowed. Allowed: 'max', 'min', "
    )
    assert str(caught.value).endswith("'kurtosis'. Did you mean 'kurtosis'?")


@pytest.mark.parametrize(
    "name", ["max", "Mean", "md5", "zero_count", "dtype", "line", "grad", "norm", "inf_count"]
)
def test_a_name_that_exists_is_refused(name):
    with pytest.raises(UsageError, match=f"the name '{name}' is taken. Allowed: another one."):
        probe.register_statistic(name, len)


def test_a_name_is_registered_once():
    probe.register_statistic("hill", len)
    with pytest.raises(UsageError, match="the name 'hill' is taken"):
        probe.register_statistic("hill", len)


@pytest.mark.parametrize("name", ["", "2x", "zero count", "a.b", "a:b", None, 3])
def test_a_name_is_an_identifier(name):
    with pytest.raises(UsageError, match=r"is not allowed\. Allowed: an identifier\."):
        probe.register_statistic(name, len)


@pytest.mark.parametrize("functions", [(None,), (3,), ("text",), (len, 3)])
def test_a_function_is_needed(functions):
    with pytest.raises(UsageError, match="register_statistic\\(\\): hill has no function"):
        probe.register_statistic("hill", *functions)


def test_a_function_may_be_named_in_the_setting_and_is_imported_later():
    assert load(summary_mode=["max", "no_module:parts.hill"]).summary_mode == ("max", "hill")
    assert load(summary_mode=["max", "no_module:parts.hill"]).summary_mode == ("max", "hill")


def test_a_statistic_of_range_with_a_typing_error_is_no_function():
    with pytest.raises(SettingsError, match="Did you mean 'underflow:float16'"):
        load(summary_mode=["undrflow:float16"])


def test_kernels_have_none():
    probe.register_statistic("kurtosis", len)
    with pytest.raises(SettingsError, match="none of your own"):
        load(level="L2", summary_mode=["max", "kurtosis"])
