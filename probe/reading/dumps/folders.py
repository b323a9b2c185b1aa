# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which folders hold a dump, of which step and rank, and how each kind of folder is read.

A further kind of dump is one class with ``read``, added to ``SOURCES``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections import Counter
from typing import Any, NamedTuple, Protocol

from probe.door import open_text
from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.dumps import journal_reader
from probe.reading.dumps.document import Document, Sieve, read_document, read_optional
from probe.reading.dumps.kernels.step import is_kernel_folder, steps_of
from probe.store import file_names
from probe.store.file_names import Rank


class Contents(Protocol):
    """The entries of one dump and the Cells around them, as ``probe.reading.dumps.dump.Dump`` has them."""

    @property
    def data(self) -> dict[str, Any]:
        """Entry name -> entry."""

    @property
    def construct(self) -> dict[str, str | None]:
        """Entry name -> the entry of the Cell around it."""


class FolderKind(Protocol):
    """One kind of folder that holds a dump."""

    def read(self, folder: str) -> Document:
        """Read it; raise UsageError where that cannot be."""


class DumpFolder(NamedTuple):
    """A folder that holds a dump of one step and rank."""

    path: str
    step: int | None  # its step; None where the path does not say
    rank: Rank
    tree: str  # "graph" or "pynative" where the run has both, else ""
    source: FolderKind  # how it is read

    @property
    def label(self) -> str:
        """The step and rank as a text: "step 0, rank 3"."""
        parts = [self.tree, "" if self.step is None else f"step {self.step}"]
        parts += [f"rank {self.rank}" if isinstance(self.rank, int) else str(self.rank or "")]
        return ", ".join(filter(None, parts)) or os.path.basename(self.path)

    def told(self) -> list[Sentence]:
        """Return the findings that guards have told while the training ran."""
        found: list[Sentence] = []
        path = os.path.join(self.path, file_names.FINDINGS)
        with contextlib.suppress(OSError), open_text(path, errors="replace") as file:
            for line in file:
                # a killed process may leave half of a line
                with contextlib.suppress(
                    ValueError, KeyError, TypeError, IndexError, RecursionError
                ):
                    given = json.loads(line)
                    try:
                        said = Sentence.from_dict({"key": given["key"], "facts": given["facts"]})
                        str(said)  # all facts are there
                    except KeyError:  # of a later version
                        said = say("guard.other", text=str(given["sentence"]))
                    found.append(said)
        return found

    def absolute(self) -> DumpFolder:
        """Return it so that it does not depend on the folder that a process works in."""
        return self._replace(path=os.path.abspath(self.path))


class DumpSource(NamedTuple):
    """A folder with dump.json or debug.json, of ours or of msprobe, and perhaps a journal that was not recovered."""

    file: str

    def read(self, folder: str) -> Document:
        """Read the entries now, stack.json and construct.json when they are asked for."""
        path = os.path.join(folder, self.file)
        odd = list[str]()
        document = read_document(path, shares=True, odd=odd)
        data = document.pop("data", None)
        sieve = Sieve(path)
        if not isinstance(data, dict):
            raise UsageError(say("error.no_data", path=path))
        data = {
            sys.intern(name): data.pop(name) for name in list(data)
        }  # the other dump of a comparison has them too
        sieve.objects_alone(data, lists=self.file == file_names.DEBUG)
        if odd:
            sieve.entries(data)
        header = sieve.header(document)
        notes = [*_journal_notes(folder), *sieve.told()]
        return Document(
            header, data, lambda: read_stacks(folder), lambda: read_construct(folder), notes
        )


class JournalSource:
    """A folder whose process died before it wrote a document: the journal holds the entries."""

    def read(self, folder: str) -> Document:
        """Read the journal as it is; nothing on disk is changed."""
        path = os.path.join(folder, file_names.JOURNAL)
        # task nan_check writes none in a step in which a guard alone has found something
        records, damage = journal_reader.read(path) if os.path.lexists(path) else ([], NOTHING)
        notes = [*_journal_notes(folder), *([damage] if damage else [])]
        header = records[0].get("header") if records else None
        data: dict[str, Any] = {}
        stacks: dict[str, list[str]] = {}
        construct: dict[str, str | None] = {}
        lines: dict[int, list[str]] = {}
        for record in journal_reader.settled(records[1:]):
            name = str(record.get("name", ""))
            entry = record.get("entry")
            if isinstance(entry, dict) and isinstance(data.get(name), dict):
                data[name].update(entry)
            elif "entry" in record:
                data[name] = entry
            number = record.get("stack")
            if isinstance(number, int):
                if isinstance(record.get("lines"), list):
                    lines[number] = [str(line) for line in record["lines"]]
                stacks.setdefault(name, lines.get(number, []))
            if isinstance(record.get("construct"), dict):
                construct.update(record["construct"])
        sieve = Sieve(os.path.join(folder, file_names.JOURNAL))
        found = sieve.header(header if isinstance(header, dict) else {})
        sieve.objects_alone(data, lists=found.get("level") == "debug")
        sieve.entries(data)
        construct = without_cycles(construct)
        return Document(
            dict(found), data, lambda: stacks, lambda: construct, [*notes, *sieve.told()]
        )


