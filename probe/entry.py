# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The finished entry: the unit that flows from recording through a task to the store."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Union

#: the keys of an entry and their values; None for an entry that only construct.json and stack.json name
Parts = Union[Mapping[str, Any], None]
#: a key of construct.json and its value
Parent = tuple[str, Union[str, None]]


class Kind(enum.Enum):
    """The kinds of entries."""

    API = "API, Primitive or jit function"
    CELL = "Cell"
    PARAMETER_GRADIENT = "gradient of a Cell's parameter"
    DEBUG_VALUE = "value recorded by save()"


class Entry:
    """One finished entry of dump.json, or further keys of one that was written before.

    Args:
        name: its name in the documents.
        parts: its keys and values; for a debug value any JSON shape.
        kind: its kind.
        key: its name without number and direction.
        forward: the name of the forward entry of the same call, "" where there is no call.
        backward: whether it is a backward entry.
        stack: the number of its call's stack, or -1.
        parents: the items that it adds to construct.json.
    """

    __slots__ = ("name", "parts", "kind", "key", "forward", "backward", "stack", "parents")

    def __init__(
        self,
        name: str,
        parts: Any,
        kind: Kind = Kind.API,
        key: str = "",
        forward: str = "",
        backward: bool = False,
        stack: int = -1,
        parents: tuple[Parent, ...] | list[Parent] = (),
    ) -> None:
        self.name, self.parts, self.kind, self.key = name, parts, kind, key
        self.forward, self.backward, self.stack, self.parents = forward, backward, stack, parents

    def __repr__(self) -> str:
        return f"Entry({self.name!r}, {self.kind.name})"

    def completed(self, parts: Any) -> Entry:
        """Return this entry with complete parts in place of the pending ones."""
        return Entry(self.name, parts, self.kind, self.key, self.forward, self.backward, self.stack, self.parents)

    def with_parts(self, parts: Any) -> Entry:
        """Return further keys for this entry: they replace those of the same names."""
        return Entry(self.name, parts, self.kind, self.key, self.forward, self.backward)
