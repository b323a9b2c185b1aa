# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The numbers of an update, and batches of which one side takes a part."""

from __future__ import annotations

import pytest

from probe.reading.compare.distances.distance import APART, UNKNOWN
from probe.reading.compare.judging.divided_batches import batches, of_other_batch
from probe.reading.compare.judging.updates import enters_equal, judge_numbers
from probe.reading.compare.judging.verdicts import Slot
from tests.reading.builders import tensor, value


def number(a, b, place="kwargs.learning_rate"):
    (slot,) = judge_numbers([Slot(place, True, a, b, UNKNOWN, "argument")])
    return slot.verdict


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (0.1, 0.1, ""),
        (0.1, 0.2, "differs"),
        (0.1, 0.1 * (1 + 1e-7), ""),
        (0.1, 0.1 * (1 + 1e-5), "differs"),
        (1e-8, 2e-8, "differs"),
        (1e6, 1e6 + 0.5, ""),
        (0.0, 1e-9, "differs"),
        (-0.1, 0.1, "differs"),
    ],
)
def test_numbers_differ_by_their_ratio(a, b, said):
    assert number(value(a), value(b)) == number(value(b), value(a)) == said


def test_a_number_on_the_device_is_one_too():
    assert number(value(0.5), tensor(Max=0.5, shape=[])) == ""
    assert number(value(0.5), tensor(Max=0.6, shape=[1])) == "differs"


def test_other_places_and_words_are_left_alone():
    assert number(value("a"), value("b")) == ""
    assert number(value(1.0), value(2.0), "input.1") == "argument"


def gradients(*verdicts):
    return [
        Slot(f"input.0.{place}", True, None, None, UNKNOWN, verdict)
        for place, verdict in enumerate(verdicts)
    ]


@pytest.mark.parametrize(
    ("verdicts", "equal"),
    [
        (("same", "close"), True),
        ((), False),
        (("same", "differs"), False),
        (("same", "unknown"), False),
        (("one side",), False),
    ],
)
def test_gradients_that_enter_are_known_to_agree(verdicts, equal):
    other = Slot("parameters.moment1.w", True, None, None, APART, "differs")
    assert enters_equal([*gradients(*verdicts), other]) is equal


def shapes(a, b, verdict="shape", is_input=True):
    return [[Slot("input.0", is_input, tensor(shape=a), tensor(shape=b), APART, verdict)]]


@pytest.mark.parametrize(
    ("slots", "rows"),
    [
        (shapes([8, 3], [4, 3]), (8, 4)),
        (shapes([4, 3], [8, 3]), (4, 8)),
        (shapes([8, 3], [3, 3]), (0, 0)),
        (shapes([8, 3], [4, 5]), (0, 0)),
        (shapes([8, 3], [4, 3], is_input=False), (0, 0)),
        (shapes([8, 3], [0, 3]), (0, 0)),
        (shapes([8, 3], [4, 3], "differs"), (0, 0)),
        (shapes(["a"], [4]), (0, 0)),
        ([], (0, 0)),
    ],
)
def test_one_side_divides_the_batch(slots, rows):
    assert batches(slots) == rows


def test_of_another_batch_only_a_parameter_counts():
    places = ("input.0", "output.0", "parameters.weight", "parameters.moving_mean")
    slots = [Slot(place, True, None, None, APART, "differs") for place in places]
    assert [slot.verdict for slot in of_other_batch(slots)] == [
        "other batch",
        "other batch",
        "differs",
        "other batch",
    ]
