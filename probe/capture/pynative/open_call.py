# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A call that is running."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from probe.capture.autograd.graph_inputs import GraphInputs
from probe.recording.call import Call


@dataclass
class OpenCall:
    """A recorded call that is running: of an API, a Primitive, a jit function, a collective or a Cell.

    Attributes:
        call: the call.
        is_repeated: it repeats a call that was recorded before, in a recomputed Cell.
        cell: the Cell that runs, or None.
        graph_inputs: where its inputs stood in the graph, or None where its gradients are not watched.
    """

    call: Call
    is_repeated: bool
    cell: Any = None
    graph_inputs: GraphInputs | None = None
