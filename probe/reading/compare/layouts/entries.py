# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Entries of a further rank, read one after the other so that they take no memory, and their values by their places."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from probe.door import open_text
from probe.errors import UsageError
from probe.findings.sentence import Sentence
from probe.reading.dumps.entry_view import WORDS
from probe.reading.dumps.folders import DumpFolder, DumpSource
from probe.reading.dumps.values import MAX_DEPTH, Leaf, is_tensor, leaves
from probe.store import file_names

#: entries begin at lines that are indented by two, as recorders write them
_ENTRY = re.compile(r'^  ("(?:[^"\\\n]|\\.)*"): ', re.MULTILINE)
_DATA, _END = '\n "data": {\n', "\n }"


def read_entries(
    folder: DumpFolder, notes: list[Sentence] | None = None, wanted: Callable[[str], bool] | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield (name, entry) of the entries of a dump that are wanted; None wants all. ``notes`` gets the remarks on it.

    Raise UsageError when it cannot be read.
    """
    text = _text(folder)
    start = text.find(_DATA) + len(_DATA) - 1
    end = text.find(_END, start)
    found = list(_ENTRY.finditer(text, start, end)) if start >= len(_DATA) and end > 0 else []
    if not found or found[0].start() != start + 1:
        document = folder.source.read(folder.path)
        if notes is not None:
            notes += document.notes
        yield from document.data.items()
        return
    ends = [match.start() for match in found[1:]]
    for match, stop in zip(found, [*ends, end]):
        try:
            name = json.loads(match[1])
            if wanted is not None and not wanted(name):
                continue
            entry = json.loads(text[match.end() : stop].rstrip().rstrip(","))
        except (ValueError, RecursionError):
            raise UsageError(f"{os.path.join(folder.path, file_names.DUMP)} cannot be read: at {match[1]}") from None
        yield name, entry


def _text(folder: DumpFolder) -> str:
    """Return the text of dump.json; "" where the dump is read as a whole."""
    if not isinstance(folder.source, DumpSource) or os.path.exists(os.path.join(folder.path, file_names.JOURNAL)):
        return ""
    try:
        with open_text(os.path.join(folder.path, file_names.DUMP)) as file:
            return file.read()
    except (OSError, ValueError):
        return ""


#: parts of an entry that a call is given
GIVEN = ("input", "kwargs", "parameters")


def values(entry: Any) -> Iterator[Leaf]:
    """Yield (place, value) of every value in an entry, as rows of a comparison name the places.

    >>> record = {"type": "mindspore.Tensor"}
    >>> [place for place, _ in values({"input_args": [record], "input_kwargs": {}, "output": [None, [record]]})]
    ['input.0', 'output.0', 'output.1.0']
    >>> [place for place, _ in values({"weight": [record]})]
    ['weight.0']
    """
    if is_tensor(entry):
        yield "0", entry
    elif _has_parts(entry):
        for key, part in entry.items():
            if key in WORDS:
                for place, leaf in leaves(part):
                    yield f"{WORDS[key]}.{place}", leaf
    else:
        yield from leaves(entry)


def with_values(entry: Any, other: Mapping[str, Any]) -> Any:
    """Return an entry with other values at some places.

    >>> with_values({"output": [1, 2]}, {"output.1": 5})
    {'output': [1, 5]}
    """
    if is_tensor(entry):
        return other.get("0", entry)
    if _has_parts(entry):
        return {key: _with(part, WORDS[key], other) if key in WORDS else part for key, part in entry.items()}
    return _with(entry, "", other)


def _has_parts(entry: Any) -> bool:
    return type(entry) is dict and any(key in WORDS for key in entry)


def _with(part: Any, above: str, other: Mapping[str, Any], depth: int = MAX_DEPTH) -> Any:
    if above in other:
        return other[above]
    if not depth or (type(part) is dict and type(part.get("type")) is str):
        return part
    start = f"{above}." if above else ""
    if type(part) is list:
        return [_with(item, f"{start}{place}", other, depth - 1) for place, item in enumerate(part)]
    if type(part) is dict:
        return {key: _with(item, f"{start}{key}", other, depth - 1) for key, item in part.items()}
    return part
