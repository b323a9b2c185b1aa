# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A call while it is being recorded."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Any, cast

from probe.entry import Entry, Kind, Parent
from probe.naming import call_names, cell_names

_NAMES = {Kind.API: call_names, Kind.CELL: cell_names}


class Call:
    """One call of an API, a Primitive, a jit function, a collective or a Cell, from its begin to its last gradient.

    Args:
        key: the names of its entries without number and direction.
        number: its number among the calls of this key.

    Attributes:
        recorded: whether its forward entry is recorded.
        watched: whether its backward entry may be recorded.
        parts: the parts of its forward entry so far.
        frame: the caller's frame, while the call runs.
        stack: the number of its stack, or -1.
        micro: the number of the micro-batch of a pipeline, or None; a text, as msprobe's compare fails on numbers.
    """

    __slots__ = ("kind", "key", "number", "forward", "backward", "cell",
                 "recorded", "watched", "parts", "frame", "stack", "micro")  # fmt: skip

    def __init__(self, kind: Kind, key: str, number: int, cell: Call | None) -> None:
        self.kind, self.key, self.number, self.cell = kind, key, number, cell
        self.forward, self.backward = _NAMES[kind](key, number)
        self.recorded = self.watched = False
        self.frame: FrameType | None = None
        self.stack, self.micro = -1, cast("str | None", None)
        self.parts: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"Call({self.forward!r})"

    def name(self, backward: bool) -> str:
        """Return the name of its entry of one direction."""
        return self.backward if backward else self.forward

    def entry(self, parts: Any, backward: bool = False, stack: int = -1, parents: Sequence[Parent] = ()) -> Entry:
        """Return its entry of one direction, or further keys for it."""
        return Entry(self.name(backward), parts, self.kind, self.key, self.forward, backward, stack, parents)
