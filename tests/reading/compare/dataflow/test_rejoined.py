# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls that do one thing by other steps are no difference where the values behind them are the same."""

from __future__ import annotations

import pytest

from probe.reading.compare.answer.unit import compare_unit
from probe.reading.compare.distances.net_noise import NetNoise
from probe.reading.compare.judging.judged_pairs import Options
from tests.reading.builders import calls, dump

PLAIN = ("add x a -> xa", "add xa b -> s", "exp s -> t", "log t -> u")


def compared(a, b):
    a, b = dump(calls(*a)), dump(calls(*b))
    noise = {
        f"{name}.{place}": 1e-6 for name in a.data for place in ("input.0", "input.1", "output.0")
    }
    return compare_unit(a.folder, b.folder, Options(noise={(a.step, a.rank): NetNoise(noise)}))


@pytest.mark.parametrize(
    "other",
    [
        ("add a b -> ab", "add x ab -> s~", "exp s~ -> t~", "log t~ -> u~"),
        ("add a b -> ab", "add x ab -> s", "exp s -> t", "log t -> u"),
    ],
)
def test_a_sum_in_another_order_is_no_difference(other):
    unit = compared(
        (*("relu i -> x", "relu j -> a", "relu k -> b"), *PLAIN),
        (*("relu i -> x", "relu j -> a", "relu k -> b"), *other),
    )
    assert unit.origins.first == () and unit.counts.differs == 0


def test_another_sum_is_one():
    before = ("relu i -> x", "relu j -> a", "relu k -> b")
    unit = compared(
        (*before, *PLAIN), (*before, "add a b -> ab", "add x ab -> w", "exp w -> v", "log v -> q")
    )
    assert unit.origins.first and unit.counts.differs


def test_a_result_that_nothing_uses_has_to_be_there_on_both_sides():
    before = ("relu i -> x", "relu j -> a", "relu k -> b")
    a, b = (*before, "add x a -> xa", "add xa b -> s"), (*before, "add a b -> ab", "add x ab -> s~")
    assert compared(a, b).origins.first == ()
    assert compared(a, (*b[:4], "add x ab -> w")).origins.first
