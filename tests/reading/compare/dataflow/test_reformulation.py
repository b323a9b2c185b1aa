# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A region is another form of the same if each value that leaves it agrees; else it is a difference."""

from __future__ import annotations

import pytest

import probe
from tests.reading.builders import calls, write

BEFORE = ("relu i -> q", "relu j -> k", "sigmoid s -> f")
BEHIND = ("softmax v -> p", "sum p -> loss")
NEAR = ("softmax v~ -> p", "sum p -> loss")
AFTER = ("matmul q k -> w", "mul w f -> v")
FIRST = ("mul q f -> u", "matmul u k -> v~")


@pytest.fixture
def compared(tmp_path):
    """Return a function that compares the calls of two runs, in both orders."""

    def compare(a, b):
        for name, lines in (("a", a), ("b", b)):
            write(tmp_path / name, calls(*lines))
        found = probe.compare(tmp_path / "a", tmp_path / "b")
        back = probe.compare(tmp_path / "b", tmp_path / "a")
        assert found.status == back.status
        assert len(found.origins) == len(back.origins)
        return found

    return compare


def told(found):
    """Return the kinds and the words of the changes that are told."""
    return [(origin.kind, str(origin.said)) for origin in found.soft]


def test_a_factor_before_a_product_is_another_form(compared):
    found = compared((*BEFORE, *AFTER, *BEHIND), (*BEFORE, *FIRST, *NEAR))
    assert found.status == 0
    ((kind, words),) = told(found)
    assert kind == "another form"
    assert "another form of the same" in words
    assert "Functional.mul.0.forward" in words


@pytest.mark.parametrize(("marks", "status"), [("~" * 4, 0), ("~" * 6, 1)])
def test_a_value_that_leaves_may_differ_by_the_rounding_alone(compared, marks, status):
    """The tolerance of float32 is 1e-5; a mark is 2e-6."""
    a = (*BEFORE, *AFTER, "sum v -> loss")
    b = (*BEFORE, FIRST[0], f"matmul u k -> v{marks}", f"sum v{marks} -> loss{marks}")
    assert compared(a, b).status == status


def test_one_of_two_values_that_leave_is_wrong(compared):
    both = ("softmax v -> p", "exp w -> e", "sum p -> loss", "sum e -> other")
    wrong = ("softmax v~ -> p", "exp u -> x", "sum p -> loss", "sum x -> y")
    found = compared((*BEFORE, *AFTER, *both), (*BEFORE, *FIRST, *wrong))
    assert found.status == 1


@pytest.mark.parametrize(("end", "status"), [("loss~", 0), ("other", 1)])
def test_a_result_that_no_call_uses_has_its_equal(compared, end, status):
    a = (*BEFORE, "cross_entropy q k -> loss")
    b = (*BEFORE, "log_softmax q -> l", f"nll_loss l k -> {end}")
    assert compared(a, b).status == status


def test_calls_in_another_order_are_paired_by_content(compared):
    a = (*BEFORE, "exp q -> x", "exp k -> y", "matmul x y -> z", "sum z -> loss")
    b = (*BEFORE, "exp k -> y", "exp q -> x", "matmul x y -> z", "sum z -> loss")
    found = compared(a, b)
    assert found.status == 0
    assert found.pairs.get("moved") == 2
    assert not found.only_a
    ((_, words),) = told(found)
    assert "independent calls in another order" in words


def test_operands_that_change_places_are_no_order(compared):
    a = (*BEFORE, "exp q -> x", "exp k -> y", "matmul x y -> z", "sum z -> loss")
    b = (*BEFORE, "exp k -> y", "exp q -> x", "matmul y x -> t", "sum t -> other")
    assert compared(a, b).status == 1


@pytest.mark.parametrize(("gradient", "status"), [("gk", 0), ("gk~", 0), ("bad", 1)])
def test_a_gradient_that_leaves_has_to_agree(compared, gradient, status):
    back_a = ("softmax! gp -> gv", "mul! gv -> gw gf", "matmul! gw -> gq gk", "relu! gk -> gj")
    a = (*BEFORE, *AFTER, *BEHIND, *back_a)
    back_b = ("softmax! gp -> gv", f"matmul! gv -> gu {gradient}", "mul! gu -> gq gf")
    b = (*BEFORE, *FIRST, *NEAR, *back_b, f"relu! {gradient} -> gj")
    assert compared(a, b).status == status


@pytest.mark.parametrize("word", ["dropout", "assign", "add_"])
def test_calls_that_draw_or_write_are_no_form(compared, word):
    a = (*BEFORE, "mul q f -> u", "matmul u k -> v", *BEHIND)
    b = (*BEFORE, f"{word} q f -> w", "matmul w k -> v", *BEHIND)
    found = compared(a, b)
    assert "another form" not in [kind for kind, _ in told(found)]


def test_another_value_from_outside_is_no_form(compared):
    a = (*BEFORE, "mul q c -> u", "matmul u k -> v", *BEHIND)
    b = (*BEFORE, "mul q d -> w", "bmm w k -> v", *BEHIND)
    assert compared(a, b).status == 1


def test_most_of_a_net_may_have_another_form(compared):
    """Such calls have no partners, which is no sign that the dumps are of two nets."""
    a = (
        "relu i -> x",
        *[f"exp x{'' if k == 0 else k} -> x{k + 1}" for k in range(8)],
        "log x8 -> y",
    )
    b = ("relu i -> x", *[f"sin x{'' if k == 0 else f'_{k}'} -> x_{k + 1}" for k in range(6)])
    b = (*b, "cos x_6 -> x8~", "log x8~ -> y", "sum y -> loss")
    assert compared((*a, "sum y -> loss"), b).status == 0


@pytest.mark.parametrize(("gradient", "status"), [("gk", 0), ("bad", 1)])
def test_a_gradient_that_leaves_the_record_has_to_agree(compared, gradient, status):
    """No recorded call made ``k``: its gradient may go to one that is not recorded."""
    before = ("relu i -> q", "sigmoid s -> f")
    back_a = ("softmax! gp -> gv", "mul! gv -> gw gf", "matmul! gw -> gq gk")
    back_b = ("softmax! gp -> gv", f"matmul! gv -> gu {gradient}", "mul! gu -> gq gf")
    a = (*before, *AFTER, *BEHIND, *back_a)
    assert compared(a, (*before, *FIRST, *NEAR, *back_b)).status == status


@pytest.mark.parametrize(("last", "end", "status"), [("s1:1", "loss:1", 0), ("s4:1", "l:1", 1)])
def test_numbers_added_in_another_order_are_another_form(compared, last, end, status):
    """A sum of three losses: each partial sum is another number."""
    before = tuple(f"relu i{k} -> x{k}" for k in range(5))
    before += tuple(f"sum x{k} -> s{k}:1" for k in range(5))
    a = (*before, "add s1:1 s2:1 -> part:1", "add part:1 s3:1 -> loss:1", "exp loss:1 -> e:1")
    b = (*before, "add s3:1 s2:1 -> other:1", f"add other:1 {last} -> {end}")
    b = (*b, f"exp {end} -> {'e:1' if status == 0 else 'x:1'}")
    assert compared(a, b).status == status
