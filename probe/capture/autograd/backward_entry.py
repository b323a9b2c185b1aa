# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The backward entry of a call that made several nodes: its part of the graph is walked and read at the boundary."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from probe.capture.autograd.nodes import LEAF, Key, Node
from probe.capture.pynative.thread_state import ThreadState
from probe.pytree import TensorTree, fill

if TYPE_CHECKING:
    from probe.capture.autograd.gradient_hooks import GraphInputs


class Sink(Protocol):
    """What gradients are handed to (the recorder)."""

    closed: bool
    order_only: bool

    def settle(self) -> None:
        """Wait for what runs asynchronously, where necessary; raises errors of the training."""

    def backward_begins(self, call: Any) -> bool:
        """Return whether the backward entry that opens now is recorded."""

    def gradient(self, call: Any, place: str, tensor: Any) -> Any:
        """Return the record of a gradient that arrived now."""

    def sum(self) -> Any:
        """Return a new sum of gradients, with ``add`` and ``take_from``."""

    def gradient_sum(self, call: Any, place: str, total: Any) -> Any:
        """Return the record of a gradient that was summed from several contributions."""

    def backward_ends(self, call: Any, inputs: list[Any], outputs: list[Any], keywords: Mapping[str, Any]) -> None:
        """Finish the backward entry."""

    def later_pass(self, call: Any, passes: int) -> None:
        """Note that gradients of a finished entry came again."""

    def failed(self, call: Any, place: str, error: BaseException, backward: bool = False) -> None:
        """End an error of the tool, and say in the call's entry that it lacks something."""


class _InnerNode:
    """One node of the call with the edges that matter: into the call's inputs, and into its own results."""

    __slots__ = ("node", "number", "inputs", "results")

    def __init__(self, node: Node, number: int) -> None:
        self.node, self.number = node, number
        self.inputs: list[tuple[int, Key]] = []
        self.results: list[tuple[int, int]] = []


