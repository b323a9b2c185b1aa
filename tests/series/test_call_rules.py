# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The rules on the curves of calls, on both sides of each limit."""

import math

import pytest

from probe.series.online_rules import OnlineRules

FORWARD, BACKWARD = "Functional.relu.0.forward", "Functional.relu.0.backward"


def of_call(norm=1.0, highest=2.0, into=1.0, entry=FORWARD, lowest=-1.0, **further):
    """Return the numbers of one call in one step: one input, one output."""
    row = {"norm": norm, "max": highest, "min": lowest, **further}
    return {
        f"{entry}.input.0.norm": into,
        f"{entry}.input.0.max": 1.0 if math.isfinite(into) else into,
        f"{entry}.input.0.min": -1.0,
        **{f"{entry}.output.0.{name}": value for name, value in row.items()},
    }


def alarms(rows):
    rules = OnlineRules()
    return [
        (alarm.rule, alarm.step) for step, row in enumerate(rows) for alarm in rules.feed(step, row)
    ]


def gains(values):
    return alarms([of_call(norm=value) for value in values])


NAN = {"norm": math.nan, "highest": math.nan}
MASK = {"norm": math.inf, "lowest": -math.inf}


def test_a_gain_that_doubles_in_two_rounds_is_a_jump_and_less_is_none():
    steady = [1.0, 1.01] * 8
    assert gains([*steady, 2.1, 2.1]) == [("call gain", 17)]
    assert gains([*steady, 1 / 2.1, 1 / 2.1]) == [("call gain", 17)]
    assert gains([*steady, 1.9, 1.9]) == []


def test_one_round_alone_may_be_chance():
    steady = [1.0, 1.01] * 8
    assert gains([*steady, 9.0, *steady, 9.0, *steady]) == []


def test_noise_makes_a_jump_larger():
    rough = [1.0, 1.3, 0.8, 1.2, 0.7, 1.4] * 3
    assert gains([*rough, 2.5, 2.5]) == []


def test_growth_by_the_same_factor_in_each_round_is_told_and_uneven_growth_is_none():
    steady = [1.0, 1.002] * 10
    even = [1.2**place for place in range(1, 8)]
    assert [rule for rule, _ in gains([*steady, *even])] == ["call gain"]
    uneven = [1.2, 1.25, 1.6, 1.65, 2.2, 2.3, 2.9]
    assert gains([*steady, *uneven]) == []
    assert gains([*steady, *(1.12**place for place in range(1, 8))]) == []


def test_a_gain_that_has_moved_from_the_first_round_on_is_learnt():
    assert gains([1.2**place for place in range(40)]) == []


def test_a_number_that_falls_by_itself_as_a_loss_does_has_no_gain():
    rows = [of_call(norm=value, highest=value, lowest=value) for value in [1.0] * 16 + [9.0] * 4]
    assert alarms(rows) == []


def test_the_call_in_front_is_named_and_not_the_one_behind():
    front = [of_call(norm=value) for value in [1.0] * 16 + [4.0] * 2]
    behind = [
        of_call(norm=value, into=value, entry="Functional.tanh.0.forward")
        for value in [1.0] * 16 + [4.0] * 2
    ]
    rules, found = OnlineRules(), []
    for step, (first, second) in enumerate(zip(front, behind)):
        found += rules.feed(step, {**first, **second})
    assert [alarm.series for alarm in found] == [f"{FORWARD}.output.0.norm"]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([of_call(), of_call(**NAN)], [("call NaN/Inf", 1)]),
        ([of_call(**NAN)], [("call NaN/Inf", 0)]),
        ([of_call(**MASK), of_call(**MASK)], []),  # a mask of -inf
        ([of_call(), of_call(**MASK)], [("call NaN/Inf", 1)]),
        ([of_call(), of_call(into=math.nan, **NAN)], []),  # it is given NaN
        ([of_call(), of_call(**NAN), of_call(**NAN)], [("call NaN/Inf", 1)]),
        (
            [{**of_call(into=math.nan, **NAN), **of_call(entry=BACKWARD, **NAN)}],
            [],
        ),  # a backward uses the values of its forward
    ],
)
def test_nan_is_told_of_the_call_that_makes_it(rows, expected):
    assert alarms(rows) == expected


@pytest.mark.parametrize(("zeros", "expected"), [(0.995, [("call zeros", 5)]), (0.98, [])])
def test_an_output_that_becomes_zero_is_told_after_two_rounds(zeros, expected):
    rows = [of_call(zeros=0.4)] * 4 + [of_call(zeros=zeros)] * 3
    assert alarms(rows) == expected


def test_an_output_that_was_always_zero_is_none():
    assert alarms([of_call(zeros=1.0)] * 9) == []


@pytest.mark.parametrize(("peak", "expected"), [(0.91, [("call range", 1)]), (0.89, [])])
def test_a_number_near_the_end_of_its_dtype_is_told(peak, expected):
    assert alarms([of_call(peak=0.1), of_call(peak=peak)]) == expected


@pytest.mark.parametrize(("gate", "expected"), [(0.2, []), (1.0, [("call gain", 17)])])
def test_a_product_that_goes_with_the_gate_that_closes_is_none(gate, expected):
    def row(size, norm):
        second = {f"{FORWARD}.input.1.{name}": size for name in ("norm", "max")}
        return {**of_call(norm=norm), **second, f"{FORWARD}.input.1.min": -size}

    steady = [row(1.0, 1.0), row(1.01, 1.01)] * 8
    assert alarms([*steady, row(gate, 0.2), row(gate, 0.2)]) == expected


def test_an_input_of_zeros_is_no_measure_of_an_output():
    rows = [
        {
            **of_call(norm=norm),
            **{f"{FORWARD}.input.1.{name}": 0.0 for name in ("norm", "max", "min")},
        }
        for norm in [1.0, 1.01] * 8 + [2.1, 2.1]
    ]
    assert alarms(rows) == [("call gain", 17)]
