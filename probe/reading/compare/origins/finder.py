# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The places where differences begin: the elements of the dataflow that differ and follow from no other.

Changes whose effect is within the tolerance are proved by exact evidence: everything before such a call agrees in bits,
and the call or its argument is another one. No tolerance is asked.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.judging.verdicts import EQUAL, FAINT, HARD, Slot, Verdict, is_permuted
from probe.reading.compare.origins import gradient_end, own_parameters, table, updates
from probe.reading.compare.origins.origin import Kind, is_collective, is_random
from probe.reading.compare.pairing.partners import NONE, REPLACED
from probe.reading.dumps.entry_name import BACKWARD, CELL, FORWARD
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.updates import NUMBERS
from probe.reading.dumps.values import is_tensor

#: so many calls in a row may be more on one side, and so many in a part of the net
_CHAIN = 16
_PART = 400
#: Mean and Norm of equal values may be so far apart: they are summed in another order at another address
_SUMMED = 5e-7
#: two calls for one thing, as einsum and matmul, differ by less than this part of the tolerance
_ROUNDED = 0.2
#: an output may differ by this many times the greatest difference of the inputs
_GROWN = 10.0
#: the names of changes of the call itself
_OWN = {
    Kind.CALLS: "another call stands at its place",
    Kind.WIRING: "its input comes from another call",
}
_CHANGED = "all before it agrees in bits, the call or its argument is another one, its result has other bits"
_INSERTED = "all before it agrees in bits, one side lacks it, its result has other bits"
_LACKS = frozenset((table.LACKING.why, table.MISSING.why))
#: kinds of which one finding stands for all elements of a list that a call is given
_IN_LISTS = (Kind.ARGUMENT, Kind.WIRING, Kind.DATA, Kind.OUTSIDE, Kind.COMPUTATION)
_PLAINLY = "the first difference; no rule tells its cause"
PARAMETERS = ("parameters.", "model_parameters.")
#: the inputs of BatchNorm that it changes -> which of the Cell's moving statistics they are
_MOVING_PLACES = {"input.3": 0, "input.4": 1}
_NORMAL = re.compile(r"batch_?norm", re.IGNORECASE)


def changed_calls(graph: Graph) -> Iterator[int]:
    """Yield the nodes that are another call, or have another argument or form, with equal inputs and other bits."""
    for node, pair in enumerate(graph.pairs):
        if graph.is_alone(node) or graph.soft[node] != node or graph.tainted[node]:
            continue
        if graph.parts(node).direction != FORWARD or graph.off[node] or graph.wirings(node):
            continue
        slots = [slot for slot in graph.slots[node] if is_tensor(slot.a) and is_tensor(slot.b)]
        given = {slot.verdict for slot in slots if slot.is_input}
        made = [slot for slot in slots if not slot.is_input]
        above = any(
            (slot.distance.rel_l2 or 0.0) > _ROUNDED * of_dtype(slot.a.get("dtype"))
            for slot in made
        )
        if pair.how == REPLACED and not above:
            continue
        if given and given <= EQUAL and not FAINT.isdisjoint(slot.verdict for slot in made):
            yield node


def inserted_calls(graph: Graph) -> Iterator[int]:
    """Yield the first of the calls that only one side has on the way of a value, and that give it other bits."""
    found: set[int] = set()
    for node in range(len(graph.pairs)):
        if (
            graph.is_alone(node)
            or graph.parts(node).direction != FORWARD
            or graph.is_container(node)
        ):
            continue
        for slot in graph.slots[node]:
            if slot.is_input and slot.verdict in FAINT and not _may_be_equal(slot):
                first = _inserted(graph, node, slot)
                if first not in (NONE, *found):
                    found.add(first)
                    yield first


def _may_be_equal(slot: Slot) -> bool:
    """Tell whether only sums over the values tell them apart, by no more than their own rounding."""
    return (
        "md5" not in slot.a and not slot.distance.exact and (slot.distance.rel_l2 or 0) <= _SUMMED
    )


