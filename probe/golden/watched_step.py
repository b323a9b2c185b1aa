# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One step of the training beside one of the golden run: each entry is compared when it is finished.

Entries agree by the rules of ``probe compare``. A test of the numbers is enough for nearly all of them: where all but
the numbers is equal, and each distance is within the tolerance of its dtype, ``probe compare`` sees no difference
either. The others are judged as it judges them.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from json.encoder import encode_basestring_ascii as _quote
from typing import Any, BinaryIO

from probe.door import open_file
from probe.entry import Entry
from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import reason_of
from probe.golden.kept_tensors import KeepingMeasurer, KeptTensors
from probe.measure.measurer import Measurer
from probe.reading.compare.distances.distance import distance
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.distances.tolerances import Tolerances
from probe.reading.compare.judging.judge import Judge
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.dumps.entry_name import parse
from probe.reading.dumps.folders import DumpFolder
from probe.recording.measurement_queue import MeasurementQueue
from probe.store import file_names
from probe.store.arrays import DumpWriter
from probe.store.documents import encode

#: the numbers of a record; each stands on a line of its own
_NUMBERS = re.compile(
    r'"Max": (.*),\n *"Min": (.*),\n *"Mean": (.*),\n *"Norm": ([^,\n]*)(?:,\n *"md5": "(\w*)")?'
)
_STRIDE = 6  # the numbers of one record, and the text before the next one
#: dtype and shape, which stand before the numbers
_FORM = re.compile(r'"dtype": "([^"]*)",\s+"shape": (\[[^\]]*\]),\s+$')
_REMEMBERED = 4096  # pairs of tensors that are remembered: an output is the input of the next calls
#: the begin of the entries, as all recorders indent them; it stands in so many bytes of a file
_DATA = b'\n "data": {\n'
_HEAD = 1 << 16


class Agreement:
    """Compares the entries of one step with those of the golden run, in the order in which the calls ran."""

    def __init__(self) -> None:
        self._near: set[tuple[Any, ...]] = (
            set()
        )  # the numbers of pairs that are within the tolerance
        self._tolerances = Tolerances()
        self._judge = Judge(self._tolerances)  # it follows the rounding from call to call

    def holds(self, name: str, golden: str, own: str) -> bool:
        """Return whether nothing in an entry can be a difference, nor a change of the calls."""
        if golden == own or self._is_near(golden, own):
            return True
        return not is_part(own, golden) and self._is_judged_equal(name, golden, own)

    def _is_near(self, golden: str, own: str) -> bool:
        """Return whether two entries are equal but for numbers within the tolerance: sure, and quick."""
        left = _NUMBERS.split(golden)
        right = _NUMBERS.split(own)
        if left[::_STRIDE] != right[::_STRIDE]:
            return False
        near = self._near
        for place in range(1, len(left), _STRIDE):
            golden_numbers = left[place : place + 4]
            own_numbers = right[place : place + 4]
            if golden_numbers == own_numbers:
                continue
            form = _form(left[place - 1])
            if form is None:
                return False
            key = (*golden_numbers, *own_numbers, form[0])
            if key not in near:
                if not _are_near(form, golden_numbers, own_numbers):
                    return False
                if len(near) >= _REMEMBERED:
                    near.clear()
                near.add(key)
        return True

    def _is_judged_equal(self, name: str, golden: str, own: str) -> bool:
        """Return the same by the verdicts of ``probe compare``."""
        a = json.loads(golden)
        b = json.loads(own)
        parts = parse(name)
        # a judge of its own: it remembers pairs of records by their addresses, and these two go
        slots = Judge(self._tolerances).slots(name, parts, a, b)
        return not any(map(_is_change, self._judge.follow(name, parts, slots)))


def is_part(own: str, golden: str) -> bool:
    """Return whether an entry lacks keys of another one, and has no others.

    >>> is_part('{"input": []}', '{"input": [], "output": []}'), is_part("{}", "{}")
    (True, False)
    """
    return set(json.loads(own)) < set(json.loads(golden))


def _is_change(slot: Slot) -> bool:
    if slot.is_hard or slot.verdict == "argument":
        return True
    both = slot.are_tensors
    return both and any(slot.a.get(key) != slot.b.get(key) for key in ("dtype", "shape"))


def _are_near(form: tuple[float, list[int]], left: list[str], right: list[str]) -> bool:
    """Return whether the distance of two tensors is within the tolerance of their dtype; they have one form."""
    try:
        found = distance(_record(form[1], left), _record(form[1], right)).rel_l2
    except ValueError:  # null
        return False
    return found is not None and found <= form[0]


