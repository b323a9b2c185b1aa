# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The places of a call's inputs in the graph, and the part of the graph that the call has made.

The node of a compiled function has an edge for each tensor of the arguments, in the order of the signature, and then
one for each Parameter that the function uses. A tuple, list or dict without gradients has none: it is compiled as a
constant. MindSpore removes edges that need no gradient while it computes the gradients. A hook receives only the
gradients of the other edges. So the edges are read in the hook: there they match the gradients.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional

from probe.capture.autograd.nodes import LEAF, AutogradNodes, Key, Node
from probe.pytree import TensorTree, leaves as leaves_of

_NAME = "bprop_builder"  # part of the name of every such node, and of no other node's
#: (place of the gradient in a hook's ``gi``, input leaf); None where the mapping cannot be proven
Places = Optional[Sequence[tuple[int, int]]]
ReadEdges = Callable[
    [], list[Optional[Key]]
]  # reads the places in the graph that the edges of a node lead to
#: pairs of (edge, input leaf) in order, and whether edges follow on those of a container with several tensors
_Way = tuple[tuple[tuple[int, int], ...], bool]


class GraphInputs:
    """The places of a call's inputs in the graph before it ran (an in-place call moves them)."""

    __slots__ = (
        "_held",
        "begins_graph",
        "is_compiled",
        "keys",
        "made_before",
        "non_differentiable",
        "tree",
    )

    def __init__(self, tree: TensorTree, nodes: AutogradNodes, is_compiled: bool = False) -> None:
        self.tree = tree  # the tensors among the inputs
        self.is_compiled = is_compiled  # of a compiled function
        self.begins_graph = False  # the call itself begins one
        self.keys: dict[Key, list[int]] = {}  # place in the graph -> the input leaves at this place
        self.non_differentiable: set[int] = set()  # leaves of a dtype that has no gradient
        self.made_before = (
            -1
        )  # the sequence number of a node that was made before the call, where that is needed
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
        self,
        nodes: AutogradNodes,
        inputs: GraphInputs,
        results: Sequence[Any],
        result_nodes: Sequence[Node | None],
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
            elif (
                key not in self.results
            ):  # returned twice: the whole gradient belongs to the first place
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
        self.inputs = {
            key: leaf for key, leaf in first.items() if leaf not in inputs.non_differentiable
        }

    def _walk(self, nodes: AutogradNodes, inputs: GraphInputs) -> None:
        todo = [node for node, _ in self.arrivals]
        seen = set()
        newest = inputs.newest()
        while todo:
            node = todo.pop()
            identity = nodes.identify(node)
            number = node._sequence_nr()
            if identity in seen or number == LEAF or number <= newest:
                continue
            seen.add(identity)
            edges = node.next_functions
            keys = nodes.keys(edges)
            self.inner.append(InnerNode(node, number, keys))
            todo += [
                source
                for (source, _), key in zip(edges, keys)
                if key is not None and key not in inputs.keys
            ]


def is_compiled(name: str) -> bool:
    """Return whether a node of this name is that of a compiled function."""
    return _NAME in name


class CompiledNodes:
    """Reads the edges of compiled functions' nodes."""

    def __init__(self, nodes: AutogradNodes) -> None:
        import mindspore

        self._nodes = nodes
        self._parameter: type = mindspore.Parameter
        #: until their hooks run: a hook that held its own node would keep it alive for ever
        self._held: dict[int, Node] = {}
        self._numbers = itertools.count()

    def release(self) -> None:
        """Release all nodes: no gradient is recorded from now on."""
        self._held.clear()

    def edges(self, node: Node) -> ReadEdges | None:
        """Return what reads the edges of the gradients, once, in the node's hook; None for one that is not compiled."""
        return self._reader(node) if is_compiled(node.name()) else None

    def _reader(self, node: Node) -> ReadEdges:
        number = next(self._numbers)
        held = self._held
        held[number] = node

        def read() -> list[Key | None]:
            node = held.pop(number, None)
            return [] if node is None else self._nodes.keys(node.next_functions)

        return read

    def places(self, node: Node, inputs: GraphInputs) -> Callable[[int], Places]:
        """Return a function that maps a number of gradients to the input leaves of the call, in the node's hook."""
        before = self._nodes.keys(node.next_functions)
        read = self._reader(node)
        leaves, packed = self._align(node, before, inputs)
        wanted = {
            leaf for known in inputs.keys.values() for leaf in known
        } - inputs.non_differentiable

        def places(count: int) -> Places:
            after = read()
            if not wanted:
                return ()
            if leaves is None or count != len(after) or (packed and after != before):
                return None
            return _follow(
                before, after, {place: leaf for place, leaf in leaves.items() if leaf in wanted}
            )

        return places

    def _align(
        self, node: Node, edges: list[Key | None], inputs: GraphInputs
    ) -> tuple[dict[int, int] | None, bool]:
        """Return edge -> input leaf, or None where there is no way or more than one.

        The second value tells whether edges may follow on those of a container with several tensors. There MindSpore
        confuses the places of arguments when it removes edges.
        """
        keys: list[Key | None] = [None] * len(inputs.tree.tensors)
        for key, known in inputs.keys.items():
            for leaf in known:
                keys[leaf] = key
        ways: dict[int, set[_Way]] = {
            0: {((), False)}
        }  # number of edges that are accounted for -> the ways to do so
        for slot in (*inputs.tree.slot_layout.layout, *inputs.tree.slot_layout.keywords.values()):
            leaves = list(leaves_of(slot))
            expected = [keys[leaf] for leaf in leaves]
            may_be_constant = not isinstance(slot, int) or keys[slot] is None
            longer: defaultdict[int, set[_Way]] = defaultdict(set)
            for place, found in ways.items():
                end = place + len(leaves)
                if edges[place:end] == expected:
                    pairs = tuple(
                        (place + i, leaf) for i, leaf in enumerate(leaves) if keys[leaf] is not None
                    )
                    packed = len(leaves) > 1 and end < len(edges)
                    longer[end] |= {
                        (way + pairs, was_packed or packed) for way, was_packed in found
                    }
                if may_be_constant:
                    longer[place] |= found
            ways = longer
        rest = self._first_of_parameters(node, edges, inputs)
        fits = [way for place, found in ways.items() if place >= rest for way in found]
        if len({pairs for pairs, _ in fits}) != 1:
            return None, False
        return dict(fits[0][0]), any(packed for _, packed in fits)

    def _first_of_parameters(self, node: Node, edges: list[Key | None], inputs: GraphInputs) -> int:
        """Return the first place from which on all edges may be those of Parameters that the function uses."""
        first = 0
        for place, ((source, _), key) in enumerate(zip(node.next_functions, edges)):
            known = () if key is None else inputs.keys.get(key, ())
            is_parameter = all(
                isinstance(inputs.tree.tensors[leaf], self._parameter) for leaf in known
            )
            if source is not None and (source._sequence_nr() != LEAF or not is_parameter):
                first = place + 1
        return first


def _follow(before: list[Key | None], after: list[Key | None], leaves: dict[int, int]) -> Places:
    """Return the new places of the leaves' edges; None if only some of the edges of one tensor are left."""
    found = []
    for key in {before[place] for place in leaves}:
        old = [place for place, known in enumerate(before) if known == key]
        new = [place for place, known in enumerate(after) if known == key]
        if new and len(new) != len(old):
            return None
        found += [(place, leaves[origin]) for origin, place in zip(old, new) if origin in leaves]
    return found
