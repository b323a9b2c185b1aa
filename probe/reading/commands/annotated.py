# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Checks objects that were decoded from a file against the types that their classes name.

The annotations are read as texts: Python 3.9 cannot evaluate ``int | None``.
"""

from __future__ import annotations

import ast
import functools
from typing import Any

#: names in annotations that stand for others
_ALIASES = {"Rank": "int | str | None", "Record": "dict[str, Any]", "Counts": "dict[str, int]"}
#: steps, ranks and counts are smaller
_MOST_BITS = 64
_PLAIN: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (float, int), "str": (str,), "bool": (bool,), "bytes": (bytes,), "None": (type(None),),
    "list": (list,), "Sequence": (list, tuple), "tuple": (tuple,), "dict": (dict,), "Mapping": (dict,),
    "frozenset": (frozenset, set),
}  # fmt: skip


def misfit(value: Any) -> str:
    """Return where an object of one of our classes, or one in it, holds a value of a wrong type; "" for nowhere.

    >>> from probe.series.looks import Point
    >>> misfit(Point(1, 0.0)), misfit([Point("x", 0.0)])
    ('', 'Point.size is str')
    """
    if isinstance(value, dict):
        return next(filter(None, map(misfit, (*value.keys(), *value.values()))), "")
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return next(filter(None, map(misfit, value)), "")
    for name, annotation in _annotations(type(value)):
        found = getattr(value, name)
        if not _fits(found, annotation):
            return f"{type(value).__name__}.{name} is {type(found).__name__}"
        if inner := misfit(found):
            return inner
    return ""


def _annotations(kind: type) -> list[tuple[str, ast.expr]]:
    if not kind.__module__.startswith("probe."):
        return []
    own = vars(kind).get("__annotations__") or getattr(kind, "__annotations__", {})
    return [(name, _parsed(_text(text))) for name, text in own.items()]


@functools.lru_cache(256)
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _text(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    return str(getattr(annotation, "__forward_arg__", None) or getattr(annotation, "__name__", "Any"))


def _fits(value: Any, hint: ast.expr) -> bool:
    """Return whether a value is of a type."""
    if isinstance(hint, ast.BinOp):
        return _fits(value, hint.left) or _fits(value, hint.right)
    if isinstance(hint, ast.Constant):
        return value is None if hint.value is None else True
    if isinstance(hint, ast.Subscript):
        return _fits_generic(value, hint)
    name = hint.attr if isinstance(hint, ast.Attribute) else getattr(hint, "id", "Any")
    if name in _ALIASES:
        return _fits(value, _parsed(_ALIASES[name]))
    if name not in _PLAIN:
        return name == "Any" or type(value).__name__ == name or (name == "Hashable" and _is_hashable(value))
    is_small = type(value) is not int or value.bit_length() < _MOST_BITS
    return isinstance(value, _PLAIN[name]) and is_small and (type(value) is not bool or name == "bool")


def _is_hashable(value: Any) -> bool:
    """Return whether a value, and all in it, can be the key of a dict."""
    return all(map(_is_hashable, value)) if type(value) is tuple else type(value) not in (list, dict)


def _fits_generic(value: Any, hint: ast.Subscript) -> bool:
    name = getattr(hint.value, "id", "Any")
    parts = hint.slice.elts if isinstance(hint.slice, ast.Tuple) else [hint.slice]
    if not _fits(value, hint.value):
        return False
    if name in ("dict", "Mapping"):
        return all(_fits(key, parts[0]) and _fits(item, parts[1]) for key, item in value.items())
    has_any_length = name != "tuple" or (isinstance(parts[-1], ast.Constant) and parts[-1].value is Ellipsis)
    if has_any_length:
        return all(_fits(item, parts[0]) for item in value)
    return len(value) == len(parts) and all(_fits(item, part) for item, part in zip(value, parts))
