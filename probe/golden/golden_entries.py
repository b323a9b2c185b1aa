# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The entries of one step of the golden run, read from its file in the order in which the training makes them."""

from __future__ import annotations

import os
from json.encoder import encode_basestring_ascii as _quote
from typing import BinaryIO

from probe.door import open_file
from probe.errors import UsageError
from probe.reading.dumps.folders import DumpFolder
from probe.store import file_names
from probe.store.documents import encode

#: the begin of the entries, as all recorders indent them; it stands in so many bytes of a file
_DATA, _HEAD = b'\n "data": {\n', 1 << 16


class GoldenEntries:
    """Gives the text of each entry of a step; raises UsageError when its file cannot be read.

    Entries that come in the order of the file are compared where they stand, and none is kept in memory. After the
    first other name, and where the file has another form, all are in memory until the step ends.

    Attributes:
        in_order: so far the entries have come in the order of the file.
    """

    def __init__(self, folder: DumpFolder) -> None:
        self._folder = folder
        self._file = _open(os.path.join(folder.path, file_names.DUMP))
        self._at = self._file.tell() if self._file else 0
        self._texts: dict[str, str] = {}
        self._asked: set[str] = set()
        self.in_order = True

    def find(self, name: str, text: str) -> str | None:
        """Return the text of an entry: ``text`` itself where the file has it so; None where it has no such entry."""
        self._asked.add(name)
        if self._file is None or not self.in_order:
            return self.named(name)
        begin = f"  {_quote(name)}: "
        line = f"{begin}{text}".encode()
        self._file.seek(self._at)
        found = self._file.read(len(line) + 2)
        if found[:-2] == line and found[-2:] in (b",\n", b"\n "):
            self._at += len(line) + 1 + (found[-2:] == b",\n")
            return text
        self._file.seek(self._at)
        block = self._block(self._file)
        if not block.startswith(begin):
            self.in_order = False
            return self.named(name)
        self._at += len(block)
        return block[len(begin) :].rstrip(",\n")

    def named(self, name: str) -> str | None:
        """Return the text of the entry of a name, from memory; None where there is none."""
        if not self._texts:
            data = self._folder.source.read(self._folder.path).data
            self._texts = {key: encode(entry, "  ") for key, entry in data.items()}
        return self._texts.get(name)

    def is_over(self) -> bool:
        """Return whether all entries of the golden run were asked for."""
        if self._file is not None and self.in_order:
            self._file.seek(self._at)
            return self._file.read(2) in (b" }", b"}")
        return self._texts.keys() <= self._asked

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _block(self, file: BinaryIO) -> str:
        """Return the lines of the next entry."""
        lines: list[bytes] = []
        for line in file:
            lines.append(line)
            if line.startswith(b"  }") or (len(lines) == 1 and line.rstrip(b",\n").endswith(b"{}")):
                break
        return b"".join(lines).decode(errors="replace")


def _open(path: str) -> BinaryIO | None:
    """Return the file of a dump, at its first entry; None where it has another form, or there is none."""
    if not os.path.isfile(path):
        return None
    try:
        file = open_file(path)
        at = file.read(_HEAD).find(_DATA)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    if at >= 0:
        file.seek(at + len(_DATA))
        return file
    file.close()
    return None
