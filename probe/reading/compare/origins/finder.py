# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The places where differences begin: the elements of the dataflow that differ and follow from no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.verdicts import FAINT, Slot, Verdict, is_permuted
from probe.reading.compare.origins import gradient_end, own_parameters, table, updates
from probe.reading.compare.origins.batch import Batch
from probe.reading.compare.origins.exact_evidence import changed_calls, inserted_calls
from probe.reading.compare.origins.exchanged import exchange_of
from probe.reading.compare.origins.finding import Finding, without_followers
from probe.reading.compare.origins.origin import Kind
from probe.reading.compare.origins.other_value import OtherValues
from probe.reading.compare.pairing.partners import NONE, REPLACED
from probe.reading.dumps.call_kinds import is_collective, is_random
from probe.reading.dumps.entry_name import BACKWARD
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.updates import NUMBERS
from probe.reading.dumps.values import is_tensor

#: an output may differ by this many times the greatest difference of the inputs
_GROWN = 10.0
#: the names of changes of the call itself
_OWN = {
    Kind.CALLS: "another call stands at its place",
    Kind.WIRING: "its input comes from another call",
}
_CHANGED = "all before it agrees in bits, the call or its argument is another one, its result has other bits"
_INSERTED = "all before it agrees in bits, one side lacks it, its result has other bits"
#: kinds of which one finding stands for all elements of a list that a call is given
_IN_LISTS = (Kind.ARGUMENT, Kind.WIRING, Kind.DATA, Kind.OUTSIDE, Kind.COMPUTATION)
_PLAINLY = "the first difference; no rule tells its cause"
PARAMETERS = ("parameters.", "model_parameters.")
#: the inputs of BatchNorm that it changes -> which of the Cell's moving statistics they are
_MOVING_PLACES = {"input.3": 0, "input.4": 1}
_NORMAL = re.compile(r"batch_?norm", re.IGNORECASE)


