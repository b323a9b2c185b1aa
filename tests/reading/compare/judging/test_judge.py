# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The verdict on each kind of pair: bits, equal numbers, close, near zero, differs, shape, one side, unknown."""

from __future__ import annotations

import math

import pytest

from probe.reading.compare.distances.tolerances import Tolerances
from probe.reading.compare.judging.judge import SAME_BITS, Judge, is_unwritten
from probe.reading.dumps.entry_name import parse
from tests.reading.builders import forward, named, tensor, value

CALL = "Functional.f.0.forward"


def slots(a, b, name=CALL, judge=None, **more):
    return (judge or Judge(Tolerances())).slots(name, parse(name), a, b, **more)


def verdict(a, b, name=CALL, **more):
    """Return the verdict on one output."""
    (slot,) = slots(forward([], [a]), forward([], [b]), name, **more)
    return slot.verdict


def times(factor, **numbers):
    """Return a record whose numbers are so many times the usual ones."""
    return tensor(
        Max=2.0 * factor, Min=-1.0 * factor, Mean=0.5 * factor, Norm=2.0 * factor, **numbers
    )


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (tensor(md5="1"), tensor(md5="1"), "same"),
        (tensor(), tensor(), "equal numbers"),
        (tensor(md5="1"), tensor(md5="2"), "other bits"),
        (tensor(md5="1"), tensor(), "equal numbers"),
        (tensor(), times(1 + 1e-6), "close"),
        (tensor(md5="1"), times(1 + 1e-6, md5="2"), "other bits"),
        (tensor(), times(1 + 1e-4), "differs"),
        (tensor(), times(math.nan), "differs"),
        (tensor(shape=[2, 3]), tensor(shape=[3, 2]), "equal numbers"),
        (tensor(shape=[2, 3]), tensor(shape=[2, 4]), "shape"),
        (tensor(), value(3), "one side"),
        (tensor(), None, "one side"),
        (None, tensor(), "one side"),
        (
            tensor(Max=None, Min=None, Mean=None, Norm=None),
            tensor(Max=None, Min=None, Mean=None, Norm=None),
            "unknown",
        ),
        (tensor(unwritten=True), times(9.0), "unknown"),
        (tensor(not_combined=True), times(9.0), "not combined"),
        (tensor(not_combined=True), None, "not combined"),
        (value(3), value(3), ""),
        (value(3), value(4), "argument"),
        (value(3), None, "argument"),
    ],
)
def test_the_verdict_on_two_values(a, b, said):
    assert verdict(a, b) == said


@pytest.mark.parametrize(
    ("dtypes", "factor", "said"),
    [
        (("Float16", "Float16"), 1.001, "close"),
        (("Float16", "Float16"), 1.01, "differs"),
        (("BFloat16", "BFloat16"), 1.01, "close"),
        (("Float32", "BFloat16"), 1.01, "close"),
        (("BFloat16", "Float32"), 1.01, "close"),
        (("Int32", "Int32"), 1.0 + 1e-12, "differs"),
    ],
)
def test_the_less_exact_dtype_of_the_two_gives_the_tolerance(dtypes, factor, said):
    assert verdict(tensor(dtype=dtypes[0]), times(factor, dtype=dtypes[1])) == said


@pytest.mark.parametrize(
    ("floor", "said"),
    [((1e-2, 1e-2), "close"), ((1e-2, 1e-9), "differs"), ((1e-9, 1e-2), "differs")],
)
def test_calls_before_in_half_precision_count_where_both_sides_have_them(floor, said):
    assert verdict(tensor(), times(1.001), floor=floor) == said


def test_an_input_that_is_a_tensor_on_one_side_alone_is_an_argument_where_the_outputs_agree():
    a, b = (
        forward([tensor(), value(2.0)], [tensor()]),
        forward([tensor(), tensor(shape=[])], [tensor()]),
    )
    assert [slot.verdict for slot in slots(a, b)] == ["equal numbers", "argument", "equal numbers"]
    b["output"] = [times(2.0)]
    assert [slot.verdict for slot in slots(a, b)] == ["equal numbers", "one side", "differs"]


def test_moving_statistics_are_outputs():
    name = "Cell.bn.BatchNorm2d.forward.0"
    a, b = (
        {
            **forward([tensor()], [tensor()]),
            "parameters": {"gamma": tensor(), "moving_mean": times(factor)},
        }
        for factor in (1.0, 2.0)
    )
    found = {slot.place: (slot.is_input, slot.verdict) for slot in slots(a, b, name)}
    assert found["parameters.moving_mean"] == (False, "differs")
    assert found["parameters.gamma"] == (True, "equal numbers")


def test_the_outputs_of_a_call_that_is_pending_or_raised_are_not_compared():
    a, b = forward([tensor()], [tensor()]), forward([tensor()], [])
    assert [slot.place for slot in slots(a, {**b, "pending": "x"})] == ["input.0"]
    assert [slot.place for slot in slots({**a, "error": "x"}, b)] == ["input.0"]
    assert [slot.verdict for slot in slots(a, b)] == ["equal numbers", "one side"]


# -- rounding --------------------------------------------------------------------------------------------------------


SUM = "Functional.sum.0.forward"


def followed(a, b, judge=None, name=SUM):
    judge = judge or Judge(Tolerances())
    return {
        slot.place: slot.verdict
        for slot in judge.follow(name, parse(name), slots(a, b, name, judge=judge))
    }


def small(factor, **numbers):
    return times(1e-7 * factor, **numbers)


