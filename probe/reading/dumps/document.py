# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A dump as it was read, and the reader of JSON documents; one that is cut or wrong is one clear error.

The shape of documents is checked once: behind it every reader may trust the types that ``shapes`` describes. A field of
another type is left out, and named in one line.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any, NamedTuple

from probe.door import open_text
from probe.errors import UsageError
from probe.findings.sentence import Sentence, clauses, say
from probe.findings.system import reason_of
from probe.reading.dumps.shapes import HEADER, RECORD, Shape, kind_of, number, wrong_fields
from probe.reading.dumps.values import MAX_DEPTH, TENSORS, record_sharer

#: characters of a document that are read at once
_PIECE = 1 << 20
_MOST_DIGITS = 4300
#: keys of the sentences about things that could not be read
_LOST = ("door.", "dump.line_cut", "dump.unreadable")
#: the begin of the entries, and the begin of a further one, as all recorders indent them
_DATA = '\n "data": {'
_NEXT = ',\n  "'
#: lines about one file; further ones are counted
_MOST_LINES = 5


class Document(NamedTuple):
    """One step of one rank: the header, the entries, and how the other documents are read."""

    header: dict[str, Any]  # task, level, framework and the other keys that stand beside "data"
    data: dict[str, Any]  # entry name -> entry, in the order of the file
    stacks: Callable[[], dict[str, list[str]]]  # reads the stacks: forward entry name -> frames
    construct: Callable[[], dict[str, str | None]]  # reads which Cell entry an entry happened in
    notes: list[Sentence]  # sentences for the user, such as a journal that was not recovered
    #: file name of an array -> its path; None where arrays are in ``dump_tensor_data``
    array_path: Callable[[str], str | None] | None = None

    @property
    def lost(self) -> Sentence:
        """The parts that could not be read; NOTHING where all could."""
        return lost(self.notes)


def lost(notes: Iterable[Sentence]) -> Sentence:
    """Return those of the notes about a dump that say what could not be read, as one sentence."""
    return clauses(*(note for note in notes if note.key.startswith(_LOST)))


