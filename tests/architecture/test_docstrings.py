# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Every public name has a docstring, the examples in docstrings hold, and no module is too long."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import importlib

import pytest

from tests.architecture.source import Module, read
from tests.support.paths import ROOT

every_module = pytest.mark.parametrize("module", read(ROOT), ids=lambda module: module.path)


@every_module
def test_the_examples_in_docstrings_hold(module: Module):
    assert doctest.testmod(importlib.import_module(module.name)).failed == 0


def is_overload(node):
    """Return whether a function is one form of another, which has the docstring."""
    return any(ast.unparse(item) == "overload" for item in node.decorator_list)


@every_module
def test_every_public_name_has_a_docstring(module: Module):
    kinds = (ast.FunctionDef, ast.ClassDef)
    tree = module.tree
    owners = [
        tree,
        *(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"),
    ]
    public = [
        node
        for owner in owners
        for node in owner.body
        if isinstance(node, kinds) and node.name[0] != "_" and not is_overload(node)
    ]
    assert ast.get_docstring(tree)
    assert [node.name for node in public if not ast.get_docstring(node)] == []


def broken_claims(modules: list[Module]) -> list[str]:
    """Return the modules that import MindSpore, in rooms whose docstring says that they know none."""
    claims = [
        module.path.removesuffix("__init__.py")
        for module in modules
        if "Knows no MindSpore" in (ast.get_docstring(module.tree) or "")
    ]
    return [
        module.path
        for module in modules
        if module.path.startswith(tuple(claims)) and imports_mindspore(module)
    ]


def imports_mindspore(module: Module) -> bool:
    """Return whether a module imports MindSpore, at any depth."""
    for node in ast.walk(module.tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        if any(name.partition(".")[0] == "mindspore" for name in names):
            return True
    return False


def test_a_room_that_knows_no_mindspore_does_not_import_it():
    modules = read(ROOT)
    assert sum("Knows no MindSpore" in module.text for module in modules) >= 3
    assert broken_claims(modules) == []


def test_a_room_that_only_says_that_it_knows_no_mindspore_is_found():
    claim = '"""The files of a dump. Knows no MindSpore."""\n'
    modules = [
        dataclasses.replace(module, text=claim) if module.name == "probe.process" else module
        for module in read(ROOT)
    ]
    assert broken_claims(modules) == ["probe/process/rank.py"]
