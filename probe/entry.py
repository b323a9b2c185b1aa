# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The finished entry: the unit that flows from recording through a task to the store."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

Parent = tuple[str, Optional[str]]  # a key of construct.json and its value


class Kind(enum.Enum):
    """The kinds of entries."""

    API = "API, Primitive or jit function"
    CELL = "Cell"
    PARAMETER_GRADIENT = "gradient of a Cell's parameter"
    DEBUG_VALUE = "value recorded by save()"


class Entry(NamedTuple):
    """One finished entry of dump.json, or further keys of one that was written before."""

    name: str  # its name in the documents
    #: its keys and values; of a debug value any JSON shape; None where only construct.json and stack.json name it
    parts: Any
    kind: Kind = Kind.API
    key: str = ""  # its name without number and direction
    forward: str = ""  # the name of the forward entry of the same call, "" where there is no call
    is_backward: bool = False  # whether it is a backward entry
    stack: int = -1  # the number of its call's stack, or -1
    parents: Sequence[Parent] = ()  # the items that it adds to construct.json

    def further(self, parts: Any) -> Entry:
        """Return further keys for this entry: they replace those of the same names."""
        return self._replace(parts=parts, stack=-1, parents=())
