# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One plain sentence for each origin, also for those in the update of an optimizer."""

from __future__ import annotations

import math
import os

from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.reading.compare.answer.arguments import argument_sentence
from probe.reading.compare.answer.places import Name, place_words
from probe.reading.compare.answer.sites import Sites
from probe.reading.compare.dataflow.alone import alone_with
from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.arrays import Arrays
from probe.reading.compare.judging.relation import elements, relation
from probe.reading.compare.judging.verdicts import (
    FAINT,
    Slot,
    Verdict,
    is_permuted,
    is_state,
)
from probe.reading.compare.origins import gradient_end, own_parameters, table, updates
from probe.reading.compare.origins.across_steps import contents, given
from probe.reading.compare.origins.exchanged import exchange_of
from probe.reading.compare.origins.finding import Finding
from probe.reading.compare.origins.origin import Kind, Origin
from probe.reading.compare.origins.other_value import OtherValues
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps import entry_name, text
from probe.reading.dumps.entry_name import API, BACKWARD, CELL, GRADIENT
from probe.reading.dumps.flow import is_constant, user_frame
from probe.reading.dumps.updates import GRADIENTS, NUMBERS as UPDATE_NUMBERS, STATES, number
from probe.reading.dumps.values import NUMBERS, is_tensor, real

#: how exactly one number is added to all elements
_EXACT = 1e-4
_CONTEXT = 2
_ROAD = 8
_SHOWN = 3


