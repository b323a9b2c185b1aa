# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Each call's own gradients, read by hooks on graph nodes: nothing is inserted into the graph, so nothing changes.

A call that made one node is watched by one hook on it; any other call (a composite API, a Cell) by a ``BackwardEntry``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from probe.capture.autograd.backward_entry import BackwardEntry, OpenBackwardEntries
from probe.capture.autograd.call_graph import CallGraph, CompiledNodes, GraphInputs, Places, is_compiled
from probe.capture.autograd.nodes import LEAF, AutogradNodes, Key, Node
from probe.pytree import TensorTree, as_outputs
from probe.recording.call import Call
from probe.recording.step_recorder import StepRecorder
from probe.recording.task import GradientUse

#: MindSpore's backward of these changes the gradient that arrives in place: it is read before they run
_CHANGES_ITS_GRADIENT = ("InplaceFillDiagonal",)


class GradientHooks:
    """Attaches hooks to the nodes of calls."""

    def __init__(self, nodes: AutogradNodes) -> None:
        self._nodes, self._tensor = nodes, nodes.tensor
        self._compiled = CompiledNodes(nodes)
        self._open_entries = OpenBackwardEntries()
        #: the inputs of every call, if only the order of backward entries is recorded
        self._no_inputs = GraphInputs(TensorTree(nodes.tensor, (), is_input=False), nodes)

    def find_inputs(
        self,
        recorder: StepRecorder,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        cell: Any = None,
        is_compiled: bool = False,
        is_custom: bool = False,
    ) -> GraphInputs | None:
        """Return the places of a call's inputs in the graph; None if no gradient is being recorded.

        A Cell, and a function of the user's own, may use tensors that are not its arguments: only nodes made from now
        on are its own. A Cell that is differentiated itself begins the graph later, in its call.
        """
        nodes = self._nodes
        begins_graph = nodes.works and cell is not None and cell.requires_grad and not nodes.is_differentiated()
        if not begins_graph and not (nodes.works and nodes.grad_enabled()):
            return None
        if recorder.task.gradients is GradientUse.ORDER:
            return self._no_inputs
        inputs = GraphInputs(TensorTree(self._tensor, args, is_input=False, keywords=kwargs), self._nodes, is_compiled)
        inputs.begins_graph = begins_graph
        if not begins_graph and (cell is not None or is_custom):
            inputs.made_before = nodes.newest_sequence_nr()
        return inputs

    def attach(self, recorder: StepRecorder, call: Call, inputs: GraphInputs, result: Any) -> None:
        """Watch the gradients of a call that has returned."""
        if inputs.begins_graph:  # they have places only now
            inputs = GraphInputs(inputs.tree, self._nodes)
        continuous = self._nodes.continuous
        outputs = TensorTree(self._tensor, as_outputs(result), is_input=True)
        nodes = [tensor._grad_node if tensor._dtype in continuous else None for tensor in outputs.tensors]
        # a leaf returned unchanged (for example x.to(x.dtype)) is not hooked: it outlives the graph
        nodes = [None if node is None or node._sequence_nr() == LEAF else node for node in nodes]
        made = [node for node in nodes if node is not None]
        if not made:
            return
        if inputs is self._no_inputs:
            hook = _one_node(recorder, call, inputs, inputs.tree, [], lambda count: (), lambda: None)
            made[0].register_prehook(lambda go: hook((), go))
            return
        if len(nodes) == 1 or len({self._nodes.identify(node) for node in made}) == 1:
            places = self._places(made[0], inputs, outputs.tensors)
            if places is not None:
                first: dict[int, int] = {}  # returned twice: the whole gradient belongs to the first place
                for leaf in (leaf for leaf, node in enumerate(nodes) if node is not None):
                    first.setdefault(outputs.tensors[leaf]._output_index, leaf)
                arrivals = [(leaf, index) for index, leaf in first.items()]
                advance = functools.partial(self._open_entries.advance, made[0]._sequence_nr())
                made[0].register_hook(_one_node(recorder, call, inputs, outputs, arrivals, places, advance))
                return
        entry = BackwardEntry(recorder, call, inputs, outputs, self._open_entries)
        entry.attach(CallGraph(self._nodes, inputs, outputs.tensors, nodes), self._compiled)

    def flush(self) -> None:
        """End every backward entry that has begun, on any thread."""
        self._open_entries.flush()

    def release(self) -> None:
        """Release all nodes: the step is over."""
        self._compiled.release()

    def _places(self, node: Node, inputs: GraphInputs, outputs: Sequence[Any]) -> Callable[[int], Places] | None:
        """Return a function that finds the gradients of the inputs; None if a hook behind the node does not suffice."""
        if is_compiled(node):
            return self._compiled.places(node, inputs) if inputs.is_compiled else None
        if node.name().startswith(_CHANGES_ITS_GRADIENT):
            return None
        edges = self._direct(node, inputs, outputs)
        return None if edges is None else lambda count: edges

    def _direct(self, node: Node, inputs: GraphInputs, outputs: Sequence[Any]) -> list[tuple[int, int]] | None:
        """Return (edge, input leaf) pairs if this is the only node between inputs and outputs, else None."""
        identity = self._nodes.identify(node)
        if any((identity, tensor._output_index) in inputs.keys for tensor in outputs):
            return None
        edges: list[tuple[int, int]] = []
        met: dict[Key, int] = {}
        for place, key in enumerate(self._nodes.keys(node.next_functions)):
            if key is None:
                continue
            leaves = inputs.keys.get(key)
            count = met[key] = met.get(key, 0) + 1
            if leaves is None or count > len(leaves):
                return None
            if leaves[count - 1] not in inputs.non_differentiable:
                edges.append((place, leaves[count - 1]))
        if not edges or any(count != len(inputs.keys[key]) for key, count in met.items()):
            return None
        return edges


def _one_node(
    recorder: StepRecorder,
    call: Call,
    inputs: GraphInputs,
    outputs: TensorTree,
    arrivals: Sequence[tuple[int, int]],
    places: Callable[[int], Places],
    advance: Callable[[], None],
) -> Callable[[Any, Any], None]:
    """Return the hook that records the whole backward entry of a one-node call."""
    in_layout, out_layout = outputs.slot_layout, inputs.tree.slot_layout
    passes = -1

    def hook(gi: Any, go: Any) -> None:
        nonlocal passes
        if recorder.closed:
            return
        recorder.synchronize()
        with recorder.guard("reading a gradient", call, backward=True):
            advance()
            passes += 1
            if passes:
                recorder.note_later_pass(call, passes)
                return
            found = places(len(gi))
            if not recorder.begin_backward(call):
                return
            arrived: list[Any] = [None] * len(in_layout.slots)
            for leaf, index in arrivals:
                if go[index] is not None:
                    arrived[leaf] = recorder.task.gradient(call, in_layout.slots[leaf], go[index])
            contributions: list[Any] = [None] * len(out_layout.slots)
            if found is None:
                recorder.note_unassigned_gradients(call)
            for place, leaf in found or ():
                if gi[place] is not None:
                    contributions[leaf] = recorder.task.gradient(call, out_layout.slots[leaf], gi[place])
            recorder.end_backward(call, in_layout, arrived, out_layout, contributions)

    return hook
