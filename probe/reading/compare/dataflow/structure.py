# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Structural differences, and the nodes that may follow from one.

They are other calls, wiring, arguments, attributes, dtypes and shapes. They are exact evidence, but may be harmless.
One reaches as far as the values behind it are not surely the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from probe.reading.compare.dataflow.causes import Cause, Causes
from probe.reading.compare.dataflow.nodes import Nodes
from probe.reading.compare.dataflow.taint import PASSES
from probe.reading.compare.judging.verdicts import EQUAL, Slot, Verdict, is_permuted
from probe.reading.compare.pairing.partners import NONE, REPLACED
from probe.reading.dumps.entry_name import FORWARD
from probe.reading.dumps.flow import Link, is_constant

#: calls whose output has the elements of an input in other places
_PERMUTES = re.compile(
    r"[._](transpose|permute|swapaxes|swapdims|roll|flip|movedim|moveaxis|rot90|t|T)_?$", re.I
)
#: calls whose output may have them in other places
_MOVES = re.compile(
    r"[._](transpose|permute|swapaxes|swapdims|roll|flip|movedim|moveaxis|rot90|t|reshape|view|flatten|squeeze|unsqueeze|"
    r"expanddims|expand_dims|contiguous|cast|to|astype|unstack|split|chunk|concat|cat|stack|tile|repeat|"
    r"repeat_interleave|repeat_elements|broadcast_to|expand|expand_as|gather|gather_elements|index_select|take|"
    r"__getitem__|select|stridedslice|slice|sort|topk|unfold|fold|pixel_shuffle|pixel_unshuffle|channel_shuffle|pad)_?$",
    re.IGNORECASE,
)
#: calls that work on each element alone
_ALONE = re.compile(
    r"[._](_*[ri]?(add|sub|mul|truediv|div|neg|pow|eq|ne|lt|le|gt|ge|and|or|xor|invert)_*|add_ext|sub_ext|multiply|"
    r"divide|realdiv|equal|not_equal|less|greater|where|masked_fill|clamp|clip|abs|exp|log|sqrt|rsqrt|square|reciprocal|"
    r"relu|gelu|silu|sigmoid|tanh|softplus|elu|leaky_relu|erf|sin|cos|maximum|minimum|logical_\w+|bool|float|half|"
    r"tensoradd|cast|stop_gradient|identity)_?$",
    re.IGNORECASE,
)


