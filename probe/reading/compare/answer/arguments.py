# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Says which arguments of a call differ, with their values; one that was not given has none."""

from __future__ import annotations

from typing import Any

from probe.findings.sentence import Sentence, clauses, say
from probe.reading.compare.answer.places import Name, place_words
from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.verdicts import Slot, Verdict, other_text
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps import text
from probe.reading.dumps.values import Record, is_tensor, leaves, plain

#: so many arguments of one call are told
_MOST = 4
#: the verdicts on another argument
_OTHER = (Verdict.ARGUMENT, Verdict.ONE_SIDE)
#: the first word of a place -> the part of an entry
_PARTS = {"input": "input_args", "kwargs": "input_kwargs", "attributes": "attributes"}


def argument_sentence(graph: Graph, node: int, place: Name, slot: Slot | None) -> Sentence:
    """Return the values of the arguments of a call that differ, in A and in B; that of ``slot`` comes first."""
    name = graph.name(node)
    if slot is None:
        return say("compare.arguments", name=name)
    left, right = _values(graph, node, slot)
    said = [say("compare.other_argument", name=name, place=place, left=left, right=right)]
    told = {_argument_of(slot.place)}
    for other in graph.slots[node]:
        argument = _argument_of(other.place)
        if other.verdict not in _OTHER or not other.is_input or argument in told:
            continue
        told.add(argument)
        left, right = _values(graph, node, other)
        further = place_words(graph.dump(node).on_disk(name, other.place))
        said.append(say("compare.also_argument", place=further, left=left, right=right))
    return clauses(*said[:_MOST])


def _argument_of(place: str) -> str:
    """Return the place of the argument that a value belongs to.

    >>> _argument_of("input.1.0"), _argument_of("kwargs.dim")
    ('input.1', 'kwargs.dim')
    """
    return ".".join(place.split(".")[:2])


def _values(graph: Graph, node: int, slot: Slot) -> tuple[Name, Name]:
    shown: list[Name] = list(other_text(slot))
    if is_tensor(slot.a) and is_tensor(slot.b):
        shown = [_form(record) for record in (slot.a, slot.b)]
    for side, place in enumerate(graph.pairs[node].places):
        if place == NONE:
            continue
        found = _found(graph.alignment.entry(side, place), slot.place)
        if found is None:
            shown[side] = say("compare.not_given")
        elif isinstance(found[0], list):
            shown[side] = str([plain(value) for _, value in leaves(found[0])][:_MOST])
    left, right = shown
    return left, right


def _form(record: Record) -> str:
    return f"{record.get('dtype')} {text.shape(record.get('shape'))}"


def _found(entry: Any, place: str) -> tuple[Any] | None:
    """Return a tuple of the value that a call was given at a place; None where it was given none.

    >>> entry = {"input_args": [None, [1]], "input_kwargs": {"dim": None}}
    >>> [_found(entry, place) for place in ("input.0", "input.1", "input.1.1", "input.2", "kwargs.dim")]
    [(None,), ([1],), None, None, (None,)]
    """
    word, *keys = place.split(".")
    part = entry.get(_PARTS.get(word)) if isinstance(entry, dict) else None
    for key in keys:
        if isinstance(part, dict) and "type" not in part and key in part:
            part = part[key]
        elif isinstance(part, list) and key.isdigit() and int(key) < len(part):
            part = part[int(key)]
        else:
            return None
    return (part,)
