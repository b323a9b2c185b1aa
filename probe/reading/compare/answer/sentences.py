# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""One plain sentence for each origin."""

from __future__ import annotations

import os
from typing import Any

from probe.findings.sentence import say
from probe.reading.compare.answer.update_sentences import line_of, update_sentence
from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.arrays import Arrays
from probe.reading.compare.judging.verdicts import (
    FAINT,
    HARD,
    NUMBERS_EQUAL,
    OTHER_BITS,
    TRANSPOSED,
    Slot,
    is_permuted,
    is_state,
    other_text,
)
from probe.reading.compare.origins.finder import Finding
from probe.reading.compare.origins.gradients import operand_of, side_without
from probe.reading.compare.origins.origin import (
    ARGUMENT,
    CALLS,
    COMMUNICATION,
    DATA,
    GRADIENT_KIND,
    OPTIMIZER,
    OUTSIDE,
    PARAMETER,
    RANDOM,
    WIRING,
    CodeLine,
    Origin,
    Site,
)  # fmt: skip
from probe.reading.compare.pairing.alignment import NONE
from probe.reading.dumps import entry_name, text
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import BACKWARD, CELL, GRADIENT
from probe.reading.dumps.flow import is_constant
from probe.reading.dumps.frames import user_frame
from probe.reading.dumps.values import NUMBERS, is_tensor

_CONTEXT, _ROAD = 2, 8
_PLACES = {"kwargs": "argument", "attributes": "attribute", "model_parameters": "parameter"}
_PERMUTED = "; or an input holds the same numbers in other places: only summary_mode md5 or task tensor can tell"


