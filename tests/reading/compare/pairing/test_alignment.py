# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which call of B stands for which of A: by name, number, line, place in the Cell and Cell."""

from __future__ import annotations

import copy

from hypothesis import given, settings, strategies as st

from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.partners import NONE
from tests.reading.builders import calls, dump, named


def aligned(a, b, trees=({}, {}), stacks=({}, {}), mapping=None):
    return Alignment(*(dump(data, *more) for data, *more in zip((a, b), trees, stacks)), mapping)


def found(alignment):
    """Return (call in A, call in B) -> how; without a partner None."""
    names = [flow.names for flow in alignment.flows]
    return {
        (names[0][a] if a != NONE else None, names[1][b] if b != NONE else None): how
        for a, b, how in alignment.pairs()
    }


def short(alignment):
    """Return the same without the words that all names share."""
    cut = lambda name: name and name.replace("Functional.", "").replace(".forward", "")  # noqa: E731
    return {(cut(a), cut(b)): how for (a, b), how in found(alignment).items()}


def frames(source):
    return [f"File /me/net.py, line 1, in construct, \n {source}"]


def test_equal_names_are_partners():
    data = calls("relu x -> y", "tanh y -> z")
    assert short(aligned(data, data)) == {
        ("relu.0", "relu.0"): "exact",
        ("tanh.0", "tanh.0"): "exact",
    }


def test_a_call_more_shifts_the_numbers_of_the_others_and_no_partner():
    a = calls("relu x -> y", "relu y 2 -> z")
    b = calls("relu s:2x2 -> t:2x2", "relu x -> y", "relu y 2 -> z")
    assert short(aligned(a, b)) == {
        (None, "relu.0"): "",
        ("relu.0", "relu.1"): "counted",
        ("relu.1", "relu.2"): "counted",
    }


def test_repeated_calls_are_told_apart_by_their_plain_arguments():
    a = calls("roll x 1 -> a", "roll x 2 -> b", "roll x 3 -> c")
    b = calls("roll x 2 -> b", "roll x 3 -> c")
    assert short(aligned(a, b)) == {
        ("roll.0", None): "",
        ("roll.1", "roll.0"): "counted",
        ("roll.2", "roll.1"): "counted",
    }


def test_calls_of_one_line_are_partners_though_their_numbers_and_arguments_tell_another():
    a = calls("add x 1 -> a", "tanh a -> b")
    b = calls("add x 2 -> p", "add x 9 -> a", "tanh a -> b")
    stacks = (
        {"Functional.add.0.forward": frames("y = x + bias")},
        {
            "Functional.add.0.forward": frames("new = x + 1"),
            "Functional.add.1.forward": frames("y = x + bias"),
        },
    )
    assert short(aligned(a, b, stacks=stacks))["add.0", "add.1"] == "counted"


def test_calls_with_equal_inputs_are_partners_whatever_their_lines_tell():
    a = calls("add x 1 -> a", "tanh a -> b")
    b = calls("add y 1 -> p", "add x 1 -> a", "tanh a -> b")
    stacks = (
        {"Functional.add.0.forward": frames("y = x + 1")},
        {"Functional.add.0.forward": frames("y = x + 1")},
    )
    assert short(aligned(a, b, stacks=stacks))["add.0", "add.1"] == "counted"


def test_another_api_between_the_same_calls_with_the_same_shape_stands_in_for_it():
    a, b = (
        calls("relu x -> y", "gelu y -> z", "tanh z -> u"),
        calls("relu x -> y", "silu y -> z2", "tanh z2 -> u2"),
    )
    assert short(aligned(a, b))["gelu.0", "silu.0"] == "replaced"


def test_another_api_of_another_shape_stands_in_for_nothing():
    a, b = (
        calls("relu x -> y", "gelu y -> z", "tanh z -> u"),
        calls("relu x -> y", "sum y -> s:1", "tanh z -> u"),
    )
    assert {("gelu.0", None), (None, "sum.0")} <= set(short(aligned(a, b)))


def test_another_api_behind_other_calls_stands_in_for_nothing():
    """The call before it in its Cell is no partner of the call before the other."""
    a = calls("relu x -> y", "tanh y -> t", "gelu y -> z", "exp z -> e")
    b = calls("relu x -> y", "silu y -> z2", "tanh y -> t", "exp z -> e")
    assert {("gelu.0", None), (None, "silu.0")} <= set(short(aligned(a, b)))


