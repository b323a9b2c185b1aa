# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls between gradients and optimizer: paired by the parameters whose gradients they are given."""

from __future__ import annotations

import itertools

import pytest

from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.normal_dump import NormalDump
from probe.reading.compare.pairing.reductions import pair_reductions
from tests.reading.builders import calls, dump, forward, named, value

NAMES = ("a", "b", "c")


def gradients(order):
    return {
        f"Cell.{name}.Dense.parameters_grad.0": {"weight": [named(f"g{name}")]} for name in order
    }


def update(order):
    given = {"parameters": [value(f"{name}.weight") for name in order]}
    return {
        "Cell.optimizer.SGD.forward.0": {
            "input_args": [[named(f"r{name}") for name in order]],
            "input_kwargs": given,
            "output": [],
        }
    }


def one_by_one(order):
    """Return the entries of a reduction of each gradient."""
    return {
        **gradients(NAMES),
        **calls(*(f"mul g{name} -> r{name}" for name in order)),
        **update(order),
    }


def at_once(order):
    """Return the entries of one reduction of all gradients."""
    data = calls("Distributed.all_reduce x -> y")
    (name,) = data
    return {
        **gradients(NAMES),
        name: forward([[named(f"g{it}") for it in order]], [named(f"r{it}") for it in order]),
        **update(order),
    }


def paired(a, b):
    dumps = NormalDump(dump(a)), NormalDump(dump(b))
    alignment = Alignment(*dumps)
    pair_reductions(alignment, *dumps)
    return alignment, dumps[1]


@pytest.mark.parametrize("order", list(itertools.permutations(NAMES)))
def test_a_reduction_has_the_partner_of_its_parameter(order):
    alignment, b = paired(one_by_one(NAMES), one_by_one(order))
    for place, name in enumerate(NAMES):
        partner = alignment.b_of[3 + place]
        assert b.data[alignment.flows[1].names[partner]]["input_args"] == [named(f"g{name}")]
        assert alignment.how[3 + place] == ("exact" if partner == 3 + place else "moved")


@pytest.mark.parametrize("order", list(itertools.permutations(NAMES)))
def test_a_list_of_gradients_and_its_results_get_the_order_of_a(order):
    alignment, b = paired(at_once(NAMES), at_once(order))
    assert (
        b.data["Distributed.all_reduce.0.forward"]
        == at_once(NAMES)["Distributed.all_reduce.0.forward"]
    )
    links = alignment.flows[1].links[
        alignment.flows[1].position["Distributed.all_reduce.0.forward"]
    ]
    assert [link.record for link in links] == [named(f"g{name}") for name in NAMES]


def test_lists_of_other_gradients_stay():
    a, b = at_once(NAMES), at_once(("b", "a"))
    before = b["Distributed.all_reduce.0.forward"]
    assert paired(a, b)[1].data["Distributed.all_reduce.0.forward"] == before
