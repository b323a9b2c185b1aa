# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Replicas or parts of a parameter: each kind of evidence, and none."""

from __future__ import annotations

import pytest

from probe.series.replicas import Held, judge


def held(*values, **evidence):
    """Return the parameter on ranks 0, 1, ...; ``evidence`` has a list with the item of each rank, or one for all."""
    found = {}
    for rank, value in enumerate(values):
        own = {
            key: item[rank] if isinstance(item, list) else item for key, item in evidence.items()
        }
        found[rank] = Held(value, **{"shape": (4, 4), "is_telling": True, **own})
    return found


def apart(judged):
    return [(item.groups, item.why) for item in judged.apart]


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        ({"reduced": "world"}, "reduced"),
        ({"gradient": "g"}, "gradient"),
        ({"place": ()}, "placed"),
        ({"gradient": "g", "is_gathered": True}, "gradient"),
    ],
)
def test_two_ranks_that_evidence_links_must_agree(evidence, why):
    judged = judge(held("a", "b", **evidence), {}, False)
    assert apart(judged) == [([[0], [1]], why)]
    assert (judged.unknown, judged.is_split) == ([], False)
    assert judge(held("a", "a", **evidence), {}, False).apart == []


@pytest.mark.parametrize(
    "evidence",
    [
        {"place": [("Shard(0)", 0), ("Shard(0)", 1)]},
        {"shape": [(4, 4), (2, 4)]},
        {"is_gathered": True},
        {"gradient": ["g", "h"], "is_gathered": True},
    ],
)
def test_parts_are_not_accused(evidence):
    judged = judge(held("a", "b", **evidence), {}, False)
    assert (judged.apart, judged.unknown, judged.is_split) == ([], [], True)


@pytest.mark.parametrize(
    "evidence", [{}, {"gradient": ["g", "h"]}, {"reduced": ["0", "1"]}, {"gradient": ["g", None]}]
)
def test_without_evidence_it_cannot_be_known(evidence):
    judged = judge(held("a", "b", **evidence), {}, False)
    assert (judged.apart, judged.unknown) == ([], [[0], [1]])
    assert judge(held("a", "b", **evidence), {}, are_parts=True).is_split


def test_values_of_an_earlier_step_are_evidence():
    judged = judge(held("a", "b", gradient=["g", "h"]), {0: "c", 1: "c"}, False)
    assert apart(judged) == [([[0], [1]], "before")]
    assert judge(held("a", "b", gradient=["g", "h"]), {0: "c", 1: "d"}, False).unknown


@pytest.mark.parametrize(
    ("values", "is_telling", "is_found"),
    [
        ("aab", True, True),  # 2 of 3
        ("ab", True, False),  # 1 of 2
        ("aabb", True, False),  # 2 of 4: a layout of two parts is so
        ("aaab", True, True),  # 3 of 4
        ("aaab", False, False),  # zeros are equal by themselves
        ("aabc", True, True),
    ],
)
def test_most_ranks_with_one_telling_value_are_right(values, is_telling, is_found):
    judged = judge(held(*values, is_telling=is_telling), {}, False)
    assert bool(judged.apart) == is_found
    assert bool(judged.unknown) != is_found


def test_a_world_that_is_split_in_part_is_judged_by_each_group():
    evidence = {"reduced": ["0,2", "1,3", "0,2", "1,3"]}
    assert judge(held("a", "b", "a", "b", **evidence), {}, True).is_split
    judged = judge(held("a", "b", "a", "c", **evidence), {}, True)
    assert apart(judged) == [([[1], [3]], "reduced")]
    assert judge(held("a", "b", "a", "b", **evidence), {}, False).unknown == [[0, 2], [1, 3]]


def test_a_value_that_is_not_known_is_not_compared():
    assert judge(held("a", None, reduced="world"), {}, False).apart == []