def _inserted(graph: Graph, node: int, slot: Slot) -> int:
    """Return the first of the calls of one side alone that make of the other side's value this one; -1 for none."""
    producers = graph.producer_nodes(node, slot.place)
    alone = graph.alone_producers(node, slot.place)
    if len(alone) != 1 or graph.tainted[node]:
        return NONE
    place = alone[0]
    wanted = content_key(slot.b if place == producers[0] else slot.a)
    for _ in range(_CHAIN if wanted is not None else 0):
        flow, own = graph.flow(place)
        if any(content_key(link.record) == wanted for link in flow.links[own]):
            return place
        makers = [
            graph.node_of(flow, link.producer) for link in flow.links[own] if link.producer >= 0
        ]
        if len(makers) != 1 or not graph.is_alone(makers[0]):
            break
        place = makers[0]
    return NONE


def alone_after(graph: Graph, node: int) -> set[int]:
    """Return the calls that only one side has, and that follow from one such call; {} where it has a partner."""
    if not graph.is_alone(node):
        return set()
    flow, place = graph.flow(node)
    found = {node}
    waiting = [place]
    while waiting and len(found) < _PART:
        for user in flow.used_by.get(waiting.pop(), ()):
            after = graph.node_of(flow, user)
            if graph.is_alone(after) and after not in found:
                found.add(after)
                waiting.append(user)
    return found - {node}


class Finding(NamedTuple):
    """One thing that differs at one place of a node."""

    kind: str  # a ``Kind``
    node: int
    place: str = ""  # the place of the call: "input.0"; "" for the call as a whole
    parameter: tuple[str, str] | None = None  # (Cell entry, parameter) of a parameter, else None
    why: str = ""  # the rule of the table that fired
    source: int = (
        NONE  # the node where the difference was seen, if that is another one; -1 for none
    )


def without_followers(graph: Graph, findings: list[Finding]) -> list[Finding]:
    """Leave out findings that another one of them explains.

    Of calls that one side lacks the last is named, which gives the value, and not the first. A parameter that the
    optimizer lacks moves the other gradients in a list, as ``clip_by_global_norm`` is given it.
    """
    ends = {item.node for item in findings if item.why == table.MADE_ALONE.why}
    lacking = max((item.node for item in findings if item.why in _LACKS), default=NONE)
    return [
        item
        for item in findings
        if not (item.why == table.EARLIER_CHANGE and ends & alone_after(graph, item.node))
        and not (item.kind == Kind.WIRING and item.node < lacking and item.place.count(".") > 1)
    ]


def _samples(record: Any) -> int:
    """Return the first dimension of a tensor; 0 where it has none, or it is not known."""
    shape = record.get("shape")
    return shape[0] if isinstance(shape, list) and shape and type(shape[0]) is int else 0


