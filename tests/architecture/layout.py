# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Finds places in the source code that a reader has to unpack. Each function yields them as "file:line: text"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.source import FUNCTIONS, Module

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DISPLAYS = (ast.Tuple, ast.List, ast.Dict, ast.Set)
_SKIP = re.compile(r"#\s*fmt:\s*(skip|off)")
#: a code of mypy in brackets, and the reason behind it
_IGNORE = re.compile(r"#\s*type:\s*ignore(?P<code>\[[\w-]+(, ?[\w-]+)*\])?(?P<rest>.*)")


def skipped(module: Module) -> Iterator[str]:
    """Yield each ``fmt: skip`` that keeps the layout of anything but a literal table."""
    statements = [node for node in ast.walk(module.tree) if isinstance(node, ast.stmt)]
    for line, comment in module.comments:
        if not _SKIP.search(comment):
            continue
        around = [it for it in statements if it.lineno <= line <= (it.end_lineno or it.lineno)]
        inner = max(around, key=lambda it: it.lineno, default=None)
        if inner is None or not _is_table(inner):
            yield f"{module.path}:{line}"


def _is_table(statement: ast.stmt) -> bool:
    value = getattr(statement, "value", None)
    if not isinstance(value, _DISPLAYS):
        return False
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True


def assigned_together(module: Module) -> Iterator[str]:
    """Yield each assignment of several values to several names, but for swaps: ``a, b = x, y``."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
            continue
        if len(node.targets) > 1:
            continue  # the names of a table, and the table
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and not _is_swap(target, node.value):
            yield f"{module.path}:{node.lineno}: {ast.unparse(node)}"


def _is_swap(target: ast.Tuple, value: ast.Tuple) -> bool:
    """Return whether a value has a name that is assigned before it: the statement cannot be divided."""
    names = [ast.unparse(it) for it in target.elts]
    return any(
        ast.unparse(node) in names[:place]
        for place, part in enumerate(value.elts)
        for node in ast.walk(part)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
    )


def bundles(module: Module) -> Iterator[str]:
    """Yield each call with a bundle of arguments that the function has made itself: ``f(*parts)``.

    Arguments that are passed on, and constants, are no bundles.
    """
    for function in ast.walk(module.tree):
        if not isinstance(function, FUNCTIONS):
            continue
        own = list(_own(function))
        passed_on = {function.args.vararg.arg} if function.args.vararg else set()
        made = {name for node in own for name in _made_bundles(node)} - passed_on
        for node in own:
            for part in node.args if isinstance(node, ast.Call) else ():
                if isinstance(part, ast.Starred) and ast.unparse(part.value) in made:
                    yield f"{module.path}:{node.lineno}: {ast.unparse(node)[:80]}"


def _made_bundles(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement gives to a tuple or a list which it writes out."""
    if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Tuple, ast.List)):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions in it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, FUNCTIONS):
            yield child
            yield from _own(child)


def aliases(module: Module) -> Iterator[str]:
    """Yield each method that is another one: ``leave = enter`` in the body of a class."""
    for owner in module.classes:
        methods = {node.name for node in owner.body if isinstance(node, FUNCTIONS)}
        for node in owner.body:
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Name):
                continue
            if node.value.id in methods or len(node.targets) > 1:
                yield f"{module.path}:{node.lineno}: {owner.name}: {ast.unparse(node)}"


def nested_comprehensions(module: Module) -> Iterator[str]:
    """Yield each comprehension in another one."""
    for node in ast.walk(module.tree):
        if isinstance(node, _COMPREHENSIONS):
            inner = [
                it for it in ast.walk(node) if it is not node and isinstance(it, _COMPREHENSIONS)
            ]
            if inner:
                yield f"{module.path}:{node.lineno}"


def unexplained_ignores(module: Module) -> Iterator[str]:
    """Yield each ``type: ignore`` without its code, or without a reason."""
    for line, comment in module.comments:
        found = _IGNORE.search(comment)
        if found and not (found["code"] and found["rest"].strip(" #")):
            yield f"{module.path}:{line}"


def late_constants(module: Module) -> Iterator[str]:
    """Yield the first constant below the first class or function of each module, unless it is made of these."""
    defined: set[str] = set()
    for node in module.tree.body:
        if isinstance(node, (ast.ClassDef, *FUNCTIONS)):
            defined.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and defined:
            value = node.value
            names = (
                {it.id for it in ast.walk(value) if isinstance(it, ast.Name)} if value else set()
            )
            if not names & defined:
                yield f"{module.path}:{node.lineno}: {ast.unparse(node)[:60]}"
                return
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            inner = (it for target in targets for it in ast.walk(target))
            defined.update(it.id for it in inner if isinstance(it, ast.Name))
