# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Structural differences: other calls, wiring, arguments, attributes, dtypes and shapes; and how far each may reach.

They are exact evidence, but may be harmless. One reaches as far as the values behind it are not surely the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from probe.reading.compare.dataflow.nodes import Nodes
from probe.reading.compare.judging.verdicts import BITS, NUMBERS_EQUAL, OTHER_BITS, Slot, is_permuted
from probe.reading.compare.pairing.alignment import NONE, REPLACED
from probe.reading.dumps.entry_name import BACKWARD, FORWARD
from probe.reading.dumps.flow import Link, is_constant

_PASSES = 12
#: calls whose output has the elements of an input in other places; those that may; those that work on each alone
_PERMUTES = re.compile(r"[._](transpose|permute|swapaxes|swapdims|roll|flip|movedim|moveaxis|rot90|t|T)_?$", re.I)
_MOVES = re.compile(
    r"[._](transpose|permute|swapaxes|swapdims|roll|flip|movedim|moveaxis|rot90|t|reshape|view|flatten|squeeze|unsqueeze|"
    r"expanddims|expand_dims|contiguous|cast|to|astype|unstack|split|chunk|concat|cat|stack|tile|repeat|"
    r"repeat_interleave|repeat_elements|broadcast_to|expand|expand_as|gather|gather_elements|index_select|take|"
    r"__getitem__|select|stridedslice|slice|sort|topk|unfold|fold|pixel_shuffle|pixel_unshuffle|channel_shuffle|pad)_?$",
    re.IGNORECASE,
)
_ALONE = re.compile(
    r"[._](_*[ri]?(add|sub|mul|truediv|div|neg|pow|eq|ne|lt|le|gt|ge|and|or|xor|invert)_*|add_ext|sub_ext|multiply|"
    r"divide|realdiv|equal|not_equal|less|greater|where|masked_fill|clamp|clip|abs|exp|log|sqrt|rsqrt|square|reciprocal|"
    r"relu|gelu|silu|sigmoid|tanh|softplus|elu|leaky_relu|erf|sin|cos|maximum|minimum|logical_\w+|bool|float|half|"
    r"tensoradd|cast|stop_gradient|identity)_?$",
    re.IGNORECASE,
)


class Structure:
    """The structural differences of two dumps.

    Args:
        nodes: the pairs of calls.
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        a, b = nodes.alignment.flows
        self._mixed = not nodes.alignment.vocabulary.is_foreign and len(a.dtypes | b.dtypes) > 1

    def spread(self, causes: Sequence[Sequence[tuple[int, str]]]) -> list[int]:
        """Return for each node the first node with a structural difference that it may follow from; -1 for none."""
        soft = [node if self.is_soft(node) else NONE for node in range(len(self._nodes.pairs))]
        for _ in range(_PASSES if max(soft, default=NONE) != NONE else 0):
            changed = False
            for node, own in enumerate(causes):
                if soft[node] != NONE:
                    continue
                for cause, place in own:
                    if soft[cause] != NONE and not self._ends_softly(node, place, cause, soft[cause]):
                        soft[node], changed = soft[cause], True
                        break
            if not changed:
                break
        return soft

    def _ends_softly(self, node: int, place: str, cause: int, source: int) -> bool:
        """Return whether a value is surely the same, so that a change before it is harmless here.

        Equal numbers are no proof after a call that puts elements in other places, as ``transpose`` does.
        """
        slot = self._nodes.slot(node, place) if place else None
        if slot is None or slot.verdict not in (BITS, NUMBERS_EQUAL) or _form_differs(slot, self._mixed):
            return False
        if slot.verdict == BITS or is_constant(slot.a):
            return True
        is_alone = NONE in self._nodes.pairs[source][:2]
        if _PERMUTES.search(self._nodes.parts(source).key) and not is_alone:
            return False  # permuted heads stay permuted through all that works on each of them alone
        key = self._nodes.parts(cause).key
        may_move = _MOVES.search(self._nodes.parts(source).key) if is_alone else self._is_other_call(source)
        return not (may_move and (cause == source or _MOVES.search(key) or _ALONE.search(key)))

    def _is_other_call(self, node: int) -> bool:
        """Return whether a pair is of two calls, or of one with other arguments; not one with inputs from others."""
        slots = self._nodes.slots[node]
        return self._nodes.pairs[node].how == REPLACED or any(self._is_soft_slot(node, slot) for slot in slots)

    def is_soft(self, node: int) -> bool:
        """Return whether a node has a difference that may be harmless: an argument, a dtype, an added call."""
        pair, direction = self._nodes.pairs[node], self._nodes.parts(node).direction
        if (
            self._nodes.alignment.vocabulary.is_foreign
        ):  # two frameworks have other calls and dtypes everywhere; numbers alone tell
            return direction == FORWARD and any(self._is_soft_slot(node, slot) for slot in self._nodes.slots[node])
        if NONE in (pair.a, pair.b):
            return direction == FORWARD and not self._nodes.is_container(node)
        if direction == BACKWARD:
            return False
        if pair.how == REPLACED:
            return True
        return any(self._is_soft_slot(node, slot) for slot in self._nodes.slots[node]) or bool(self.wirings(node))

    def _is_soft_slot(self, node: int, slot: Slot) -> bool:
        if slot.verdict == "argument":
            return slot.is_input
        if slot.is_input and slot.verdict == OTHER_BITS and is_permuted(slot):
            return max(self._nodes.producer_nodes(node, slot.place)) == NONE
        if self._nodes.alignment.vocabulary.is_foreign or not _form_differs(slot, self._mixed):
            return False
        if slot.is_input:  # a recorded call that made it has the difference
            return max(self._nodes.producer_nodes(node, slot.place)) == NONE
        return not any(_form_differs(other, self._mixed) for other in self._nodes.slots[node] if other.is_input)

    def wirings(self, node: int) -> list[str]:
        """Return the inputs whose content comes from calls that are no partners."""
        pair = self._nodes.pairs[node]
        if NONE in (pair.a, pair.b):
            return []
        links_a, links_b = self._nodes.alignment.flows[0].links[pair.a], self._nodes.alignment.flows[1].links[pair.b]
        if len(links_a) != len(links_b):
            of_a = {link.place: link for link in links_a}
            links_b = tuple(link for link in links_b if link.place in of_a)
            links_a = tuple(of_a[link.place] for link in links_b)
        b_of = self._nodes.alignment.b_of
        return [
            left.place
            for left, right in zip(links_a, links_b)
            if left.root >= 0 and right.root >= 0 and b_of.get(left.root) != right.root
            if b_of.get(left.producer, NONE) != right.producer  # else the change is before that call
            if not self._is_one_loosely(left, right)
        ]

    def _is_one_loosely(self, left: Link, right: Link) -> bool:
        """Return whether an input comes from partners after all, if views and permutations are looked through."""
        root_a, root_b = (flow.loose_root(link) for flow, link in zip(self._nodes.alignment.flows, (left, right)))
        return root_a != NONE and self._nodes.alignment.b_of.get(root_a) == root_b


def _form_differs(slot: Slot, is_mixed: bool) -> bool:
    """Return whether two tensors have other shapes or, where a dump has several, other dtypes."""
    a, b = slot.a, slot.b
    if type(a) is not dict or type(b) is not dict or "shape" not in a or "shape" not in b:
        return False
    if a["shape"] != b["shape"]:
        return True
    if not is_mixed or a.get("dtype") == b.get("dtype"):
        return False
    return str(a.get("dtype")).rpartition(".")[2] != str(b.get("dtype")).rpartition(".")[2]
