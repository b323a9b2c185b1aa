# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Each call's own gradients, read by hooks on graph nodes: nothing is inserted into the graph, so nothing changes.

A call that made one node is watched by one hook on it; any other call (a composite API, a Cell) by a ``BackwardEntry``:
its gradients are read where they cross the boundary of the call.
"""

from __future__ import annotations

import bisect
import enum
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Union

from probe.capture.autograd.call_graph import (
    CallGraph,
    CompiledNodes,
    GraphInputs,
    Places,
    ReadEdges,
    is_compiled,
)
from probe.capture.autograd.nodes import LEAF, AutogradNodes, Key, Node
from probe.measure.measurer import GradientSum
from probe.pytree import TensorTree, as_outputs
from probe.recording.call import Call, GradientUse
from probe.recording.step_recorder import StepRecorder

#: MindSpore's backward of these changes the gradient that arrives in place: it is read before they run
_CHANGES_ITS_GRADIENT = ("InplaceFillDiagonal",)
#: pairs, or a function that finds them by the number of gradients
FoundPlaces = Union[Places, Callable[[int], Places]]
#: two lists of (place of a gradient in a hook's ``gi``, leaf): gradients of inputs, gradients of results
_Found = tuple[list[tuple[int, int]], list[tuple[int, int]]]
_Open = tuple[
    int, int, Callable[[], None]
]  # last sequence number, order, the function that closes the entry


class GradientHooks:
    """Attaches hooks to the nodes of calls."""

    def __init__(self, nodes: AutogradNodes) -> None:
        self._nodes = nodes
        self._tensor = nodes.tensor
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
        begins_graph = (
            nodes.works
            and cell is not None
            and getattr(cell, "requires_grad", False)
            and not nodes.is_differentiated()
        )
        if not begins_graph and not (nodes.works and nodes.grad_enabled()):
            return None
        if recorder.task.gradients is GradientUse.ORDER:
            return self._no_inputs
        inputs = GraphInputs(
            TensorTree(self._tensor, args, is_input=False, keywords=kwargs),
            self._nodes,
            is_compiled,
        )
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
        nodes: list[Node] = []
        for tensor in outputs.tensors:
            node = tensor._grad_node
            # a leaf returned unchanged (for example x.to(x.dtype)) is not hooked: it outlives the graph
            is_made = (
                node is not None and node._sequence_nr() != LEAF and tensor._dtype in continuous
            )
            nodes.append(node if is_made else None)
        made = [node for node in nodes if node is not None]
        if not made:
            return
        if inputs is self._no_inputs:
            nothing = inputs.tree
            hook = _one_node(recorder, call, inputs, nothing, [], (), lambda number: None, 0)
            made[0].register_prehook(lambda go: hook((), go))
            return
        if len(nodes) == 1 or len({self._nodes.identify(node) for node in made}) == 1:
            first: dict[
                int, int
            ] = {}  # returned twice: the whole gradient belongs to the first place
            for leaf, node in enumerate(nodes):
                if node is not None:
                    first.setdefault(outputs.tensors[leaf]._output_index, leaf)
            places = self._places(made[0], inputs, first)
            if places is not None:
                arrivals = [(leaf, index) for index, leaf in first.items()]
                advance = self._open_entries.advance
                number = made[0]._sequence_nr()
                hook = _one_node(recorder, call, inputs, outputs, arrivals, places, advance, number)
                made[0].register_hook(hook)
                return
        entry = BackwardEntry(recorder, call, inputs, outputs, self._open_entries)
        entry.attach(CallGraph(self._nodes, inputs, outputs.tensors, nodes), self._compiled)

    def flush(self) -> None:
        """End every backward entry that has begun, on any thread."""
        self._open_entries.flush()

    def release(self) -> None:
        """Release all nodes: the step is over."""
        self._compiled.release()

    def _places(
        self, node: Node, inputs: GraphInputs, outputs: Iterable[int]
    ) -> FoundPlaces | None:
        """Return the places of the inputs' gradients, or a function that finds them; None if one hook cannot know."""
        name = node.name()
        if is_compiled(name):
            return self._compiled.places(node, inputs) if inputs.is_compiled else None
        return (
            None if name.startswith(_CHANGES_ITS_GRADIENT) else self._direct(node, inputs, outputs)
        )

    def _direct(
        self, node: Node, inputs: GraphInputs, outputs: Iterable[int]
    ) -> list[tuple[int, int]] | None:
        """Return (edge, input leaf) pairs if this is the only node between inputs and outputs, else None."""
        identity = self._nodes.identify(node)
        if not inputs.keys.keys().isdisjoint([(identity, index) for index in outputs]):
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
    places: FoundPlaces,
    advance: Callable[[int], None],
    sequence_nr: int,
) -> Callable[[Any, Any], None]:
    """Return the hook that records the whole backward entry of a one-node call."""
    in_layout = outputs.slot_layout
    out_layout = inputs.tree.slot_layout
    passes = -1

    def hook(gi: Any, go: Any) -> None:
        if not recorder.closed:
            recorder.queue.synchronize()
            recorder.safely("reading a gradient", call, read, gi, go, backward=True)

    def read(gi: Any, go: Any) -> None:
        nonlocal passes
        advance(sequence_nr)
        passes += 1
        if passes:
            recorder.note_later_pass(call, passes)
            return
        found = places(len(gi)) if callable(places) else places
        if not recorder.begin_backward(call):
            return
        gradient = recorder.task.gradient
        arrived: list[Any] = [None] * len(in_layout.slots)
        for leaf, index in arrivals:
            if go[index] is not None:
                arrived[leaf] = gradient(call, in_layout.slots[leaf], go[index])
        contributions: list[Any] = [None] * len(out_layout.slots)
        if found is None:
            recorder.note_unassigned_gradients(call)
        for place, leaf in found or ():
            if gi[place] is not None:
                contributions[leaf] = gradient(call, out_layout.slots[leaf], gi[place])
        recorder.end_backward(call, in_layout, arrived, out_layout, contributions)

    return hook


