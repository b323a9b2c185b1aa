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
from probe.reading.compare.pairing.alignment import NONE, REPLACED
from probe.reading.dumps.entry_name import API, BACKWARD, CELL, FORWARD, GRADIENT
from probe.reading.dumps.flow import is_constant
from probe.reading.dumps.updates import NUMBERS

_PASSES = 12
#: no Cell is in more others
_DEEPEST = 200
#: dtypes whose equal numbers are equal tensors
_WHOLE_NUMBERS = ("Int", "UInt", "Bool")
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
        flow_a, flow_b = self.alignment.flows
        self._is_foreign = self.alignment.vocabulary.is_foreign
        self._mixed = not self._is_foreign and len(flow_a.dtypes | flow_b.dtypes) > 1
        self.off = [self._is_off(node) for node in range(len(self.pairs))]
        self._inside = self._find_inside()
        whole: list[Cause] = [(node, "") for node in range(len(self.pairs))]
        causes = [self._causes(node, whole) for node in range(len(self.pairs))]
        self.tainted = self._taint(causes)
        #: for each node the first one with a structural difference that it may follow from; -1 for none
        self.soft = self._spread(causes)

    def _is_off(self, node: int) -> bool:
        verdicts = [slot.verdict for slot in self.slots[node]]
        if not HARD.isdisjoint(verdicts):
            return True
        return self.is_alone(node) and self._is_lost_backward(node)

    def _is_lost_backward(self, node: int) -> bool:
        """Return whether this is a backward that the other side's paired forward does not have."""
        flow, place = self.flow(node)
        parts = flow.parts[place]
        partners = self.alignment.partners(self.side(node))
        if parts.kind == GRADIENT:
            forward = flow.position.get(f"{parts.key}.{FORWARD}.0")
            return forward is None or forward in partners
        if parts.direction != BACKWARD or parts.kind not in (API, CELL):
            return False
        if self._is_foreign and parts.kind == API:
            return False  # frameworks differentiate other parts of a call by themselves
        return flow.forward_of(place) in partners

    def _find_inside(self) -> dict[str, list[int]]:
        """Return the nodes in each Cell: by the Cell's entry, and backward ones also by the Cell's key."""
        found: dict[str, list[int]] = {}
        for side, flow in enumerate(self.alignment.flows):
            for place, cell in enumerate(flow.cells):
                parts = flow.parts[place]
                is_backward = parts.direction == BACKWARD
                node = self._nodes[side][place]
                names: list[str] = []
                if cell is not None:
                    names.append(cell)
                    if is_backward:
                        names.append(cell.partition(".backward.")[0])
                elif parts.kind in (API, CELL):
                    names.append("")
                if is_backward and parts.kind == CELL:
                    names.append(parts.key)
                for name in names:
                    found.setdefault(f"{side} {name}", []).append(node)
        return found

    def _causes(self, node: int, whole: list[Cause]) -> tuple[Cause, ...]:
        pair = self.pairs[node]
        found = self._causes_in(0, pair.a, node, whole) if pair.a != NONE else []
        other = self._causes_in(1, pair.b, node, whole) if pair.b != NONE else []
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
            name = parts.key if parts.kind == GRADIENT else flow.names[place]
            inside = self._inside.get(f"{side} {name}", ())
            found += [whole[other] for other in inside if other != node]
        if parts.direction == FORWARD:
            made = [link for link in flow.links[place] if link.producer >= 0]
            found += [(nodes[link.producer], link.place) for link in made]
        else:
            found += [whole[nodes[cause]] for cause in flow.backward_causes(place)]
        return found

    def _taint(self, all_causes: Sequence[Sequence[Cause]]) -> list[bool]:
        last = len(self.pairs)
        off = [node for node, is_off in enumerate(self.off) if is_off]
        first = next(iter(off), last)
        update = next(filter(self.is_update, off), last)
        tainted = [False] * last
        for node in off:
            is_behind = node > first and self._has_unknown_cause(node)
            tainted[node] = is_behind or (node > update and self._is_given_parameter(node))
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
        slots = self.slots[node]
        if self.is_update(node):
            # its gradients and states may follow from anything before; its numbers do not
            hard = [slot.place for slot in slots if slot.verdict in HARD]
            return not all(place.startswith(NUMBERS) for place in hard)
        inputs = [slot for slot in slots if slot.is_input]
        if Verdict.NOT_COMBINED in [slot.verdict for slot in inputs]:
            return True
        hard = [slot.place for slot in inputs if slot.verdict in HARD]
        if self.parts(node).direction == BACKWARD:
            # a gradient that arrives is a sum; its terms may come from anywhere
            return bool(hard) or self.is_container(node) or self._is_used_unseen(node)
        if not any(self.is_outside(node, place) for place in hard):
            return False
        return any(self.off[other] for other in self._earlier_in_cell(node))

    def _is_given_parameter(self, node: int) -> bool:
        """Return whether a value that is off may be a parameter, which an update before it has changed."""
        for slot in self.slots[node]:
            if slot.is_input and slot.verdict in HARD and self.is_unmade(node, slot.place):
                return True
        return False

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
        cells: list[str] = []
        cell = flow.cells[place]
        while cell is not None and len(cells) < _DEEPEST:
            cells.append(cell)
            own = flow.position.get(cell)
            cell = None if own is None else flow.cells[own]
        side = self.side(node)
        for name in (*cells, ""):
            inside = self._inside.get(f"{side} {name}", ())
            yield from (other for other in inside if other < node)

    def _ends(self, node: int, place: str) -> bool:
        """Return whether taint ends at an input: its bits agree, or it is an equal integer or constant."""
        slot = self.slot(node, place) if place else None
        if slot is None:
            return False
        if slot.verdict == Verdict.BITS:
            return True
        if slot.verdict != Verdict.NUMBERS_EQUAL:
            return False
        dtype = str(slot.a.get("dtype"))
        return dtype.startswith(_WHOLE_NUMBERS) or is_constant(slot.a)

    def _spread(self, causes: Sequence[Sequence[Cause]]) -> list[int]:
        soft = [node if self._is_soft(node) else NONE for node in range(len(self.pairs))]
        if max(soft, default=NONE) == NONE:
            return soft
        for _ in range(_PASSES):
            changed = False
            for node, own in enumerate(causes):
                if soft[node] != NONE:
                    continue
                for cause, place in own:
                    source = soft[cause]
                    if source != NONE and not self._ends_softly(node, place, cause, source):
                        soft[node] = source
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
        source_key = self.parts(source).key
        if self.is_alone(source):
            may_move = _MOVES.search(source_key) is not None
        elif _PERMUTES.search(source_key):
            # permuted heads stay permuted through all that works on each of them alone
            return False
        else:
            # inputs from others are none
            may_move = self.pairs[source].how == REPLACED or self._has_soft_slot(source)
        if not may_move:
            return True
        key = self.parts(cause).key
        return cause != source and not _MOVES.search(key) and not _ALONE.search(key)

    def _is_soft(self, node: int) -> bool:
        """Return whether a node has a difference that may be harmless: an argument, a dtype, an added call."""
        is_forward = self.parts(node).direction == FORWARD
        if self._is_foreign:  # two frameworks have other calls and dtypes; numbers alone tell
            return is_forward and self._has_soft_slot(node)
        if self.is_alone(node):
            return is_forward and not self.is_container(node)
        if not is_forward:
            return False
        if self.pairs[node].how == REPLACED or self._has_soft_slot(node):
            return True
        return bool(self.wirings(node))

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
            return self.is_unmade(node, slot.place)
        if self._is_foreign or not _form_differs(slot, self._mixed):
            return False
        if slot.is_input:  # a recorded call that made it has the difference
            return self.is_unmade(node, slot.place)
        inputs = [other for other in self.slots[node] if other.is_input]
        return not any(_form_differs(other, self._mixed) for other in inputs)

    def wirings(self, node: int) -> list[str]:
        """Return the inputs whose content comes from calls that are no partners."""
        if self.is_alone(node):
            return []
        pair = self.pairs[node]
        flow_a, flow_b = self.alignment.flows
        links_a = flow_a.links[pair.a]
        links_b = flow_b.links[pair.b]
        if len(links_a) != len(links_b):
            of_a = {link.place: link for link in links_a}
            links_b = tuple(link for link in links_b if link.place in of_a)
            links_a = tuple(of_a[link.place] for link in links_b)
        b_of = self.alignment.b_of
        found: list[str] = []
        for left, right in zip(links_a, links_b):
            if left.root < 0 or right.root < 0 or b_of.get(left.root) == right.root:
                continue
            if b_of.get(left.producer, NONE) == right.producer:
                continue  # the change is before that call
            if not self.alignment.is_one_loosely(left, right):
                found.append(left.place)
        return found


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