#: a file -> how a folder that has it is read; the first file decides
SOURCES: dict[str, FolderKind] = {
    **{file: DumpSource(file) for file in (file_names.DUMP, file_names.DEBUG)},
    **dict.fromkeys((file_names.JOURNAL, file_names.FINDINGS), JournalSource()),
}


def _journal_notes(folder: str) -> list[Sentence]:
    path = os.path.join(folder, file_names.JOURNAL)
    return [say("dump.not_recovered", path=path, folder=folder)] if os.path.exists(path) else []


def read_stacks(folder: str) -> dict[str, list[str]]:
    """Return forward entry -> frames in stack.json, innermost first; raise UsageError when it cannot be read."""
    found: dict[str, list[str]] = {}
    for key, item in read_optional(folder, file_names.STACK).items():
        if not isinstance(item, list):
            continue
        if len(item) == 2 and isinstance(item[0], list) and isinstance(item[1], list):
            frames = [frame for frame in item[1] if isinstance(frame, str)]
            found.update((name, frames) for name in item[0] if isinstance(name, str))
        else:  # of an older recorder: name -> frames
            found[key] = [frame for frame in item if isinstance(frame, str)]
    return found


def read_construct(folder: str) -> dict[str, str | None]:
    """Return the Cell entry around every entry in construct.json; raise UsageError when it cannot be read."""
    found: dict[str, str | None] = {}
    for name, item in read_optional(folder, file_names.CONSTRUCT).items():
        # msprobe for PyTorch writes [parent, micro step] in a training of Megatron
        parent = item[0] if isinstance(item, list) and item else item
        if isinstance(parent, (str, type(None))):
            found[sys.intern(name)] = parent and sys.intern(parent)
    return without_cycles(found)


def without_cycles(construct: dict[str, str | None]) -> dict[str, str | None]:
    """Return which Cell entries lie in which; of a circle, which no recorder writes, one link is left out.

    >>> without_cycles({"a": "b", "b": "a", "c": "a"})
    {'a': 'b', 'b': None, 'c': 'a'}
    """
    done: set[str] = set()
    for name in construct:
        way: dict[str, None] = {}
        last = name
        parent = construct.get(name)
        while parent is not None and last not in done:
            way[last] = None
            if parent in way:
                construct[last] = None
                break
            last = parent
            parent = construct.get(parent)
        done.update(way)
        done.add(last)
    return construct


def find_folders(path: str) -> list[DumpFolder]:
    """Return the folders with dumps in a folder, or of a dump.json, by step and rank; raise UsageError for none."""
    path = os.fspath(path)
    if os.path.isfile(path):
        if os.path.basename(path) not in file_names.DUMP_FILES:
            raise UsageError(say("error.no_dump_file", path=path, file=file_names.DUMP))
        path = os.path.dirname(path) or "."
    found = []
    kernels = []
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if name != file_names.ARRAYS]
        names = set(files)
        source = next((source for file, source in SOURCES.items() if file in names), None)
        if source is not None:
            found.append(_folder(folder, source))
        elif is_kernel_folder(names):
            kernels.append(folder)
    steps = [
        DumpFolder(place.path, place.step, place.rank, "", step)
        for place, step in steps_of(kernels)
    ]
    if not found and not steps:
        if not os.path.exists(path):
            raise UsageError(say("error.no_folder", path=path))
        raise UsageError(say("error.no_dump_below", path=path, file=file_names.DUMP))
    steps.sort(key=lambda item: (item.step or 0, str(item.rank).zfill(9), _order(item.path)))
    return _numbered([*sorted(found, key=lambda item: _order(item.path)), *steps])


def _folder(path: str, source: FolderKind) -> DumpFolder:
    parts = os.path.abspath(path).split(os.sep)
    step = None
    tree = ""
    for place, part in enumerate(parts):
        if (found := file_names.step_of(part)) is not None:
            step = found
            tree = parts[place - 1] if place and parts[place - 1] in ("graph", "pynative") else ""
    return DumpFolder(path, step, file_names.number_of(parts[-1], "rank", "rank_"), tree, source)


def _numbered(found: list[DumpFolder]) -> list[DumpFolder]:
    """Give folders of one step that have no rank their names instead, so that they can be told apart."""
    seen = Counter((folder.tree, folder.step, folder.rank) for folder in found)
    alike = [folder.rank is None and seen[folder.tree, folder.step, None] > 1 for folder in found]
    return [
        it._replace(rank=os.path.basename(it.path)) if is_like else it
        for it, is_like in zip(found, alike)
    ]


def _order(path: str) -> list[tuple[int, int, str]]:
    parts = re.split(r"(\d+)", path)
    return [
        (0, int(part), "") if part.isdigit() and len(part) < 19 else (1, 0, part) for part in parts
    ]