class Describer:
    """Makes origins of findings.

    Args:
        graph: the dataflow.
        a: A.
        b: B.
    """

    def __init__(self, graph: Graph, a: Dump, b: Dump) -> None:
        self._graph = graph
        self._dumps = a, b
        nodes = range(len(graph.pairs))
        self._first_backward = next((node for node in nodes if graph.parts(node).direction == BACKWARD), len(nodes))

    def origin(self, finding: Finding) -> Origin:
        """Return the origin with its Cell, lines of code and sentence."""
        graph, node = self._graph, finding.node
        pair = graph.pairs[node]
        dump = self._dumps[0] if pair.b == NONE else self._dumps[1]
        name = graph.name(node)
        place = finding.place
        if finding.parameter is not None:
            name, place = finding.parameter[0], f"parameters.{finding.parameter[1]}"
        call = dump.get(name)
        cell = entry_name.cell_label(name) if graph.parts(node).kind in (CELL, GRADIENT) or finding.parameter else None
        stack = (call.stack if call else []) or self._stack_of_forward(dump, name)
        cell = cell or (call.cell if call else None)
        if finding.kind == OPTIMIZER and finding.source != NONE:
            stack = self._stack(finding.source) or stack
        slot = graph.slot(node, finding.place)
        return Origin(
            kind=finding.kind,
            site=Site(name, place, cell, dump.step, dump.rank, node, node > self._first_backward),
            said=say("text", text=self._sentence(finding, slot)),
            code=CodeLine(stack, user_frame(stack)),
            rel_l2=self._distance(node, slot),
            why=finding.why,
        )

    def _stack_of_forward(self, dump: Dump, name: str) -> list[str]:
        """Return the stack of the first forward of a Cell whose parameters' gradients these are."""
        parts = entry_name.parse(name)
        if parts.kind != GRADIENT:
            return []
        return dump.stacks.get(f"{parts.key}.forward.0", [])

    def _stack(self, node: int) -> list[str]:
        return self._dumps[int(self._graph.pairs[node].b != NONE)].stacks.get(self._graph.name(node), [])

    def _change(self, node: int) -> str:
        """Return that only one side has a call between gradients and optimizer, with its line."""
        if node == NONE:
            return ""
        frame = user_frame(self._stack(node))
        return line_of(self._graph, node, f"{os.path.basename(frame.file)}:{frame.line}" if frame else "")

    def _distance(self, node: int, slot: Slot | None) -> float | None:
        slots = [slot] if slot is not None else [slot for slot in self._graph.slots[node] if slot.verdict in HARD]
        known = [slot.distance.rel_l2 for slot in slots if slot.distance.rel_l2 is not None]
        return max(known, default=None)

    def _sentence(self, finding: Finding, slot: Slot | None) -> str:  # noqa: PLR0911 (one line for each kind)
        name = self._graph.name(finding.node)
        where = self._where(finding.node)
        if finding.kind == PARAMETER and finding.parameter:
            cell, parameter = finding.parameter
            other_bits = slot is not None and slot.verdict == OTHER_BITS
            change = "has other bits, though equal statistics," if other_bits else "differs"
            numbers = "" if other_bits else _numbers(slot)
            owner = entry_name.cell_label(cell) if entry_name.parse(cell).kind in (CELL, GRADIENT) else "the model"
            return f"{parameter} of {owner} {change} before its first use{numbers}{self._order(slot)}"
        if finding.kind == DATA:
            return f"the batch differs: {name}, {_place(finding.place)}{_numbers(slot)}{self._order(slot, True)}"
        if finding.kind == OUTSIDE:
            return (
                f"{name}, {_place(finding.place)}, comes from outside of the recorded calls (a constant or parameter "
                f"of {where}?) and differs{_numbers(slot)}"
            )
        if finding.kind == OPTIMIZER and slot is not None:
            change = self._change(finding.source)
            return update_sentence(self._graph, finding.node, slot, change, self._dumps[1].step)
        if finding.kind == ARGUMENT:
            return self._argument(name, slot)
        if finding.kind == WIRING:
            return self._wiring(finding, name)
        if finding.kind == CALLS:
            return self._calls(finding.node, where) + self._without_gradient(finding)
        if finding.kind == GRADIENT_KIND:
            return self._gradient(finding, name, slot)
        if finding.kind == RANDOM:
            return f"{name} draws other random numbers: seeds or the order of calls differ{_numbers(slot)}" + (
                self._permutation_note(finding.node)
            )
        if finding.kind == COMMUNICATION:
            return f"{name} gives another result, though its inputs agree on this rank{_numbers(slot)}"
        return self._computation(finding.node, name, slot)

    def _order(self, slot: Slot | None, is_batch: bool = False) -> str:
        """Return the relation of one tensor to the other, such as the same rows in another order; "" for none."""
        if slot is None or not is_tensor(slot.a) or not is_tensor(slot.b):
            return ""
        found = Arrays(self._dumps[0].path, self._dumps[1].path).relation(slot.a, slot.b)
        if found:
            return f"; B {found}"
        order = "rows in another order" if is_batch else "numbers in other places"
        return f"; perhaps the same {order}" if is_permuted(slot) else ""

    def _where(self, node: int) -> str:
        flow, place = self._graph.flow(node)
        return entry_name.cell_label(flow.cells[place]) or "the model or the script"

    def _argument(self, name: str, slot: Slot | None) -> str:
        if slot is None:
            return f"{name} is given other arguments"
        if is_tensor(slot.a) and is_tensor(slot.b):
            left, right = (f"{side.get('dtype')} {text.shape(side.get('shape'))}" for side in (slot.a, slot.b))
            return f"{name}, {_place(slot.place)}: {left} in A, {right} in B"
        left, right = other_text(slot)
        return f"{name}, {_place(slot.place)}: {left} in A, {right} in B"

    def _wiring(self, finding: Finding, name: str) -> str:
        graph = self._graph
        nodes = graph.producer_nodes(finding.node, finding.place)
        if nodes[0] == nodes[1]:
            if graph.uses_other_output(finding.node, finding.place):
                maker = self._own_name(nodes[0], 1)
                return f"{name}, {_place(finding.place)}, is another output of {maker} in B than in A"
            nodes = graph.root_nodes(finding.node, finding.place)
        names = [self._own_name(node, side) for side, node in enumerate(nodes)]
        for _ in range(_ROAD):  # of calls with one name that are no partners the Cells tell more, or the calls before
            if names[0] != names[1]:
                return f"{name}, {_place(finding.place)}, comes from {names[0]} in A, from {names[1]} in B"
            known = [self._name_in_cell(node, side) for side, node in enumerate(nodes)]
            if known[0] == known[1]:
                nodes = self._maker(nodes[0], 0), self._maker(nodes[1], 1)
                known = [self._own_name(node, side) for side, node in enumerate(nodes)]
            names = known if NONE not in nodes else names
        if names[0] == names[1]:
            return f"{name}, {_place(finding.place)}, has another content: {names[0]} is another call in A than in B"
        return f"{name}, {_place(finding.place)}, comes from {names[0]} in A, from {names[1]} in B"

    def _name_in_cell(self, node: int, side: int) -> str:
        flow, place = self._graph.alignment.flows[side], self._graph.pairs[node][:2][side]
        cell = entry_name.cell_label(flow.cells[place]) if NONE not in (node, place) else None
        return self._own_name(node, side) + (f" of {cell}" if cell else "")

    def _maker(self, node: int, side: int) -> int:
        """Return the node that made the first input of a node, on one side; -1 for none."""
        flow, place = self._graph.alignment.flows[side], self._graph.pairs[node][:2][side]
        links = flow.links[place] if NONE not in (node, place) else ()
        return self._graph.node_of(flow, links[0].producer) if links and links[0].producer >= 0 else NONE

    def _own_name(self, node: int, side: int) -> str:
        if node == NONE:
            return "outside of the recorded calls"
        pair = self._graph.pairs[node]
        place = pair.b if side else pair.a
        return self._graph.name(node) if place == NONE else self._graph.alignment.flows[side].names[place]

    def _calls(self, node: int, where: str) -> str:
        graph = self._graph
        pair = graph.pairs[node]
        if NONE not in (pair.a, pair.b):
            return f"{self._own_name(node, 0)} in A, {self._own_name(node, 1)} in B, in {where}"
        side = 0 if pair.b == NONE else 1
        flow, place = graph.flow(node)
        partner = (graph.alignment.b_of, graph.alignment.a_of)[side]
        near = range(place + 1, min(place + 4, len(flow.names)))
        more = [other for other in near if other not in partner and flow.cells[other] == flow.cells[place]]
        alone = [flow.names[other] for other in (place, *more)]
        return f"only {'AB'[side]} has {', '.join(alone)}, in {where}"

    def _without_gradient(self, finding: Finding) -> str:
        """Return that an operand gets no gradient on one side; "" where no gradient is missing."""
        graph, node = self._graph, finding.source
        if node == NONE or graph.parts(node).direction != BACKWARD:
            return ""
        slot = graph.slot(node, finding.place) if finding.place else None
        side = side_without(graph, node, slot)
        if side is None:
            return ""
        own, inputs = operand_of(graph, node, slot)
        name = graph.name(own if own != NONE else node)
        place = f"{_place(inputs[0])} of " if len(inputs) == 1 else ""
        return f": {place}{name} gets no gradient in {'AB'[side]}, and one in {'BA'[side]}"

    def _gradient(self, finding: Finding, name: str, slot: Slot | None) -> str:
        pair = self._graph.pairs[finding.node]
        links = [link for link in self._graph.links(finding.node, finding.place) if link and link.parameter]
        if finding.source not in (NONE, finding.node) and links and links[-1].parameter:
            owner, parameter = links[-1].parameter
            source = self._graph.slots[finding.source]
            off = next((item for item in source if side_without(self._graph, finding.source, item) is not None), None)
            lacks = side_without(self._graph, finding.source, off) or 0
            label = entry_name.cell_label(owner)
            return f"{parameter} of {label} gets no gradient in {'AB'[lacks]}, and one in {'BA'[lacks]}: is it frozen?"
        if NONE in (pair.a, pair.b):
            return f"{name} is only in {'A' if pair.b == NONE else 'B'}: no gradient arrives there on the other side"
        if slot is not None and not (is_tensor(slot.a) and is_tensor(slot.b)):
            told = self._without_gradient(finding._replace(source=finding.node))
            side = "B" if is_tensor(slot.a) else "A"
            return f"{name}: no gradient for {_place(slot.place)} in {side}{told}"
        if slot is not None and slot.is_input:
            return f"{name}: the gradient that arrives differs, and no recorded call made it{_numbers(slot)}"
        return f"{name}: the forward agrees, the gradient does not{_numbers(slot)}"

    def _computation(self, node: int, name: str, slot: Slot | None) -> str:
        pair = self._graph.pairs[node]
        for side, place in enumerate((pair.a, pair.b)):
            entry = self._dumps[side].data[self._graph.alignment.flows[side].names[place]] if place != NONE else None
            if isinstance(entry, dict) and entry.get("raised"):
                return f"{name} raises in {'AB'[side]}: {text.safe(entry['raised'])}"
        if slot is not None and is_state(slot.place):
            state = slot.place.rpartition(".")[2]
            return f"{name}: {state} differs after the forward, though the inputs agree: its momentum?{_numbers(slot)}"
        note = self._permutation_note(node)
        if any(other.verdict == TRANSPOSED for other in self._graph.slots[node]):
            note = "; its weight is the transpose of A's, and may be used as if it were not"
        given = [other.verdict for other in self._graph.slots[node] if other.is_input and is_tensor(other.a)]
        inputs = "inputs within tolerance" if FAINT.intersection(given) else "same inputs"
        return f"{name}: {inputs}, another output{_numbers(slot)}{note}"

    def _permutation_note(self, node: int) -> str:
        """Return what statistics cannot tell about the inputs of a call; "" where they can."""
        for slot in self._graph.slots[node]:
            sizes = [size for size in (slot.a.get("shape") or ()) if size != 1] if is_tensor(slot.a) else []
            if _may_be_permuted(slot) and slot.is_input and sizes and not is_constant(slot.a):
                return _PERMUTED
        return ""