def test_the_rounding_of_a_sum_that_is_zero_is_near_zero():
    a, b = forward([tensor()], [tensor(), small(1.0)]), forward([tensor()], [tensor(), small(3.0)])
    assert followed(a, b)["output.1"] == "near zero"


@pytest.mark.parametrize(
    ("shape", "said"),
    [([2, 3], "near zero"), ([1], "near zero"), ([7], "differs")],
    ids=["as many", "fewer", "more"],
)
def test_rounding_has_no_more_elements_than_what_it_is_the_rounding_of(shape, said):
    a, b = (forward([tensor()], [small(factor, shape=shape)]) for factor in (1.0, 3.0))
    assert followed(a, b)["output.0"] == said


def test_the_result_of_a_call_that_does_not_add_is_no_rounding():
    a, b = forward([tensor()], [tensor(), small(1.0)]), forward([tensor()], [tensor(), small(3.0)])
    assert followed(a, b, name="Functional.cos.0.forward")["output.1"] == "differs"


def test_rounding_is_as_far_apart_as_it_is_beside_the_terms_of_its_sum():
    judge = Judge(Tolerances())
    a, b = forward([tensor()], [small(1.0)]), forward([tensor()], [small(3.0)])
    (slot,) = (
        slot for slot in judge.follow(SUM, parse(SUM), slots(a, b, SUM, judge)) if not slot.is_input
    )
    assert slot.verdict == "near zero"
    assert 0.0 < slot.distance.rel_l2 < 1e-5


def test_a_small_tensor_that_is_no_rounding_differs():
    a, b = (forward([tensor()], [times(1e-4 * factor)]) for factor in (1.0, 3.0))
    assert followed(a, b)["output.0"] == "differs"


def test_what_is_made_of_rounding_alone_is_near_zero_too():
    judge = Judge(Tolerances())
    followed(*(forward([tensor()], [small(factor)]) for factor in (1.0, 3.0)), judge)
    a, b = (forward([small(factor)], [small(2.0 * factor)]) for factor in (1.0, 3.0))
    assert followed(a, b, judge) == {"input.0": "near zero", "output.0": "near zero"}
    assert followed(a, b) == {"input.0": "differs", "output.0": "differs"}


@pytest.mark.parametrize(
    ("shape", "gap", "said"),
    [([2, 3], 9e-6, "near zero"), ([2, 3], 2e-5, "differs"), ([1], 2e-5, "near zero")],
)
def test_outputs_that_cancel_carry_the_noise_of_the_inputs(shape, gap, said):
    """An input differs by 1e-6; an output may by ten times as much, times the root of the terms of its sum."""
    a = forward([times(0.5)], [tensor(Max=5e-4, Min=0.0, Mean=0.0, Norm=5e-4, shape=shape)])
    b = forward(
        [times(0.5 * (1 + 1e-6))],
        [tensor(Max=5e-4 + gap, Min=0.0, Mean=0.0, Norm=5e-4, shape=shape)],
    )
    assert followed(a, b)["output.0"] == said


def test_with_noise_that_was_measured_rounding_differs():
    judge = Judge(Tolerances(noise={"x": 1e-9}))
    a, b = forward([tensor()], [tensor(), small(1.0)]), forward([tensor()], [tensor(), small(3.0)])
    assert followed(a, b, judge)["output.1"] == "differs"


# -- two frameworks, and arrays --------------------------------------------------------------------------------------


def two_frameworks(turned=lambda a, b, found: found):
    return Judge(Tolerances(), turned=turned)


def test_a_transposed_weight_is_told_by_its_shape():
    name = "Cell.fc.Dense.forward.0"
    a, b = ({"parameters": {"weight": tensor(shape=shape)}} for shape in ([2, 3], [3, 2]))
    (slot,) = slots(a, b, name, two_frameworks())
    assert slot.verdict == "transposed"
    b["parameters"]["weight"]["Norm"] = 2.1
    (slot,) = slots(a, b, name, two_frameworks())
    assert slot.verdict == "differs"


def test_gradients_of_two_frameworks_may_differ_more():
    name = "Cell.fc.Dense.parameters_grad.0"
    a, b = {"weight": [tensor()]}, {"weight": [times(1 + 5e-5)]}
    assert [slot.verdict for slot in slots(a, b, name, two_frameworks())] == ["close"]
    assert [slot.verdict for slot in slots(a, b, name)] == ["differs"]


def test_an_array_that_is_read_decides():
    judge = Judge(Tolerances(), lambda a, b, found: SAME_BITS)
    assert verdict(tensor(), tensor(), judge=judge) == "same"
    assert verdict(tensor(md5="1"), tensor(md5="2"), judge=judge) == "same"


@pytest.mark.parametrize(
    ("name", "place", "unwritten"),
    [
        ("Mint.empty.0.forward", "output.0", True),
        ("Mint.zeros.0.forward", "output.0", False),
        ("Primitive.bn.BatchNorm.0.forward", "output.2", True),
        ("Primitive.bn.BatchNorm.0.forward", "input.2", False),
        ("Primitive.bn.BatchNorm.0.backward", "output.2", False),
    ],
)
def test_memory_as_it_was(name, place, unwritten):
    assert is_unwritten(parse(name), place) is unwritten


def test_equal_places_have_the_place_of_their_part():
    a = forward([named("x"), [named("y"), named("z")]], [named("u")], mask=named("m"))
    assert [slot.place for slot in slots(a, a)] == [
        "input.0",
        "input.1.0",
        "input.1.1",
        "kwargs.mask",
        "output.0",
    ]