class BackwardEntry:
    """Opens with the first gradient that reaches the call and ends with the last that leaves it.

    A contribution that has several edges is summed; an output that the call also uses itself has what came from
    inside subtracted; an output that is an input has null in both places, as nobody can tell whose users they are.
    """

    def __init__(
        self, sink: Sink, call: Any, plan: GraphInputs, outputs: TensorTree, identify: Callable[[Node], Any], order: int
    ) -> None:
        self._sink, self._call = sink, call
        self._in_places, self._in_layout, self._results = outputs.places, outputs.layout, outputs.tensors
        self._out_places, self._out_layout, self._keywords = plan.slots.places, plan.slots.layout, plan.keywords
        self._inputs: list[Any] = [None] * len(outputs.places)
        self._outputs: list[Any] = [None] * len(plan.slots.places)
        self._keys, self._quiet, self._floor = plan.keys, plan.quiet, plan.floor
        self._identify, self._order = identify, order
        self._inner: dict[int, Any] = {}
        self._sums: dict[int, Any] = {}
        self._low = LEAF
        self._opened = self._closed = self._wanted = False
        self._passes = 0

    def attach(
        self,
        nodes: Sequence[Node | None],
        state: ThreadState,
        advance: Callable[[int], None],
    ) -> None:
        """Hook the call's part of the graph.

        Args:
            nodes: the node of each result tensor, or None.
            state: the threads' state; entries are put into ``state.open`` in the order in which they will end.
            advance: ends the entries that can get nothing more once a node of this sequence number runs.
        """
        own, arrivals, shared = self._walk(nodes)
        lowest = min(own.values(), key=lambda node: node.number, default=None)
        self._low = lowest.number if lowest else LEAF
        edges: dict[int, int] = {}
        for node in own.values():
            for _, key in node.inputs:
                edges[self._keys[key][0]] = edges.get(self._keys[key][0], 0) + 1
            for _, leaf in node.results:
                self._inner.setdefault(leaf, self._sink.sum())
        self._sums = {leaf: self._sink.sum() for leaf, count in edges.items() if count > 1}

        def begin(number: int, first: bool = False) -> bool:
            self._sink.settle()
            return self._begin(number, first, state, advance)

        for place, (node, wanted) in enumerate(arrivals):
            node.register_prehook(self._on_arrival(begin, node._sequence_nr(), wanted, place == 0, lowest is None))
        for owned in own.values():
            inputs = [(place, self._keys[key][0]) for place, key in owned.inputs if key not in shared]
            inputs = [(place, leaf) for place, leaf in inputs if leaf not in self._quiet]
            if inputs or owned.results or owned is lowest:
                owned.node.register_hook(self._on_node(begin, owned.number, inputs, owned.results, owned is lowest))
        self._keys, self._results = {}, []  # hooks live as long as the graph: what only attaching needed goes now

    def _walk(
        self, nodes: Sequence[Node | None]
    ) -> tuple[dict[Any, _InnerNode], list[tuple[Node, list[tuple[int, int]]]], set[Key]]:
        """Return the call's own nodes, the nodes where gradients of its results arrive, and results that are inputs."""
        identify, keys, floor = self._identify, self._keys, self._floor
        results: dict[Key, int] = {}
        shared: set[Key] = set()
        todo: list[Node] = []
        arrivals: dict[Any, tuple[Node, list[tuple[int, int]]]] = {}
        for leaf, node in enumerate(nodes):
            if node is None:
                continue
            identity, index = identify(node), self._results[leaf]._output_index
            if (identity, index) in keys:
                shared.add((identity, index))
            elif (identity, index) not in results:  # given out twice: the whole gradient stands in the first place
                results[identity, index] = leaf
                arrivals.setdefault(identity, (node, []))[1].append((index, leaf))
                todo.append(node)
        if not results:  # nothing but inputs given back: an empty entry still says that a gradient came through
            return {}, [(next(node for node in nodes if node is not None), [])], shared
        own: dict[Any, _InnerNode] = {}
        while todo:
            node = todo.pop()
            identity, number = identify(node), node._sequence_nr()
            if identity in own or number == LEAF or number <= floor:
                continue
            owned = own[identity] = _InnerNode(node, number)
            for place, (source, index) in enumerate(node.next_functions):
                if source is None:
                    continue
                key = (identify(source), index)
                if key in keys:
                    owned.inputs.append((place, key))
                    continue
                if key in results:
                    owned.results.append((place, results[key]))
                todo.append(source)
        return own, list(arrivals.values()), shared

    def _on_arrival(
        self, begin: Callable[..., bool], number: int, wanted: list[tuple[int, int]], first: bool, last: bool
    ) -> Callable[[Any], None]:
        def hook(go: Any) -> None:
            if not begin(number, first):
                return
            try:
                for index, leaf in wanted:
                    self._take_input(leaf, go[index])
                if last:
                    self.close()
            except Exception as error:
                self._sink.failed(self._call, "reading a gradient", error, backward=True)

        return hook

    def _on_node(
        self,
        begin: Callable[..., bool],
        number: int,
        inputs: list[tuple[int, int]],
        results: list[tuple[int, int]],
        last: bool,
    ) -> Callable[[Any, Any], None]:
        def hook(gi: Any, go: Any) -> None:
            if not begin(number):
                return
            try:
                for place, leaf in results:
                    if gi[place] is not None:
                        self._inner[leaf].add(gi[place])
                for place, leaf in inputs:
                    self._take_output(leaf, gi[place])
                if last:
                    self.close()
            except Exception as error:
                self._sink.failed(self._call, "reading a gradient", error, backward=True)

        return hook

    def _begin(self, number: int, first: bool, state: ThreadState, advance: Callable[[int], None]) -> bool:
        """Open the entry with its first event; return whether this event is for it."""
        if self._sink.closed:
            return False
        try:
            advance(number)
            if self._closed:
                if first:
                    self._passes += 1
                    self._sink.later_pass(self._call, self._passes)
                return False
            if not self._opened:
                self._opened = True
                self._wanted = self._sink.backward_begins(self._call)
                # of two that end at the same node the inner call, which was attached first, ends first
                bisect.insort(state.open, (self._low, -self._order, self))
            return self._wanted
        except Exception as error:
            self._sink.failed(self._call, "opening a backward entry", error, backward=True)
            return False

    def _take_input(self, leaf: int, gradient: Any) -> None:
        if gradient is None:
            return
        inner, place = self._inner.get(leaf), self._in_places[leaf]
        if inner is None:
            self._inputs[leaf] = self._sink.gradient(self._call, place, gradient)
            return
        if inner.take_from(gradient):
            self._inputs[leaf] = self._sink.gradient_sum(self._call, place, inner)

    def _take_output(self, leaf: int, gradient: Any) -> None:
        if gradient is None:
            return
        total = self._sums.get(leaf)
        if total is None:
            self._outputs[leaf] = self._sink.gradient(self._call, self._out_places[leaf], gradient)
        else:
            total.add(gradient)

    def close(self) -> None:
        """Finish the entry; it has no effect on one that is finished."""
        if self._closed:
            return
        self._closed = True
        if not self._wanted:
            return
        try:
            for leaf, total in self._sums.items():
                if total:
                    self._outputs[leaf] = self._sink.gradient_sum(self._call, self._out_places[leaf], total)
            self._sink.backward_ends(
                self._call,
                fill(self._in_layout, self._inputs),
                fill(self._out_layout, self._outputs),
                fill(self._keywords, self._outputs),
            )
        except Exception as error:
            self._sink.failed(self._call, "finishing a backward entry", error, backward=True)
        finally:
            self._sums, self._inner, self._inputs, self._outputs = {}, {}, [], []
