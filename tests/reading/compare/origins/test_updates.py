# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Facts about an update that differs: which places are told, and which update lacks a parameter."""

from __future__ import annotations

import pytest

from probe.reading.compare.distances.distance import APART
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.compare.origins.finder import OriginFinder
from probe.reading.compare.origins.updates import first_of_kinds, is_missing, without_explained
from tests.reading.builders import forward, named, value
from tests.reading.compare.graphs import graph_of


def slot(place, verdict="differs"):
    return Slot(place, True, None, None, APART, verdict)


def test_each_number_is_told_and_of_all_else_the_first():
    places = [
        "input.0.a", "kwargs.learning_rate", "kwargs.weight_decay.a", "kwargs.weight_decay.b", "input.0.b",
        "output.0.a",
    ]  # fmt: skip
    found = [item.place for item in first_of_kinds([slot(place) for place in places])]
    assert found == ["input.0.a", "kwargs.learning_rate", "kwargs.weight_decay.a"]


def test_a_result_follows_from_a_number_of_its_parameter_or_of_all():
    results = ["output.0.fc.weight", "output.0.fc.bias"]
    for numbers, left in (
        (["kwargs.learning_rate"], []),
        (["kwargs.weight_decay.fc.weight"], ["output.0.fc.bias"]),
        (["kwargs.weight_decay.fc"], results),
        ([], results),
    ):
        found = without_explained([slot(place) for place in [*numbers, *results]])
        assert [item.place for item in found] == [*numbers, *left]
    others = [
        "input.0.fc.weight",
        "parameters.moments.fc.weight",
    ]  # they are there before the update
    kept = without_explained([slot(place) for place in ["kwargs.lr", *others]])
    assert [item.place for item in kept] == ["kwargs.lr", *others]


def test_each_missing_parameter_is_told():
    slots = [
        slot("input.0.a", "one side"),
        slot("input.0.b", "one side"),
        slot("output.0.a"),
        slot("output.0.b"),
    ]
    assert [item.place for item in first_of_kinds(slots)] == [
        "input.0.a",
        "input.0.b",
        "output.0.a",
    ]
    assert [is_missing(item) for item in slots] == [True, True, False, False]
    assert not is_missing(slot("input.0.a"))


CELL, TAKEN = "Cell.fc.Dense.forward.0", "Cell.fc.Dense.parameters_grad.0"


@pytest.mark.parametrize("lacks", ["fc.w", "fc.v"])
def test_the_update_that_lacks_the_parameter_without_a_gradient_is_named(lacks):
    """Of two parameters of the Cell one has no gradient in B, and the optimizer of B lacks it."""
    names = ("fc.w", "fc.v")

    def data(own):
        given = {"parameters": [value(name) for name in own]}
        return {
            CELL: {
                **forward([named("x")], [named("y")]),
                "parameters": {"w": named("w"), "v": named("v")},
            },
            "Functional.f.0.forward": forward([named("y")], [named("z")]),
            "Functional.f.0.backward": {"input": [named("gz")], "output": [named("gy")]},
            TAKEN: {name[3:]: [named(f"g{name}")] for name in own},
            "Cell.optimizer.SGD.forward.0": {
                "input_args": [[named(f"g{name}") for name in own]],
                "input_kwargs": given,
                "output": [{name: named(f"r{name}") for name in own}],
            },
        }

    graph = graph_of(data(names), data([name for name in names if name != lacks]))
    found = OriginFinder(graph).origins()[0]
    assert (found.kind, graph.name(found.node), found.place) == (
        "optimizer",
        "Cell.optimizer.SGD.forward.0",
        f"input.0.{lacks}",
    )
