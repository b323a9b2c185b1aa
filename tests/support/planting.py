# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Finds an expression or statement of a function in the code of probe, and puts another in its place.

A place is named as "store.journal:Journal.append": a module below ``probe``, and a function, a method, a class or a
constant in it. Code is compared by its syntax, so line breaks, comments and quotes make no difference.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path


def module_path(package: Path, place: str) -> Path:
    """Return the file of a place, below the folder of the package."""
    return package.joinpath(*place.partition(":")[0].split(".")).with_suffix(".py")


def spots(code: str, place: str, wanted: str) -> list[tuple[int, int]]:
    """Return where some code stands in the function of a place: begin and end, in bytes of the module."""
    nodes, form = _parsed(wanted), _form(_parsed(wanted))
    name = place.partition(":")[2]
    groups = [
        group
        for scope in scopes(ast.parse(code), name.split("."))
        for group in _groups(scope, nodes)
        if _form(group) == form
    ]
    begins = [0]
    for line in code.encode().splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    return [
        (
            begins[group[0].lineno - 1] + group[0].col_offset,
            begins[group[-1].end_lineno - 1] + group[-1].end_col_offset,
        )
        for group in groups
    ]


def replaced(code: str, place: str, wanted: str, instead: str) -> str:
    """Return the code of a module with other code at the one spot of a place.

    Raises:
        ValueError: the place has the wanted code never, or more than once.
    """
    found = spots(code, place, wanted)
    if len(found) != 1:
        raise ValueError(f"{place} has {wanted!r} {len(found)} times")
    (begin, end), data = found[0], code.encode()
    if _is_expression(wanted):
        new = f"({instead})"
    else:
        column = begin - (data.rfind(b"\n", 0, begin) + 1)
        new = textwrap.indent(instead, " " * column).lstrip()
    return (data[:begin] + new.encode() + data[end:]).decode()


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def _parsed(text: str) -> list:
    if _is_expression(text):
        return [ast.parse(text, mode="eval").body]
    return ast.parse(text).body


def _form(nodes: list) -> list[str]:
    return [ast.dump(node) for node in nodes]


def scopes(tree: ast.AST, names: list[str]) -> Iterator[ast.AST]:
    """Yield the definitions of a qualified name; a function may be defined in two branches."""
    for node in ast.walk(tree):
        if names[0] in _defined(node):
            yield from _scopes_below(node, names[1:])


def _scopes_below(node: ast.AST, names: list[str]) -> Iterator[ast.AST]:
    if not names:
        yield node
        return
    for child in ast.walk(node):
        if child is not node and names[0] in _defined(child):
            yield from _scopes_below(child, names[1:])


def _defined(node: ast.AST) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    is_assigned = isinstance(node, (ast.Assign, ast.AnnAssign))
    return [it.id for it in targets if is_assigned and isinstance(it, ast.Name)]


def _groups(scope: ast.AST, nodes: list) -> Iterator[list]:
    """Yield the expressions of a scope one by one, or its statements in groups of the wanted length."""
    for node in ast.walk(scope):
        if isinstance(nodes[0], ast.expr):
            yield [node] if isinstance(node, ast.expr) else []
            continue
        for body in ("body", "orelse", "finalbody"):
            block = getattr(node, body, [])
            if isinstance(block, list):
                yield from (block[at : at + len(nodes)] for at in range(len(block)))