class Describer:
    """Makes origins of findings; ``arrays`` is None where none may be read."""

    def __init__(self, graph: Graph, arrays: Arrays | None) -> None:
        self._graph = graph
        self._arrays = arrays
        self._sites = Sites(graph)

    def origin(self, finding: Finding) -> Origin:
        """Return the origin with its Cell, lines of code and sentence."""
        graph = self._graph
        node = finding.node
        slot = graph.slot(node, finding.place)
        hard = graph.hard(node)
        told = hard if slot is None else [slot]
        distances = [other.distance.rel_l2 for other in told]
        is_outside = finding.kind == Kind.OUTSIDE or finding.why == table.OTHER_OUTSIDE.why
        return Origin(
            finding.kind,
            self._sites.site(finding),
            clauses(self._sentence(finding, slot), self._elements(slot)),
            self._sites.code(finding),
            rel_l2=max((apart for apart in distances if apart is not None), default=None),
            why=finding.why,
            given=given(slot) if is_outside else (),
            first_value=contents(slot) if finding.why == table.FIRST_VALUE.why else (),
        )

    def _elements(self, slot: Slot | None) -> Sentence:
        """Return which elements of two arrays differ; nothing where they agree, or one is missing."""
        if slot is None or self._arrays is None or not slot.is_hard:
            return NOTHING
        if not slot.are_tensors:
            return NOTHING
        return self._arrays.told(elements, slot.a, slot.b)

    def _change(self, node: int) -> Sentence:
        """Return that only one side has a call between gradients and optimizer, with its line."""
        if node == NONE:
            return NOTHING
        frame = user_frame(self._sites.shown_stack(node))
        line = (
            say("compare.code", file=os.path.basename(frame.file), line=frame.line)
            if frame
            else NOTHING
        )
        return say(
            "compare.only_call",
            side="AB"[self._graph.side(node)],
            name=self._graph.name(node),
            code=line,
        )

    def _sentence(self, finding: Finding, slot: Slot | None) -> Sentence:  # noqa: PLR0911 (one line for each kind)
        name = self._graph.name(finding.node)
        numbers = _numbers(slot)
        place = place_words(self._graph.dump(finding.node).on_disk(name, finding.place))
        if finding.kind == Kind.PARAMETER and finding.parameter:
            return clauses(self._parameter(finding, slot), self._order(slot))
        if finding.kind == Kind.PARAMETER:
            of_a, of_b = (
                names or say("compare.none") for names in own_parameters.alone_names(self._graph)
            )
            is_own = finding.place.startswith(own_parameters.OWN)
            own_place = place_words(finding.place)
            used = NOTHING if is_own else say("compare.own_used", name=name, place=own_place)
            return say("compare.own_parameters", left=of_a, right=of_b, used=used)
        if finding.kind in (Kind.DATA, Kind.OUTSIDE):
            return self._outside(finding, slot, name, place)
        if finding.why == table.OTHER_CLASS.why:
            return self._other_classes(finding.node, name)
        if finding.kind == Kind.OPTIMIZER and slot is not None:
            change = self._change(finding.source)
            step = self._graph.dumps[1].step
            said = update_sentence(self._graph, finding.node, slot, change, step)
            return clauses(said, self._other_classes(finding.node, ""))
        if finding.kind == Kind.ARGUMENT:
            return argument_sentence(self._graph, finding.node, place, slot)
        if finding.kind == Kind.WIRING:
            return self._wiring(finding, name, place)
        if finding.kind == Kind.CALLS:
            return self._calls(finding)
        if finding.kind == Kind.GRADIENT:
            return self._gradient(finding, name, slot)
        if finding.kind == Kind.RANDOM:
            return clauses(
                say("compare.random", name=name, numbers=numbers),
                self._permutation_note(finding.node),
            )
        if finding.kind == Kind.COMMUNICATION:
            return say("compare.communication", name=name, numbers=numbers)
        return self._computation(finding.node, name, slot)

    def _other_classes(self, node: int, name: str) -> Sentence:
        """Return that the optimizers are of two classes; nothing where they are of one. A name that was told is ""."""
        classes = updates.other_classes(self._graph, node)
        if not classes:
            return NOTHING
        left, right = classes
        if not name:
            return say("compare.other_class", left=left, right=right)
        return say("compare.other_optimizer", left=left, right=right, name=name)

    def _outside(self, finding: Finding, slot: Slot | None, name: str, place: Name) -> Sentence:
        """Return that a value from outside differs, and where else it is given."""
        numbers = _numbers(slot)
        elsewhere = self._elsewhere(finding, slot)
        if finding.kind == Kind.OUTSIDE:
            where = self._where(finding.node)
            said = say("compare.outside", name=name, place=place, where=where, numbers=numbers)
            return clauses(said, elsewhere)
        if elsewhere:
            batch = say("compare.other_batch", name=name, place=place, numbers=numbers)
        else:
            batch = say("compare.batch", name=name, place=place, numbers=numbers)
        return clauses(batch, elsewhere, self._order(slot, True))

    def _parameter(self, finding: Finding, slot: Slot | None) -> Sentence:
        cell, parameter = finding.parameter or ("", "")
        entry = self._graph.dump(finding.node).data.get(cell)
        is_of_cell = entry_name.parse(cell).kind in (CELL, GRADIENT)
        is_own = own_parameters.is_of_model(entry, parameter)
        owner = entry_name.cell_label(cell) if is_of_cell and not is_own else say("compare.model")
        if slot is not None and slot.verdict == Verdict.OTHER_BITS:
            return say("compare.parameter_bits", parameter=parameter, owner=owner)
        return say("compare.parameter", parameter=parameter, owner=owner, numbers=_numbers(slot))

    def _order(self, slot: Slot | None, is_batch: bool = False) -> Sentence:
        """Return the relation of one tensor to the other, such as the same rows in another order."""
        if slot is None or not slot.are_tensors:
            return NOTHING
        found = self._arrays.told(relation, slot.a, slot.b) if self._arrays else NOTHING
        if found or not is_permuted(slot):
            return found
        return say("compare.perhaps_rows") if is_batch else say("compare.perhaps_places")

    def _where(self, node: int) -> Name:
        flow, place = self._graph.shown_flow(node)
        return entry_name.cell_label(flow.cells[place]) or say("compare.model_or_script")

    def _wiring(self, finding: Finding, name: str, place: Name) -> Sentence:
        graph = self._graph
        if finding.why == table.EXCHANGED.why:
            return self._exchanged(finding)
        if finding.why in (table.OTHER_PARAMETER.why, table.OTHER_OUTSIDE.why):
            return self._other_value(finding, name, place)
        nodes = graph.producer_nodes(finding.node, finding.place)
        if nodes[0] == nodes[1]:
            if graph.uses_other_output(finding.node, finding.place):
                return say(
                    "compare.other_output",
                    name=name,
                    place=place,
                    maker=self._own_name(nodes[0], 1),
                )
            nodes = graph.producer_nodes(finding.node, finding.place, first=True)
        names = [self._own_name(node, side) for side, node in enumerate(nodes)]
        maker = names[0]
        for _ in range(
            _ROAD
        ):  # of calls with one name that are no partners the Cells tell more, or the calls before
            if names[0] != names[1]:
                break
            known = [self._name_in_cell(node, side) for side, node in enumerate(nodes)]
            if known[0] == known[1]:
                nodes = self._maker(nodes[0], 0), self._maker(nodes[1], 1)
                known = [self._own_name(node, side) for side, node in enumerate(nodes)]
            names = known if NONE not in nodes else names
        if names[0] == names[1]:
            return say("compare.other_content", name=name, place=place, maker=maker)
        slot = graph.slot(finding.node, finding.place)
        records = (slot.a, slot.b) if slot is not None else ()
        for side, record in enumerate(records):
            if nodes[side] == NONE and is_tensor(record) and is_constant(record):
                names[side] = say("compare.everywhere", value=text.number(record.get("Max")))
        for side in (0, 1):
            if nodes[side] != NONE and nodes[1 - side] == NONE:
                # the script may have made one more tensor with these values, such as targets that are the inputs
                names[side] = say("compare.values_of", name=names[side])
        return say("compare.wiring", name=name, place=place, left=names[0], right=names[1])

    def _exchanged(self, finding: Finding) -> Sentence:
        """Return which two calls with equal outputs have each other's gradients."""
        graph = self._graph
        hard = graph.hard(finding.source)
        exchange = exchange_of(graph, finding.source, next(iter(hard), None))
        if exchange is None:
            return NOTHING
        names = sorted((exchange.one, exchange.other))
        left, right = (graph.name(node) for node in names)
        return say("compare.exchanged", name=graph.name(finding.node), left=left, right=right)

    def _other_value(self, finding: Finding, name: str, place: Name) -> Sentence:
        """Return which other parameter, or value from outside, the call is given."""
        slot = self._graph.slot(finding.node, finding.place)
        if slot is None:
            return NOTHING
        values = OtherValues(self._graph)
        parameter = values.parameter(finding.node, slot)
        if parameter is not None:
            left, right = (say("compare.owned", owner=it[0], name=it[1]) for it in parameter)
            return say("compare.other_parameter", name=name, left=left, right=right)
        found = values.exchange(finding.node, slot)
        if found is None:
            return NOTHING
        return say(
            "compare.other_outside",
            name=name,
            place=place,
            user=found.user,
            at=place_words(found.place),
        )

    def _elsewhere(self, finding: Finding, slot: Slot | None) -> Sentence:
        """Return the call to which one side gives the value that the other side gives to this call."""
        found = [] if slot is None else OtherValues(self._graph).outside(finding.node, slot)
        if len(found) != 1:
            return NOTHING
        [other] = found
        at = place_words(other.place)
        return say("compare.value_of", side="AB"[other.side], user=other.user, at=at)

    def _name_in_cell(self, node: int, side: int) -> Name:
        flow = self._graph.alignment.flows[side]
        place = self._graph.pairs[node][:2][side]
        cell = entry_name.cell_label(flow.cells[place]) if NONE not in (node, place) else None
        own = self._own_name(node, side)
        return say("compare.of", name=own, owner=cell) if cell else own

    def _maker(self, node: int, side: int) -> int:
        """Return the node that made the first input of a node, on one side; -1 for none."""
        flow = self._graph.alignment.flows[side]
        place = self._graph.pairs[node][:2][side]
        links = flow.links[place] if NONE not in (node, place) else ()
        return (
            self._graph.node_of(flow, links[0].producer)
            if links and links[0].producer >= 0
            else NONE
        )

    def _own_name(self, node: int, side: int) -> Name:
        if node == NONE:
            return say("compare.not_recorded")
        place = self._graph.pairs[node][:2][side]
        return (
            self._graph.name(node)
            if place == NONE
            else self._graph.alignment.flows[side].names[place]
        )

    def _calls(self, finding: Finding) -> Sentence:
        graph = self._graph
        node = finding.node
        where = self._where(finding.node)
        side = graph.side(node)
        lacks = self._without_gradient(finding)
        if not graph.is_alone(node):
            left = self._own_name(node, 0)
            right = self._own_name(node, 1)
            return say("compare.other_call", left=left, right=right, where=where, lacks=lacks)
        change = alone_with(graph, node)
        behind = [other for other in change if other > node]
        alone = [graph.name(other) for other in (node, *behind[:_SHOWN])]
        return say("compare.only", side="AB"[side], names=alone, where=where, lacks=lacks)

    def _without_gradient(self, finding: Finding) -> Sentence:
        """Return that an operand gets no gradient on one side; nothing where no gradient is missing."""
        graph = self._graph
        node = finding.source
        if node == NONE or graph.parts(node).direction != BACKWARD:
            return NOTHING
        slot = graph.slot(node, finding.place) if finding.place else None
        side = gradient_end.side_without(graph, node, slot)
        if side is None:
            return NOTHING
        own, inputs = gradient_end.operand_of(graph, node, slot)
        operand: Name = graph.name(own if own != NONE else node)
        if len(inputs) == 1:
            operand = say("compare.place_of", place=place_words(inputs[0]), name=operand)
        lack = say("compare.without_gradient", operand=operand, side="AB"[side], other="BA"[side])
        return say("compare.because", reason=lack)

    def _gradient(self, finding: Finding, name: str, slot: Slot | None) -> Sentence:
        if frozen := self._frozen(finding):
            return frozen
        if self._graph.is_alone(finding.node):
            return say(
                "compare.gradient_only", name=name, side="AB"[self._graph.side(finding.node)]
            )
        if slot is not None and not slot.are_tensors:
            lacks = self._without_gradient(finding._replace(source=finding.node))
            side = "B" if is_tensor(slot.a) else "A"
            return say(
                "compare.no_gradient",
                name=name,
                place=place_words(slot.place),
                side=side,
                lacks=lacks,
            )
        if slot is not None and slot.is_input:
            return self._arrives(finding.node, name, slot)
        return say("compare.gradient", name=name, numbers=_numbers(slot))

    def _arrives(self, node: int, name: str, slot: Slot) -> Sentence:
        """Return how the gradient that arrives at a call differs from those that the recorded calls give."""
        flow, place = self._graph.flow(node)
        givers = [
            cause
            for cause in flow.backward_causes(place)
            if flow.parts[cause].direction == BACKWARD
        ]
        if not givers:
            return say("compare.gradient_arrives", name=name, numbers=_numbers(slot))
        gaps = [
            (real(slot.b.get(key)) or 0.0) - (real(slot.a.get(key)) or 0.0)
            for key in ("Max", "Min", "Mean")
        ]
        most = max(gaps, key=abs)
        if len(givers) == 1 and most and all(abs(gap - most) <= _EXACT * abs(most) for gap in gaps):
            side, other = ("A", "B") if most > 0 else ("B", "A")
            return say(
                "compare.gradient_more",
                name=name,
                maker=self._graph.name(self._graph.node_of(flow, givers[0])),
                side=side,
                other=other,
                more=abs(most),
            )
        return say("compare.gradient_summed", name=name, numbers=_numbers(slot))

    def _frozen(self, finding: Finding) -> Sentence:
        """Return that a parameter gets no gradient on one side; nothing where the gradient ends elsewhere."""
        links = [
            link
            for link in self._graph.links(finding.node, finding.place)
            if link and link.parameter
        ]
        if finding.source in (NONE, finding.node) or not links or not links[-1].parameter:
            return NOTHING
        owner, parameter = links[-1].parameter
        source = self._graph.slots[finding.source]
        off = next(
            (
                item
                for item in source
                if gradient_end.side_without(self._graph, finding.source, item) is not None
            ),
            None,
        )
        side = gradient_end.side_without(self._graph, finding.source, off) or 0
        label = entry_name.cell_label(owner)
        return say(
            "compare.frozen", parameter=parameter, owner=label, side="AB"[side], other="BA"[side]
        )

    def _computation(self, node: int, name: str, slot: Slot | None) -> Sentence:
        numbers = _numbers(slot)
        for side, place in enumerate(self._graph.pairs[node][:2]):
            entry = self._graph.alignment.entry(side, place) if place != NONE else None
            if isinstance(entry, dict) and entry.get("raised"):
                return say(
                    "compare.raised", name=name, side="AB"[side], error=text.safe(entry["raised"])
                )
        if slot is not None and is_state(slot.place):
            return say(
                "compare.state", name=name, state=slot.place.rpartition(".")[2], numbers=numbers
            )
        note = self._permutation_note(node)
        if any(other.verdict == Verdict.TRANSPOSED for other in self._graph.slots[node]):
            note = say("compare.transposed_weight")
        given = [
            other.verdict
            for other in self._graph.slots[node]
            if other.is_input and is_tensor(other.a)
        ]
        key = "compare.computation_close" if FAINT.intersection(given) else "compare.computation"
        return clauses(say(key, name=name, numbers=numbers), note)

    def _permutation_note(self, node: int) -> Sentence:
        """Return what statistics cannot tell about the inputs of a call."""
        for slot in self._graph.slots[node]:
            if (
                not slot.is_input
                or not is_tensor(slot.a)
                or all(size == 1 for size in slot.a.get("shape") or ())
            ):
                continue
            is_summed = slot.is_faint and not slot.a.get(
                "md5"
            )  # their sums may be rounded in other ways
            if (is_summed or slot.verdict == Verdict.NUMBERS_EQUAL) and not is_constant(slot.a):
                return say("compare.perhaps_permuted")
        return NOTHING


