# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Where the inputs of a call stand in the graph."""

from __future__ import annotations

from probe.capture.autograd.nodes import LEAF, AutogradNodes, Key, Node
from probe.pytree import TensorTree


class GraphInputs:
    """Where a call's inputs stood in the graph before it ran (an in-place call moves them).

    Args:
        tree: the tensors among the inputs.
        nodes: access to the graph.
        is_compiled: whether the call is one of a compiled function.

    Attributes:
        tree: see above.
        keys: place in the graph -> the input leaves that stand there.
        non_differentiable: leaves of a dtype that has no gradient.
        min_sequence_nr: the call's own nodes have higher sequence numbers than this.
        is_compiled: see above.
    """

    __slots__ = ("_held", "is_compiled", "keys", "min_sequence_nr", "non_differentiable", "tree")

    def __init__(self, tree: TensorTree, nodes: AutogradNodes, is_compiled: bool = False) -> None:
        self.tree, self.is_compiled = tree, is_compiled
        self.keys: dict[Key, list[int]] = {}
        self.non_differentiable: set[int] = set()
        self.min_sequence_nr = -1
        self._held: list[Node] = []  # so that no other node takes over an identity during the call
        for leaf, tensor in enumerate(tree.tensors):
            node = tensor._grad_node
            if node is not None:
                self._held.append(node)
                self.keys.setdefault((nodes.identify(node), tensor._output_index), []).append(leaf)
                if tensor._dtype not in nodes.continuous:
                    self.non_differentiable.add(leaf)
                number = node._sequence_nr()
                if self.min_sequence_nr < number < LEAF:
                    self.min_sequence_nr = number
