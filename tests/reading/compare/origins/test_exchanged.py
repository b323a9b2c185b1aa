# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two calls with equal outputs that are exchanged are told by their gradients."""

from __future__ import annotations

import pytest

import probe
from tests.reading.builders import calls, write

#: two means of one value, and a factor on one of them
FORWARD = (
    "relu i -> x",
    "tanh i -> y",
    "mean x -> m",
    "sum y -> m",
    "mul m 4 -> w",
    "add m w -> l",
)
BACK = ("add! g -> g g", "mul! g -> small")


def run(of_mean, of_sum):
    """Return the calls of a run; the gradients that arrive at the two calls are given."""
    return (*FORWARD, *BACK, f"sum! {of_sum} -> s{of_sum}", f"mean! {of_mean} -> m{of_mean}")


@pytest.mark.parametrize("is_swapped", [False, True])
def test_the_user_of_the_equal_values_is_named(tmp_path, is_swapped):
    sides = [run("g", "small"), run("small", "g")]
    for name, lines in zip("ab", reversed(sides) if is_swapped else sides):
        write(tmp_path / name, calls(*lines))
    first = probe.compare(tmp_path / "a", tmp_path / "b").first
    assert (first.kind, first.name) == ("wiring", "Functional.mul.0.forward")
    assert "have equal values, and each other's gradients" in str(first.said)


def test_a_gradient_that_is_another_one_is_no_exchange(tmp_path):
    for name, lines in zip("ab", (run("g", "small"), run("other", "g"))):
        write(tmp_path / name, calls(*lines))
    first = probe.compare(tmp_path / "a", tmp_path / "b").first
    assert first.kind == "gradient"
