# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A gradient that one side lacks is followed to the call or the parameter at which it ends."""

from __future__ import annotations

import pytest

from probe.reading.compare.origins.finder import OriginFinder
from probe.reading.compare.origins.gradient_end import end_of, side_without
from tests.reading.builders import calls, forward, named
from tests.reading.compare.graphs import graph_of, short

CELL = "Cell.fc.Dense.forward.0"


def slot_of(graph, name):
    """Return the node of a name, and its place that has a verdict of one side."""
    node = next(node for node in range(len(graph.pairs)) if graph.name(node) == name)
    return node, next((slot for slot in graph.slots[node] if slot.verdict == "one side"), None)


@pytest.mark.parametrize("swapped", [False, True])
def test_the_side_that_lacks_the_gradient(swapped):
    lines = ("relu x -> a", "add a m -> b")
    sides = calls(*lines, "add! gb -> ga gm"), calls(*lines, "add! gb -> ga")
    graph = graph_of(*(sides[::-1] if swapped else sides))
    node, slot = slot_of(graph, "Functional.add.0.backward")
    assert slot.place == "output.1"
    assert side_without(graph, node, slot) == (0 if swapped else 1)


def test_both_sides_have_it():
    lines = ("add a m -> b", "add! gb -> ga gm")
    graph = graph_of(calls(*lines), calls(*lines))
    assert side_without(graph, 1, graph.slots[1][0]) is None


@pytest.mark.parametrize("between", [0, 1, 2])
def test_the_call_that_one_side_has_alone_is_the_end(between):
    """The way leads through the calls that lack their backward too."""
    steps = [f"exp v{place} -> v{place + 1}" for place in range(between)]
    product = f"mul v{between} m -> y"
    a = calls("relu x -> v0", *steps, product, f"mul! gy -> g{between} gm")
    b = calls(
        "relu x -> v0", "stop_gradient v0 -> v0", *steps, product, f"mul! gy -> g{between} gm"
    )
    for place in range(between):
        a[f"Functional.exp.{place}.backward"] = {"input": [named("g")], "output": [named("g")]}
    b["Functional.mul.0.backward"]["output"][0] = None
    graph = graph_of(a, b)
    node, slot = slot_of(graph, "Functional.mul.0.backward")
    end, leaf = end_of(graph, node, slot)
    assert (short(graph.name(end)), leaf) == ("stop_gradient.0", "")
    first = OriginFinder(graph).origins()[0]
    assert (first.kind, first.node) == ("calls", end)


def frozen(has_gradient, *parameters):
    """Return the entries of a product of parameters, with or without their gradient."""
    words = " ".join(parameters)
    data = calls(f"mul {words} -> w", "matmul x w -> y", "matmul! gy -> gx gw", "mul! gw -> gv")
    if not has_gradient:
        data["Functional.matmul.0.backward"]["output"][1] = None
        del data["Functional.mul.0.backward"]
    kept = {f"p{place}": named(word) for place, word in enumerate(parameters)}
    return {**data, CELL: {**forward([named("x")], [named("y")]), "parameters": kept}}


TREE = {f"Functional.{name}.0.forward": CELL for name in ("mul", "matmul")} | {CELL: None}


def end_of_product(*parameters):
    graph = graph_of(frozen(True, *parameters), frozen(False, *parameters), (TREE, TREE))
    node, slot = slot_of(graph, "Functional.matmul.0.backward")
    end, leaf = end_of(graph, node, slot)
    return (short(graph.name(end)) if end >= 0 else "", leaf)


def test_one_parameter_at_the_end_is_named_where_it_is_used():
    assert end_of_product("u") == ("mul.0", "input.0")


def test_of_two_parameters_nothing_tells_which_is_frozen():
    assert end_of_product("u", "v") == ("", "")