class OriginFinder:
    """Finds where differences begin: states the facts of each candidate, and reads the table of rules."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._batch = Batch(graph)
        self._others = OtherValues(graph)
        self._updates = [node for node in range(len(graph.pairs)) if graph.is_update(node)]

    def origins(self) -> list[Finding]:
        """Return the minimal elements that differ, in order."""
        graph = self._graph
        off = [node for node, is_off in enumerate(graph.off) if is_off]
        return self._found([node for node in off if not graph.tainted[node]])

    def exact(self) -> list[Finding]:
        """Return changes whose effect is within the tolerance, and that exact evidence proves."""
        graph = self._graph
        changed = [self._soft_finding(node) for node in changed_calls(graph)]
        return [
            *(finding._replace(why=_CHANGED) for finding in changed),
            *(Finding(Kind.CALLS, node, why=_INSERTED) for node in inserted_calls(graph)),
        ]

    def first_of_all(self) -> list[Finding]:
        """Return the first call that differs, where all follow from one another; [] where none differs."""
        graph = self._graph
        nodes = [node for node, is_off in enumerate(graph.off) if is_off]
        calls = [node for node in nodes if not graph.is_container(node)]
        if not nodes:
            return []
        node = calls[0] if calls else nodes[-1]
        hard = [slot.place for slot in graph.hard(node)]
        is_backward = graph.parts(node).direction == BACKWARD
        kind = Kind.GRADIENT if is_backward else Kind.COMPUTATION
        plainly = Finding(kind, node, hard[-1] if hard else "", why=_PLAINLY)
        return self._found([node]) or [plainly]

    def has_grown(self, findings: list[Finding]) -> bool:
        """Return whether all these may be small differences of inputs that a call has made large."""
        for finding in findings:
            if finding.kind not in (Kind.COMPUTATION, Kind.GRADIENT):
                return False
            slots = self._graph.slots[finding.node]
            given = [slot.verdict for slot in slots if slot.is_input]
            if FAINT.isdisjoint(given):
                return False
        return True

    def _found(self, nodes: list[int]) -> list[Finding]:
        found: dict[tuple[Any, ...], Finding] = {}
        for node in nodes:
            for finding in self._classified(node):
                found.setdefault(self._identity(finding), finding)
        causes = without_followers(self._graph, list(found.values()))
        return sorted(causes, key=lambda item: item.node)

    def later(self, most: int = 20) -> list[Finding]:
        """Return calls that follow from an origin by the dataflow, but give another output for inputs that agree."""
        graph = self._graph
        found: list[Finding] = []
        for node in range(len(graph.pairs)):
            if len(found) >= most:
                break
            if not graph.off[node] or not graph.tainted[node] or graph.is_container(node):
                continue
            hard = graph.hard(node)
            inputs = [slot.place for slot in hard if slot.is_input]
            outside = next((place for place in inputs if graph.is_outside(node, place)), None)
            if graph.is_update(node):
                numbers = [slot for slot in hard if slot.place.startswith(NUMBERS)]
                found += self._update(node, numbers)
            elif graph.parts(node).direction == BACKWARD:
                continue
            elif outside is not None:
                found.append(Finding(Kind.OUTSIDE, node, outside))
            elif hard and not inputs:
                found += self._call(node, hard)
        return found

    def soft(self) -> list[Finding]:
        """Return differences that may be harmless: calls on one side only, arguments, dtypes, wiring, optimizers."""
        graph = self._graph
        nodes = [node for node, source in enumerate(graph.soft) if source == node]
        updated = [
            Finding(Kind.OPTIMIZER, node, why=table.OTHER_CLASS.why)
            for node in self._updates
            if not graph.off[node] and updates.other_classes(graph, node)
        ]
        return [*map(self._soft_finding, nodes), *updated]

    def _classified(self, node: int) -> Iterator[Finding]:
        graph = self._graph
        hard = graph.hard(node)
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
        for slot in updates.first_of_kinds(updates.without_explained(hard)):
            between = updates.call_between(graph, node, slot)
            facts = updates.update_facts(graph, node, slot, between)
            rule = table.first_rule(table.UPDATE_RULES, facts)
            if rule.kind == table.EARLIER:
                yield self._soft_finding(between)._replace(why=rule.why, source=node)
            else:
                yield Finding(Kind.OPTIMIZER, node, slot.place, why=rule.why, source=between)

    def _call(self, node: int, outputs: list[Slot]) -> Iterator[Finding]:
        """Yield the origin of outputs that differ though the inputs agree."""
        graph = self._graph
        parts = graph.parts(node)
        given = [slot.verdict for slot in graph.inputs(node)]
        facts = table.CallFacts(
            carried=bool(outputs) and self._is_carried(node, outputs),
            argument=Verdict.ARGUMENT in given,
            follows=graph.soft[node] != NONE,
            is_random=is_random(parts),
            is_collective=is_collective(parts),
        )
        rule = table.first_rule(table.CALL_RULES, facts)
        own = [slot for slot in outputs if not self._is_carried(node, [slot])]
        told = [slot.place for slot in own or outputs]
        yield from self._by_rule(rule, node, told[0] if told else "")

    def _gradient(self, node: int, hard: list[Slot]) -> Iterator[Finding]:
        """Yield the origin of gradients that differ though no gradient before them does."""
        graph = self._graph
        alone = [item for item in hard if gradient_end.side_without(graph, node, item) is not None]
        slot = next(iter(alone or hard), None)
        missing = gradient_end.side_without(graph, node, slot) is not None
        end = NONE
        leaf = ""
        update = NONE
        lacking = ""
        if missing:
            end, leaf = gradient_end.end_of(graph, node, slot)
            update, lacking = updates.lacking_update(graph, node, slot, (end, leaf), self._updates)
        place = slot.place if slot else ""
        exchange = exchange_of(graph, node, slot)
        facts = table.GradientFacts(
            missing=missing,
            exchanged=exchange is not None,
            ended_alone=end != NONE and not leaf,
            at_parameter=bool(leaf),
            follows=graph.soft[node] != NONE,
            carried=bool(hard) and self._is_carried(node, hard),
            not_updated=update != NONE,
        )
        rule = table.first_rule(table.GRADIENT_RULES, facts)
        if rule is table.EXCHANGED and exchange is not None:
            yield Finding(Kind.WIRING, exchange.user, exchange.place, why=rule.why, source=node)
        elif rule is table.LACKING:
            yield Finding(Kind.OPTIMIZER, update, lacking, why=rule.why, source=NONE)
        elif rule.kind == Kind.CALLS:
            yield Finding(Kind.CALLS, end, place, why=rule.why, source=node)
        elif rule is table.FROZEN:
            yield Finding(Kind.GRADIENT, end, leaf, why=rule.why, source=node)
        else:
            yield from self._by_rule(rule, node, place)

    def _by_rule(self, rule: table.OriginRow[Any], node: int, place: str) -> Iterator[Finding]:
        if rule.kind == table.EARLIER:
            change = self._soft_finding(self._graph.soft[node])
            why = rule.why
            if change.node == node:
                why = _OWN.get(change.kind, f"its own {change.kind} differs")
            yield change._replace(why=why, source=node)
        elif rule.kind != table.NOTHING:
            yield Finding(rule.kind, node, place, why=rule.why)

    def _is_carried(self, node: int, outputs: list[Slot]) -> bool:
        """Return whether the differences of the inputs, though within tolerance, explain those of the outputs."""
        if any(slot.is_input for slot in outputs):
            return False
        inputs = self._graph.inputs(node)
        given = max(map(_apart, inputs), default=0.0)
        return all(_apart(slot) <= _GROWN * given for slot in outputs)

    def _input(self, node: int, slot: Slot) -> Iterator[Finding]:
        """Yield why an input differs though no cause of the call does."""
        graph = self._graph
        if own_parameters.is_own_alone(slot):
            yield self._own_parameter(node, slot)
            return
        is_replaced = graph.pairs[node].how == REPLACED
        if is_replaced and is_tensor(slot.a) != is_tensor(slot.b):
            yield Finding(Kind.CALLS, node, why=table.MADE_ALONE.why)
            return
        is_unmade = graph.producer_nodes(node, slot.place) == (NONE, NONE)
        moving = self._moving(node, slot.place) if is_unmade else None
        parameter = moving or self._parameter(node, slot)
        facts = self._input_facts(node, slot)._replace(
            is_parameter=parameter is not None and is_unmade,
            is_state=moving is not None,
        )
        rule = table.first_rule(table.INPUT_RULES, facts)
        if rule is table.MADE_ALONE:
            alone = graph.alone_producers(node, slot.place)
            yield Finding(Kind.CALLS, alone[0], why=rule.why, source=node)
        elif rule is table.OTHER_CALL:
            yield Finding(Kind.CALLS, node, why=rule.why)
        elif rule.kind == Kind.PARAMETER:
            yield Finding(Kind.PARAMETER, node, slot.place, parameter, why=rule.why)
        elif rule is table.OTHER_PARAMETER:
            yield Finding(Kind.WIRING, node, slot.place, why=rule.why)
        elif rule.kind == Kind.WIRING:
            yield Finding(Kind.WIRING, *graph.outermost(node, slot.place), why=rule.why)
        else:
            yield from self._by_rule(rule, node, slot.place)

    def _input_facts(self, node: int, slot: Slot) -> table.InputFacts:
        """Return the facts about an input, but for those that tell whether it is a parameter."""
        graph = self._graph
        is_replaced = graph.pairs[node].how == REPLACED
        maker_a, maker_b = graph.producer_nodes(node, slot.place)
        alone = graph.alone_producers(node, slot.place)
        same = maker_a == maker_b and maker_a != NONE
        is_unmade = maker_a == NONE and maker_b == NONE
        is_one_sided = slot.verdict == Verdict.ONE_SIDE
        return table.InputFacts(
            of_container=slot.place.startswith(PARAMETERS) and graph.is_container(node),
            made_alone=bool(alone) and not same,
            of_other_call=is_replaced
            and (is_one_sided or maker_a != maker_b or self._others.are_two(node, slot)),
            one_sided=is_one_sided,
            made_by_others=maker_a != maker_b,
            made_by_partners=same,
            other_output=same and graph.uses_other_output(node, slot.place),
            follows=graph.soft[node] != NONE,
            is_data=self._batch.holds(node, slot),
            is_fed=self._batch.is_fed(node, slot),
            other_parameter=not is_replaced and self._others.parameter(node, slot) is not None,
            other_outside=is_unmade and self._others.exchange(node, slot) is not None,
        )

    def _parameter(self, node: int, slot: Slot) -> tuple[str, str] | None:
        """Return (Cell entry, parameter) of a value that is a parameter; None where it is none."""
        if slot.place.startswith(PARAMETERS):
            _, _, parameter = slot.place.partition(".")
            return self._graph.name(node), parameter
        link_a, link_b = self._graph.links(node, slot.place)
        for link in (link_b, link_a):
            if link and link.parameter:
                return link.parameter
        return None

    def _moving(self, node: int, place: str) -> tuple[str, str] | None:
        """Return the moving statistic that BatchNorm is given at a place: it changes it, so that no content tells."""
        number = _MOVING_PLACES.get(place)
        flow, own = self._graph.shown_flow(node)
        cell = flow.cells[own]
        if number is None or cell is None or not _NORMAL.search(self._graph.parts(node).key):
            return None
        names = self._graph.state_of(node, cell)
        return (cell, names[number]) if number < len(names) else None

    def _soft_finding(self, node: int) -> Finding:
        """Return the difference of a node that may be harmless: as a call, in an input, in the wiring, in its form."""
        graph = self._graph
        if graph.is_alone(node) or graph.pairs[node].how == REPLACED:
            return Finding(Kind.CALLS, node)
        return self._soft_input(node) or self._soft_wiring(node)

    def _soft_input(self, node: int) -> Finding | None:
        graph = self._graph
        inputs = graph.inputs(node)
        for slot in inputs:
            if is_permuted(slot) and graph.is_unmade(node, slot.place):
                # a value that no recorded call made, whose bits differ and whose numbers do not
                if parameter := self._parameter(node, slot):
                    return Finding(Kind.PARAMETER, node, slot.place, parameter)
                kind = Kind.DATA if self._batch.holds(node, slot) else Kind.OUTSIDE
                return Finding(kind, node, slot.place)
        argument = next((slot for slot in inputs if slot.verdict == Verdict.ARGUMENT), None)
        if argument is None:
            return None
        if own_parameters.is_own_alone(argument):
            return self._own_parameter(node, argument)
        return Finding(Kind.ARGUMENT, node, argument.place)

    def _soft_wiring(self, node: int) -> Finding:
        graph = self._graph
        wirings = graph.wirings(node)
        if not wirings:
            slots = graph.slots[node]
            tensors = [slot.place for slot in slots if slot.are_tensors]
            return Finding(Kind.ARGUMENT, node, tensors[0] if tensors else "")
        alone = graph.alone_producers(node, wirings[0])
        if alone:
            return Finding(Kind.CALLS, alone[0])
        return Finding(Kind.WIRING, node, wirings[0])

    def _own_parameter(self, node: int, slot: Slot) -> Finding:
        user, place = own_parameters.use_of(self._graph, node, slot)
        return Finding(Kind.PARAMETER, user, place, why=own_parameters.WHY)

    def _identity(self, finding: Finding) -> tuple[Any, ...]:
        """Return a key that findings of one cause share: a parameter, or a value that two calls are given."""
        if finding.parameter is not None:
            return finding.kind, finding.parameter
        word, *numbers = finding.place.split(".")
        if finding.kind in _IN_LISTS and word == "input" and len(numbers) > 1:
            # of a list the first is told
            return finding.kind, finding.node, f"{word}.{numbers[0]}"
        is_outside = finding.why == table.OTHER_OUTSIDE.why
        if finding.kind in (Kind.DATA, Kind.OUTSIDE) or is_outside:
            slot = self._graph.slot(finding.node, finding.place)
            if slot is not None and slot.are_tensors:
                contents = (content_key(slot.a), content_key(slot.b))
                # two values that were exchanged are one
                return finding.kind, frozenset(contents) if is_outside else contents
        return finding.kind, finding.node, finding.place


def _apart(slot: Slot) -> float:
    return slot.distance.rel_l2 or 0.0