def _numbers(slot: Slot | None) -> Sentence:
    if slot is None or not slot.are_tensors:
        return NOTHING
    a = slot.a
    b = slot.b
    parts = [
        say("compare.number", name=key, left=text.fact(a.get(key)), right=text.fact(b.get(key)))
        for key in NUMBERS
        if a.get(key) != b.get(key)
    ]
    distance = slot.distance
    known = NOTHING
    if distance.rel_l2 is not None and distance.rel_l2 < 1e300:
        wording = "compare.rel_l2" if distance.exact else "compare.rel_l2_least"
        known = say(wording, distance=float(distance.rel_l2))
    shapes = [text.shape(side.get("shape")) for side in (a, b)]
    shape = (
        say("compare.shape", left=shapes[0], right=shapes[1]) if shapes[0] != shapes[1] else NOTHING
    )
    if not parts and not shape and not distance.rel_l2 and a.get("md5") != b.get("md5"):
        known = say("compare.bits")
    shown = [*filter(None, (shape, known)), *parts[:_CONTEXT]]
    return say("compare.numbers", numbers=shown, dtype=a.get("dtype")) if shown else NOTHING


def update_sentence(
    graph: Graph, node: int, slot: Slot, change: Sentence, step: int | None
) -> Sentence:
    """Return the sentence about a place of an update; ``change`` is the call that changes gradients on one side."""
    slots = graph.slots[node]
    name = graph.name(node)
    when = NOTHING if step is None else say("compare.in_step", step=step)
    if slot.place.startswith(UPDATE_NUMBERS):
        return _update_number(slots, slot, when, name)
    if updates.is_missing(slot):
        return _missing_parameters(slots, slot, when, name)
    if slot.place.startswith(GRADIENTS):
        return _entering(graph, node, change, when)
    if slot.place.startswith(STATES):
        return _states(slots, slot, when, name)
    place = slot.place.partition(".")[2].partition(".")[2] or slot.place
    return say("compare.after_update", place=place, when=when, name=name)


