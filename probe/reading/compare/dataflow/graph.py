# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The dataflow of two paired dumps: the possible causes of each difference.

A value is off where it differs beyond tolerance, or is missing on one side. A call is tainted if a cause of it is off
or tainted. Taint passes through a value that merely agrees in statistics, and ends at one whose bits agree.

Structural differences are other calls, wiring, arguments, attributes, dtypes and shapes. They are exact evidence, but
may be harmless. One reaches as far as the values behind it are not surely the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from probe.reading.compare.dataflow.nodes import Nodes
from probe.reading.compare.judging.judged_pairs import JudgedPairs
from probe.reading.compare.judging.verdicts import EQUAL, HARD, Slot, Verdict, is_permuted
from probe.reading.compare.pairing.alignment import NONE, REPLACED, Pair
from probe.reading.dumps.entry_name import API, BACKWARD, CELL, FORWARD, GRADIENT
from probe.reading.dumps.flow import is_constant
from probe.reading.dumps.updates import NUMBERS

_PASSES = 12
#: a possible cause: a node, and the input through which it acts ("" for no single input)
Cause = tuple[int, str]
#: calls whose output has the elements of an input in other places; those that may; those that work on each alone
_PERMUTES = re.compile(
    r"[._](transpose|permute|swapaxes|swapdims|roll|flip|movedim|moveaxis|rot90|t|T)_?$", re.I
)
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


