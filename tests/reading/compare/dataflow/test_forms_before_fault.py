# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A region with another form is not blamed for a fault behind it, and no fault hides in it."""

from __future__ import annotations

import pytest

import probe
from tests.reading.builders import calls, named, write

BEFORE = ("relu i -> q", "relu j -> k", "sigmoid s -> f")
AFTER = ("matmul q k -> w", "mul w f -> v")
FIRST = ("mul q f -> u", "matmul u k -> v~")
#: behind the region: the right calls, and those with a fault
RIGHT = ("softmax v -> p", "tanh p -> t", "sum t -> loss")
WRONG = ("softmax v~ -> p", "sigmoid p -> h", "sum h -> other")
GRADIENT = "Cell.net.Net.parameters_grad"


@pytest.fixture
def compared(tmp_path):
    """Return a function that compares the calls of two runs in both orders; their gradients differ."""

    def compare(a, b):
        for name, lines in (("a", a), ("b", b)):
            gradients = {GRADIENT: {"weight": [named(f"gradient_{name}")]}}
            write(tmp_path / name, {**calls(*lines), **gradients})
        found = probe.compare(tmp_path / "a", tmp_path / "b")
        back = probe.compare(tmp_path / "b", tmp_path / "a")
        assert found.status == back.status == 1
        assert len(found.origins) == len(back.origins)
        return found

    return compare


def named_first(found):
    """Return the names of the findings, but for the gradients, which differ in all tests."""
    return [origin.name for origin in found.origins if origin.name != GRADIENT]


def told(found):
    return [str(origin.said) for origin in found.soft if "another form" in str(origin.said)]


def test_a_form_before_a_fault_is_told_and_not_blamed(compared):
    found = compared((*BEFORE, *AFTER, *RIGHT), (*BEFORE, *FIRST, *WRONG))
    assert named_first(found) == ["Functional.sigmoid.1.forward"]
    (words,) = told(found)
    assert "all that leaves it agrees within" in words


def test_without_an_equal_value_behind_it_there_is_no_form(compared):
    b = (*BEFORE, FIRST[0], "matmul u k -> x", "softmax x -> y", "tanh y -> z", "sum z -> other")
    assert not told(compared((*BEFORE, *AFTER, *RIGHT), b))


@pytest.mark.parametrize(("marks", "is_form"), [("~" * 4, True), ("~" * 6, False)])
def test_the_value_may_differ_by_the_rounding_alone(compared, marks, is_form):
    """The tolerance of float32 is 1e-5; a mark is 2e-6."""
    b = (*BEFORE, FIRST[0], f"matmul u k -> v{marks}", f"softmax v{marks} -> p", *WRONG[1:])
    assert bool(told(compared((*BEFORE, *AFTER, *RIGHT), b))) is is_form


@pytest.mark.parametrize(
    "word", ["dropout", "assign", "stop_gradient", "StopGradient", "transpose"]
)
def test_calls_that_do_more_or_move_elements_are_in_no_form(compared, word):
    b = (*BEFORE, f"{word} q f -> u", "matmul u k -> v~", *WRONG)
    assert not told(compared((*BEFORE, *AFTER, *RIGHT), b))


def test_another_value_from_outside_is_no_form(compared):
    b = (*BEFORE, "mul q c -> u", "matmul u k -> v~", *WRONG)
    a = ("relu i -> q", "relu j -> k", *AFTER, *RIGHT)
    assert not told(compared(a, b))


@pytest.mark.parametrize(("arriving", "is_form"), [("gv", False), ("other_gv", True)])
def test_a_gradient_that_begins_to_differ_in_the_region_is_no_form(compared, arriving, is_form):
    """Where another gradient arrives, the difference began behind the region."""
    back_a = ("mul! gv -> gw gf", "matmul! gw -> gq gk")
    back_b = (f"matmul! {arriving} -> gu bad", "mul! gu -> gq2 gf2")
    found = compared((*BEFORE, *AFTER, *RIGHT, *back_a), (*BEFORE, *FIRST, *WRONG, *back_b))
    assert bool(told(found)) is is_form


@pytest.mark.parametrize("is_in_a", [True, False])
def test_a_backward_of_one_side_alone_is_no_form(compared, is_in_a):
    """A backward of the user's own has no entries of its calls: nobody knows its gradient."""
    back_a = ("mul! gv -> gw gf", "matmul! gw -> gq gk")
    back_b = ("matmul! gv -> gu bad", "mul! gu -> gq2 gf2")
    a, b = (*BEFORE, *AFTER, *RIGHT), (*BEFORE, *FIRST, *WRONG)
    assert not told(compared((*a, *back_a), b) if is_in_a else compared(a, (*b, *back_b)))


def test_a_value_that_another_call_uses_has_to_be_made_on_both_sides(compared):
    a = (*BEFORE, *AFTER, "exp w -> e", *RIGHT)
    b = (*BEFORE, *FIRST, "exp u -> x", *WRONG)
    assert not told(compared(a, b))
