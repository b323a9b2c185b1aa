# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The entries of a rank, read one after the other, so that they take no memory. Values have their places."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from probe.door import open_text
from probe.errors import UsageError
from probe.findings.sentence import Sentence, say
from probe.reading.dumps.entry_view import WORDS
from probe.reading.dumps.folders import DumpFolder, DumpSource
from probe.reading.dumps.values import MAX_DEPTH, Leaf, is_tensor, leaves
from probe.store import file_names

#: entries begin at lines that are indented by two, as recorders write them
_ENTRY = re.compile(r'^  ("(?:[^"\\\n]|\\.)*"): ', re.MULTILINE)
_DATA = '\n "data": {\n'
_END = "\n }"
#: parts of an entry that a call is given
GIVEN = ("input", "kwargs", "parameters")


def read_entries(
    folder: DumpFolder,
    notes: list[Sentence] | None = None,
    wanted: Callable[[str], bool] | None = None,
) -> Iterator[tuple[str, Any]]:
    """Yield (name, entry) of wanted entries, None: all; ``notes`` gets remarks. Raise UsageError when it is broken."""
    text = _text(folder)
    start = text.find(_DATA) + len(_DATA) - 1
    end = text.find(_END, start)
    has_data = start >= len(_DATA) and end > 0
    heads = list(_ENTRY.finditer(text, start, end)) if has_data else []
    if not heads or heads[0].start() != start + 1:
        document = folder.source.read(folder.path)
        if notes is not None:
            notes += document.notes
        yield from document.data.items()
        return
    ends = [head.start() for head in heads[1:]]
    ends.append(end)
    for match, stop in zip(heads, ends):
        try:
            name = json.loads(match[1])
            if wanted is not None and not wanted(name):
                continue
            own = text[match.end() : stop]
            entry = json.loads(own.rstrip().rstrip(","))
        except (ValueError, RecursionError):
            path = os.path.join(folder.path, file_names.DUMP)
            raise UsageError(say("error.unreadable", path=path, reason=match[1])) from None
        yield name, entry


def _text(folder: DumpFolder) -> str:
    """Return the text of dump.json; "" where the dump is read as a whole."""
    journal = os.path.join(folder.path, file_names.JOURNAL)
    if not isinstance(folder.source, DumpSource) or os.path.exists(journal):
        return ""
    try:
        with open_text(os.path.join(folder.path, file_names.DUMP)) as file:
            return file.read()
    except (OSError, ValueError):
        return ""


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
        return {
            key: _with(part, WORDS[key], other) if key in WORDS else part
            for key, part in entry.items()
        }
    return _with(entry, "", other)


def _has_parts(entry: Any) -> bool:
    return type(entry) is dict and any(key in WORDS for key in entry)


def _with(part: Any, above: str, other: Mapping[str, Any], depth: int = MAX_DEPTH) -> Any:
    if above in other:
        return other[above]
    if not depth or (type(part) is dict and type(part.get("type")) is str):
        return part
    start = f"{above}." if above else ""

    def inner(place: Any, item: Any) -> Any:
        return _with(item, f"{start}{place}", other, depth - 1)

    if type(part) is list:
        return [inner(place, item) for place, item in enumerate(part)]
    if type(part) is dict:
        return {key: inner(key, item) for key, item in part.items()}
    return part


def tensors_given(entry: Any) -> dict[str, Any]:
    """Return place -> record of the tensors that a call is given."""
    return {
        place: leaf for place, leaf in values(entry) if place.startswith(GIVEN) and is_tensor(leaf)
    }