def _states(slots: list[Slot], slot: Slot, when: Sentence, name: str) -> Sentence:
    state = slot.place[len(STATES) :]
    left, right = (
        text.fact(side.get("Norm")) if is_tensor(side) else say("compare.none")
        for side in (slot.a, slot.b)
    )
    more = sum(item.is_hard and item.place.startswith(STATES) for item in slots) - 1
    if more:
        return say(
            "compare.states", state=state, more=more, left=left, right=right, when=when, name=name
        )
    return say("compare.state_before", state=state, left=left, right=right, when=when, name=name)


def _update_number(slots: list[Slot], slot: Slot, when: Sentence, name: str) -> Sentence:
    """Return a number of the update in A and in B, and whose it is where the parameters have others."""
    key = updates.number_name(slot.place)
    left, right = (text.fact(number(side)) for side in (slot.a, slot.b))
    own = [item for item in slots if item.place.startswith(f"{UPDATE_NUMBERS}{key}.")]
    off = [item for item in own if item.is_hard]
    parameter = slot.place[len(UPDATE_NUMBERS) + len(key) + 1 :]
    whose = say("compare.whose", parameter=parameter) if own else NOTHING
    if len(off) > 1:
        whose = say("compare.whose_more", parameter=parameter, more=len(off) - 1, all=len(own))
    return say(
        "compare.update_number",
        number=key,
        whose=whose,
        left=left,
        right=right,
        when=when,
        name=name,
    )


