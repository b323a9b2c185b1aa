# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Who made what on both sides, which calls follow from a difference, and which changes alone change no value."""

from __future__ import annotations

import pytest

from probe.reading.compare.pairing.partners import NONE
from tests.reading.builders import calls, forward, named, tensor, value
from tests.reading.compare.graphs import graph_of, named_nodes

CHAIN = ("relu x -> a", "exp a -> b", "tanh b -> c")
#: the same with another result of the first call
FAULTY = ("relu x -> a'", "exp a' -> b'", "tanh b' -> c'")


def test_equal_dumps_have_nothing_that_is_off():
    graph = graph_of(calls(*CHAIN), calls(*CHAIN))
    assert not any(graph.off) and not any(graph.tainted)
    assert set(graph.soft) == {NONE}


def test_all_that_follows_from_a_difference_is_tainted():
    graph = graph_of(calls(*CHAIN), calls(*FAULTY))
    assert named_nodes(graph, graph.off) == ["relu.0", "exp.0", "tanh.0"]
    assert named_nodes(graph, graph.tainted) == ["exp.0", "tanh.0"]


def test_taint_passes_through_equal_numbers_and_ends_at_equal_bits():
    """exp gives the same again; tanh, given that, another result."""
    a = ("relu x -> a", "exp a -> b", "tanh b -> c")
    b = ("relu x -> a'", "exp a' -> b", "tanh b -> c'")
    for md5, tainted in ((False, ["exp.0", "tanh.0"]), (True, ["exp.0"])):
        graph = graph_of(calls(*a, md5=md5), calls(*b, md5=md5))
        assert named_nodes(graph, graph.tainted) == tainted


@pytest.mark.parametrize(
    ("dtype", "ends"), [("Int32", True), ("UInt8", True), ("Bool", False), ("Float32", False)]
)
def test_taint_ends_at_equal_integers(dtype, ends):
    def data(first, last):
        whole = named("i") | {"dtype": dtype}
        return {
            "Functional.relu.0.forward": forward([named("x")], [named(first)]),
            "Functional.argmax.0.forward": forward([named(first)], [whole]),
            "Functional.take.0.forward": forward([whole], [named(last)]),
        }

    graph = graph_of(data("a", "c"), data("a'", "c'"))
    assert ("take.0" in named_nodes(graph, graph.tainted)) is not ends


def test_the_calls_that_made_an_input():
    graph = graph_of(
        calls("relu x -> a", "exp x -> b", "add a b -> c"),
        calls("exp x -> b", "relu x -> a", "add a b -> c"),
    )
    (add,) = [node for node in range(3) if graph.name(node) == "Functional.add.0.forward"]
    names = [
        [graph.name(node) for node in graph.producer_nodes(add, f"input.{place}")]
        for place in (0, 1)
    ]
    assert names == [["Functional.relu.0.forward"] * 2, ["Functional.exp.0.forward"] * 2]
    assert graph.producer_nodes(0, "input.0") == (NONE, NONE)
    assert graph.is_outside(0, "input.0") and not graph.is_outside(add, "input.0")


def test_a_view_that_was_not_recorded_has_the_root_of_what_it_views():
    lines = ("relu x -> a", "reshape a -> a", "exp a -> b")
    graph = graph_of(calls(*lines), calls(*lines))
    assert graph.producer_nodes(2, "input.0") == (1, 1)
    assert graph.producer_nodes(2, "input.0", first=True) == (0, 0)


@pytest.mark.parametrize(
    ("made", "used", "other"),
    [
        (("p q", "p q"), ("p", "q"), True),
        (("p q", "p q"), ("p", "p"), False),
        (("p p q", "p q q"), ("p", "p"), False),  # the first is p on both sides
        (("p p q", "q p p"), ("q", "q"), True),  # the last in A, the first in B
    ],
)
def test_the_sides_take_an_input_from_other_outputs_of_a_call(made, used, other):
    graph = graph_of(
        *(calls(f"split x -> {words}", f"exp {word} -> e") for words, word in zip(made, used))
    )
    assert graph.uses_other_output(1, "input.0") is other


def test_inputs_that_come_from_no_partners_are_other_wiring():
    a = calls("relu x -> a", "exp x -> b", "tanh a -> c")
    b = calls("relu x -> a", "exp x -> b", "tanh b -> c'")
    graph = graph_of(a, b)
    assert graph.wirings(2) == ["input.0"]
    assert graph.wirings(1) == []
    assert graph.soft[2] == 2


