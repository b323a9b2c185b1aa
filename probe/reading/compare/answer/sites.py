# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tells where an origin is: the calls of both sides, the place on disk, the Cell, and the lines of code."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.origins.finding import Finding
from probe.reading.compare.origins.origin import CodeLine, Kind, Site
from probe.reading.compare.origins.own_parameters import is_of_model
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps import entry_name
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import BACKWARD, CELL, GRADIENT
from probe.reading.dumps.flow import Frame, parse, user_frame, user_frames

#: kinds of a call that is given something else
_GIVEN = (Kind.ARGUMENT, Kind.WIRING)
#: the innermost line, and so many that call it
_LEVELS = 3


class Sites:
    """Tells where findings are, and which code has made them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        nodes = range(len(graph.pairs))
        self._first_backward = next(
            (node for node in nodes if graph.parts(node).direction == BACKWARD), len(nodes)
        )

    def site(self, finding: Finding) -> Site:
        """Return the place of a finding; its names are those in B where it is there."""
        graph = self._graph
        node = finding.node
        dump = graph.dump(node)
        name = graph.name(node)
        place = dump.on_disk(name, finding.place)
        calls = graph.names(node)
        if finding.parameter is not None:
            name, parameter = finding.parameter
            place = f"parameters.{parameter}"
            calls = self._owners(node, name)
        is_behind = node > self._first_backward
        cell = self._cell(finding, dump, name)
        return Site(name, place, cell, dump.step, dump.rank, node, is_behind, calls)

    def _owners(self, node: int, name: str) -> tuple[str, str]:
        """Return the entries in A and in B of the Cell that has a parameter; ("", "") where they are not known."""
        graph = self._graph
        flow = graph.alignment.flows[graph.shown_side(node)]
        if name not in flow.position:
            return "", ""
        return graph.names(graph.node_of(flow, flow.position[name]))

    def _cell(self, finding: Finding, dump: Dump, name: str) -> str | None:
        """Return the Cell around a finding, or the Cell that it is."""
        if finding.parameter and is_of_model(dump.data.get(name), finding.parameter[1]):
            return None
        is_of_cell = self._graph.parts(finding.node).kind in (CELL, GRADIENT)
        cell = entry_name.cell_label(name) if is_of_cell or finding.parameter else None
        call = dump.get(name)
        return cell or (call.cell if call else None)

    def code(self, finding: Finding) -> CodeLine:
        """Return the code that made the call of a finding; of an optimizer that which changes its gradients."""
        side = self._graph.shown_side(finding.node)
        if finding.parameter is not None:
            stack = _stack_of(self._graph.dumps[side], finding.parameter[0])
            return CodeLine(stack, user_frame(stack))
        stacks = self.stacks(finding.node)
        if finding.kind == Kind.OPTIMIZER and finding.source != NONE:
            source = self._graph.shown_side(finding.source)
            found = self.stacks(finding.source)
            if found[source]:
                side = source
                stacks = found
        frame_a, frame_b = (user_frame(stack) for stack in stacks)
        if finding.kind in _GIVEN:
            frame_a, frame_b = _changed_lines(*stacks) or (frame_a, frame_b)
        elif finding.kind == Kind.CALLS and self._graph.is_alone(finding.node):
            frame_a, frame_b = (self._own_line(own, stacks[own]) for own in (0, 1))
        return CodeLine(stacks[side], (frame_a, frame_b)[side], (frame_a, frame_b))

    def _own_line(self, side: int, stack: Sequence[str]) -> Frame | None:
        """Return the innermost line of a call that the other side has not run; the innermost where it has run all.

        A function that one side calls once more has run on both: the line that calls it is the other one.
        """
        frames = user_frames(stack)[:_LEVELS]
        known = self._lines_run[1 - side]
        own = (frame for frame in frames if (frame.function, frame.source) not in known)
        return next(own, frames[0] if frames else None)

    @functools.cached_property
    def _lines_run(self) -> tuple[frozenset[tuple[str, str]], frozenset[tuple[str, str]]]:
        """The function and the text of all lines that have run, in A and in B."""
        dump_a, dump_b = self._graph.dumps
        return _lines_of(dump_a), _lines_of(dump_b)

    def stacks(self, node: int) -> tuple[list[str], list[str]]:
        """Return the frames of a node in A and in B, innermost first."""
        dump_a, dump_b = self._graph.dumps
        name_a, name_b = self._graph.names(node)
        return _stack_of(dump_a, name_a), _stack_of(dump_b, name_b)

    def shown_stack(self, node: int) -> list[str]:
        """Return the frames of a node on the side whose name it has."""
        return self.stacks(node)[self._graph.shown_side(node)]


def _changed_lines(a: Sequence[str], b: Sequence[str]) -> tuple[Frame, Frame] | None:
    """Return the lines that call the innermost line in A and in B, if this is equal, and their texts differ.

    Its arguments may come from there: ``focal(x, gamma=1)`` in the place of ``focal(x, gamma=2)``.
    """
    frames = zip(user_frames(a)[:_LEVELS], user_frames(b)[:_LEVELS])
    for frame_a, frame_b in frames:
        if frame_a.function != frame_b.function:
            return None
        if frame_a.source != frame_b.source:
            return frame_a, frame_b
    return None


def _lines_of(dump: Dump) -> frozenset[tuple[str, str]]:
    texts = {text for stack in dump.stacks.values() for text in stack}
    frames = filter(None, map(parse, texts))
    return frozenset((frame.function, frame.source) for frame in frames)


def _stack_of(dump: Dump, name: str) -> list[str]:
    """Return the frames of an entry; of a parameter's gradient those of the first forward of its Cell."""
    call = dump.get(name)
    if call is None:
        return []
    parts = entry_name.parse(name)
    if not call.stack and parts.kind == GRADIENT:
        return dump.stacks.get(f"{parts.key}.forward.0", [])
    return call.stack
