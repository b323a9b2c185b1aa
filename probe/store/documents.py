# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The three JSON documents of one step and rank, collected entry by entry and written as a whole."""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from json.encoder import encode_basestring_ascii as _quote
from time import monotonic
from typing import Any

from probe.entry import Entry, Parent
from probe.errors import UsageError
from probe.naming import message_of
from probe.process.progress import progress
from probe.store import file_io, file_names as names
from probe.store.error_log import ErrorLog
from probe.store.journal import Journal

#: so many entries become text at once, and none waits longer when the next one comes, in seconds
MOST_WAITING = 64
_LONGEST_WAIT = 0.005
#: indentation in dump.json: of an entry, its keys, and the items of their values
_ENTRY = "  "
_KEY = "   "
_ITEM = "    "


class JsonDocuments:
    """Builds dump.json, stack.json and construct.json of one step and rank. Entries are kept as JSON text, in order.

    The ``header`` has the keys that stand before "data" in dump.json. At level "debug" the document is debug.json,
    whose entries are values, not parts. ``stack_texts`` are the formatted stacks, by number; more may come. ``extra``
    asks for stack.json and construct.json, ``journal`` for a journal of every entry until the documents are written.
    Entries become text ``MOST_WAITING`` at a time, which is quicker; if ``each``, one at a time. Errors of an entry or
    of the journal are reported to ``errors``, and raised where there is none.
    """

    def __init__(
        self,
        folder: str,
        header: Mapping[str, Any],
        stack_texts: Sequence[Sequence[str]],
        extra: bool,
        journal: bool,
        errors: ErrorLog | None = None,
        each: bool = False,
    ) -> None:
        self.folder = folder
        self._errors = errors
        self._waiting = WaitingEntries(1 if each else MOST_WAITING)
        self._header = dict(header)
        self._stack_texts = stack_texts
        self._extra = extra
        self._debug = header.get("level") == "debug"
        first = {"header": self._header, "extra_info": extra, "debug": self._debug}
        self.journal = Journal(folder, json.dumps(first), stack_texts, journal)
        self._entries: dict[
            str, dict[str, str]
        ] = {}  # a value of debug.json has one text, under ""
        self._stacks: dict[int, list[str]] = {}
        self._construct: dict[str, str | None] = {}
        self._unwritten = (
            1  # changes since the documents were written; they are written once without any
        )

    @property
    def is_empty(self) -> bool:
        """Whether no entry came."""
        return not (self._entries or self._waiting.entries or self._stacks or self._construct)

    def accept(self, entry: Entry) -> None:
        """Add an entry with the stack of its call, if it is that of a forward."""
        stack = -1 if entry.is_backward else entry.stack
        if stack >= 0:
            self._stacks.setdefault(stack, []).append(entry.name)
        self.entry(entry.name, entry.parts, stack, entry.parents)

    def entry(
        self, name: str, parts: Any, stack: int = -1, construct: Iterable[Parent] = ()
    ) -> None:
        """Add an entry, or further keys to the entry of this name.

        ``parts`` has its keys and values; None for one that only construct.json and stack.json will name. In debug.json
        it is any JSON shape. ``stack`` is the number of its stack, for the journal; the method ``stack`` puts it into
        the documents. ``construct`` has the items that it adds to construct.json.
        """
        self._construct.update(construct)
        self._unwritten += 1
        if self._waiting.add((name, parts, stack, construct)):
            self._settle()

    def _settle(self) -> None:
        """Make the text of the entries that wait, and append it to the journal."""
        records = list[str]()
        waiting = self._waiting.entries
        while waiting:
            name = waiting[0][0]
            try:
                records += self._take(*waiting[0])
            except Exception as error:
                if self._errors is None:
                    raise
                self._errors.report("writing an entry", error, name)
                with self._errors.guard("writing an entry", name):
                    records += self._take(name, {"error": message_of(error)}, -1, ())
            del waiting[:1]  # empty where a signal has ended the step meanwhile
        if records:
            try:
                self.journal.append(*records)
            except (OSError, UsageError) as error:  # the documents keep the entries
                if self._errors is None:
                    raise
                self._errors.report("writing the journal", error)

    def _take(self, name: str, parts: Any, stack: int, construct: Iterable[Parent]) -> list[str]:
        """Keep the text of an entry; return its record for the journal."""
        texts = self._texts(parts)
        if texts is not None:
            self._entries.setdefault(name, {}).update(texts)
        return [self._record(name, texts, stack, construct)] if self.journal.is_wanted else []

    def _texts(self, parts: Any) -> dict[str, str] | None:
        if self._debug:
            return {"": encode(parts, _ENTRY)}
        return (
            None
            if parts is None
            else {key: f"{_label(key)}{_values(item)}" for key, item in parts.items()}
        )

    def draft(
        self, name: str, parts: Mapping[str, Any], stack: int, construct: Iterable[Parent]
    ) -> None:
        """Append an entry that goes on to the journal, now: a later record of its name replaces it."""
        self._settle()
        self.journal.append(
            self._record(name, self._texts(parts), stack, construct, ',"draft":true')
        )

    def _record(self, name: str, texts: dict[str, str] | None, *more: Any) -> str:
        return self.journal.record(name, None if texts is None else self._text(texts), *more)

    def stack(self, name: str, number: int) -> None:
        """Note the stack of a forward entry."""
        self._stacks.setdefault(number, []).append(name)
        self._unwritten += 1

    def construct(self, places: Iterable[Parent]) -> None:
        """Note the Cell entries in which entries happened."""
        self._construct.update(places)
        self._unwritten += 1

    def has_construct(self, name: str) -> bool:
        """Return whether construct.json will have this name as a key."""
        return name in self._construct

    def text(self, name: str) -> str:
        """Return the text of an entry as dump.json has it; "" where there is none."""
        self._settle()
        return self._text(self._entries[name]) if name in self._entries else ""

    def held(self) -> tuple[dict[str, Any], str, dict[str, list[str]], dict[str, str | None]]:
        """Return the header, the text of all entries, and the frames and the Cell of each: as the documents have it."""
        self._settle()
        stacks = {
            name: [*self._stack_texts[number]]
            for number, names in self._stacks.items()
            for name in names
        }
        entries = ",".join(
            f"{_quote(name)}: {self._text(texts)}" for name, texts in self._entries.items()
        )
        return dict(self._header), f"{{{entries}}}", stacks, dict(self._construct)

    def begin_journal(self) -> None:
        """Append the entries so far to a journal, and each further one from now on; raise OSError where it fails."""
        self._settle()
        self.journal.is_wanted = True
        numbers = {name: number for number, names in self._stacks.items() for name in names}
        entries = [
            self._record(name, texts, numbers.get(name, -1), ())
            for name, texts in self._entries.items()
        ]
        places = [
            self._record(name, None, -1, [(name, parent)])
            for name, parent in self._construct.items()
        ]
        self.journal.append(*entries, *places)

    def write(self, ends: bool = True) -> bool:
        """Write the documents if anything came since they were last written, and end the journal.

        ``ends`` is False where the entries go on: the journal stays as it is. Return whether they were written. Raise
        OSError when one cannot be written; the one that stood there before is untouched, the journal remains.
        """
        self._settle()
        changes = self._unwritten
        if changes:
            self._write()
        if ends:
            self.journal.remove()
        self._unwritten -= changes
        return changes > 0

    def _write(self) -> None:
        file_io.make_dirs(self.folder)
        with file_io.atomic_write(
            os.path.join(self.folder, names.DEBUG if self._debug else names.DUMP)
        ) as file:
            head = "".join(
                f" {_quote(key)}: {encode(value, ' ')},\n" for key, value in self._header.items()
            )
            file.write("{\n" + head + ' "data": ')
            items = progress(list(self._entries.items()), "writing")
            entries = [f"{_ENTRY}{_quote(name)}: {self._text(texts)}" for name, texts in items]
            file.write("{\n" + ",\n".join(entries) + "\n }" if entries else "{}")
            file.write("\n}")
        if self._extra:
            stacks = [
                [calls, self._stack_texts[number]] for number, calls in sorted(self._stacks.items())
            ]
            for name, content in (
                (names.STACK, dict(enumerate(stacks))),
                (names.CONSTRUCT, dict(self._construct)),
            ):
                with file_io.atomic_write(os.path.join(self.folder, name)) as file:
                    file.write(encode(content, ""))

    def _text(self, texts: dict[str, str]) -> str:
        if self._debug:
            return texts[""]
        inner = ",\n".join(texts.values())
        return f"{{\n{inner}\n{_ENTRY}}}" if inner else "{}"