class StructuralDifferences:
    """The structural differences, and for each node the first one that it may follow from."""

    def __init__(self, nodes: Nodes, causes: Causes) -> None:
        self._nodes = nodes
        self._causes = causes
        flow_a, flow_b = nodes.alignment.flows
        self._has_dtypes = not nodes.is_foreign and len(flow_a.dtypes | flow_b.dtypes) > 1
        numbers = range(len(nodes.pairs))
        #: node -> the first node with a structural difference that it may follow from; -1 for none
        self.sources = [node if self._is_soft(node) else NONE for node in numbers]
        if max(self.sources, default=NONE) == NONE:
            return
        for _ in range(PASSES):
            if not self._pass():
                break

    def _pass(self) -> bool:
        """Let the nodes follow whose causes do; return whether there was one."""
        is_changed = False
        for node, causes in enumerate(self._causes.of):
            if self.sources[node] == NONE:
                source = self._source_of(node, causes)
                if source != NONE:
                    self.sources[node] = source
                    is_changed = True
        return is_changed

    def _source_of(self, node: int, causes: Sequence[Cause]) -> int:
        for cause, place in causes:
            source = self.sources[cause]
            if source != NONE and not self._ends(node, place, cause, source):
                return source
        return NONE

    def _ends(self, node: int, place: str, cause: int, source: int) -> bool:
        """Return whether a value is surely the same, so that a change before it is harmless here."""
        slot = self._nodes.slot(node, place) if place else None
        if slot is None or slot.verdict not in EQUAL or self._form_differs(slot):
            return False
        if slot.verdict == Verdict.BITS or is_constant(slot.a):
            return True
        # equal numbers are no proof after a call that puts elements in other places, as ``transpose`` does
        source_key = self._nodes.parts(source).key
        if self._nodes.is_alone(source):
            may_move = _MOVES.search(source_key) is not None
        elif _PERMUTES.search(source_key):
            # permuted heads stay permuted through all that works on each of them alone
            return False
        else:
            # inputs from others are none
            is_replaced = self._nodes.pairs[source].how == REPLACED
            may_move = is_replaced or self._has_soft_slot(source)
        if not may_move:
            return True
        key = self._nodes.parts(cause).key
        return cause != source and not _MOVES.search(key) and not _ALONE.search(key)

    def _is_soft(self, node: int) -> bool:
        """Return whether a node has a difference that may be harmless: an argument, a dtype, an added call."""
        nodes = self._nodes
        if nodes.is_formed(node):
            return False
        is_forward = nodes.parts(node).direction == FORWARD
        if nodes.is_foreign:  # two frameworks have other calls and dtypes; numbers alone tell
            return is_forward and self._has_soft_slot(node)
        if nodes.is_alone(node):
            return is_forward and not nodes.is_container(node)
        if not is_forward:
            return False
        if nodes.pairs[node].how == REPLACED or self._has_soft_slot(node):
            return True
        return bool(wirings(nodes, node))

    def _has_soft_slot(self, node: int) -> bool:
        # a loop, as this is asked for every call
        for slot in self._nodes.slots[node]:  # noqa: SIM110
            if self._is_soft_slot(node, slot):
                return True
        return False

    def _is_soft_slot(self, node: int, slot: Slot) -> bool:
        if slot.verdict == Verdict.ARGUMENT:
            return slot.is_input
        if slot.is_input and slot.verdict == Verdict.OTHER_BITS and is_permuted(slot):
            return self._nodes.is_unmade(node, slot.place)
        if self._nodes.is_foreign or not self._form_differs(slot):
            return False
        if slot.is_input:  # a recorded call that made it has the difference
            return self._nodes.is_unmade(node, slot.place)
        inputs = self._nodes.inputs(node)
        return not any(self._form_differs(other) for other in inputs)

    def _form_differs(self, slot: Slot) -> bool:
        """Return whether two tensors have other shapes or, where a dump has several, other dtypes."""
        a = slot.a
        b = slot.b
        if type(a) is not dict or type(b) is not dict or "shape" not in a or "shape" not in b:
            return False
        if a["shape"] is not b["shape"] and a["shape"] != b["shape"]:
            return True
        dtype_a = a.get("dtype")
        dtype_b = b.get("dtype")
        if not self._has_dtypes or dtype_a == dtype_b:
            return False
        return _short_dtype(dtype_a) != _short_dtype(dtype_b)


def wirings(nodes: Nodes, node: int) -> list[str]:
    """Return the inputs whose content comes from calls that are no partners."""
    if nodes.is_alone(node):
        return []
    alignment = nodes.alignment
    b_of = alignment.b_of
    places: list[str] = []
    for left, right in _linked(nodes, node):
        if left.root < 0 or right.root < 0 or b_of.get(left.root) == right.root:
            continue
        if b_of.get(left.producer, NONE) == right.producer:
            continue  # the change is before that call
        if left.root in nodes.formed[0] and right.root in nodes.formed[1]:
            continue
        if not alignment.is_one_loosely(left, right):
            places.append(left.place)
    return places


def _linked(nodes: Nodes, node: int) -> Iterable[tuple[Link, Link]]:
    """Return the links of the inputs that both calls of a pair have."""
    pair = nodes.pairs[node]
    flow_a, flow_b = nodes.alignment.flows
    links_a = flow_a.links[pair.a]
    links_b = flow_b.links[pair.b]
    if len(links_a) == len(links_b):
        return zip(links_a, links_b)
    of_a = {link.place: link for link in links_a}
    return [(of_a[link.place], link) for link in links_b if link.place in of_a]


def moves_elements(key: str) -> bool:
    """Return whether the output of a call may have the elements of an input in other places.

    >>> moves_elements("Tensor.tile"), moves_elements("Functional.relu")
    (True, False)
    """
    return _MOVES.search(key) is not None


def _short_dtype(dtype: object) -> str:
    """Return a dtype without the module before it, as in torch.float32."""
    return str(dtype).rpartition(".")[2]
