# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads a dump one entry after the other, so that a further rank takes no memory for its entries."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from probe.door import open_text
from probe.errors import UsageError
from probe.findings.sentence import Sentence
from probe.reading.dumps.folders import DumpFolder, DumpSource
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