def _record(shape: list[int], numbers: list[str]) -> dict[str, Any]:
    high, low, mean, norm = map(float, numbers)
    return {"shape": shape, "Max": high, "Min": low, "Mean": mean, "Norm": norm}


@functools.lru_cache(4096)
def _form(before: str) -> tuple[float, list[int]] | None:
    """Return the tolerance and the shape of a record by the text before its numbers; None where it has none."""
    found = _FORM.search(before)
    tolerance = of_dtype(found[1]) if found else 0.0
    return (tolerance, json.loads(found[2])) if found and tolerance else None


class GoldenEntries:
    """Gives the text of each entry of a step; raises UsageError when its file cannot be read.

    Entries that come in the order of the file are compared where they stand, and none is kept in memory. After the
    first other name, and where the file has another form, all are in memory until the step ends.
    """

    def __init__(self, folder: DumpFolder) -> None:
        self._folder = folder
        self._file = _open(os.path.join(folder.path, file_names.DUMP))
        self._at = self._file.tell() if self._file else 0
        self._texts: dict[str, str] = {}
        self._asked: set[str] = set()
        self.in_order = True  # so far the entries have come in the order of the file

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
        raise UsageError(say("error.unreadable", path=path, reason=reason_of(error))) from error
    if at >= 0:
        file.seek(at + len(_DATA))
        return file
    file.close()
    return None


class WatchedStep:
    """Takes the entries of a step before their writer, which keeps them in memory until one may be a difference."""

    def __init__(self, writer: DumpWriter, golden: GoldenEntries, kept: KeptTensors) -> None:
        self.writer = writer
        self.golden = golden
        self.kept = kept
        #: an entry may be a difference, or a change of the calls: each is in the journal then, for ``probe compare``
        self.is_suspect = False
        self._agreement = Agreement()
        self._queue: MeasurementQueue | None = None
        self._measurer: Measurer | None = None
        self._seen: set[str] = set()
        self._open: dict[
            str, str
        ] = {}  # entries that lack keys of the golden run's, whose text this is: they go on
        self._again: set[str] = set()  # entries that went on after they had agreed

    def new_queue(
        self, measurer: Measurer, copier: Any, wait: Any, accept: Any, *others: Any
    ) -> MeasurementQueue:
        """Return the queue of the step, which passes entries on to this object; see ``MeasurementQueue``."""
        self._measurer = measurer
        keeping = KeepingMeasurer(self.kept, measurer)
        self._queue = MeasurementQueue(keeping, copier, wait, self.accept, *others)
        return self._queue

    def accept(self, entry: Entry) -> None:
        """Take a finished entry, or further keys of one."""
        self.writer.accept(entry)
        with self.writer.errors.guard("comparing with the golden run", entry.name):
            own = self.writer.documents.text(entry.name)
            if entry.name in self._open:
                self._compare(entry, self._open.pop(entry.name), own)
            elif entry.name in self._seen:
                self._again.add(entry.name)
            else:
                self._seen.add(entry.name)
                golden = self._found(entry.name, own)
                if golden is not own:
                    self._compare(entry, golden, own)
            self.kept.end(entry)

    def _found(self, name: str, own: str) -> str | None:
        try:
            return self.golden.find(name, own)
        except (OSError, UsageError):  # the comparison at the end of the step tells it
            return None

    def _compare(self, entry: Entry, golden: str | None, own: str) -> None:
        with contextlib.suppress(ValueError):  # the golden run's is no JSON
            if golden is not None and self._agreement.holds(entry.name, golden, own):
                return
            if golden is not None and is_part(own, golden):
                self._open[entry.name] = golden
                return
        if not self.is_suspect:
            self.is_suspect = True
            with self.writer.errors.guard("writing the journal"):
                self.writer.documents.begin_journal()
        if self._queue is not None and self._measurer is not None and self._queue.may_read:
            self.kept.hold(entry, self._measurer)

    def end(self) -> None:
        """End the step: look again at entries that went on, and for entries that only the golden run has."""
        try:
            with self.writer.errors.guard("comparing with the golden run"):
                for name in self._again:
                    golden = self.golden.named(name)
                    if golden is None or not self._agreement.holds(
                        name, golden, self.writer.documents.text(name)
                    ):
                        self.is_suspect = True
                if self._open or not self.golden.in_order or not self.golden.is_over():
                    self.is_suspect = True
        finally:
            self.golden.close()
