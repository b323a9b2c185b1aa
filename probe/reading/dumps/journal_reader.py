# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads the journal that a dead process left, and turns it into the documents that the process would have written.

``probe.store.journal`` has the format.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from probe.door import open_file, open_text
from probe.errors import UsageError
from probe.findings.sentence import ENGLISH, NOTHING, Sentence, clauses, say
from probe.findings.system import foreign, reason_of
from probe.process.progress import progress
from probe.reading.dumps.kernels.step import unmeasured
from probe.reading.dumps.shapes import JOURNAL_ENTRY, JOURNAL_HEAD, wrong_fields
from probe.store import file_names
from probe.store.documents import JsonDocuments
from probe.store.journal import FRAME, MAGIC, lock


def read(
    path: str, strict: bool = False, language: str = ENGLISH
) -> tuple[list[Mapping[str, Any]], Sentence]:
    """Return the records of a journal, the header first, and a description of its damage, if it has any.

    If ``strict``, a record with fields of wrong types is an error; else it is left out. Raise UsageError when the file
    is no journal, cannot be read, or a living process still writes it. The progress line is in ``language``.
    """
    try:
        with open_file(path, writable=True) as file:
            if not lock(file.fileno()):
                raise UsageError(say("error.living", path=path))
            data = file.read()
    except OSError as error:
        raise UsageError(say("error.unreadable", path=path, reason=reason_of(error))) from error
    except MemoryError:
        raise UsageError(say("error.no_memory_for", path=path)) from None
    if MAGIC.startswith(data):  # its process died while it began
        return [], NOTHING
    if not data.startswith(MAGIC):
        raise UsageError(say("error.no_journal", path=path))
    found: list[Mapping[str, Any]] = []
    end = len(MAGIC)
    damage = NOTHING
    wrong = 0
    try:
        label = say("progress.journal").text(language)
        for record, place in progress(_records(data), label):
            end = place
            if _is_wrong(record, is_first=not found):
                wrong += 1
            else:
                found.append(record)
    except (struct.error, ValueError, RecursionError):
        damage = say("dump.journal_cut", count=len(data) - end, size=len(data))
    if wrong and strict:
        raise UsageError(
            say("error.unrecovered", path=path, reason=say("door.records", count=wrong))
        )
    return found, clauses(damage, say("door.records", count=wrong) if wrong else NOTHING)


def _is_wrong(record: Mapping[str, Any], is_first: bool) -> bool:
    """Return whether a record cannot be used; the first one is the head."""
    if is_first:
        return (
            bool(wrong_fields(record, JOURNAL_HEAD))
            or "header" not in record
            or "extra_info" not in record
        )
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
    """Yield each record and where it ends; raise struct.error, ValueError or RecursionError at a damaged one."""
    end = len(MAGIC)
    while end < len(data):
        length, checksum = FRAME.unpack_from(data, end)
        start = end + FRAME.size
        end = start + length
        payload = data[start:end]
        record = (
            json.loads(payload)
            if len(payload) == length and zlib.crc32(payload) == checksum
            else None
        )
        if not isinstance(record, dict):
            raise ValueError
        yield record, end


