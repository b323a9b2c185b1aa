# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A Cell that is called several times in a step, in another order on the other side."""

from __future__ import annotations

import pytest

from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.crossed import crossed_cells
from tests.reading.builders import calls, dump

LINE = ["File /me/net.py, line 7, in construct, \n y = self.block(x)"]


def crossed(a, b, lines=(LINE, LINE), key="Cell.block.Block"):
    stacks = ({f"{key}.forward.{number}": line for number in range(9)} for line in lines)
    dumps = tuple(dump(data, stacks=stack) for data, stack in zip((a, b), stacks))
    return crossed_cells((dumps[0].flow, dumps[1].flow), dumps)


def block(*inputs):
    return calls(*(f"Cell.block.Block {given} -> y{given}" for given in inputs))


@pytest.mark.parametrize("order", [(1, 0), (2, 0, 1), (1, 2, 0)])
def test_calls_are_partners_by_their_inputs(order):
    a, b = (
        block(*(f"x{place}" for place in range(len(order)))),
        block(*(f"x{place}" for place in order)),
    )
    assert sorted(crossed(a, b)) == [(place, order.index(place)) for place in range(len(order))]


def test_the_pairs_of_the_whole_are_moved_ones():
    a, b = block("x", "y"), block("y", "x")
    alignment = Alignment(
        dump(a, stacks=dict.fromkeys(a, LINE)), dump(b, stacks=dict.fromkeys(b, LINE))
    )
    assert (alignment.b_of, set(alignment.how.values())) == ({0: 1, 1: 0}, {"moved"})


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (("x", "y"), ("x", "y")),  # in the same order
        (("x",), ("x",)),  # once
        (("x", "y"), ("y", "z")),  # a call with other inputs
        (("x", "x"), ("x", "x")),  # inputs that do not tell them apart
        (("x", "y"), ("y", "x", "z")),  # one call more
    ],
)
def test_other_calls_keep_their_numbers(a, b):
    assert crossed(block(*a), block(*b)) == []


def test_the_same_lines_that_are_given_other_inputs_are_no_other_order():
    other = ["File /me/net.py, line 8, in construct, \n z = self.block(y)"]
    a, b = block("x", "y"), block("y", "x")
    stacks = {"Cell.block.Block.forward.0": LINE, "Cell.block.Block.forward.1": other}
    dumps = dump(a, stacks=stacks), dump(b, stacks=stacks)
    assert crossed_cells((dumps[0].flow, dumps[1].flow), dumps) == []
