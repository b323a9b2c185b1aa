# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The dataflow of two paired dumps: nodes, the differences in them, and how far each of these reaches."""

from __future__ import annotations

from probe.reading.compare.dataflow.causes import Causes
from probe.reading.compare.dataflow.nodes import Nodes
from probe.reading.compare.dataflow.structure import StructuralDifferences, wirings
from probe.reading.compare.dataflow.taint import Taint
from probe.reading.compare.judging.judged_pairs import JudgedPairs
from probe.reading.compare.judging.verdicts import Slot


class Graph(Nodes):
    """The nodes, and for each node whether it is off or tainted, and the structural difference before it."""

    def __init__(self, judged: JudgedPairs, slots: list[list[Slot]] | None = None) -> None:
        super().__init__(judged, judged.slots if slots is None else slots)
        causes = Causes(self)
        taint = Taint(self, causes)
        self.off = taint.off
        self.tainted = taint.tainted
        #: for each node the first one with a structural difference that it may follow from; -1 for none
        self.soft = StructuralDifferences(self, causes).sources

    def wirings(self, node: int) -> list[str]:
        """Return the inputs whose content comes from calls that are no partners."""
        return wirings(self, node)
