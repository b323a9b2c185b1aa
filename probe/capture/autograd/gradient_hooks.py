# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Each call's own gradients, read by hooks on graph nodes: nothing is inserted into the graph, so nothing changes.

A call that made one node is watched by one hook on it; any other call (a composite API, a Cell) by a ``Pending``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from probe.capture.autograd.backward_entry import BackwardEntry, Sink
from probe.capture.autograd.nodes import LEAF, AutogradNodes, Key, Node
from probe.capture.pynative.thread_state import ThreadState
from probe.pytree import TensorTree, as_outputs, fill


class GraphInputs:
    """Where a call's inputs stood in the graph before it ran (an in-place call moves them).

    Attributes:
        keys: place in the graph -> the input leaves that stand there.
        quiet: leaves of a dtype that has no gradient.
        floor: the call's own nodes have higher sequence numbers than this.
    """

    __slots__ = ("slots", "keywords", "keys", "quiet", "floor", "_held")

    def __init__(self, slots: TensorTree, keywords: dict[str, Any], nodes: AutogradNodes) -> None:
        self.slots, self.keywords = slots, keywords
        self.keys: dict[Key, list[int]] = {}
        self.quiet: set[int] = set()
        self.floor = -1
        self._held: list[Node] = []  # so that no other node takes over an identity during the call
        for leaf, tensor in enumerate(slots.tensors):
            node = tensor._grad_node
            if node is not None:
                self._held.append(node)
                self.keys.setdefault((nodes.identify(node), tensor._output_index), []).append(leaf)
                if tensor._dtype not in nodes.continuous:
                    self.quiet.add(leaf)
                number = node._sequence_nr()
                if self.floor < number < LEAF:
                    self.floor = number


class GradientHooks:
    """Attaches the hooks of one collection."""

    def __init__(
        self, nodes: AutogradNodes, state: ThreadState, all_open: list[list[tuple[int, int, BackwardEntry]]]
    ) -> None:
        import mindspore

        self._nodes = nodes
        self._state = state
        self._all_open = all_open
        self._tensor: type = mindspore.Tensor
        self._orders = itertools.count()
        #: stands for the plan of a call of which only the order of its backward is wanted
        self._unknown = GraphInputs(TensorTree(self._tensor, (), "output"), {}, nodes)

    def plan(self, sink: Sink, args: Sequence[Any], kwargs: Mapping[str, Any]) -> GraphInputs | None:
        """Note where the inputs of a call stand; None where no gradient is being recorded."""
        if not self._nodes.works or not self._nodes.recording():
            return None
        if sink.order_only:
            return self._unknown
        slots = TensorTree(self._tensor, args, "output")
        return GraphInputs(slots, slots.keywords(kwargs) if kwargs else {}, self._nodes)

    def plan_cell(self, sink: Sink, args: Sequence[Any], kwargs: Mapping[str, Any]) -> GraphInputs | None:
        """Note the same for a Cell. It may use tensors it was not given: only what is made from now on is its own."""
        plan = self.plan(sink, args, kwargs)
        if plan is not None and plan is not self._unknown:
            plan.floor = self._nodes.now()
        return plan

    def attach(self, sink: Sink, call: Any, plan: GraphInputs, result: Any) -> None:
        """Watch the gradients of a call that has returned."""
        continuous = self._nodes.continuous
        outputs = TensorTree(self._tensor, as_outputs(result), "input")
        nodes = [tensor._grad_node if tensor._dtype in continuous else None for tensor in outputs.tensors]
        # a leaf that is given back (a parameter cast to its own dtype) outlives the graph, and calls no hooks
        nodes = [None if node is None or node._sequence_nr() == LEAF else node for node in nodes]
        made = [node for node in nodes if node is not None]
        if not made:
            return
        if plan is self._unknown:
            made[0].register_prehook(_order_only(sink, call))
            return
        if len(nodes) == 1 or len({self._nodes.identify(node) for node in made}) == 1:
            edges = self._direct(made[0], plan, outputs.tensors)
            if edges is not None:
                reached = [leaf for leaf, node in enumerate(nodes) if node is not None]
                arrivals = [(leaf, outputs.tensors[leaf]._output_index) for leaf in reached]
                number = made[0]._sequence_nr()
                made[0].register_hook(_one_node(sink, call, plan, outputs, arrivals, edges, self.advance, number))
                return
        pending = BackwardEntry(sink, call, plan, outputs, self._nodes.identify, next(self._orders))
        pending.attach(nodes, self._state, self.advance)

    def advance(self, number: int) -> None:
        """End the entries of this thread that can get nothing more: the engine runs nodes in falling order."""
        opened = self._state.open
        while opened and opened[-1][0] > number:
            opened.pop()[2].close()

    def flush(self) -> None:
        """End every backward entry that has begun, on any thread."""
        for opened in self._all_open:
            while opened:
                opened.pop()[2].close()

    def _direct(self, node: Node, plan: GraphInputs, outputs: Sequence[Any]) -> list[tuple[int, int]] | None:
        """Return (edge, input leaf) pairs if this node alone stands between inputs and outputs, else None."""
        identify = self._nodes.identify
        identity = identify(node)
        if any((identity, tensor._output_index) in plan.keys for tensor in outputs):
            return None
        edges: list[tuple[int, int]] = []
        met: dict[Key, int] = {}
        for place, (source, index) in enumerate(node.next_functions):
            if source is None:
                continue
            key = (identify(source), index)
            leaves = plan.keys.get(key)
            count = met[key] = met.get(key, 0) + 1
            if leaves is None or count > len(leaves):
                return None
            if leaves[count - 1] not in plan.quiet:
                edges.append((place, leaves[count - 1]))
        if not edges or any(count != len(plan.keys[key]) for key, count in met.items()):
            return None
        return edges


