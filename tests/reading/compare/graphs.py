# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The dataflow of two dumps that tests make by hand."""

from __future__ import annotations

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.judged_pairs import JudgedPairs, Options
from probe.reading.compare.origins.finder import OriginFinder
from tests.reading.builders import dump


def graph_of(a, b, trees=({}, {}), **options):
    """Return the dataflow of two dumps, given by their entries."""
    dumps = dump(a, trees[0]), dump(b, trees[1])
    pairs = JudgedPairs(*dumps, Options(**options))
    return Graph(pairs)


def named_nodes(graph, flags):
    """Return the short names of the nodes that have a flag."""
    return [short(graph.name(node)) for node, flag in enumerate(flags) if flag]


def short(name):
    """Return a name without the words that the names of functions share."""
    return name.replace("Functional.", "").removesuffix(".forward")


def origins_of(a, b, trees=({}, {})):
    """Return (kind, call, place) of each origin."""
    graph = graph_of(a, b, trees)
    return [
        (item.kind, short(graph.name(item.node)), item.place)
        for item in OriginFinder(graph).origins()
    ]
