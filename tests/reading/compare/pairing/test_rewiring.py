# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls that their order alone has paired wrongly are paired by their inputs."""

from __future__ import annotations

import copy

import pytest

from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.rewiring import Rewiring
from tests.reading.builders import calls, dump, value

A = ("proj x -> q", "proj x -> k", "norm q -> nq", "norm k -> nk", "matmul nq nk -> s")
#: the same, the two branches in the other order
B = ("proj x -> k", "proj x -> q", "norm k -> nk", "norm q -> nq", "matmul nq nk -> s")


def rewired(a, b, change=lambda data: None):
    datas = calls(*a), calls(*b)
    change(datas[1])
    dumps = [dump(data) for data in datas]
    alignment = Alignment(*dumps)
    return Rewiring(alignment).run(), alignment


def test_equal_wiring_is_left_as_it_is():
    count, alignment = rewired(A, A)
    assert (count, set(alignment.how.values())) == (0, {"exact"})


def test_calls_whose_inputs_come_from_no_partners_are_paired_anew():
    a = ("relu x -> r", "tanh x -> t", "norm r -> nr", "norm t -> nt")
    count, alignment = rewired(a, ("relu x -> r", "tanh x -> t", "norm t -> nt", "norm r -> nr"))
    assert count == 1
    assert alignment.b_of == {0: 0, 1: 1, 2: 3, 3: 2}
    assert (alignment.how[2], alignment.how[0]) == ("moved", "exact")


def test_the_backwards_follow():
    a = ("relu x -> r", "tanh x -> t", "norm r -> nr", "norm t -> nt")
    b = ("relu x -> r", "tanh x -> t", "norm t -> nt", "norm r -> nr")
    back = ("norm! g -> h",)
    _, alignment = rewired((*a, *back), (*b, *back))
    assert 4 not in alignment.b_of  # its forward's partner has no backward


def test_where_nothing_becomes_better_all_stays():
    """The first call of B is given something from outside: no other pairing gives it a partner's output."""
    a = ("relu x -> r", "norm r -> n", "exp n -> e")
    count, alignment = rewired(a, ("relu x -> r", "norm q -> n", "exp n -> e"))
    assert (count, set(alignment.how.values())) == (0, {"exact"})


def test_as_many_wrong_inputs_are_no_reason_to_pair_anew():
    """relu stands before exp in A, and behind it in B; the calls behind take their inputs crosswise either way."""
    a = ("relu x -> r", "exp x -> e", "norm r 1 -> n1", "norm e 2 -> n2")
    b = ("relu x -> r", "exp x -> e", "norm e 1 -> n1", "norm r 2 -> n2")
    count, alignment = rewired(a, b)
    assert (count, set(alignment.how.values())) == (0, {"exact"})


@pytest.mark.parametrize("argument", [0, 1])
def test_plain_arguments_tell_calls_apart(argument):
    a = ("relu x -> r", "tanh x -> t", "norm r 0 -> nr", "norm t 0 -> nt")

    def change(data):
        data["Functional.norm.0.forward"]["input_args"][1] = copy.deepcopy(value(argument))

    b = ("relu x -> r", "tanh x -> t", "norm t 0 -> nt", "norm r 0 -> nr")
    assert rewired(a, b, change)[1].b_of[3] == 2
