# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The places where differences begin: each kind of origin in the smallest dataflow that has it."""

from __future__ import annotations

import pytest

from probe.reading.compare.origins.finder import OriginFinder
from tests.reading.builders import calls, forward, named, value
from tests.reading.compare.graphs import graph_of, origins_of, short

#: kind -> the calls of A and of B, and the call and the place that are named
LINES = {
    "computation": (("relu x -> a", "exp a -> b"), ("relu x -> a'", "exp a' -> b'"), ("relu.0", "output.0")),
    "argument": (("relu x 1 -> a", "exp a -> b"), ("relu x 2 -> a'", "exp a' -> b'"), ("relu.0", "input.1")),
    "random": (("dropout x -> a", "exp a -> b"), ("dropout x -> a'", "exp a' -> b'"), ("dropout.0", "output.0")),
    "data": (("relu x -> a",), ("relu x' -> a'",), ("relu.0", "input.0")),
    "outside value": (("relu x -> a", "add a m -> b"), ("relu x -> a", "add a m' -> b'"), ("add.0", "input.1")),
    "wiring": (
        ("relu x -> a", "exp x -> b", "tanh a -> c"), ("relu x -> a", "exp x -> b", "tanh b -> c'"),
        ("tanh.0", "input.0"),
    ),
    "calls": (("relu x -> a", "tanh a -> c"), ("relu x -> a", "exp a -> b", "tanh b -> c'"), ("exp.0", "")),
}  # fmt: skip


@pytest.mark.parametrize("md5", [False, True])
@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("swapped", [False, True])
def test_the_origin_is_named(kind, md5, swapped):
    a, b, place = LINES[kind]
    sides = calls(*a, md5=md5), calls(*b, md5=md5)
    assert origins_of(*(sides[::-1] if swapped else sides)) == [(kind, *place)]


def test_integers_from_outside_are_data():
    def data(word):
        return calls("relu x -> a") | {
            "Functional.add.0.forward": forward(
                [named("a"), named(word) | {"dtype": "Int64"}], [named(f"b{word}")]
            )
        }

    assert origins_of(data("i"), data("j")) == [("data", "add.0", "input.1")]


def test_a_collective_that_gives_another_result_is_communication():
    a, b = (calls(f"Distributed.all_reduce x -> {made}") for made in ("y", "z"))
    assert origins_of(a, b) == [("communication", "Distributed.all_reduce.0", "output.0")]


def test_an_exchanged_output_of_one_call_is_wiring():
    a, b = calls("split x -> p q", "exp p -> e"), calls("split x -> p q", "exp q -> e'")
    assert origins_of(a, b) == [("wiring", "exp.0", "input.0")]


def dense(weight, out, **more):
    return {
        "Cell.fc.Dense.forward.0": {
            **forward([named("x")], [named(out)]),
            "parameters": {"weight": named(weight), **more},
        }
    }


def test_a_parameter_is_named_where_its_cell_holds_it():
    assert origins_of(dense("w", "y"), dense("v", "z")) == [
        ("parameter", "Cell.fc.Dense.forward.0", "parameters.weight")
    ]


def test_a_parameter_is_named_by_the_call_that_uses_it():
    tree = {
        "Functional.matmul.0.forward": "Cell.fc.Dense.forward.0",
        "Cell.fc.Dense.forward.0": None,
    }
    a, b = (
        {**calls(f"matmul x {weight} -> {out}"), **dense(weight, out)}
        for weight, out in (("w", "y"), ("v", "z"))
    )
    graph = graph_of(a, b, (tree, tree))
    (found,) = OriginFinder(graph).origins()
    assert (found.kind, short(graph.name(found.node)), found.place) == (
        "parameter",
        "matmul.0",
        "input.1",
    )
    assert found.parameter == ("Cell.fc.Dense.forward.0", "weight")


@pytest.mark.parametrize(("place", "state"), [(3, "moving_mean"), (4, "moving_variance")])
def test_a_moving_statistic_is_told_by_its_place_in_batch_norm(place, state):
    """The forward changes it: the Cell's entry has the value after that, and no content tells it."""
    cell, name = "Cell.bn.BatchNorm2d.forward.0", "Primitive.bn.BatchNorm.0.forward"
    tree = {name: cell, cell: None}

    def data(side):
        given = [named(word) for word in ("x", "gamma", "beta", "mean", "variance")]
        out = [named(f"y{side}")]
        given[place] = named(f"state{side}")
        kept = {
            "gamma": named("gamma"),
            "moving_mean": named(f"m{side}"),
            "moving_variance": named(f"v{side}"),
        }
        return {name: forward(given, out), cell: {**forward([named("x")], out), "parameters": kept}}

    graph = graph_of(data("1"), data("2"), (tree, tree))
    found = [item for item in OriginFinder(graph).origins() if item.node == 0]
    assert [(item.kind, item.place, item.parameter) for item in found] == [
        ("parameter", f"input.{place}", (cell, state))
    ]


