# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The names under which the calls of two dumps are looked for."""

from __future__ import annotations

import pytest

from probe.reading.compare.frameworks.vocabulary import Vocabulary
from probe.reading.compare.frameworks.words import are_two, parameter_word
from probe.reading.dumps.entry_name import parse

TORCH, OURS = {"framework": "pytorch"}, {"framework": "mindspore"}


@pytest.mark.parametrize(
    ("a", "b", "two"),
    [(TORCH, OURS, True), (OURS, TORCH, True), (OURS, OURS, False), (TORCH, {}, False)],
)
def test_two_frameworks_are_those_two(a, b, two):
    assert are_two(a, b) is two
    assert Vocabulary((a, b), None).is_foreign is two


def test_a_map_holds_for_whole_words_of_a_alone():
    words = Vocabulary((OURS, OURS), {"fc": "out", "fc.deep": "low"})
    assert words.name(0, "Cell.fc.Dense.forward.0") == "Cell.out.Dense.forward.0"
    assert words.name(0, "Cell.fc1.Dense.forward.0") == "Cell.fc1.Dense.forward.0"
    assert (
        words.name(0, "Cell.fc.deep.Dense.forward.0") == "Cell.low.Dense.forward.0"
    )  # the longer one counts
    assert words.name(1, "Cell.fc.Dense.forward.0") == "Cell.fc.Dense.forward.0"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("Functional.linear", "Primitive.fc.Dense"),
        ("Tensor.__add__", "Primitive.add.Add"),
        ("Torch.matmul", "Mint.bmm"),
        ("Tensor.view", "Functional.reshape"),
        ("Torch.cat", "Primitive.c.Concat"),
        ("Tensor.__radd__", "Mint.add"),
        ("Torch.gather", "Mint.gather_elements"),
    ],
)
def test_calls_of_two_frameworks_have_one_word(theirs, ours):
    words = Vocabulary((TORCH, OURS), None)
    assert words.call(0, parse(f"{theirs}.0.forward")) == words.call(1, parse(f"{ours}.0.forward"))


def test_a_subtraction_from_the_right_is_another_call():
    words = Vocabulary((OURS, OURS), None)
    one, other = (
        words.call(0, parse(f"Tensor.{name}.0.forward")) for name in ("__sub__", "__rsub__")
    )
    assert one != other


def test_a_module_is_found_under_the_name_of_its_cell():
    words = Vocabulary((TORCH, OURS), None)
    assert words.name(0, "Module.fc.Linear.forward.1") == "Cell.fc.Dense.forward.1"
    assert words.class_name(parse("Module.fc.Linear.forward.1")) == "Dense"


@pytest.mark.parametrize(
    ("name", "others", "word"),
    [
        ("weight", {"gamma", "beta"}, "gamma"),
        ("weight", {"weight", "gamma"}, "weight"),
        ("bias", {"x"}, "bias"),
        ("running_var", {"moving_mean", "moving_variance"}, "moving_variance"),
    ],
)
def test_a_parameter_has_the_name_of_the_other_side(name, others, word):
    assert parameter_word(name, others) == word
