# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls of two frameworks between the pairs found so far: the cheapest pairs, in order."""

from __future__ import annotations

import math

import pytest

from probe.reading.compare.pairing import between
from probe.reading.compare.pairing.between import match_between


def pairs(a, b, b_of, costs):
    """Return the pairs; a cost that is not given is infinite."""
    return list(
        match_between(
            a, b, b_of, lambda side, place: place, lambda i, j: costs.get((i, j), math.inf)
        )
    )


def test_the_cheapest_partner_is_taken():
    assert pairs([0, 1, 2], [0, 1, 2, 3], {0: 0, 2: 3}, {(1, 1): 0.5, (1, 2): 0.1}) == [(1, 2)]


def test_calls_that_cannot_be_one_stay_alone():
    assert pairs([0], [0], {}, {}) == []


def test_two_calls_are_paired_in_order_though_crossed_ones_were_cheaper():
    costs = {(0, 1): 0.0, (1, 0): 0.0, (0, 0): 1.0, (1, 1): 1.0}
    assert pairs([0, 1], [0, 1], {}, costs) == [(0, 0), (1, 1)]


@pytest.mark.parametrize(("pair", "free"), [((1, 0), (0, 1)), ((0, 1), (1, 0))])
def test_a_call_looks_for_no_partner_beyond_a_pair(pair, free):
    """The call before the pair has none to pair with, as the other side begins with the pair; nor has the last one."""
    assert pairs([0, 1], [0, 1], dict([pair]), {free: 0.0}) == []


@pytest.mark.parametrize("few", [40_000, 0])
def test_of_many_calls_those_of_one_name_are_paired_first(monkeypatch, few):
    monkeypatch.setattr(between, "_FEW", few)
    assert pairs([0, 1], [0, 1], {}, {(0, 0): 0.5, (1, 1): 0.5}) == [(0, 0), (1, 1)]
