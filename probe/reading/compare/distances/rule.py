# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A rule of the user: which differences of which tensors are agreement."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import Sentence, say
from probe.findings.system import reason_of
from probe.reading.compare.distances.distance import Distance

#: the user's own distance
_OWN = "distance"
_NAMES = ("rel_l2", "max_abs", _OWN)
_COMPARES: dict[type, Callable[[Any, Any], bool]] = {
    ast.LtE: operator.le,
    ast.Lt: operator.lt,
    ast.GtE: operator.ge,
    ast.Gt: operator.gt,
    ast.Eq: operator.eq,
}


class ToleranceRule:
    """A rule of the user: a condition for the tensors in whose names a regular expression is found.

    >>> ToleranceRule("softmax", "rel_l2 <= 0.02 or max_abs <= 1e-3").holds(Distance(0.5, 1e-4))
    True
    """

    def __init__(self, pattern: str, condition: str) -> None:
        self.text = (pattern, condition)
        self.used = 0  # how many tensors it was applied to
        try:
            self._pattern = re.compile(pattern)
        except re.error as error:
            reason = reason_of(error)
            raise UsageError(say("error.rule_regex", text=pattern, reason=reason)) from error
        try:
            self._tree = ast.parse(condition, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise UsageError(_wrong(condition)) from None
        self._value(self._tree, dict.fromkeys(_NAMES, 0.0))
        #: whether it asks for the user's own distance
        self.is_own = any(map(_is_own_distance, ast.walk(self._tree)))

    def fits(self, name: str) -> bool:
        """Return whether the rule is for a tensor of this name."""
        found = self._pattern.search(name) is not None
        self.used += found
        return found

    def concerns(self, name: str) -> bool:
        """Return the same without counting it."""
        return self._pattern.search(name) is not None

    def holds(self, distance: Distance) -> bool:
        """Return whether the condition holds; where nothing is known it does."""
        if distance.rel_l2 is None:
            return True
        numbers = {
            "rel_l2": distance.rel_l2,
            "max_abs": distance.max_abs or 0.0,
            _OWN: distance.own or 0.0,
        }
        return bool(self._value(self._tree, numbers))

    def _value(self, node: ast.expr, numbers: Mapping[str, float]) -> Any:
        if isinstance(node, ast.BoolOp):
            parts = [self._value(value, numbers) for value in node.values]
            return all(parts) if isinstance(node.op, ast.And) else any(parts)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            (kind,) = node.ops
            (other,) = node.comparators
            compares = _COMPARES.get(type(kind))
            if compares is not None:
                left = self._value(node.left, numbers)
                right = self._value(other, numbers)
                return compares(left, right)
        if isinstance(node, ast.Name) and node.id in _NAMES:
            return numbers[node.id]
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return node.value
        _, condition = self.text
        raise UsageError(_wrong(condition))


def _is_own_distance(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == _OWN


def _wrong(condition: str) -> Sentence:
    return say("error.rule_condition", text=condition)
