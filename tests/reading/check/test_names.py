# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which parameter of A is which of B where their names differ: first by content, then by shape and the name's end."""

from __future__ import annotations

import pytest

from probe.reading.check.names import Key, match_names, renaming


def matched(a, b):
    """Match parameters, given as name -> (shape, content)."""
    return match_names(
        *(
            {
                n: Key((shape, content) if content else None, shape)
                for n, (shape, content) in side.items()
            }
            for side in (a, b)
        )
    )


def test_equal_names_are_partners_whatever_they_hold():
    found = matched({"w": (1, "p"), "v": (1, "q")}, {"w": (1, "q"), "v": (2, "p")})
    assert (found.pairs, found.renamed, found.only) == ({"w": "w", "v": "v"}, {}, ([], []))


def test_content_tells_more_than_the_end_of_a_name():
    """The two have exchanged their places in the model, and kept their values."""
    found = matched(
        {"a.fc.w": (1, "p"), "b.fc.w": (1, "q")}, {"c.a.fc.w": (1, "q"), "c.b.fc.w": (1, "p")}
    )
    assert found.renamed == {"a.fc.w": "c.b.fc.w", "b.fc.w": "c.a.fc.w"}


def test_of_equal_contents_the_longest_common_end_counts():
    found = matched({"x.b.w": (1, "p"), "x.a.w": (1, "p")}, {"y.a.w": (1, "p"), "y.b.w": (1, "p")})
    assert found.renamed == {"x.b.w": "y.b.w", "x.a.w": "y.a.w"}


def test_without_content_one_equal_part_of_the_name_is_asked_for():
    found = matched(
        {"a.weight": (1, ""), "a.bias": (2, "")}, {"b.weight": (1, ""), "b.beta": (2, "")}
    )
    assert found.renamed == {"a.weight": "b.weight"}
    assert found.only == (["a.bias"], ["b.beta"])


def test_another_shape_is_another_parameter():
    assert matched({"a.w": (1, "")}, {"b.w": (2, "")}).only == (["a.w"], ["b.w"])


@pytest.mark.parametrize(
    ("renamed", "side"), [({"w": "net.w", "v": "net.v"}, "B"), ({"net.w": "w"}, "A")]
)
def test_a_prefix_is_told_with_its_side(renamed, side):
    assert f'"net." in {side}' in str(renaming(renamed))