class WaitingEntries:
    """Entries that are no text yet, at most so many."""

    def __init__(self, most: int) -> None:
        self.entries: list[
            tuple[str, Any, int, Iterable[Parent]]
        ] = []  # as ``JsonDocuments.entry`` was given them
        # the time when the first of them came
        self._most = most
        self._since = 0.0

    def add(self, entry: tuple[str, Any, int, Iterable[Parent]]) -> bool:
        """Add an entry; return whether all of them shall become text."""
        now = monotonic()
        if not self.entries:
            self._since = now
        self.entries.append(entry)
        return len(self.entries) >= self._most or now - self._since > _LONGEST_WAIT


@functools.lru_cache(256)
def _label(key: str) -> str:
    return f"{_KEY}{_quote(key)}: "


def _values(value: Any) -> str:
    """Return the text of the value of an entry's key: mostly a list of records, which make their own texts."""
    if type(value) is not list or not value:
        return "{}" if value == {} else encode(value, _KEY)
    texts = [encode(item, _ITEM) if type(item) in _PLAIN else item.text(_ITEM) for item in value]
    return f"[\n{_ITEM}" + f",\n{_ITEM}".join(texts) + f"\n{_KEY}]"


def encode(value: Any, pad: str) -> str:
    """Return the text that ``json.dumps(value, indent=1)`` gives at a place indented by ``pad``, several times faster.

    >>> print(encode({"a": [1.5, None]}, ""))
    {
     "a": [
      1.5,
      null
     ]
    }
    """
    kind = type(value)
    if kind is list or kind is tuple:
        inner = pad + " "
        texts = [_quote(item) if type(item) is str else encode(item, inner) for item in value]
        return f"[\n{inner}" + f",\n{inner}".join(texts) + f"\n{pad}]" if texts else "[]"
    if kind is dict:
        inner = pad + " "
        texts = [
            f"{_quote(str(key))}: {_quote(item) if type(item) is str else encode(item, inner)}"
            for key, item in value.items()
        ]
        return f"{{\n{inner}" + f",\n{inner}".join(texts) + f"\n{pad}}}" if texts else "{}"
    scalar = _SCALARS.get(kind)
    if scalar is not None:
        return scalar(value)
    if hasattr(value, "text"):  # a record makes its own
        return str(value.text(pad))
    raise TypeError(f"{kind.__name__} is no JSON value")


def _float(value: float) -> str:
    return float.__repr__(value) if math.isfinite(value) else json.dumps(value)


_SCALARS: dict[type, Callable[[Any], str]] = {
    float: _float,
    str: _quote,
    int: int.__repr__,
    bool: lambda value: "true" if value else "false",
    type(None): lambda value: "null",
}
_PLAIN = frozenset((list, tuple, dict, *_SCALARS))  # all other types in an entry are records
