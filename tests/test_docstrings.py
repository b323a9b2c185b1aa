# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Every public name has a docstring, and the examples in them hold."""

from __future__ import annotations

import ast
import doctest
import importlib
from pathlib import Path

import pytest

import probe

PACKAGE = Path(probe.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_examples_hold_and_nothing_public_is_without_words(path):
    name = ".".join(["probe", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
    if name != "probe.__main__":
        assert doctest.testmod(importlib.import_module(name)).failed == 0
    tree = ast.parse(path.read_text())
    kinds = (ast.FunctionDef, ast.ClassDef)
    rooms = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_")]
    public = [node for room in rooms for node in room.body if isinstance(node, kinds) and node.name[0] != "_"]
    silent = [node.name for node in public if not ast.get_docstring(node)]
    assert ast.get_docstring(tree)
    assert silent == []
    assert path.read_text().count("\n") <= 400
