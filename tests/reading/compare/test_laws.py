# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Laws of ``probe compare`` over random graphs of calls: the answer is never empty, and harmless changes are none."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import probe
from tests.reading.builders import forward, record, value, write

pytestmark = pytest.mark.medium

LAW = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
APIS = ("tanh", "add", "mul", "matmul", "softmax", "gelu", "transpose")


#: a relative difference within the tolerance of float32, and above the rounding of a sum
_SMALL = 3e-6


def _record(array, md5):
    return record(array, md5, dtype="Float16" if array.dtype.char == "e" else "Float32")


class Graph:
    """A random graph of calls: each has an API, a plain argument, and inputs that earlier calls or nothing made.

    Args:
        nodes: (API, argument, places of the inputs) of each call; a place below zero is a value from outside.
        order: the order in which the calls run.
    """

    def __init__(self, nodes, order=None):
        self.nodes, self.order = nodes, order or list(range(len(nodes)))

    def entries(self, md5, faults=(), scale=1.5, argument=None, change=("", -1)):
        """Return the entries: a call in ``faults`` gives another output for the same inputs.

        ``change`` is a kind and a call: its argument, its API or the dtype of its output is another one, and its output
        differs by less than the tolerance.
        """
        made, counts, data = {}, {}, {}
        for number in self.order:
            api, given, inputs = self.nodes[number]
            values = [
                made[i] if i >= 0 else np.random.RandomState(-i).randn(3, 4).astype("f")
                for i in inputs
            ]
            own = np.random.RandomState(1000 + number).randn(3, 4)
            shown = argument if number in faults and argument is not None else given
            result = (
                sum(np.tanh(item) * (k + 1) for k, item in enumerate(values)) * (1 + shown / 10)
                + own
            )
            kind = change[0] if number == change[1] else ""
            result = result * (
                1 + _SMALL if kind else scale if number in faults and argument is None else 1
            )
            made[number] = result.astype("e" if kind == "dtype" else "f")
            shown, api = 9 if kind == "argument" else shown, "exp2" if kind == "call" else api
            count = counts[api] = counts.get(api, -1) + 1
            arguments = [*(_record(item, md5) for item in values), value(shown)]
            data[f"Functional.{api}.{count}.forward"] = forward(
                arguments, [_record(made[number], md5)]
            )
        return data

    def exchanged(self, place):
        """Return the graph with two neighbours in the other order, or None where one needs the other."""
        if place + 1 >= len(self.order):
            return None
        first, second = self.order[place : place + 2]
        if first in self.nodes[second][2] or self.nodes[first][0] == self.nodes[second][0]:
            return None
        order = list(self.order)
        order[place : place + 2] = second, first
        return Graph(self.nodes, order)


@st.composite
def graphs(draw):
    nodes = []
    for number in range(draw(st.integers(3, 9))):
        sources = st.integers(-3, number - 1 if number else -1)
        inputs = tuple(draw(st.lists(sources, min_size=1, max_size=2)))
        nodes.append((draw(st.sampled_from(APIS)), draw(st.integers(1, 3)), inputs))
    return Graph(nodes)


def compare(a, b):
    """Write two dumps and compare them."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "a" / "step0" / "rank0", a)
        write(Path(folder) / "b" / "step0" / "rank0", b)
        return probe.compare(f"{folder}/a", f"{folder}/b")


@LAW
@given(graphs(), st.booleans(), st.randoms(use_true_random=False), st.integers(1, 4))
def test_exit_1_names_an_origin(graph, md5, random, count):
    """Whatever is written into B: noise below the tolerance, other numbers, missing values and calls."""
    a = graph.entries(md5)
    b = copy.deepcopy(a)
    for _ in range(count):
        entry = b[random.choice(list(b))]
        part = entry[random.choice(["input_args", "output"])]
        place = random.randrange(len(part))
        kind = random.choice(["much", "little", "none", "call"])
        if kind == "call" and len(b) > 2:
            del b[random.choice(list(b))]
        elif kind == "none":
            part[place] = None
        elif "Norm" in part[place] if part[place] else False:
            factor = 1.5 if kind == "much" else 1 + 1e-5 * random.random()
            part[place].update(Norm=part[place]["Norm"] * factor, Max=part[place]["Max"] * factor)
            if md5:
                part[place]["md5"] = f"{random.randrange(1 << 32):08x}"
    comparison = compare(a, b)
    assert comparison.status != 1 or comparison.origins, comparison
    assert all(origin.why for origin in comparison.origins if origin.kind != "calls"), (
        comparison.origins
    )


@LAW
@given(graphs(), st.booleans())
def test_equal_bits_name_nothing(graph, md5):
    comparison = compare(graph.entries(md5), graph.entries(md5))
    assert comparison.ok
    assert not comparison.origins


@LAW
@given(graphs(), st.booleans(), st.integers(0, 7))
def test_another_order_of_independent_calls_names_nothing(graph, md5, place):
    other = graph.exchanged(place)
    if other is not None:
        comparison = compare(graph.entries(md5), other.entries(md5))
        assert comparison.ok, comparison


@LAW
@given(graphs(), st.booleans(), st.integers(0, 7))
def test_an_unused_call_names_nothing_and_hides_nothing(graph, md5, place):
    def with_call(data):
        items = list(data.items())
        extra = record(np.random.RandomState(77).randn(3, 4).astype("f"), md5)
        items.insert(
            place % len(items), ("Functional.isfinite.0.forward", forward([extra], [extra]))
        )
        return dict(items)

    assert compare(graph.entries(md5), with_call(graph.entries(md5))).ok
    fault = place % len(graph.nodes)
    first = compare(graph.entries(md5), with_call(graph.entries(md5, [fault]))).first
    assert first.name == list(graph.entries(md5))[fault]


@LAW
@given(graphs(), st.booleans(), st.integers(0, 7), st.booleans())
def test_a_changed_call_is_named_and_both_directions_name_the_same(graph, md5, place, by_argument):
    fault = place % len(graph.nodes)
    a = graph.entries(md5)
    b = graph.entries(md5, [fault], argument=9 if by_argument else None)
    forth, back = compare(a, b), compare(b, a)
    assert forth.first.name == back.first.name == list(a)[fault]
    assert forth.first.kind == back.first.kind == ("argument" if by_argument else "computation")


@LAW
@given(graphs(), st.booleans(), st.integers(0, 7), st.sampled_from(["argument", "call", "dtype"]))
def test_a_change_is_the_first_origin_however_small_its_effect(graph, md5, place, kind):
    fault = place % len(graph.nodes)
    a, b = graph.entries(md5), graph.entries(md5, change=(kind, fault))
    for left, right in ((a, b), (b, a)):
        first = compare(left, right).first
        assert first is not None
        assert first.name in (list(left)[fault], list(right)[fault])
        assert first.kind == ("calls" if kind == "call" else "argument")


@pytest.mark.parametrize("md5", [False, True])
def test_other_numbers_in_the_names_change_nothing(md5):
    graph = Graph([("tanh", 1, (-1,)), ("gelu", 1, (0,)), ("tanh", 2, (1,)), ("gelu", 3, (2,))])
    a = graph.entries(md5)
    b = {name.replace(".1.", ".11.").replace(".0.", ".10."): entry for name, entry in a.items()}
    assert compare(a, b).ok