def _place(place: str) -> str:
    """Return a place in words.

    >>> _place("input.1"), _place("kwargs.mask"), _place("output.0"), _place("weight.0")
    ('input 1', 'argument mask', 'output 0', 'weight.0')
    """
    word, _, rest = place.partition(".")
    return f"{_PLACES.get(word, word)} {rest}" if word in ("input", "output", *_PLACES) else place


def _may_be_permuted(slot: Slot) -> bool:
    """Return whether two tensors may be permutations: their sums may be rounded in other ways."""
    return slot.verdict == NUMBERS_EQUAL or (slot.verdict in FAINT and not slot.a.get("md5"))


def _numbers(slot: Slot | None) -> str:
    """Return the numbers that differ most."""
    if slot is None or not is_tensor(slot.a) or not is_tensor(slot.b):
        return ""
    a: dict[str, Any] = slot.a
    b: dict[str, Any] = slot.b
    parts = [
        f"{key} {text.number(a.get(key))} / {text.number(b.get(key))}" for key in NUMBERS if a.get(key) != b.get(key)
    ]
    distance = slot.distance
    sign = "=" if distance.exact else ">="
    known = f"rel_l2 {sign} {distance.rel_l2:.2g}" if distance.rel_l2 is not None and distance.rel_l2 < 1e300 else ""
    shapes = [text.shape(side.get("shape")) for side in (a, b)]
    shape = f"shape {shapes[0]} / {shapes[1]}" if shapes[0] != shapes[1] else ""
    if not parts and not shape and not distance.rel_l2 and a.get("md5") != b.get("md5"):
        known = "other bits, equal statistics"
    shown = [*filter(None, (shape, known)), *parts[:_CONTEXT]]
    return f": {', '.join(shown)} ({a.get('dtype')})" if shown else ""