class RecoveryResult(NamedTuple):
    """The result of one folder: a sentence about it, and whether all is well."""

    said: Sentence
    well: bool

    @property
    def text(self) -> str:
        """The sentence in English."""
        return str(self.said)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as values of JSON."""
        return {"text": self.text, "well": self.well}


def recover(path: str, language: str = ENGLISH) -> list[RecoveryResult]:
    """Write the documents of every journal in a dump_path, or in a step or rank folder of it.

    Older content of the documents is kept. The recovery may be interrupted, and may run again. A journal stays if it
    cannot be read, or if a living process still writes it. The other journals are recovered all the same. The progress
    line is in ``language``. Raise UsageError when there is no such folder.
    """
    if not os.path.isdir(path):
        raise UsageError(say("error.no_folder", path=path))
    found = sorted(folder for folder, _, files in os.walk(path) if file_names.JOURNAL in files)
    outcomes = [_outcome(folder, language) for folder in found]
    outcomes += [
        RecoveryResult(say("recover.unmeasured", folder=folder, count=count), True)
        for folder, count in unmeasured(path)
    ]
    return outcomes or [RecoveryResult(say("recover.nothing", path=path), True)]


def _outcome(folder: str, language: str) -> RecoveryResult:
    try:
        return RecoveryResult(_recover(folder, language), True)
    except UsageError as error:
        return RecoveryResult(reason_of(error), False)


def _recover(folder: str, language: str) -> Sentence:
    source = os.path.join(folder, file_names.JOURNAL)
    records, damage = read(source, True, language)
    notes = [damage] if damage else []
    entries = settled(records[1:])
    try:
        if records:
            merged = _MergedDocuments(folder, records[0], notes)
            for record in progress(entries, say("progress.recovering").text(language)):
                merged.add(record)
            merged.documents.write()
        elif damage:
            raise UsageError(say("error.all_damaged", path=source, reason=damage))
        os.remove(source)
        for name in os.listdir(folder):  # files that were not yet in place when the process died
            if name.endswith(file_names.TEMP_SUFFIX):
                os.remove(os.path.join(folder, name))
    except (OSError, RecursionError, TypeError, ValueError, KeyError, AttributeError) as error:
        reason = foreign(f"{type(error).__name__}: {error}")
        if isinstance(error, OSError):
            reason = reason_of(error)
        raise UsageError(say("error.unrecovered", path=source, reason=reason)) from error
    count = len({record["name"] for record in entries})  # an entry may have several records
    return clauses(say("recover.entries", folder=folder, count=count), *notes)


class _MergedDocuments:
    """The documents of one folder: their older content and the entries of the journal."""

    def __init__(self, folder: str, first: Mapping[str, Any], notes: list[Sentence]) -> None:
        self._folder = folder
        self._notes = notes
        self._with_stack: set[str] = set()
        self._lines: list[list[str]] = []
        self._numbers: dict[tuple[str, ...], int] = {}
        self._known: dict[int, int] = {}
        header = dict(first["header"])
        self._debug = header.get("level") == "debug"
        self.documents = JsonDocuments(
            folder, header, self._lines, bool(first["extra_info"]), False
        )
        for name, entry in (
            self._standing(file_names.DEBUG if self._debug else file_names.DUMP)
            .get("data", {})
            .items()
        ):
            self.documents.entry(name, entry)
        for names, lines in self._standing(file_names.STACK).values():
            for name in names:
                self._stack(name, self._number(lines))
        self.documents.construct(self._standing(file_names.CONSTRUCT).items())

    def add(self, record: Mapping[str, Any]) -> None:
        """Add one record of the journal."""
        name = str(record["name"])
        if "entry" in record:
            self.documents.entry(name, record["entry"] if self._debug else dict(record["entry"]))
        if "stack" in record:
            number = int(record["stack"])
            if "lines" in record:
                self._known[number] = self._number(record["lines"])
            if number in self._known:
                self._stack(name, self._known[number])
        self.documents.construct(dict(record.get("construct", {})).items())

    def _stack(self, name: str, number: int) -> None:
        if name not in self._with_stack:
            self._with_stack.add(name)
            self.documents.stack(name, number)

    def _number(self, lines: list[str]) -> int:
        number = self._numbers.setdefault(tuple(lines), len(self._lines))
        if number == len(self._lines):
            self._lines.append([str(line) for line in lines])
        return number

    def _standing(self, name: str) -> dict[str, Any]:
        try:
            with open_text(os.path.join(self._folder, name)) as file:
                return dict(json.load(file))
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError):
            os.replace(
                os.path.join(self._folder, name), os.path.join(self._folder, f"{name}.damaged")
            )
            self._notes.append(say("recover.damaged", name=name))
            return {}