class OpenBackwardEntries:
    """Closes backward entries when they can receive nothing more."""

    def __init__(self) -> None:
        self.orders = itertools.count()  # numbers the entries in the order of attaching
        self._all: list[list[_Open]] = []
        self._thread = _ThreadEntries(self._all)

    def add(self, last_sequence_nr: int, order: int, close: Callable[[], None]) -> None:
        """Add an entry of this thread; ``close`` ends it. Of two at one node, the inner call came and ends first."""
        bisect.insort(self._thread.entries, (last_sequence_nr, -order, close))

    def advance(self, sequence_nr: int) -> None:
        """Close the entries of this thread that end before this node: the engine runs nodes in falling order."""
        entries = self._thread.entries
        while entries and entries[-1][0] > sequence_nr:
            entries.pop()[2]()

    def flush(self) -> None:
        """Close every entry, on any thread."""
        for entries in self._all:
            while entries:
                entries.pop()[2]()


class _ThreadEntries(threading.local):
    def __init__(self, every: list[list[_Open]]) -> None:
        self.entries: list[_Open] = []
        every.append(self.entries)


class _State(enum.Enum):
    WAITING = "no gradient has arrived"
    OPEN = "gradients arrive and are recorded"
    SKIPPED = "gradients arrive; the entry is not recorded"
    CLOSED = "nothing more can arrive in this pass"


