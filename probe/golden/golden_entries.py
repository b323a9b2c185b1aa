# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The entries of one step of the golden run, read from its file in the order in which the training makes them."""

from __future__ import annotations

import io
import json
import os
from json.encoder import encode_basestring_ascii as _quote
from typing import BinaryIO

from probe.door import open_file
from probe.errors import UsageError
from probe.reading.dumps.folders import DumpFolder, DumpSource
from probe.store import file_names
from probe.store.documents import encode

#: the begin of the entries, and the end of one, as all recorders indent them
_DATA, _END = b'\n "data": {', b"\n  }"
#: so much of a file is read for its header, and at once beyond the text that is expected
_HEAD, _FURTHER = 1 << 16, 1024


class GoldenEntries:
    """Gives the text of each entry of a step.

    Texts that come in the order of the file are compared where they stand. After the first other name the places of all
    entries are noted, and each is read when it is asked for. Nothing else is kept in memory.

    Attributes:
        folder: the rank folder of the golden run.
        in_order: so far the entries have come in the order of the file.
    """

    def __init__(self, folder: DumpFolder) -> None:
        self.folder, self.in_order = folder, True
        self._file = _open(folder)
        self._begin = self._at = self._file.tell()
        self._places: dict[str, int] = {}  # name -> where its line begins; after the first other name
        self._count = 0

    def find(self, name: str, text: str) -> str | None:
        """Return the text of an entry: ``text`` itself where the file has it so; None where it has no such entry.

        Raise OSError when the file cannot be read, and ValueError when it is damaged.
        """
        line = f"\n  {_quote(name)}: {text}".encode()
        if not self.in_order:
            return self._named(name)
        self._file.seek(self._at)
        found = self._file.read(len(line) + 1)
        if found[:-1] == line and found[-1:] in (b",", b"\n"):
            self._at += len(line) + (found[-1:] == b",")
            self._count += 1
            return text
        begin = f"\n  {_quote(name)}: ".encode()
        if found.startswith(begin):
            block = self._block(self._at, found)
            self._at += len(block)
            self._count += 1
            self._at += self._byte(self._at) == b","
            return block[len(begin) :].decode()
        self.in_order = False
        self._note_places()
        return self._named(name)

    def again(self, name: str) -> str | None:
        """Return the text of an entry that was asked for before."""
        if not self._places:
            self._note_places()
        place = self._places.get(name)
        return None if place is None else self._text(place)

    def is_over(self) -> bool:
        """Return whether all entries of the file were asked for."""
        if self.in_order:
            self._file.seek(self._at)
            return self._file.read(3) in (b"\n }", b"}")
        return self._count == len(self._places)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _named(self, name: str) -> str | None:
        place = self._places.get(name)
        self._count += place is not None
        return None if place is None else self._text(place)

    def _text(self, place: int) -> str:
        block = self._block(place, b"")
        return block[block.index(b'": ') + 3 :].decode()

    def _byte(self, place: int) -> bytes:
        self._file.seek(place)
        return self._file.read(1)

    def _block(self, place: int, begin: bytes) -> bytes:
        """Return an entry with the line break before it; its first bytes were perhaps read already."""
        self._file.seek(place + len(begin))
        block, seen = begin, 0
        while True:
            first = block.find(b"\n", 1)
            if first > 0 and block[:first].rstrip(b",").endswith(b"{}"):
                return block[:first].rstrip(b",")
            end = block.find(_END, seen)
            if end >= 0:
                return block[: end + len(_END)]
            more = self._file.read(_FURTHER)
            if not more:
                raise ValueError(f"{self.folder.path} ends in the middle of an entry")
            seen, block = max(len(block) - len(_END), 0), block + more

    def _note_places(self) -> None:
        self._file.seek(self._begin + 1)
        at = self._begin
        for line in self._file:
            if line.startswith(b'  "'):
                self._places[json.loads(line[2 : line.index(b'": ') + 1])] = at
            at += len(line)


def _open(folder: DumpFolder) -> BinaryIO:
    """Return the file of a dump, at its first entry; the entries in this form where the file has another one.

    Raise UsageError when it cannot be read.
    """
    path = os.path.join(folder.path, file_names.DUMP)
    if isinstance(folder.source, DumpSource) and os.path.isfile(path):
        try:
            file = open_file(path)
            at = file.read(_HEAD).find(_DATA)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
        if at >= 0:
            file.seek(at + len(_DATA))
            return file
        file.close()
    data = folder.source.read(folder.path).data
    entries = [f"\n  {_quote(name)}: {encode(entry, '  ')}" for name, entry in data.items()]
    return io.BytesIO((",".join(entries) + "\n }").encode())
