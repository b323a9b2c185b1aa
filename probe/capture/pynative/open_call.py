# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A call that is running."""

from __future__ import annotations

from typing import Any

from probe.capture.autograd.graph_inputs import GraphInputs
from probe.recording.call import Call


class OpenCall:
    """A recorded call that is running: of an API, a Primitive, a jit function, a collective or a Cell.

    Args:
        call: the call.
        is_repeated: it repeats a call that was recorded before, in a recomputed Cell.
        cell: the Cell that runs, or None.

    Attributes:
        graph_inputs: where its inputs stood in the graph, or None where its gradients are not watched.
    """

    __slots__ = ("call", "cell", "graph_inputs", "is_repeated")

    def __init__(self, call: Call, is_repeated: bool, cell: Any = None) -> None:
        self.call, self.is_repeated, self.cell = call, is_repeated, cell
        self.graph_inputs: GraphInputs | None = None

    def __repr__(self) -> str:
        return f"OpenCall({self.call.forward!r})"
