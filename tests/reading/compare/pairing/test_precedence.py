# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One of two dumps comes first by what is in it, and both orders find the same pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from probe.reading.compare.judging.judged_pairs import JudgedPairs, Options
from probe.reading.compare.pairing.partners import NONE
from probe.reading.compare.pairing.precedence import comes_first
from tests.reading.builders import calls, dump, forward, record, tensor
from tests.reading.compare.graphs import graph_of

FEWER = calls("relu x -> y")
MORE = calls("relu x -> y", "tanh y -> z")
OTHER_NAME = calls("abs x -> y")
OTHER_VALUE = calls("relu x -> v")
NAN = {**FEWER, "Functional.f.0.forward": forward([tensor(Mean=math.nan)], [])}
NAN_AND_MORE = {**NAN, "Functional.g.0.forward": forward([tensor(Mean=2.0)], [])}
NAN_AND_LESS = {**NAN, "Functional.g.0.forward": forward([tensor(Mean=1.0)], [])}


@pytest.mark.parametrize(
    ("one", "other"),
    [(FEWER, MORE), (OTHER_NAME, FEWER), (FEWER, OTHER_VALUE), (NAN_AND_MORE, NAN_AND_LESS)],
)
def test_one_of_two_comes_first_in_both_orders(one, other):
    left, right = dump(one), dump(other)
    assert comes_first(left, right) != comes_first(right, left)


@pytest.mark.parametrize("data", [FEWER, NAN])
def test_equal_dumps_have_no_order(data):
    assert not comes_first(dump(data), dump(data))


def test_fewer_calls_come_first():
    assert comes_first(dump(FEWER), dump(MORE))
    assert not comes_first(dump(MORE), dump(FEWER))


#: keys that one walk pairs in one way, and the walk from the other side in another way
CROSSED = (
    calls("relu a -> b", "abs c -> d", "relu e -> f"),
    calls("abs g -> h", "relu i -> j", "abs k -> l"),
)


@pytest.mark.parametrize("sides", [(FEWER, MORE), (MORE, FEWER), CROSSED, CROSSED[::-1]])
def test_both_orders_have_the_same_pairs_in_the_same_order(sides):
    forth = JudgedPairs(*map(dump, sides), Options())
    back = JudgedPairs(*map(dump, sides[::-1]), Options())
    assert [pair.places[::-1] for pair in back.pairs] == [pair.places for pair in forth.pairs]
    assert [pair.how for pair in back.pairs] == [pair.how for pair in forth.pairs]
    assert back.alignment.leading == 1 - forth.alignment.leading


def test_pairs_are_taken_apart_and_found_after_they_were_turned():
    judged = JudgedPairs(dump(MORE), dump(FEWER), Options())
    assert [pair.places for pair in judged.pairs] == [(0, 0), (1, NONE)]
    judged.separate([0])
    assert [pair.places for pair in judged.pairs] == [(0, NONE), (1, NONE), (NONE, 0)]
    assert not judged.alignment.b_of
    assert not judged.alignment.a_of


def test_a_map_of_the_user_keeps_its_order():
    judged = JudgedPairs(dump(MORE), dump(FEWER), Options({"relu": "relu"}))
    assert judged.alignment.leading == 1


@pytest.mark.parametrize("data", [(FEWER, MORE), (MORE, FEWER)])
def test_a_node_is_looked_at_by_one_dump_and_named_by_that_of_b(data):
    graph = graph_of(*data)
    leading = data.index(MORE)
    assert graph.side(0) == leading
    assert graph.shown_side(0) == 1
    alone = graph.at[leading][1]
    assert graph.side(alone) == graph.shown_side(alone) == leading
    assert graph.names(alone)[1 - leading] == ""


def test_the_records_of_an_update_stay_with_their_side():
    # the optimizer of B lacks a parameter, so that its dump has as many calls and comes first or last by values
    def update(*names):
        given = [record(np.full((2,), len(name))) for name in names]
        words = [{"type": "str", "value": name} for name in names]
        return {
            "Cell.optimizer.SGD.forward.0": {
                "input_args": [given],
                "input_kwargs": {"parameters": words},
                "output": [],
            }
        }

    for sides in ((update("w", "bb"), update("bb")), (update("bb"), update("w", "bb"))):
        judged = JudgedPairs(*map(dump, sides), Options())
        assert judged.updates == {0}
        missing = [slot for slot in judged.slots[0] if slot.verdict == "one side"]
        assert [slot.place for slot in missing] == ["input.0.w"]
