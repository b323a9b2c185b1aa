# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The operands of a commutative call in the order that they have in A."""

from __future__ import annotations

import pytest

from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.normal_dump import NormalDump
from probe.reading.compare.pairing.operands import order_operands
from tests.reading.builders import calls, dump


def ordered(a, b, md5=False):
    """Return how many calls were exchanged, and the entries of B."""
    dumps = dump(calls(*a, md5=md5)), NormalDump(dump(calls(*b, md5=md5)))
    alignment = Alignment(*dumps)
    return order_operands(alignment, dumps[1], dumps[0]), dumps[1], alignment


@pytest.mark.parametrize("md5", [False, True])
@pytest.mark.parametrize("api", ["add", "mul", "maximum", "Tensor.__and__", "Primitive.Add"])
def test_exchanged_operands_are_put_back(api, md5):
    count, b, alignment = ordered([f"{api} x y -> z"], [f"{api} y x -> z"], md5)
    given = calls("f x y -> z", md5=md5)["Functional.f.0.forward"]
    assert count == 1
    assert next(iter(b.data.values())) == given
    assert [link.record for link in alignment.flows[1].links[0]] == given["input_args"]


@pytest.mark.parametrize(
    "a",
    ["sub x y -> z", "add x y -> z", "add x x -> z", "add x 3 -> z"],
    ids=["other", "same", "equal", "number"],
)
@pytest.mark.parametrize("b", ["sub y x -> z", "add x y -> z"])
def test_others_stay(a, b):
    assert ordered([a], [b])[0] == 0


def test_operands_that_are_exchanged_but_for_noise_are_put_back():
    assert ordered(["add x y -> z"], ["add y~ x~~ -> z"])[0] == 1


def test_operands_that_differ_within_noise_alone_stay():
    assert ordered(["add x x~ -> z"], ["add x~ x~~ -> z"])[0] == 0


def test_operands_of_which_one_is_another_stay():
    assert ordered(["add x y -> z"], ["add y q -> z"])[0] == 0


def test_the_gradients_of_exchanged_operands_are_exchanged_too():
    a, b = ["add x y -> z", "add! gz -> gx gy"], ["add y x -> z", "add! gz -> gy gx"]
    _, dumped, _ = ordered(a, b)
    assert dumped.data == calls(*a)