def test_small_differences_of_the_inputs_explain_as_small_ones_of_the_outputs():
    x = named("x")
    near = {**x, "Max": x["Max"] + 1e-5 * x["Norm"]}

    def data(given, gap):
        y = named("y")
        return {
            "Functional.f.0.forward": forward([given], [{**y, "Max": y["Max"] + gap * y["Norm"]}])
        }

    assert origins_of(data(x, 0.0), data({**near, "dtype": "Float32"}, 5e-5)) == []
    assert origins_of(data(x, 0.0), data(near, 5e-3)) == [("computation", "f.0", "output.0")]


def test_of_several_outputs_each_must_be_explained():
    x = named("x")
    near = {**x, "Max": x["Max"] + 1e-5 * x["Norm"]}

    def data(given, *gaps):
        made = [named(f"y{place}") for place in range(len(gaps))]
        return {
            "Functional.f.0.forward": forward(
                [given], [{**y, "Max": y["Max"] + gap * y["Norm"]} for y, gap in zip(made, gaps)]
            )
        }

    assert origins_of(data(x, 0.0, 0.0), data(near, 5e-5, 5e-3)) == [
        ("computation", "f.0", "output.1")
    ]


# -- updates ---------------------------------------------------------------------------------------------------------


def update(gradients, result="r", rate=0.1, names=("w",), before=()):
    given = {"parameters": [value(name) for name in names], "learning_rate": value(rate)}
    return {
        **calls("relu x -> a", "relu! ga -> gx", *before),
        "Cell.optimizer.SGD.forward.0": {
            "input_args": [[named(word) for word in gradients]],
            "input_kwargs": given,
            "output": [{name: named(f"{result}{name}") for name in names}],
        },
    }


OPTIMIZER = "Cell.optimizer.SGD.forward.0"


@pytest.mark.parametrize(
    ("b", "origin"),
    [
        (update(["g"], "s", rate=0.2), ("optimizer", OPTIMIZER, "kwargs.learning_rate")),
        (update(["g"], "s"), ("optimizer", OPTIMIZER, "output.0.w")),
        (update(["h"], "s"), ("optimizer", OPTIMIZER, "input.0.w")),
        (update(["g", "h"], "r", names=("w", "v")), ("optimizer", OPTIMIZER, "input.0.v")),
        (update(["h"], "s", before=("clip g -> h",)), ("optimizer", OPTIMIZER, "input.0.w")),
    ],
)
def test_an_update_names_what_differs_in_it(b, origin):
    assert origins_of(update(["g"]), b)[0] == origin


def test_an_argument_of_a_call_before_the_update_is_named():
    a, b = (
        update([word], word, before=(f"clip g {norm} -> {word}",))
        for word, norm in (("h", 1), ("k", 2))
    )
    assert origins_of(a, b) == [("argument", "clip.0", "input.1")]


# -- the rest --------------------------------------------------------------------------------------------------------


def test_what_follows_and_is_suspicious_by_itself_is_told_later():
    a = ("relu x -> a", "exp a -> b", "tanh b -> c")
    b = ("relu x -> a'", "exp a' -> b", "tanh b -> c'")
    graph = graph_of(calls(*a), calls(*b))
    assert [graph.name(item.node) for item in OriginFinder(graph).later()] == [
        "Functional.tanh.0.forward"
    ]


def test_harmless_changes_are_told_once_each():
    a, b = calls("relu x 1 -> a", "exp a -> b"), calls("relu x 2 -> a", "exp a -> b", "log b -> d")
    graph = graph_of(a, b)
    found = [(item.kind, short(graph.name(item.node))) for item in OriginFinder(graph).soft()]
    assert found == [("argument", "relu.0"), ("calls", "log.0")]


def test_two_calls_that_are_given_one_other_value_are_one_origin():
    a, b = (calls("relu x -> a", f"add a {m} -> b{m}", f"mul a {m} -> c{m}") for m in ("m", "n"))
    assert origins_of(a, b) == [("outside value", "add.0", "input.1")]