def test_a_call_more_or_another_argument_is_soft_and_so_is_what_follows():
    graph = graph_of(calls("relu x 1 -> a", "exp a -> b"), calls("relu x 2 -> a'", "exp a' -> b'"))
    assert graph.soft == [0, 0]
    graph = graph_of(calls("relu x -> a"), calls("relu x -> a", "exp a -> b"))
    assert graph.soft == [NONE, 1]


def test_a_soft_change_ends_where_the_value_is_surely_the_same():
    graph = graph_of(
        calls("relu x 1 -> a", "exp a -> b", md5=True),
        calls("relu x 2 -> a", "exp a -> b", md5=True),
    )
    assert graph.soft == [0, NONE]


def test_a_transposition_more_may_permute_what_looks_the_same():
    def data(*axes):
        return calls(f"transpose x {' '.join(axes)} -> t", "exp t -> e")

    graph = graph_of(data("0", "1"), data("1", "0"))
    assert graph.soft == [0, 0]


def test_a_backward_that_one_side_lacks_is_off():
    forwards = ("relu x -> a", "exp a -> b")
    graph = graph_of(
        calls(*forwards, "exp! gb -> ga", "relu! ga -> gx"), calls(*forwards, "exp! gb -> ga")
    )
    assert [graph.name(node) for node, off in enumerate(graph.off) if off] == [
        "Functional.relu.0.backward"
    ]


def test_a_backward_of_a_call_that_the_other_side_lacks_is_none_that_is_lost():
    graph = graph_of(calls("relu x -> a", "exp a -> b", "exp! gb -> ga"), calls("relu x -> a"))
    assert not any(graph.off)


def test_the_gradient_of_a_call_follows_from_those_of_its_users():
    lines = ("relu x -> a", "exp a -> b", "exp! gb -> ga", "relu! ga -> gx")
    other = (*lines[:2], "exp! gb -> ga'", "relu! ga' -> gx'")
    graph = graph_of(calls(*lines), calls(*other))
    assert [graph.name(node)[11:] for node, it in enumerate(graph.tainted) if it] == [
        "relu.0.backward"
    ]


def test_a_parameter_that_differs_after_an_update_follows_from_it():
    def data(rate, weight):
        given = {"parameters": [value("w")], "learning_rate": value(rate)}
        return {
            **calls("relu x -> a", "relu! ga -> gx"),
            "Cell.optimizer.SGD.forward.0": {
                "input_args": [[named("g")]],
                "input_kwargs": given,
                "output": [],
            },
            "Cell.fc.Dense.forward.0": {
                **forward([named("x")], [named(f"y{weight}")]),
                "parameters": {"w": named(weight)},
            },
        }

    graph = graph_of(data(0.1, "w1"), data(0.2, "w2"))
    assert [graph.name(node) for node, it in enumerate(graph.tainted) if it] == [
        "Cell.fc.Dense.forward.0"
    ]


def test_a_dtype_that_differs_is_soft():
    a, b = calls("relu x -> a", "exp a -> b"), calls("relu x -> a", "exp a -> b")
    b["Functional.relu.0.forward"]["output"] = [named("a") | {"dtype": "Float16"}]
    assert graph_of(a, b).soft[0] == 0


def test_constants_have_no_maker_but_the_call_before():
    ones = tensor(Max=1.0, Min=1.0, Mean=1.0, Norm=6**0.5)
    data = {
        "Functional.ones.0.forward": forward([value(3)], [ones]),
        "Functional.relu.0.forward": forward([named("x")], [named("y")]),
        "Functional.mul.0.forward": forward([named("y"), ones], [named("z")]),
    }
    graph = graph_of(data, data)
    assert graph.producer_nodes(2, "input.1") == (0, 0)
    assert graph.producer_nodes(2, "input.0") == (1, 1)


def test_a_call_may_be_given_any_of_two_equal_outputs():
    """The link names one of two calls that made a content; both may have its users."""
    lines = ("relu i -> x", "abs j -> x", "exp x -> y", "tanh k -> z", "sin z -> s")
    graph = graph_of(calls(*lines), calls(*lines))
    users = [[graph.name(user) for user in graph.users_of(node)] for node in range(4)]
    exp, sin = ["Functional.exp.0.forward"], ["Functional.sin.0.forward"]
    assert users == [exp, exp, [], sin]
