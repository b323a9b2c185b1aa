# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Every public name has a docstring, the examples in docstrings hold, and no module is too long."""

from __future__ import annotations

import ast
import doctest
import importlib

import pytest

from tests.architecture.source import Module, read
from tests.support.paths import ROOT

LONGEST = 400
every_module = pytest.mark.parametrize("module", read(ROOT), ids=lambda module: module.path)


@every_module
def test_the_examples_in_docstrings_hold(module: Module):
    assert doctest.testmod(importlib.import_module(module.name)).failed == 0


@every_module
def test_every_public_name_has_a_docstring(module: Module):
    kinds = (ast.FunctionDef, ast.ClassDef)
    tree = module.tree
    owners = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_")]
    public = [node for owner in owners for node in owner.body if isinstance(node, kinds) and node.name[0] != "_"]
    assert ast.get_docstring(tree)
    assert [node.name for node in public if not ast.get_docstring(node)] == []


@every_module
def test_no_module_is_too_long(module: Module):
    assert module.lines <= LONGEST