class BackwardEntry:
    """Opens with the first gradient that reaches the call and closes with the last that leaves it.

    * A contribution that has several edges is summed.
    * An output that the call also uses itself: the contributions from inside are subtracted.
    * An output that is an input has null in both places: its users cannot be told from the users of the input.
    * ``opened`` closes the entry when nothing more can arrive.
    """

    def __init__(
        self,
        recorder: StepRecorder,
        call: Call,
        inputs: GraphInputs,
        outputs: TensorTree,
        opened: OpenBackwardEntries,
    ) -> None:
        self._recorder = recorder
        self._call = call
        self._in_layout = outputs.slot_layout
        self._out_layout = inputs.tree.slot_layout
        self._inputs: list[Any] = [None] * len(self._in_layout.slots)
        self._outputs: list[Any] = [None] * len(self._out_layout.slots)
        self._inner_sums: dict[int, GradientSum] = {}
        self._input_sums: dict[int, GradientSum] = {}
        self._open_entries = opened
        self._position = (LEAF, next(opened.orders))
        self._state = _State.WAITING
        self._passes = 0

    def attach(self, graph: CallGraph, compiled: CompiledNodes) -> None:
        """Hook the call's part of the graph. The hooks live as long as the graph, and do not hold it."""
        last = min(graph.inner, key=lambda inner: inner.sequence_nr, default=None)
        self._position = (LEAF if last is None else last.sequence_nr), self._position[1]
        met: Counter[int] = Counter()
        of_inputs = graph.inputs
        of_results = graph.results

        def find(keys: Sequence[Key | None]) -> _Found:
            return _edges_to(keys, of_inputs), _edges_to(keys, of_results)

        for place, (node, wanted) in enumerate(graph.arrivals):
            node.register_prehook(
                self._on_arrival(node._sequence_nr(), wanted, place == 0, last is None)
            )
        for inner in graph.inner:
            inputs, results = crossings = find(inner.keys)
            if inputs or results or inner is last:
                met.update(leaf for _, leaf in inputs)
                self._inner_sums.update(
                    (leaf, self._recorder.queue.new_sum()) for _, leaf in results
                )
                edges = compiled.edges(inner.node)
                inner.node.register_hook(
                    self._on_node(inner.sequence_nr, crossings, edges, find, inner is last)
                )
        self._input_sums = {
            leaf: self._recorder.queue.new_sum() for leaf, count in met.items() if count > 1
        }

    def _on_arrival(
        self, sequence_nr: int, wanted: list[tuple[int, int]], is_first: bool, is_last: bool
    ) -> Callable[[Any], None]:
        def hook(go: Any) -> None:
            if not self._begin(sequence_nr, is_first):
                return
            with self._recorder.guard("reading a gradient", self._call, backward=True):
                for index, leaf in wanted:
                    self._take_input(leaf, go[index])
                if is_last:
                    self.close()

        return hook

    def _on_node(
        self,
        number: int,
        crossings: _Found,
        edges: ReadEdges | None,
        find: Callable[..., _Found],
        is_last: bool,
    ) -> Callable[[Any, Any], None]:
        def hook(gi: Any, go: Any) -> None:
            is_wanted = self._begin(number)
            with self._recorder.guard("reading a gradient", self._call, backward=True):
                inputs, results = crossings if edges is None else find(edges())
                if not is_wanted:
                    return
                for place, leaf in results:
                    if gi[place] is not None:
                        self._inner_sums[leaf].add(gi[place])
                for place, leaf in inputs:
                    self._take_output(leaf, gi[place])
                if is_last:
                    self.close()

        return hook

    def _begin(self, sequence_nr: int, is_first: bool = False) -> bool:
        """Open the entry with its first event; return whether the gradients of this event are recorded."""
        recorder = self._recorder
        if recorder.closed:
            return False
        recorder.queue.synchronize()
        with recorder.guard("opening a backward entry", self._call, backward=True):
            self._open_entries.advance(sequence_nr)
            if self._state is _State.CLOSED and is_first:
                self._passes += 1
                recorder.note_later_pass(self._call, self._passes)
            if self._state is _State.WAITING:
                self._state = _State.OPEN if recorder.begin_backward(self._call) else _State.SKIPPED
                self._open_entries.add(*self._position, self.close)
        return self._state is _State.OPEN

    def _take_input(self, leaf: int, gradient: Any) -> None:
        if gradient is None:
            return
        inner = self._inner_sums.get(leaf)
        slot = self._in_layout.slots[leaf]
        if inner is None:
            self._inputs[leaf] = self._recorder.task.gradient(self._call, slot, gradient)
        elif inner.subtract_from(gradient):
            self._inputs[leaf] = self._recorder.task.gradient_sum(self._call, slot, inner)

    def _take_output(self, leaf: int, gradient: Any) -> None:
        if gradient is None:
            return
        total = self._input_sums.get(leaf)
        if total is None:
            self._outputs[leaf] = self._recorder.task.gradient(
                self._call, self._out_layout.slots[leaf], gradient
            )
        else:
            total.add(gradient)

    def close(self) -> None:
        """End the entry. A second call has no effect."""
        state = self._state
        self._state = _State.CLOSED
        if state is not _State.OPEN:
            return
        recorder = self._recorder
        call = self._call
        with recorder.guard("finishing a backward entry", call, backward=True):
            for leaf, total in self._input_sums.items():
                if total:
                    self._outputs[leaf] = recorder.task.gradient_sum(
                        call, self._out_layout.slots[leaf], total
                    )
            recorder.end_backward(
                call, self._in_layout, self._inputs, self._out_layout, self._outputs
            )
        self._input_sums = {}
        self._inner_sums = {}
        self._inputs = []
        self._outputs = []


def _edges_to(keys: Sequence[Key | None], leaves: dict[Key, int]) -> list[tuple[int, int]]:
    if leaves.keys().isdisjoint(keys):  # as nearly always
        return []
    return [(edge, leaves[key]) for edge, key in enumerate(keys) if key in leaves]
