# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A change is called harmless only where that is proved."""

from __future__ import annotations

import pytest

import probe
from tests.reading.builders import calls, write

WORDS = "changed too, but no value differs because of it"
END = ("softmax k -> p", "sum p -> loss")
WRONG = ("softmax k -> bad", "sum bad -> other")


def said(folder, a, b):
    """Return the text of a comparison, in which a softmax is wrong beside the change."""
    for name, lines in (("a", a), ("b", b)):
        write(folder / name, calls(*lines))
    found = probe.compare(folder / "a", folder / "b")
    assert found.status == 1
    return str(found)


@pytest.mark.parametrize(
    ("change", "is_told"),
    [
        (("relu q -> r", "exp r -> e"), True),  # its output is used, and the user agrees
        (("tile q -> r", "exp r -> e"), False),  # it may have put elements in other places
        (("exp q -> e", "relu e -> last"), False),  # no recorded call uses it
        (("exp q -> e", "assign e q -> e"), False),  # it writes
    ],
)
def test_a_call_that_one_side_alone_has(tmp_path, change, is_told):
    a = ("tanh i -> k", "sigmoid j -> q", "exp q -> e", "log e -> f", *END)
    b = ("tanh i -> k", "sigmoid j -> q", *change, "log e -> f", *WRONG)
    assert (WORDS in said(tmp_path, a, b)) == is_told


@pytest.mark.parametrize(("word", "is_told"), [("clamp", True), ("transpose", False)])
def test_another_argument_of_equal_numbers(tmp_path, word, is_told):
    a = ("tanh i -> k", "sigmoid j -> q", f"{word} q 2 -> e", "log e -> f", *END)
    b = ("tanh i -> k", "sigmoid j -> q", f"{word} q 3 -> e", "log e -> f", *WRONG)
    assert (WORDS in said(tmp_path, a, b)) == is_told


def test_a_call_at_which_a_gradient_ends_is_not_harmless(tmp_path):
    before = ("tanh i -> k", "sigmoid j -> q")
    behind = ("exp q -> e", "log e -> f")
    back = ("exp! ge -> gq", "sigmoid! gq -> gj")
    stopped = ("exp! ge -> gq", "sigmoid! other -> more")
    a = (*before, *behind, *END, *back)
    b = (*before, "stop_gradient q -> q", *behind, *WRONG, *stopped)
    assert WORDS not in said(tmp_path, a, b)