def _missing_parameters(slots: list[Slot], slot: Slot, when: Sentence, name: str) -> Sentence:
    missing = [
        item
        for item in slots
        if updates.is_missing(item) and is_tensor(item.a) == is_tensor(slot.a)
    ]
    side = "AB"[int(is_tensor(slot.a))]
    names = [item.place[len(GRADIENTS) :] for item in missing]
    if len(names) == 1:
        return say("compare.missing", parameter=names[0], side=side, when=when, name=name)
    more = say("compare.more", more=len(names) - _SHOWN) if len(names) > _SHOWN else NOTHING
    return say(
        "compare.missing_many",
        parameters=names[:_SHOWN],
        more=more,
        side=side,
        when=when,
        name=name,
    )


def _entering(graph: Graph, node: int, change: Sentence, when: Sentence) -> Sentence:
    """Return that other gradients enter, though the backward made the same ones."""
    left, right = (text.fact(_norm_of_all(graph.slots[node], side)) for side in (0, 1))
    if not change:
        has_calls = any(graph.parts(other).kind == API for other in range(node))
        change = (
            say("compare.unseen")
            if has_calls
            else clauses(say("compare.unseen"), say("compare.level_mix"))
        )
    has_gradients = any(graph.parts(other).kind == GRADIENT for other in range(node))
    agree = say("compare.gradients_agree") if has_gradients else say("compare.backward_agrees")
    return say(
        "compare.entered",
        left=left,
        right=right,
        when=when,
        agree=agree,
        cause=change,
        name=graph.name(node),
    )


def _norm_of_all(slots: list[Slot], side: int) -> float | None:
    records = [(slot.a, slot.b)[side] for slot in slots if slot.place.startswith(GRADIENTS)]
    norms = [real(record.get("Norm")) for record in records if is_tensor(record)]
    return (
        None if None in norms else math.sqrt(sum(norm * norm for norm in norms if norm is not None))
    )