def _order_only(sink: Sink, call: Any) -> Callable[[Any], None]:
    """Return the hook that notes the backward of a call when a gradient reaches its first result, whatever it is."""
    seen = False

    def hook(go: Any) -> None:
        nonlocal seen
        if seen or sink.closed:
            return
        seen = True
        try:
            if sink.backward_begins(call):
                sink.backward_ends(call, [], [], {})
        except Exception as error:
            sink.failed(call, "noting a backward", error, backward=True)

    return hook


def _one_node(
    sink: Sink,
    call: Any,
    plan: GraphInputs,
    outputs: TensorTree,
    arrivals: Sequence[tuple[int, int]],
    edges: Sequence[tuple[int, int]],
    advance: Callable[[int], None],
    number: int,
) -> Callable[[Any, Any], None]:
    """Return the hook that records the whole backward entry of a one-node call."""
    in_places, in_layout = outputs.places, outputs.layout
    out_places, out_layout, keywords = plan.slots.places, plan.slots.layout, plan.keywords
    flat = outputs.flat and plan.slots.flat and not keywords
    passes = -1

    def hook(gi: Any, go: Any) -> None:
        nonlocal passes
        if sink.closed:
            return
        sink.settle()
        try:
            advance(number)
            passes += 1
            if passes:
                sink.later_pass(call, passes)
            elif sink.backward_begins(call):
                inputs: list[Any] = [None] * len(in_places)
                for leaf, index in arrivals:
                    if go[index] is not None:
                        inputs[leaf] = sink.gradient(call, in_places[leaf], go[index])
                contributions: list[Any] = [None] * len(out_places)
                for edge, leaf in edges:
                    if gi[edge] is not None:
                        contributions[leaf] = sink.gradient(call, out_places[leaf], gi[edge])
                if flat:
                    sink.backward_ends(call, inputs, contributions, keywords)
                else:
                    sink.backward_ends(
                        call, fill(in_layout, inputs), fill(out_layout, contributions), fill(keywords, contributions)
                    )
        except Exception as error:
            sink.failed(call, "reading a gradient", error, backward=True)

    return hook
