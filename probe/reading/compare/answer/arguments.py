# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Says which arguments of a call differ, with their values; one that was not given has its default."""

from __future__ import annotations

from typing import Any

from probe.findings.sentence import Sentence, clauses, say
from probe.reading.compare.answer.places import Name, place_words
from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.verdicts import Slot, Verdict, other_text
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps import text
from probe.reading.dumps.values import Record, is_tensor, leaves, plain
from probe.signatures import Parameter, parameter

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
    arguments = _Arguments(graph, node)
    left, right = arguments.values(slot)
    said = [say("compare.other_argument", name=name, place=place, left=left, right=right)]
    told = {arguments.of(slot)}
    for other in graph.slots[node]:
        argument = arguments.of(other)
        if other.verdict not in _OTHER or not other.is_input or argument in told:
            continue
        told.add(argument)
        left, right = arguments.values(other)
        further = place_words(graph.dump(node).on_disk(name, other.place))
        said.append(say("compare.also_argument", place=further, left=left, right=right))
    return clauses(*said[:_MOST])


class _Arguments:
    """The arguments of a call in A and in B. The signature of the API tells which place a name has, and defaults."""

    def __init__(self, graph: Graph, node: int) -> None:
        self._graph = graph
        self._node = node

    def of(self, slot: Slot) -> str:
        """Return the argument that a value belongs to: its parameter, else its place; of a tensor its place."""
        if not is_tensor(slot.a) and not is_tensor(slot.b):
            own = self._parameter(self._graph.side(self._node), slot.place)
            if own is not None:
                return own.name
        return _argument_of(slot.place)

    def values(self, slot: Slot) -> tuple[Name, Name]:
        """Return the two values of an argument."""
        shown: list[Name] = list(other_text(slot))
        if slot.are_tensors:
            shown = [_form(record) for record in (slot.a, slot.b)]
        for side, place in enumerate(self._graph.pairs[self._node].places):
            if place == NONE:
                continue
            entry = self._graph.alignment.entry(side, place)
            found = _found(entry, slot.place)
            if found is None:
                shown[side] = self._absent(side, entry, slot.place)
            elif isinstance(found[0], list):
                shown[side] = _shown(found[0])
        left, right = shown
        return left, right

    def _absent(self, side: int, entry: Any, place: str) -> Name:
        """Return the words for an argument that does not stand at a place of a call."""
        own = self._parameter(side, place)
        if own is None:
            return say("compare.not_given")
        found = _found(entry, f"kwargs.{own.name}") or _found(entry, f"input.{own.place}")
        if found is not None and not is_tensor(found[0]):
            return _shown(found[0])
        if found is not None or not own.default:
            return say("compare.not_given")
        return say("compare.default", value=own.default)

    def _parameter(self, side: int, place: str) -> Parameter | None:
        """Return the parameter of a place; None where a place of the dump may be another one of the function."""
        if self._graph.is_foreign or place.partition(".")[0] not in ("input", "kwargs"):
            return None
        version = _mindspore_version(self._graph.dumps[side].header)
        return parameter(self._graph.parts(self._node).key, place, version)


def _mindspore_version(header: dict[str, Any]) -> str:
    """Return the MindSpore that a dump was recorded with; "" where its header does not say."""
    run = header.get("run")
    versions = run.get("versions") if isinstance(run, dict) else None
    return str(versions.get("mindspore", "")) if isinstance(versions, dict) else ""


def _argument_of(place: str) -> str:
    """Return the place of the argument that a value belongs to.

    >>> _argument_of("input.1.0"), _argument_of("kwargs.dim")
    ('input.1', 'kwargs.dim')
    """
    return ".".join(place.split(".")[:2])


def _shown(value: Any) -> str:
    """Return a value that is no tensor as a text, a long list by its first elements."""
    if isinstance(value, list):
        return str([plain(item) for _, item in leaves(value)][:_MOST])
    return repr(plain(value))


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
