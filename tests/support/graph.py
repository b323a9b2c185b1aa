# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Walks the graph below the gradients' start, and tells which nodes no recorded call has made."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import mindspore as ms

from probe.capture.autograd.nodes import LEAF, AutogradNodes
from probe.capture.pynative.context import CaptureContext
from probe.executor import pynative_executor
from probe.pytree import leaves


class SeenGraph:
    """The graphs of one step.

    Attributes:
        calls: the names of the recorded calls.
        nodes: the number of nodes.
        unseen: the names of the nodes that were made outside of every recorded call.
    """

    def __init__(self):
        self.calls, self.nodes, self.unseen = [], 0, []
        self._access = AutogradNodes()
        self._intervals, self._open, self._walked = [], {}, set()

    def begin(self, opened):
        """Note the first node that may be the call's."""
        self._open[id(opened)] = self._access.newest_sequence_nr()

    def end(self, opened):
        """Note the last one."""
        if not opened.is_repeated:
            self.calls.append(opened.call.forward)
        self._intervals.append((self._open.pop(id(opened)), self._access.newest_sequence_nr()))

    @contextlib.contextmanager
    def backward(self):
        """Leave out the nodes of MindSpore's backward, which only a gradient of a gradient has."""
        first = self._access.newest_sequence_nr()
        yield
        self._intervals.append((first, self._access.newest_sequence_nr()))

    def walk(self, outputs):
        """Compare all nodes below these outputs with the calls."""
        todo = [tensor._grad_node for tensor in outputs]
        while todo:
            node = todo.pop()
            number = LEAF if node is None else node._sequence_nr()
            if number == LEAF or number in self._walked:
                continue
            self._walked.add(number)
            self.nodes += 1
            if not any(first < number < last for first, last in self._intervals):
                self.unseen.append(node.name())
            todo += [source for source, _ in node.next_functions]


@contextlib.contextmanager
def unseen_nodes(monkeypatch) -> Iterator[SeenGraph]:
    """Return a graph that is walked from the results of every function that is differentiated inside the context."""
    graph = SeenGraph()
    begin, end, executor = CaptureContext.begin, CaptureContext.end, type(pynative_executor())
    end_graph, differentiate = executor.end_graph, executor.grad

    def begins(self, *args, **kwargs):
        opened = begin(self, *args, **kwargs)
        if opened is not None and opened.call.recorded:
            graph.begin(opened)
        return opened

    def ends(self, opened, *args, **kwargs):
        if opened.call.recorded:
            graph.end(opened)
        return end(self, opened, *args, **kwargs)

    def ends_graph(self, function, result, *args, **kwargs):
        graph.walk([leaf for leaf in leaves(result) if isinstance(leaf, ms.Tensor)])
        return end_graph(self, function, result, *args, **kwargs)

    def differentiates(self, *args):
        with graph.backward():
            return differentiate(self, *args)

    with monkeypatch.context() as patches:
        patches.setattr(CaptureContext, "begin", begins)
        patches.setattr(CaptureContext, "end", ends)
        patches.setattr(executor, "end_graph", ends_graph)
        patches.setattr(executor, "grad", differentiates)
        yield graph
