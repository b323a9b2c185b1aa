# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Puts the pipeline stages of a run together: one document, with the layers numbered as in the whole model."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from probe.reading.compare.origins.origin import is_collective
from probe.reading.dumps.document import Document
from probe.reading.dumps.entry_name import BACKWARD, CELL, DEBUG, GRADIENT, OTHER, EntryName, parse
from probe.reading.dumps.values import grouped

#: the name of a stage -> the name in the whole model
Renaming = Callable[[str], str]


def renamed(layers: dict[str, int], numbers: dict[tuple[str, str], int], name: str) -> str:
    """Return the name of one stage as the whole model has it.

    ``layers`` has for the path before a layer's number how many layers are before, ``numbers`` for (kind, renamed key)
    how many calls the stages before have.
    """
    parts = parse(name) if layers or numbers else None
    if parts is None or parts.kind == OTHER:
        return name
    key = renamed_key(parts, layers)
    number = parts.number + numbers.get((parts.kind, key), 0)
    if key == parts.key and number == parts.number:
        return name
    if parts.kind == CELL:
        return f"{key}.{parts.direction}.{number}"
    if parts.kind == GRADIENT:
        return f"{key}.parameters_grad.{number}"
    return f"{key}.{number}.{'debug' if parts.kind == DEBUG else parts.direction}"


def renamed_key(parts: EntryName, layers: dict[str, int]) -> str:
    """Return the key of a name, with the layer's number in the whole model.

    >>> renamed_key(parse("Cell.layers.1.fc.Dense.forward.0"), {"layers": 4})
    'Cell.layers.5.fc.Dense'
    """
    if parts.kind not in (CELL, GRADIENT):
        return parts.key
    place = first_number(parts.path)
    if place is None or not layers.get(place[0]):
        return parts.key
    before, number, after = place
    words = (parts.prefix, before, str(number + layers[before]), after, parts.api)
    return ".".join(filter(None, words))


def first_number(path: str) -> tuple[str, int, str] | None:
    """Return the path before the first number in a Cell's path, the number, and the path after it.

    >>> first_number("model.layers.3.mlp.fc"), first_number("head")
    (('model.layers', 3, 'mlp.fc'), None)
    """
    words = path.split(".")
    for place, word in enumerate(words):
        if word.isascii() and word.isdigit() and len(word) < 10:
            return ".".join(words[:place]), int(word), ".".join(words[place + 1 :])
    return None


class Stages:
    """The documents of the stages, one for each in their order, put together."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = documents
        self._constructs = [document.construct() for document in documents]
        self.renamings = _renamings(documents)  # the names of each stage in the whole
        self.stage_of: dict[str, int] = {}  # entry name -> the number of its stage
        self.data: dict[str, Any] = {}
        if len(documents) == 1:
            self.data = documents[0].data
            self.stage_of = dict.fromkeys(self.data, 0)
            return
        entries = [list(document.data) for document in documents]
        numbered = list(enumerate(map(_phases, entries, self._constructs)))
        for phase, order in enumerate((numbered, numbered[::-1], numbered)):
            for stage, names in order:
                for name in names[phase]:
                    whole = self.renamings[stage](name)
                    if whole not in self.data:
                        self.data[whole] = documents[stage].data[name]
                        self.stage_of[whole] = stage

    def document(self) -> Document:
        """Return the whole as one document."""
        first = self.documents[0]
        notes = [note for document in self.documents for note in document.notes]
        return Document(dict(first.header), self.data, self._stacks, self.construct, notes)

    def _stacks(self) -> dict[str, list[str]]:
        whole: dict[str, list[str]] = {}
        for renamed_to, document in zip(self.renamings, self.documents):
            for name, frames in document.stacks().items():
                whole[renamed_to(name)] = frames
        return whole

    def construct(self) -> dict[str, str | None]:
        """Return the Cell around every entry."""
        whole: dict[str, str | None] = {}
        for renamed_to, construct in zip(self.renamings, self._constructs):
            for name, parent in construct.items():
                whole[renamed_to(name)] = renamed_to(parent) if parent else None
        return whole


def _renamings(documents: Sequence[Document]) -> list[Renaming]:
    """Return the renaming of each stage. A stage that counts its layers from 0 gets the layers before as offset."""
    made: list[Renaming] = []
    taken: dict[str, set[int]] = {}
    numbers: dict[tuple[str, str], int] = {}
    for document in documents:
        parsed = [parse(name) for name in document.data]
        places = [first_number(parts.path) for parts in parsed]
        own = grouped((place[0], place[1]) for place in places if place)
        known = {path: taken.setdefault(path, set()) for path in own}
        layers = {
            path: max(known[path]) + 1 - min(found)
            for path, found in own.items()
            if known[path] & {*found}
        }
        for path, found in own.items():
            known[path].update(number + layers.get(path, 0) for number in found)
        made.append(functools.partial(renamed, layers, dict(numbers)))
        most: dict[tuple[str, str], int] = {}
        for parts in parsed:
            key = parts.kind, renamed_key(parts, layers)
            most[key] = max(most.get(key, 0), parts.number + 1)
        for key, count in most.items():
            numbers[key] = numbers.get(key, 0) + count
    return made


def _phases(
    names: list[str], construct: Mapping[str, str | None]
) -> tuple[list[str], list[str], list[str]]:
    """Return the names of a stage's forwards, of its backwards, and of the calls after all backwards."""
    directions = [parse(name).direction for name in names]
    ends = [place for place, direction in enumerate(directions) if direction == BACKWARD]
    last = ends[-1] if ends else len(names)
    forwards: list[str] = []
    backwards: list[str] = []
    before = False
    for name, direction in zip(names[: last + 1], directions):
        parent = construct.get(name)
        if direction == BACKWARD or (parent and parse(parent).direction == BACKWARD):
            before = True
        elif parent or not is_collective(parse(name)):
            before = False
        (backwards if before else forwards).append(name)
    return forwards, backwards, names[last + 1 :]


def has_micro_batches(names: Iterable[str]) -> bool:
    """Return whether forwards and backwards take turns.

    >>> has_micro_batches(["Mint.exp.0.forward", "Mint.exp.0.backward", "Mint.exp.1.forward", "Mint.exp.1.backward"])
    True
    """
    directions = (parts.direction for parts in map(parse, names) if not is_collective(parts))
    return len(list(itertools.groupby(directions))) > 3
