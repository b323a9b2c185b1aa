# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Each finder of ``layout`` finds its place, and nothing in the text beside it."""

from __future__ import annotations

import pytest

from tests.architecture import layout
from tests.architecture.source import Module

#: finder -> (a text with one place, a text without one)
CASES = {
    layout.skipped: (
        ("x = [f(1),  2]  # fmt: skip\n", "x = [1,  2]  # fmt: skip\n"),
        ("def f(a,  b):  # fmt: skip\n    pass\n", 'x = {"a":  "b"}  # fmt: skip\n'),
    ),
    layout.assigned_together: (
        ("a, b = 1, f()\n", "a, b = b, a\n"),
        ("self.a, self.b = x, y\n", "a, b = f()\n"),
        ("a, b = c, c\n", "a, b = f(x, y)\n"),
        ("a, b = b, c\n", "a, b = b, a + b\n"),
    ),
    layout.bundles: (
        (
            "def f(x):\n    parts = 1, x\n    return g(*parts)\n",
            "def f(*parts):\n    return g(*parts)\n",
        ),
        (
            "def f(x):\n    parts = [1, x]\n    return g(0, *parts)\n",
            "def f(parts):\n    return g(*parts)\n",
        ),
    ),
    layout.aliases: (
        (
            "class A:\n    def a(self): ...\n    b = a\n",
            "class A:\n    def a(self): ...\n    b = c\n",
        ),
    ),
    layout.nested_comprehensions: (
        ("x = [[b for b in a] for a in c]\n", "x = [b for a in c for b in a]\n"),
        ("x = [any(b for b in a) for a in c]\n", "x = [list(a) for a in c]\n"),
    ),
    layout.unexplained_ignores: (
        ("x = f()  # type: ignore\n", "x = f()  # type: ignore[misc]  # f has no types\n"),
        ("x = f()  # type: ignore[misc]\n", "x = f()\n"),
    ),
    layout.late_constants: (
        ("def f(): ...\nX = 1\n", "X = 1\ndef f(): ...\n"),
        ("class A: ...\nX: int = 1\n", "class A: ...\nX = A()\nY, Z = X, X\nV = Y\n"),
    ),
}


def places(find, text):
    return list(find(Module("probe.a", "probe/a.py", text)))


@pytest.mark.parametrize(
    ("find", "wrong", "right"), [(find, *pair) for find, pairs in CASES.items() for pair in pairs]
)
def test_a_finder_finds_one_place_and_nothing_beside_it(find, wrong, right):
    assert len(places(find, wrong)) == 1
    assert places(find, right) == []