class OriginFinder:
    """Finds where differences begin: states the facts of each candidate, and reads the table of rules."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._updates = [node for node in range(len(graph.pairs)) if graph.is_update(node)]

    def origins(self) -> list[Finding]:
        """Return the minimal elements that differ, in order."""
        return self._found(
            [
                node
                for node, off in enumerate(self._graph.off)
                if off and not self._graph.tainted[node]
            ]
        )

    def exact(self) -> list[Finding]:
        """Return changes whose effect is within the tolerance, and that exact evidence proves."""
        changed = [
            self._soft_finding(node)._replace(why=_CHANGED) for node in changed_calls(self._graph)
        ]
        return changed + [
            Finding(Kind.CALLS, node, why=_INSERTED) for node in inserted_calls(self._graph)
        ]

    def first_of_all(self) -> list[Finding]:
        """Return the first call that differs, where all follow from one another; [] where none differs."""
        nodes = [node for node, off in enumerate(self._graph.off) if off]
        for node in nodes:
            if not self._graph.is_container(node) or node == nodes[-1]:
                places = [
                    "",
                    *(slot.place for slot in self._graph.slots[node] if slot.verdict in HARD),
                ]
                kind = (
                    Kind.GRADIENT
                    if self._graph.parts(node).direction == BACKWARD
                    else Kind.COMPUTATION
                )
                return self._found([node]) or [Finding(kind, node, places[-1], why=_PLAINLY)]
        return []

    def has_grown(self, findings: list[Finding]) -> bool:
        """Return whether all these may be small differences of inputs that a call has made large."""
        return all(
            finding.kind in (Kind.COMPUTATION, Kind.GRADIENT)
            and any(
                slot.verdict in FAINT for slot in self._graph.slots[finding.node] if slot.is_input
            )
            for finding in findings
        )

    def _found(self, nodes: list[int]) -> list[Finding]:
        found: dict[tuple[Any, ...], Finding] = {}
        for node in nodes:
            for finding in self._classified(node):
                found.setdefault(self._identity(finding), finding)
        return sorted(without_followers(self._graph, [*found.values()]), key=lambda item: item.node)

    def later(self, most: int = 20) -> list[Finding]:
        """Return calls that follow from an origin by the dataflow, but give another output for inputs that agree."""
        graph = self._graph
        found: list[Finding] = []
        for node in range(len(graph.pairs)):
            if len(found) >= most:
                break
            if not graph.off[node] or not graph.tainted[node] or graph.is_container(node):
                continue
            hard = [slot for slot in graph.slots[node] if slot.verdict in HARD]
            inputs = [slot.place for slot in hard if slot.is_input]
            outside = next((place for place in inputs if graph.is_outside(node, place)), None)
            if graph.is_update(node):
                found += self._update(
                    node, [slot for slot in hard if slot.place.startswith(NUMBERS)]
                )
            elif graph.parts(node).direction == BACKWARD:
                continue
            elif outside is not None:
                found.append(Finding(Kind.OUTSIDE, node, outside))
            elif hard and not inputs:
                found += self._call(node, hard)
        return found

    def soft(self) -> list[Finding]:
        """Return differences that may be harmless: calls on one side only, arguments, dtypes, wiring."""
        graph = self._graph
        return [
            self._soft_finding(node) for node in range(len(graph.pairs)) if graph.soft[node] == node
        ]

    def _classified(self, node: int) -> Iterator[Finding]:
        graph = self._graph
        hard = [slot for slot in graph.slots[node] if slot.verdict in HARD]
        inputs = [slot for slot in hard if slot.is_input]
        if graph.parts(node).direction == BACKWARD:
            yield from self._gradient(node, hard)
        elif graph.is_update(node):
            yield from self._update(node, hard)
        elif inputs:
            for slot in inputs:
                yield from self._input(node, slot)
        else:
            yield from self._call(node, hard)

    def _update(self, node: int, hard: list[Slot]) -> Iterator[Finding]:
        """Yield the origins in the update of an optimizer: each number that differs, and the first of other kinds."""
        graph = self._graph
        for slot in updates.first_of_kinds(hard):
            between = updates.call_between(graph, node, slot)
            rule = table.first_rule(
                table.UPDATE_RULES, updates.update_facts(graph, node, slot, between)
            )
            if rule.kind == table.EARLIER:
                yield self._soft_finding(between)._replace(why=rule.why, source=node)
            else:
                yield Finding(Kind.OPTIMIZER, node, slot.place, why=rule.why, source=between)

    def _call(self, node: int, outputs: list[Slot]) -> Iterator[Finding]:
        """Yield the origin of outputs that differ though the inputs agree."""
        graph = self._graph
        parts = self._graph.parts(node)
        facts = table.CallFacts(
            carried=bool(outputs) and self._is_carried(node, outputs),
            argument=any(
                slot.verdict == Verdict.ARGUMENT and slot.is_input for slot in graph.slots[node]
            ),
            follows=graph.soft[node] != NONE,
            is_random=is_random(parts),
            is_collective=is_collective(parts),
        )
        told = next(
            (slot for slot in outputs if not self._is_carried(node, [slot])),
            outputs[0] if outputs else None,
        )
        yield from self._by_rule(
            table.first_rule(table.CALL_RULES, facts), node, told.place if told else ""
        )

    def _gradient(self, node: int, hard: list[Slot]) -> Iterator[Finding]:
        """Yield the origin of gradients that differ though no gradient before them does."""
        graph = self._graph
        alone = (item for item in hard if gradient_end.side_without(graph, node, item) is not None)
        slot = next(alone, hard[0] if hard else None)
        missing = gradient_end.side_without(graph, node, slot) is not None
        end, leaf = gradient_end.end_of(graph, node, slot) if missing else (NONE, "")
        update, lacking = (
            updates.lacking_update(graph, node, slot, (end, leaf), self._updates)
            if missing
            else (NONE, "")
        )
        facts = table.GradientFacts(
            missing=missing,
            ended_alone=end != NONE and not leaf,
            at_parameter=bool(leaf),
            follows=graph.soft[node] != NONE,
            carried=bool(hard) and self._is_carried(node, hard),
            not_updated=update != NONE,
        )
        rule = table.first_rule(table.GRADIENT_RULES, facts)
        if rule is table.LACKING:
            yield Finding(Kind.OPTIMIZER, update, lacking, why=rule.why, source=NONE)
        elif rule.kind == Kind.CALLS:
            yield Finding(Kind.CALLS, end, slot.place if slot else "", why=rule.why, source=node)
        elif rule is table.FROZEN:
            yield Finding(Kind.GRADIENT, end, leaf, why=rule.why, source=node)
        else:
            yield from self._by_rule(rule, node, slot.place if slot else "")

    def _by_rule(self, rule: table.OriginRow[Any], node: int, place: str) -> Iterator[Finding]:
        if rule.kind == table.EARLIER:
            change = self._soft_finding(self._graph.soft[node])
            why = (
                rule.why
                if change.node != node
                else _OWN.get(change.kind, f"its own {change.kind} differs")
            )
            yield change._replace(why=why, source=node)
        elif rule.kind != table.NOTHING:
            yield Finding(rule.kind, node, place, why=rule.why)

    def _is_carried(self, node: int, outputs: list[Slot]) -> bool:
        """Return whether the differences of the inputs, though within tolerance, explain those of the outputs."""
        if any(slot.is_input for slot in outputs):
            return False
        given = max(
            (slot.distance.rel_l2 or 0.0 for slot in self._graph.slots[node] if slot.is_input),
            default=0.0,
        )
        return all((slot.distance.rel_l2 or 0.0) <= _GROWN * given for slot in outputs)

    def _input(self, node: int, slot: Slot) -> Iterator[Finding]:
        """Yield why an input differs though no cause of the call does."""
        graph = self._graph
        if own_parameters.is_own_alone(slot):
            yield self._own_parameter(node, slot)
            return
        producers = graph.producer_nodes(node, slot.place)
        alone = graph.alone_producers(node, slot.place)
        same = producers[0] == producers[1] and producers[0] != NONE
        moving = self._moving(node, slot.place) if max(producers) == NONE else None
        parameter = moving or self._parameter(node, slot)
        facts = table.InputFacts(
            of_container=slot.place.startswith(PARAMETERS) and graph.is_container(node),
            is_parameter=parameter is not None and max(producers) == NONE,
            is_state=moving is not None,
            made_alone=bool(alone) and not same,
            made_by_others=producers[0] != producers[1],
            made_by_partners=same,
            other_output=same and graph.uses_other_output(node, slot.place),
            follows=graph.soft[node] != NONE,
            is_data=self._is_data(node, slot),
        )
        rule = table.first_rule(table.INPUT_RULES, facts)
        if rule.kind == Kind.CALLS:
            yield Finding(Kind.CALLS, alone[0], why=rule.why, source=node)
        elif rule.kind == Kind.PARAMETER:
            yield Finding(Kind.PARAMETER, node, slot.place, parameter, why=rule.why)
        elif rule.kind == Kind.WIRING:
            yield Finding(Kind.WIRING, *graph.outermost(node, slot.place), why=rule.why)
        else:
            yield from self._by_rule(rule, node, slot.place)

    def _parameter(self, node: int, slot: Slot) -> tuple[str, str] | None:
        """Return (Cell entry, parameter) of a value that is a parameter; None where it is none."""
        if slot.place.startswith(PARAMETERS):
            return self._graph.name(node), slot.place.partition(".")[2]
        links = self._graph.links(node, slot.place)
        return next(
            (link.parameter for link in (links[1], links[0]) if link and link.parameter), None
        )

    def _moving(self, node: int, place: str) -> tuple[str, str] | None:
        """Return the moving statistic that BatchNorm is given at a place: it changes it, so that no content tells."""
        number = _MOVING_PLACES.get(place)
        flow, own = self._graph.flow(node)
        cell = flow.cells[own]
        if number is None or cell is None or not _NORMAL.search(self._graph.parts(node).key):
            return None
        names = self._graph.state_of(node, cell)
        return (cell, names[number]) if number < len(names) else None

    def _is_data(self, node: int, slot: Slot) -> bool:
        """Return whether a value from outside is the batch.

        The batch is integers, or the tensor that the first call is given. A tensor with as many samples is of the data
        set too if it enters an outermost Cell, or a call outside of all Cells, as the labels of a regression.
        """
        record = slot.b if is_tensor(slot.b) else slot.a
        if not is_tensor(record):
            return False
        if str(record.get("dtype")).startswith(("Int", "UInt")):
            return True
        contents = {content_key(side) for side in (slot.a, slot.b) if is_tensor(side)} - {None}
        first = self._batch[:1]
        others = self._batch[1:]
        if not contents.isdisjoint(map(content_key, first)):
            return True
        if _samples(record) not in {_samples(given) for given in first} - {0, 1}:
            return False  # as a mask, which the outermost Cells may be given too
        flow, own = self._graph.flow(node)
        is_outside = self._has_cells and flow.cells[own] is None
        return is_outside or not contents.isdisjoint(map(content_key, others))

    @functools.cached_property
    def _has_cells(self) -> bool:
        """Whether Cells were recorded, so that a call outside of them is known as one."""
        return any(self._graph.parts(node).kind == CELL for node in range(len(self._graph.pairs)))

    @functools.cached_property
    def _batch(self) -> list[dict[str, Any]]:
        """The first input of the first call, and the inputs of all outermost Cells that no recorded call made."""
        found: list[dict[str, Any]] = []
        has_first = False
        for node in range(len(self._graph.pairs)):
            flow, place = self._graph.flow(node)
            links = flow.links[place]
            parts = self._graph.parts(node)
            if links and not has_first and not self._graph.is_container(node):
                has_first = True
                found += [link.record for link in links[:1] if link.place == "input.0"]
            if parts.kind == CELL and parts.direction == FORWARD and flow.cells[place] is None:
                given = (
                    link for link in links if link.place.startswith("input.") and link.producer < 0
                )
                found += [link.record for link in given if link.parameter is None]
        return found

    def _soft_finding(self, node: int) -> Finding:
        graph = self._graph
        if graph.is_alone(node) or graph.pairs[node].how == REPLACED:
            return Finding(Kind.CALLS, node)
        inputs = [slot for slot in graph.slots[node] if slot.is_input]
        for slot in inputs:
            if is_permuted(slot) and max(graph.producer_nodes(node, slot.place)) == NONE:
                # a value that no recorded call made, whose bits differ and whose numbers do not
                if parameter := self._parameter(node, slot):
                    return Finding(Kind.PARAMETER, node, slot.place, parameter)
                return Finding(
                    Kind.DATA if self._is_data(node, slot) else Kind.OUTSIDE, node, slot.place
                )
        if argument := next((slot for slot in inputs if slot.verdict == Verdict.ARGUMENT), None):
            is_own = own_parameters.is_own_alone(argument)
            return (
                self._own_parameter(node, argument)
                if is_own
                else Finding(Kind.ARGUMENT, node, argument.place)
            )
        wirings = graph.wirings(node)
        if wirings:
            alone = graph.alone_producers(node, wirings[0])
            return (
                Finding(Kind.CALLS, alone[0]) if alone else Finding(Kind.WIRING, node, wirings[0])
            )
        return Finding(
            Kind.ARGUMENT,
            node,
            next((slot.place for slot in graph.slots[node] if is_tensor(slot.a)), ""),
        )

    def _own_parameter(self, node: int, slot: Slot) -> Finding:
        user, place = own_parameters.use_of(self._graph, node, slot)
        return Finding(Kind.PARAMETER, user, place, why=own_parameters.WHY)

    def _identity(self, finding: Finding) -> tuple[Any, ...]:
        """Return a key that findings of one cause share: a parameter, or a value that two calls are given."""
        if finding.parameter is not None:
            return finding.kind, finding.parameter
        if (
            finding.kind in _IN_LISTS
            and finding.place.startswith("input.")
            and finding.place.count(".") > 1
        ):
            return (
                finding.kind,
                finding.node,
                ".".join(finding.place.split(".")[:2]),
            )  # of a list the first is told
        slot = (
            self._graph.slot(finding.node, finding.place)
            if finding.kind in (Kind.DATA, Kind.OUTSIDE)
            else None
        )
        if slot is not None and is_tensor(slot.a) and is_tensor(slot.b):
            return finding.kind, content_key(slot.a), content_key(slot.b)
        return finding.kind, finding.node, finding.place
