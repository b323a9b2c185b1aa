# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls that one side alone has: those that feed each other are one change, and each change is told once."""

from __future__ import annotations

import pytest

from probe.reading.compare.dataflow.alone import alone_with
from probe.reading.compare.origins.beside import changes_beside
from probe.reading.compare.origins.finder import OriginFinder
from probe.reading.compare.origins.harmless import is_harmless
from tests.reading.builders import calls
from tests.reading.compare.graphs import graph_of, origins_of, short

PLAIN = calls("tanh x -> y", "relu y -> z", "sin u -> v")
#: two chains that B alone has; the values behind them are those of A
CHAINS = calls(
    "tanh x -> y",
    "neg y -> p",
    "abs p -> y",
    "relu y -> z",
    "sin u -> v",
    "exp v -> w",
    "log w -> v",
)


def names_of(graph, nodes):
    return [short(graph.name(node)) for node in nodes]


def node_of(graph, name):
    return next(node for node in range(len(graph.pairs)) if short(graph.name(node)) == name)


@pytest.mark.parametrize("sides", [(PLAIN, CHAINS), (CHAINS, PLAIN)])
@pytest.mark.parametrize("name", ["neg.0", "abs.0"])
def test_calls_that_feed_each_other_are_one_change(sides, name):
    graph = graph_of(*sides)
    found = alone_with(graph, node_of(graph, name))
    assert names_of(graph, found) == ["neg.0", "abs.0"]


@pytest.mark.parametrize("sides", [(PLAIN, CHAINS), (CHAINS, PLAIN)])
def test_a_change_is_told_once_and_not_beside_an_origin_of_it(sides):
    graph = graph_of(*sides)
    soft = OriginFinder(graph).soft()
    kept = changes_beside(graph, soft, ())
    assert names_of(graph, [item.node for item in kept]) == ["neg.0", "exp.0"]
    kept = changes_beside(graph, soft, [node_of(graph, "log.0")])
    assert names_of(graph, [item.node for item in kept]) == ["neg.0"]


def test_a_call_is_not_harmless_if_one_that_it_feeds_is_not():
    before = ("tanh x -> y",)
    a = calls(*before, "relu y -> z", "sin z -> v")
    b = calls(*before, "neg y -> p", "abs p -> q", "relu q -> other", "sin other -> w")
    graph = graph_of(a, b)
    assert not is_harmless(graph, node_of(graph, "neg.0"))
    assert not is_harmless(graph, node_of(graph, "abs.0"))


@pytest.mark.parametrize("is_turned", [False, True])
def test_an_input_that_another_api_is_not_given_is_neither_a_batch_nor_a_wiring(is_turned):
    a = calls("tanh x -> y", "minimum y k -> z")
    b = calls("tanh x -> y", "neg y -> w")
    sides = (b, a) if is_turned else (a, b)
    call = "minimum.0" if is_turned else "neg.0"
    assert origins_of(*sides) == [("calls", call, "")]


@pytest.mark.parametrize("is_turned", [False, True])
def test_an_input_that_one_side_gives_as_a_number_is_an_argument(is_turned):
    a = calls("tanh x -> y", "sin y -> k", "mul y k -> z")
    b = calls("tanh x -> y", "sin y -> k", "mul y 2 -> w")
    sides = (b, a) if is_turned else (a, b)
    assert origins_of(*sides) == [("argument", "mul.0", "input.1")]
