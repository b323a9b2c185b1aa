# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Checks the shape of documents once: behind it every reader may trust the types that ``shapes`` describes.

A field of another type is left out, and named in one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probe.findings.sentence import Sentence, say
from probe.reading.dumps.shapes import HEADER, RECORD, Shape, kind_of, number, wrong_fields
from probe.reading.dumps.values import MAX_DEPTH, TENSORS

#: lines about one file; further ones are counted
_MOST_LINES = 5


class Sieve:
    """Sieves the entries and the header of one document, whose path stands in the lines."""

    def __init__(self, file: str) -> None:
        self._file, self._more = file, 0
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
        return {field: item for field, item in value.items() if field not in wrong} if wrong else value

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
            return {**value, "value": str(value["value"])}  # no float holds it; equal texts are equal numbers
        if type(kind) is str and kind in TENSORS:
            right = self._right(value, RECORD, "door.entry", name=name)
            return {field: right.get(field) for field in value}
        return {inner: self._part(name, item, depth - 1) for inner, item in value.items()} if depth else None
