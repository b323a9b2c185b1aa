# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Classes: the attributes that an object is given through self, and the methods that are re-bound."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tests.architecture.source import FUNCTIONS, Module


class ClassTable:
    """The classes of a package, found by name.

    Args:
        modules: the modules of the package.
    """

    def __init__(self, modules: Iterable[Module]) -> None:
        self._classes = {node.name: node for module in modules for node in module.classes}

    def _lineage(self, node: ast.ClassDef) -> Iterator[ast.ClassDef]:
        """Yield the class and those of its bases that the package defines."""
        waiting, seen = [node], set()
        while waiting:
            node = waiting.pop()
            if id(node) not in seen:
                seen.add(id(node))
                yield node
                names = (
                    base.attr if isinstance(base, ast.Attribute) else _name(base)
                    for base in node.bases
                )
                waiting += [self._classes[name] for name in names if name in self._classes]

    def attributes(self, node: ast.ClassDef) -> set[str]:
        """Return the attributes that its objects have: assigned through self, or fields of a dataclass.

        Objects that never change have none: those of frozen dataclasses and named tuples.
        """
        if _is_frozen(node):
            return set()
        found = set()
        for one in self._lineage(node):
            found |= {target.attr for _, target, _ in _assignments(one)}
            if _dataclass(one) is not None:
                found |= {item.target.id for item in one.body if _is_field(item)}  # type: ignore[attr-defined]
        return found

    def rebound(self, node: ast.ClassDef) -> set[str]:
        """Return the methods that are re-bound at run time.

        These are methods that an attribute of the same name covers, and attributes that are given another method of
        the object after ``__init__``.
        """
        bodies = [
            item for one in self._lineage(node) for item in one.body if isinstance(item, FUNCTIONS)
        ]
        methods = {item.name for item in bodies if not item.decorator_list}
        found = set()
        for function, target, value in _assignments(node):
            covers = target.attr in methods
            swaps = function != "__init__" and any(
                _own(part) in methods for part in _alternatives(value)
            )
            if covers or swaps:
                found.add(target.attr)
        return found


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _dataclass(node: ast.ClassDef) -> ast.expr | None:
    for decorator in node.decorator_list:
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        if _name(function) == "dataclass" or (
            isinstance(function, ast.Attribute) and function.attr == "dataclass"
        ):
            return decorator
    return None


def _is_frozen(node: ast.ClassDef) -> bool:
    decorator = _dataclass(node)
    if isinstance(decorator, ast.Call):
        return any(
            keyword.arg == "frozen"
            and isinstance(keyword.value, ast.Constant)
            and keyword.value.value is True
            for keyword in decorator.keywords
        )
    return any(_name(base) == "NamedTuple" for base in node.bases)


def _is_field(item: ast.stmt) -> bool:
    return (
        isinstance(item, ast.AnnAssign)
        and isinstance(item.target, ast.Name)
        and "ClassVar" not in ast.dump(item)
    )


def _assignments(node: ast.ClassDef) -> Iterator[tuple[str, ast.Attribute, ast.expr | None]]:
    """Yield (name of the method, attribute, its value where there is one) for all that is assigned through self."""
    for function in node.body:
        if not isinstance(function, FUNCTIONS) or not function.args.args:
            continue
        own = function.args.args[0].arg
        for statement in ast.walk(function):
            for target, value in _pairs(statement):
                if isinstance(target, ast.Attribute) and _name(target.value) == own:
                    yield function.name, target, value


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Yield (target, value) for all that a statement assigns; sequences of the same length are paired."""
    if isinstance(node, ast.Assign):
        waiting: list[tuple[ast.expr, ast.expr | None]] = [
            (target, node.value) for target in node.targets
        ]
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        waiting = [(node.target, node.value)]
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        waiting = [(node.target, None)]
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        waiting = [(node.optional_vars, None)]
    else:
        return
    while waiting:
        target, value = waiting.pop()
        if not isinstance(target, (ast.Tuple, ast.List)):
            yield (target.value if isinstance(target, ast.Starred) else target), value
            continue
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        same = len(parts) == len(target.elts)
        waiting += [(item, parts[i] if same else None) for i, item in enumerate(target.elts)]


def _alternatives(value: ast.expr | None) -> Iterator[ast.expr]:
    if isinstance(value, ast.IfExp):
        yield from _alternatives(value.body)
        yield from _alternatives(value.orelse)
    elif value is not None:
        yield value


def _own(value: ast.expr) -> str:
    """Return the name behind ``self.``, or nothing."""
    return value.attr if isinstance(value, ast.Attribute) and _name(value.value) == "self" else ""
