# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The journal: the finished entries of a step, in the file system before the documents are.

A file begins with ``MAGIC``; then come records, each with its length and CRC-32 before it (little endian, four bytes
each) and JSON text: ``{"header": …, "extra_info": …}`` first, then ``{"name": …, "entry": …, "stack": …, "lines": …,
"construct": …}``. A record with ``"draft": true`` is an entry of a compiled graph that goes on; a later record of its
name replaces it. Damage at the end of a file leaves the records before it readable.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import struct
import zlib  # with isal each record slowed the training by 15 us; alone it is faster
from collections.abc import Iterable, Sequence
from json.encoder import encode_basestring_ascii as _quote

from probe.entry import Parent
from probe.errors import UsageError
from probe.store import file_io, file_names

MAGIC = b"probe journal 1\n"
FRAME = struct.Struct("<II")  # stands before each record: its length and CRC-32


class Journal:
    """Appends to the journal of one rank folder. One process writes it: others find it locked."""

    def __init__(
        self,
        folder: str,
        header: str,
        stack_texts: Sequence[Sequence[str]] = (),
        is_wanted: bool = True,
    ) -> None:
        self._path = os.path.join(folder, file_names.JOURNAL)
        # the text of the first record
        self._header = header
        self.is_wanted = is_wanted
        # the stacks that the file has
        self._stack_texts = stack_texts
        self._known = set[int]()
        self._file = -1
        self.size = 0

    def open(self) -> None:
        """Begin the journal, unless it is open; raise UsageError where another process writes, or OSError."""
        if self._file >= 0:
            return
        folder = file_io.make_dirs(os.path.dirname(self._path))
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with contextlib.ExitStack() as cleanup:
            self._file = os.open(self._path, flags, file_io.FILE_MODE)
            cleanup.callback(self.close)
            if not lock(self._file):
                raise UsageError(another_process(folder))
            os.ftruncate(self._file, 0)
            self.size = os.write(self._file, MAGIC)
            self.append(self._header)
            cleanup.pop_all()

    def record(
        self, name: str, entry: str | None, stack: int, construct: Iterable[Parent], mark: str = ""
    ) -> str:
        """Return the record of an entry, whose text is that of dump.json. A stack that is new has its lines."""
        body = mark if entry is None else f'{mark},"entry":{entry}'
        if stack >= 0:
            body += f',"stack":{stack}'
            if mark or stack not in self._known:  # a reader may see others before a draft
                body += f',"lines":{json.dumps(self._stack_texts[stack])}'
        if construct:
            body += f',"construct":{json.dumps(dict(construct))}'
        if not mark:
            self._known.add(stack)
        return f'{{"name":{_quote(name)}{body}}}'

    def append(self, *texts: str) -> None:
        """Append records, in one write; raise OSError when one cannot be written. Half of it does not stay."""
        if self._file < 0:
            self.open()
        payloads = [text.encode() for text in texts]
        data = b"".join(
            [FRAME.pack(len(payload), zlib.crc32(payload)) + payload for payload in payloads]
        )
        for _ in range(2):  # a disk that was full for a moment
            if os.write(self._file, data) == len(data):
                self.size += len(data)
                return
            os.ftruncate(self._file, self.size)
        if len(texts) == 1:
            self._known.clear()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        for text in texts:  # the first ones may have room
            self.append(text)

    def remove(self) -> None:
        """End the journal: its entries are in the documents."""
        if self.size:  # also one that was closed, which a kept step has
            with contextlib.suppress(FileNotFoundError):
                os.remove(self._path)
            self.close()
            self.size = 0
            self._known.clear()

    def close(self) -> None:
        """Let go of the file and leave it where it is."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def another_process(folder: str) -> str:
    """Return the message for a folder that another process is writing."""
    return (
        f"{folder} is being written by another process. Give each process a rank of its own (start(rank_id=...)) "
        "or a dump_path of its own."
    )


def lock(file: int) -> bool:
    """Take the lock of a file or folder, which goes with the process; return False where another has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:  # the last of these: a file system without locks
        return not isinstance(error, (BlockingIOError, PermissionError))
    return True