class Graph(Nodes):
    """The nodes and their causes, and for each node whether it is off, and whether it is tainted."""

    def __init__(self, judged: JudgedPairs, slots: list[list[Slot]] | None = None) -> None:
        super().__init__(judged, judged.slots if slots is None else slots)
        verdicts = ([slot.verdict for slot in found] for found in self.slots)
        self.off = [
            not HARD.isdisjoint(own) or self._lost_backward(pair)
            for pair, own in zip(self.pairs, verdicts)
        ]
        a, b = self.alignment.flows
        self._mixed = not self.alignment.vocabulary.is_foreign and len(a.dtypes | b.dtypes) > 1
        self._inside = self._find_inside()
        whole: list[Cause] = [(node, "") for node in range(len(self.pairs))]
        causes = [self._causes(node, whole) for node in range(len(self.pairs))]
        self.tainted = self._taint(causes)
        #: for each node the first one with a structural difference that it may follow from; -1 for none
        self.soft = self._spread(causes)

    def _lost_backward(self, pair: Pair) -> bool:
        """Return whether this is a backward that the other side's paired forward does not have."""
        if (pair.a == NONE) == (pair.b == NONE):
            return False
        side = 0 if pair.b == NONE else 1
        flow = self.alignment.flows[side]
        place = pair.b if side else pair.a
        parts = flow.parts[place]
        if parts.kind == GRADIENT:
            own = flow.position.get(f"{parts.key}.{FORWARD}.0")
            return own is None or own in (self.alignment.b_of, self.alignment.a_of)[side]
        if parts.direction != BACKWARD or parts.kind not in (API, CELL):
            return False
        if self.alignment.vocabulary.is_foreign and parts.kind == API:
            return False  # frameworks differentiate other parts of a call by themselves
        forward = flow.forward_of(place)
        return forward is not None and forward in (self.alignment.b_of, self.alignment.a_of)[side]

    def _find_inside(self) -> dict[str, list[int]]:
        """Return the nodes in each Cell: by the Cell's entry, and backward ones also by the Cell's key."""
        found: dict[str, list[int]] = {}
        for side, flow in enumerate(self.alignment.flows):
            for place, cell in enumerate(flow.cells):
                parts = flow.parts[place]
                node = self._nodes[side][place]
                if cell is None and parts.kind in (API, CELL):
                    found.setdefault(f"{side} ", []).append(node)
                elif cell is not None:
                    found.setdefault(f"{side} {cell}", []).append(node)
                    if parts.direction == BACKWARD:
                        found.setdefault(f"{side} {cell.partition('.backward.')[0]}", []).append(
                            node
                        )
                if parts.kind == CELL and parts.direction == BACKWARD:
                    found.setdefault(f"{side} {parts.key}", []).append(node)
        return found

    def _causes(self, node: int, whole: list[Cause]) -> tuple[Cause, ...]:
        a, b, _ = self.pairs[node]
        found = self._causes_in(0, a, node, whole) if a != NONE else []
        other = self._causes_in(1, b, node, whole) if b != NONE else []
        if other != found:
            found += other
        found.sort()
        return tuple(found)

    def _causes_in(self, side: int, place: int, node: int, whole: list[Cause]) -> list[Cause]:
        found: list[Cause] = []
        flow = self.alignment.flows[side]
        nodes = self._nodes[side]
        parts = flow.parts[place]
        if parts.kind in (GRADIENT, CELL):
            inside = self._inside.get(
                f"{side} {parts.key if parts.kind == GRADIENT else flow.names[place]}", ()
            )
            found += [whole[other] for other in inside if other != node]
        if parts.direction == FORWARD:
            found += [
                (nodes[link.producer], link.place)
                for link in flow.links[place]
                if link.producer >= 0
            ]
        else:
            found += [whole[nodes[cause]] for cause in flow.backward_causes(place)]
        return found

    def _taint(self, all_causes: Sequence[Sequence[Cause]]) -> list[bool]:
        first = next((node for node, off in enumerate(self.off) if off), len(self.pairs))
        last = len(self.pairs)
        update = next(
            (node for node, off in enumerate(self.off) if off and self.is_update(node)), last
        )
        unknown = self._has_unknown_cause
        given = self._is_given_parameter
        tainted = [
            (node > first and unknown(node)) or (node > update and given(node))
            for node in range(last)
        ]
        for _ in range(_PASSES):
            changed = False
            for node, causes in enumerate(all_causes):
                if tainted[node]:
                    continue
                for cause, place in causes:
                    if (self.off[cause] or tainted[cause]) and not self._ends(node, place):
                        tainted[node] = changed = True
                        break
            if not changed:
                break
        return tainted

    def _has_unknown_cause(self, node: int) -> bool:
        """Return whether a value that is off has no known producer, but a possible one that is off."""
        if not self.off[node]:
            return False
        slots = self.slots[node]
        if self.is_update(
            node
        ):  # its gradients and states may follow from anything before; its numbers do not
            return any(
                slot.verdict in HARD and not slot.place.startswith(NUMBERS) for slot in slots
            )
        if Verdict.NOT_COMBINED in [slot.verdict for slot in slots if slot.is_input]:
            return True
        hard = [slot.place for slot in slots if slot.is_input and slot.verdict in HARD]
        if (
            self.parts(node).direction == BACKWARD
        ):  # a gradient that arrives is a sum; its terms may come from anywhere
            return bool(hard) or self.is_container(node) or self._is_used_unseen(node)
        is_outside = any(self.is_outside(node, place) for place in hard) if hard else False
        return is_outside and any(self.off[other] for other in self._earlier_in_cell(node))

    def _is_given_parameter(self, node: int) -> bool:
        """Return whether a value that is off may be a parameter, which an update before it has changed."""
        if not self.off[node]:
            return False
        hard = [slot.place for slot in self.slots[node] if slot.is_input and slot.verdict in HARD]
        return any(max(self.producer_nodes(node, place)) == NONE for place in hard)

    def _is_used_unseen(self, node: int) -> bool:
        """Return whether no recorded call uses the forward of a backward, so that its gradient came from anywhere."""
        flow, place = self.flow(node)
        parts = flow.parts[place]
        forward = flow.forward_of(place)
        if parts.kind == GRADIENT:
            forward = flow.position.get(f"{parts.key}.{FORWARD}.0")
        return forward is not None and not flow.used_by.get(forward)

    def _earlier_in_cell(self, node: int) -> Iterable[int]:
        """Yield the nodes before this one in its Cell and the Cells around it."""
        flow, place = self.flow(node)
        side = int(flow is self.alignment.flows[1])
        cell = flow.cells[place]
        for _ in range(200):
            if cell is None:
                break
            yield from (other for other in self._inside.get(f"{side} {cell}", ()) if other < node)
            own = flow.position.get(cell)
            cell = flow.cells[own] if own is not None else None
        yield from (other for other in self._inside.get(f"{side} ", ()) if other < node)

    def _ends(self, node: int, place: str) -> bool:
        """Return whether taint ends at an input: its bits agree, or it is an equal integer or constant."""
        slot = self.slot(node, place) if place else None
        if slot is None or slot.verdict == Verdict.BITS:
            return slot is not None
        if slot.verdict != Verdict.NUMBERS_EQUAL:
            return False
        return str(slot.a.get("dtype")).startswith(("Int", "UInt", "Bool")) or is_constant(slot.a)

    def _spread(self, causes: Sequence[Sequence[Cause]]) -> list[int]:
        soft = [node if self._is_soft(node) else NONE for node in range(len(self.pairs))]
        for _ in range(_PASSES if max(soft, default=NONE) != NONE else 0):
            changed = False
            for node, own in enumerate(causes):
                if soft[node] != NONE:
                    continue
                for cause, place in own:
                    if soft[cause] != NONE and not self._ends_softly(
                        node, place, cause, soft[cause]
                    ):
                        soft[node] = soft[cause]
                        changed = True
                        break
            if not changed:
                break
        return soft

    def _ends_softly(self, node: int, place: str, cause: int, source: int) -> bool:
        """Return whether a value is surely the same, so that a change before it is harmless here."""
        slot = self.slot(node, place) if place else None
        if slot is None or slot.verdict not in EQUAL or _form_differs(slot, self._mixed):
            return False
        if slot.verdict == Verdict.BITS or is_constant(slot.a):
            return True
        # equal numbers are no proof after a call that puts elements in other places, as ``transpose`` does
        is_alone = self.is_alone(source)
        if _PERMUTES.search(self.parts(source).key) and not is_alone:
            return (
                False  # permuted heads stay permuted through all that works on each of them alone
            )
        key = self.parts(cause).key
        is_other_call = self.pairs[source].how == REPLACED or self._has_soft_slot(
            source
        )  # inputs from others are none
        may_move = _MOVES.search(self.parts(source).key) if is_alone else is_other_call
        return not (may_move and (cause == source or _MOVES.search(key) or _ALONE.search(key)))

    def _is_soft(self, node: int) -> bool:
        """Return whether a node has a difference that may be harmless: an argument, a dtype, an added call."""
        pair = self.pairs[node]
        direction = self.parts(node).direction
        if (
            self.alignment.vocabulary.is_foreign
        ):  # two frameworks have other calls and dtypes; numbers alone tell
            return direction == FORWARD and self._has_soft_slot(node)
        if self.is_alone(node):
            return direction == FORWARD and not self.is_container(node)
        if direction == BACKWARD:
            return False
        return pair.how == REPLACED or self._has_soft_slot(node) or bool(self.wirings(node))

    def _has_soft_slot(self, node: int) -> bool:
        # a loop, as this is asked for every call
        for slot in self.slots[node]:  # noqa: SIM110
            if self._is_soft_slot(node, slot):
                return True
        return False

    def _is_soft_slot(self, node: int, slot: Slot) -> bool:
        if slot.verdict == Verdict.ARGUMENT:
            return slot.is_input
        if slot.is_input and slot.verdict == Verdict.OTHER_BITS and is_permuted(slot):
            return max(self.producer_nodes(node, slot.place)) == NONE
        if self.alignment.vocabulary.is_foreign or not _form_differs(slot, self._mixed):
            return False
        if slot.is_input:  # a recorded call that made it has the difference
            return max(self.producer_nodes(node, slot.place)) == NONE
        return not any(
            _form_differs(other, self._mixed) for other in self.slots[node] if other.is_input
        )

    def wirings(self, node: int) -> list[str]:
        """Return the inputs whose content comes from calls that are no partners."""
        if self.is_alone(node):
            return []
        links_a, links_b = (
            flow.links[own] for flow, own in zip(self.alignment.flows, self.pairs[node][:2])
        )
        if len(links_a) != len(links_b):
            of_a = {link.place: link for link in links_a}
            links_b = tuple(link for link in links_b if link.place in of_a)
            links_a = tuple(of_a[link.place] for link in links_b)
        b_of = self.alignment.b_of
        return [
            left.place
            for left, right in zip(links_a, links_b)
            if left.root >= 0 and right.root >= 0 and b_of.get(left.root) != right.root
            if b_of.get(left.producer, NONE)
            != right.producer  # else the change is before that call
            if not self.alignment.is_one_loosely(left, right)
        ]


def _form_differs(slot: Slot, is_mixed: bool) -> bool:
    """Return whether two tensors have other shapes or, where a dump has several, other dtypes."""
    a = slot.a
    b = slot.b
    if type(a) is not dict or type(b) is not dict or "shape" not in a or "shape" not in b:
        return False
    if a["shape"] is not b["shape"] and a["shape"] != b["shape"]:
        return True
    if not is_mixed or a.get("dtype") == b.get("dtype"):
        return False
    return str(a.get("dtype")).rpartition(".")[2] != str(b.get("dtype")).rpartition(".")[2]
