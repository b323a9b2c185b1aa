# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The places of a call's inputs in the graph, and the part of the graph that the call has made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from probe.capture.autograd.nodes import LEAF, AutogradNodes, Key, Node
from probe.pytree import TensorTree


class GraphInputs:
    """The places of a call's inputs in the graph before it ran (an in-place call moves them).

    Attributes:
        tree: the tensors among the inputs.
        keys: place in the graph -> the input leaves at this place.
        non_differentiable: leaves of a dtype that has no gradient.
        made_before: the sequence number of a node that was made before the call, where that is needed.
        is_compiled: whether a compiled function is called.
        begins_graph: the call itself begins the graph.
    """

    __slots__ = ("_held", "begins_graph", "is_compiled", "keys", "made_before", "non_differentiable", "tree")

    def __init__(self, tree: TensorTree, nodes: AutogradNodes, is_compiled: bool = False) -> None:
        self.tree, self.is_compiled, self.begins_graph = tree, is_compiled, False
        self.keys: dict[Key, list[int]] = {}
        self.non_differentiable: set[int] = set()
        self.made_before = -1
        self._held: list[Node] = []  # else another node could take over an identity during the call
        for leaf, tensor in enumerate(tree.tensors):
            node = tensor._grad_node
            if node is not None:
                self._held.append(node)
                self.keys.setdefault((nodes.identify(node), tensor._output_index), []).append(leaf)
                if tensor._dtype not in nodes.continuous:
                    self.non_differentiable.add(leaf)

    def newest(self) -> int:
        """Return a sequence number below those of the call's own nodes."""
        numbers = [int(node._sequence_nr()) for node in self._held]
        return max(self.made_before, *(number for number in [-1, *numbers] if number < LEAF))


class InnerNode(NamedTuple):
    """One node of the call."""

    node: Node
    sequence_nr: int
    keys: list[Key | None]  # the place in the graph that each edge leads to


class CallGraph:
    """Walks from the results of a call to its inputs."""

    def __init__(
        self, nodes: AutogradNodes, inputs: GraphInputs, results: Sequence[Any], result_nodes: Sequence[Node | None]
    ) -> None:
        self.inner: list[InnerNode] = []  # the nodes that the call has made
        self.results: dict[Key, int] = {}  # place in the graph -> the output leaf
        shared: set[Key] = set()
        arrivals: dict[Any, tuple[Node, list[tuple[int, int]]]] = {}
        for leaf, node in enumerate(result_nodes):
            if node is None:
                continue
            key = nodes.identify(node), results[leaf]._output_index
            if key in inputs.keys:
                shared.add(key)
            elif key not in self.results:  # returned twice: the whole gradient belongs to the first place
                self.results[key] = leaf
                arrivals.setdefault(key[0], (node, []))[1].append((key[1], leaf))
        #: the nodes where gradients of its results arrive, with (index, output leaf) pairs
        self.arrivals = list(arrivals.values())
        if self.arrivals:
            self._walk(nodes, inputs)
        else:  # only inputs are returned: an empty entry still shows that a gradient came through
            self.arrivals = [(next(node for node in result_nodes if node is not None), [])]
        first = {key: leaves[0] for key, leaves in inputs.keys.items() if key not in shared}
        #: place in the graph -> the input leaf whose gradients are read there. A result that is an input has none: its
        #: users cannot be told apart.
        self.inputs = {key: leaf for key, leaf in first.items() if leaf not in inputs.non_differentiable}

    def _walk(self, nodes: AutogradNodes, inputs: GraphInputs) -> None:
        todo, seen, newest = [node for node, _ in self.arrivals], set(), inputs.newest()
        while todo:
            node = todo.pop()
            identity, number = nodes.identify(node), node._sequence_nr()
            if identity in seen or number == LEAF or number <= newest:
                continue
            seen.add(identity)
            edges = node.next_functions
            keys = nodes.keys(edges)
            self.inner.append(InnerNode(node, number, keys))
            todo += [source for (source, _), key in zip(edges, keys) if key is not None and key not in inputs.keys]