def test_the_same_calls_in_two_cells_are_paired_within_their_cells():
    a = calls("Cell.one.Block x -> y", "relu x -> y", "Cell.two.Block y -> z", "relu y -> z")
    b = calls("Cell.one.Block x -> y", "tanh x -> y", "Cell.two.Block y -> z", "relu y -> z")
    one, two = "Cell.one.Block.forward.0", "Cell.two.Block.forward.0"
    trees = (
        {"Functional.relu.0.forward": one, "Functional.relu.1.forward": two, one: None, two: None},
        {"Functional.tanh.0.forward": one, "Functional.relu.0.forward": two, one: None, two: None},
    )
    assert short(aligned(a, b, trees))["relu.1", "relu.0"] == "counted"


def cells(*names):
    """Return the entries of Cells that have a parameter of one shape."""
    data = calls(*(f"{name} x -> {name}" for name in names))
    return {name: {**entry, "parameters": {"weight": named("w")}} for name, entry in data.items()}


def test_a_renamed_cell_is_found_by_its_class_and_the_shapes_of_its_parameters():
    alignment = aligned(
        cells("Cell.fc.Dense", "Cell.norm.Norm"), cells("Cell.linear.Dense", "Cell.norm.Norm")
    )
    assert found(alignment)["Cell.fc.Dense.forward.0", "Cell.linear.Dense.forward.0"] == "renamed"


def test_cells_of_other_classes_are_paired_by_their_shapes_where_both_sides_have_as_many():
    alignment = aligned(cells("Cell.a.Old", "Cell.b.Old"), cells("Cell.c.New", "Cell.d.New"))
    assert found(alignment) == {
        ("Cell.a.Old.forward.0", "Cell.c.New.forward.0"): "renamed",
        ("Cell.b.Old.forward.0", "Cell.d.New.forward.0"): "renamed",
    }


def test_cells_of_other_classes_stay_alone_where_one_side_has_more():
    """Nothing tells which of the three has no partner."""
    alignment = aligned(
        cells("Cell.a.Old", "Cell.b.Old"), cells("Cell.c.New", "Cell.d.New", "Cell.e.New")
    )
    assert set(alignment.b_of) == set()


def test_a_backward_goes_with_its_forward():
    a = calls("relu x -> y", "relu y 2 -> z", "relu! gz -> gy")
    b = calls("relu s:2x2 -> t:2x2", "relu x -> y", "relu y 2 -> z", "relu! gz -> gy")
    assert (
        found(aligned(a, b))["Functional.relu.1.backward", "Functional.relu.2.backward"]
        == "counted"
    )


def test_the_gradients_of_a_renamed_cell_go_with_it():
    a, b = (
        {
            **cells(f"Cell.{name}.Dense", "Cell.norm.Norm"),
            f"Cell.{name}.Dense.parameters_grad.0": {"weight": []},
        }
        for name in ("fc", "linear")
    )
    pair = "Cell.fc.Dense.parameters_grad.0", "Cell.linear.Dense.parameters_grad.0"
    assert found(aligned(a, b))[pair] == "renamed"


def test_a_map_of_names_comes_first():
    a, b = cells("Cell.fc.Dense", "Cell.out.Dense"), cells("Cell.out.Dense", "Cell.fc.Dense")
    alignment = aligned(a, b, mapping={"fc": "out", "out": "fc"})
    assert found(alignment) == {
        ("Cell.fc.Dense.forward.0", "Cell.out.Dense.forward.0"): "mapped",
        ("Cell.out.Dense.forward.0", "Cell.fc.Dense.forward.0"): "mapped",
    }


def test_calls_of_one_side_alone_stand_where_they_ran():
    a, b = (
        calls("relu x -> y", "exp y -> e", "tanh y -> z"),
        calls("relu x -> y", "tanh y -> z", "log z -> l:1"),
    )
    names = [(pair.a, pair.b) for pair in aligned(a, b).pairs()]
    assert names == [(0, 0), (1, NONE), (2, 1), (NONE, 2)]


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.permutations(range(4)))
def test_independent_calls_in_any_order_are_all_paired(order):
    """More calls in the opposite order may stay alone: each pass pairs those that are in one order."""
    lines = [
        f"{api} x{place} -> y{place}" for place, api in enumerate(("relu", "exp", "log", "tanh"))
    ]
    alignment = aligned(calls(*lines), calls(*(lines[place] for place in order)))
    assert list(found(alignment).values()) == ["exact"] * 4


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 5), max_size=4), st.booleans())
def test_a_pair_is_a_pair_from_both_sides(left_out, swaps):
    a = calls(*(f"f{place % 3} x{place} -> y{place}" for place in range(6)))
    b = {name: entry for place, (name, entry) in enumerate(a.items()) if place not in left_out}
    sides = (b, a) if swaps else (a, b)
    alignment = aligned(*map(copy.deepcopy, sides))
    assert {b: a for a, b in alignment.b_of.items()} == alignment.a_of
    assert len(alignment.pairs()) == 6