@contextlib.contextmanager
def paused_gc() -> Iterator[None]:
    """Switch the garbage collector off while many objects are made. None is garbage, and a collection visits all."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def read_document(path: str, shares: bool = False, odd: list[str] | None = None) -> dict[str, Any]:
    """Return the object that a JSON file holds.

    If ``shares``, equal records of tensors become one object: half of the memory of a dump. ``odd`` gets a word where a
    record has fields of unusual types; see ``record_sharer``. Raise UsageError when the file cannot be read, is cut, is
    nested too deeply, or holds no object.
    """
    try:
        with open_text(path) as file, paused_gc():
            document = _load_entries(file, odd) if shares else _load(file, None)
    except RecursionError:
        raise UsageError(say("error.too_deep", path=path)) from None
    except MemoryError:
        raise UsageError(say("error.no_memory_for", path=path)) from None
    except (OSError, ValueError) as error:
        raise UsageError(say("error.unreadable", path=path, reason=_reason(error))) from error
    if not isinstance(document, dict):
        raise UsageError(say("error.no_document", path=path, found=kind_of(document)))
    return document


def _load(file: IO[str], hook: Callable[[dict[str, Any]], Any] | None) -> Any:
    """Return the value of a file. A number of thousands of digits, which Python refuses, stays a text."""
    try:
        return json.load(file, object_hook=hook)
    except json.JSONDecodeError:
        raise
    except ValueError:
        file.seek(0)
        return json.load(
            file,
            object_hook=hook,
            parse_int=lambda digits: int(digits) if len(digits) < _MOST_DIGITS else digits,
        )


def _load_entries(file: IO[str], odd: list[str] | None) -> Any:
    """Return the object of a file with entries, piece by piece: the text of 20,000 entries takes as much as they do."""
    try:
        return _load_pieces(file, odd)
    except (ValueError, TypeError, KeyError):  # wrong, or not laid out as recorders write it
        file.seek(0)
        return _load(file, record_sharer([] if odd is None else odd))


def _load_pieces(file: IO[str], odd: list[str] | None) -> Any:
    share = record_sharer([] if odd is None else odd)
    before, start, text = file.read(_PIECE).partition(_DATA)
    if not start:
        raise ValueError("the entries are not laid out as recorders write them")
    data: dict[str, Any] = {}
    while piece := file.read(_PIECE):
        whole, comma, rest = (text + piece).rpartition(_NEXT)
        if comma:
            data.update(json.loads(f"{{{whole}}}", object_hook=share))
        text = comma[1:] + rest
    document = json.loads(before + start + text, object_hook=share)
    document["data"] = {**data, **document["data"]}
    return document


def read_optional(folder: str, name: str) -> dict[str, Any]:
    """Return the object of a document that may be absent, else {}; raise UsageError when it cannot be read."""
    path = os.path.join(folder, name)
    return read_document(path) if os.path.lexists(path) else {}


def _reason(error: Exception) -> Sentence:
    if isinstance(error, UnicodeDecodeError):
        return say("door.no_utf8", place=error.start)
    if isinstance(error, json.JSONDecodeError):
        return say("door.cut_at", line=error.lineno, column=error.colno, byte=_byte(error))
    return reason_of(error)


def _byte(error: json.JSONDecodeError) -> int:
    """Return the byte of a file at which its JSON ends or is wrong."""
    return len(error.doc[: error.pos].encode("utf-8", "surrogatepass"))


class Sieve:
    """Sieves the entries and the header of one document, whose path stands in the lines."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._more = 0
        self._lines: list[Sentence] = []

    def note(self, key: str, **facts: Any) -> None:
        """Note one thing that is left out."""
        if len(self._lines) == _MOST_LINES:
            self._more += 1
        else:
            self._lines.append(say(key, file=self._file, **facts))

    def told(self) -> list[Sentence]:
        """Return the lines; the last one counts those that are not shown."""
        more = [say("door.more", file=self._file, count=self._more)] if self._more else []
        return [*self._lines, *more]

    def header(self, header: dict[str, Any], shape: Shape = HEADER) -> dict[str, Any]:
        """Return a header without fields of wrong types."""
        return self._right(header, shape, "door.field")

    def _right(self, value: dict[str, Any], shape: Shape, key: str, **facts: Any) -> dict[str, Any]:
        wrong = dict(wrong_fields(value, shape))
        for field, found in wrong.items():
            self.note(key, field=field, found=found, **facts)
        return (
            {field: item for field, item in value.items() if field not in wrong} if wrong else value
        )

    def objects(self, items: Mapping[str, Any] | None, shape: Shape) -> dict[str, dict[str, Any]]:
        """Return the values that are objects, by name, without fields of wrong types."""
        found = {}
        for name, item in (items or {}).items():
            if type(item) is dict:
                found[name] = self._right(item, shape, "door.entry", name=name)
            else:
                self.note("door.field", field=name, found=kind_of(item))
        return found

    def objects_alone(self, data: dict[str, Any], lists: bool) -> None:
        """Empty entries that are no objects (nor ``lists``, as debug.json has), and remove parameters that are none."""
        kinds = (dict, list) if lists else (dict,)
        for name in [name for name, entry in data.items() if type(entry) not in kinds]:
            self.note("door.field", field=name, found=kind_of(data[name]))
            data[name] = {}
        for part in ("parameters", "model_parameters"):
            for name, entry in data.items():
                if part in entry and type(entry) is dict and type(entry[part]) is not dict:
                    self.note("door.entry", name=name, field=part, found=kind_of(entry.pop(part)))

    def entries(self, data: dict[str, Any]) -> None:
        """Remove fields of wrong types from the records of tensors in entries."""
        for name, entry in list(data.items()):
            data[name] = self._part(name, entry, MAX_DEPTH)

    def _part(self, name: str, value: Any, depth: int) -> Any:
        if type(value) is list:
            return [self._part(name, item, depth - 1) for item in value] if depth else None
        if type(value) is not dict:
            return value
        kind = value.get("type")
        if type(kind) is str and type(value.get("value")) is int and number(value["value"]):
            return {
                **value,
                "value": str(value["value"]),
            }  # no float holds it; equal texts are equal numbers
        if type(kind) is str and kind in TENSORS:
            right = self._right(value, RECORD, "door.entry", name=name)
            return {field: right.get(field) for field in value}
        return (
            {inner: self._part(name, item, depth - 1) for inner, item in value.items()}
            if depth
            else None
        )
