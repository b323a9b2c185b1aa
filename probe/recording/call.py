# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A call while it is being recorded."""

from __future__ import annotations

from types import FrameType
from typing import Any

from probe.naming import escape_formula


class Call:
    """One call of an API, a Primitive, a jit function or a Cell, from its begin to its last gradient."""

    __slots__ = ("forward", "backward", "cell", "recorded", "parts", "frame", "stack")

    def __init__(self, names: tuple[str, str], cell: Call | None) -> None:
        self.forward, self.backward = names
        self.cell = cell
        self.recorded = False
        self.frame: FrameType | None = None
        self.stack = -1
        self.parts: dict[str, Any] = {}

    def name(self, backward: bool) -> str:
        """Return the name of its entry of one direction."""
        return self.backward if backward else self.forward


def mark(error: BaseException) -> dict[str, str]:
    """Return what an entry says that lacks something because of an error of ours."""
    return {"error": escape_formula(f"{type(error).__name__}: {error}")[:2000]}
