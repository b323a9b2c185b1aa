# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The names of entries of pipeline stages in the whole model: layers and calls of the stages before are added."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

from probe.reading.dumps.document import Document
from probe.reading.dumps.entry_name import CELL, DEBUG, GRADIENT, OTHER, EntryName, parse
from probe.reading.dumps.values import grouped

#: the name of a stage -> the name in the whole model
Renaming = Callable[[str], str]


def renamed(layers: Mapping[str, int], numbers: Mapping[tuple[str, str], int], name: str) -> str:
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
    ending = "debug" if parts.kind == DEBUG else parts.direction
    return f"{key}.{number}.{ending}"


def renamed_key(parts: EntryName, layers: Mapping[str, int]) -> str:
    """Return the key of a name, with the layer's number in the whole model.

    >>> renamed_key(parse("Cell.layers.1.fc.Dense.forward.0"), {"layers": 4})
    'Cell.layers.5.fc.Dense'
    """
    if parts.kind not in (CELL, GRADIENT):
        return parts.key
    layer = first_number(parts.path)
    if layer is None:
        return parts.key
    before, own_number, after = layer
    offset = layers.get(before)
    if not offset:
        return parts.key
    number = str(own_number + offset)
    words = (parts.prefix, before, number, after, parts.api)
    return ".".join(filter(None, words))


def first_number(path: str) -> tuple[str, int, str] | None:
    """Return the path before the first number in a Cell's path, the number, and the path after it.

    >>> first_number("model.layers.3.mlp.fc"), first_number("head")
    (('model.layers', 3, 'mlp.fc'), None)
    """
    words = path.split(".")
    for place, word in enumerate(words):
        if word.isascii() and word.isdigit() and len(word) < 10:
            before = ".".join(words[:place])
            after = ".".join(words[place + 1 :])
            return before, int(word), after
    return None


def renamings(documents: Sequence[Document]) -> list[Renaming]:
    """Return the renaming of each stage. A stage that counts its layers from 0 gets the layers before as offset."""
    made: list[Renaming] = []
    taken: dict[
        str, set[int]
    ] = {}  # path before a layer's number -> the numbers of the stages before
    calls: dict[tuple[str, str], int] = {}  # (kind, renamed key) -> the calls of the stages before
    for document in documents:
        names = [parse(name) for name in document.data]
        layers = _offsets(names, taken)
        made.append(functools.partial(renamed, layers, dict(calls)))
        for key, count in _calls(names, layers).items():
            calls[key] = calls.get(key, 0) + count
    return made


def _offsets(names: Iterable[EntryName], taken: dict[str, set[int]]) -> dict[str, int]:
    """Return the numbers that are added to the layers of a stage, and take its numbers."""
    layers = (first_number(parts.path) for parts in names)
    own = grouped((layer[0], layer[1]) for layer in layers if layer)
    offsets: dict[str, int] = {}
    for path, numbers in own.items():
        before = taken.setdefault(path, set())
        if before & {*numbers}:
            offsets[path] = max(before) + 1 - min(numbers)
        offset = offsets.get(path, 0)
        before.update(number + offset for number in numbers)
    return offsets


def _calls(names: Iterable[EntryName], layers: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """Return how many calls of each key a stage has."""
    most: dict[tuple[str, str], int] = {}
    for parts in names:
        key = (parts.kind, renamed_key(parts, layers))
        most[key] = max(most.get(key, 0), parts.number + 1)
    return most
