# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads the journal that a dead process left; ``probe.store.journal`` has the format."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from probe.door import open_file
from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.process.progress import progress
from probe.reading.dumps.shapes import JOURNAL_ENTRY, JOURNAL_HEAD, wrong_fields
from probe.store.journal import FRAME, MAGIC, lock


def read(path: str, strict: bool = False) -> tuple[list[Mapping[str, Any]], Sentence]:
    """Return the records of a journal, the header first, and a description of its damage, if it has any.

    If ``strict``, a record with fields of wrong types is an error; else it is left out. Raise UsageError when the file
    is no journal, cannot be read, or a living process still writes it.
    """
    try:
        with open_file(path, writable=True) as file:
            if not lock(file.fileno()):
                raise UsageError(f"{path} is being written by a living process; there is nothing to recover yet")
            data = file.read()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    except MemoryError:
        raise UsageError(f"{path} cannot be read: there is not enough memory for it") from None
    if MAGIC.startswith(data):  # its process died while it began
        return [], NOTHING
    if not data.startswith(MAGIC):
        raise UsageError(f"{path} is no journal of probe")
    found: list[Mapping[str, Any]] = []
    end, damage, wrong = len(MAGIC), NOTHING, 0
    try:
        for record, place in progress(_records(data), "reading the journal"):
            end = place
            if _is_wrong(record, is_first=not found):
                wrong += 1
            else:
                found.append(record)
    except (struct.error, ValueError, RecursionError):
        damage = say("dump.journal_cut", count=len(data) - end, size=len(data))
    if wrong and strict:
        raise UsageError(f"{path} cannot be recovered, it is kept: {say('door.records', count=wrong)}")
    return found, clauses(damage, say("door.records", count=wrong) if wrong else NOTHING)


def _is_wrong(record: Mapping[str, Any], is_first: bool) -> bool:
    """Return whether a record cannot be used; the first one is the head."""
    if is_first:
        return bool(wrong_fields(record, JOURNAL_HEAD)) or "header" not in record or "extra_info" not in record
    return bool(wrong_fields(record, JOURNAL_ENTRY)) or type(record.get("name")) is not str


def settled(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return records without the drafts that a later record replaces.

    The last draft of an entry stands right before the entry's next record, which has all keys of the finished entry;
    without such a record, it stands at the end.
    """
    found: list[Mapping[str, Any]] = []
    drafts: dict[object, Mapping[str, Any]] = {}
    for record in records:
        draft = drafts.pop(record.get("name"), None)
        if record.get("draft"):
            drafts[record.get("name")] = record
            continue
        found += [record] if draft is None else [draft, record]
    return [*found, *drafts.values()]


def _records(data: bytes) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Yield each record and the place where it ends.

    Raise struct.error, ValueError or RecursionError at a record that is damaged or cut off.
    """
    end = len(MAGIC)
    while end < len(data):
        length, checksum = FRAME.unpack_from(data, end)
        start = end + FRAME.size
        end = start + length
        payload = data[start:end]
        record = json.loads(payload) if len(payload) == length and zlib.crc32(payload) == checksum else None
        if not isinstance(record, dict):
            raise ValueError
        yield record, end
