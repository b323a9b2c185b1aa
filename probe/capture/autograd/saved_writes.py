# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The memory that recorded calls have written, in order; and which tensors that a backward needs have changed."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from probe.findings.sentence import NOTHING, Sentence, say
from probe.measure.storage import Checksums, Memory, memory_of
from probe.naming import ALL, written_inputs
from probe.pytree import leaves
from probe.recording.step_recorder import StepRecorder

_TOOL = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
#: writes that are remembered, and pairs of checksums on a device that wait for one fetch
_MOST = 10_000
_MOST_WAITING = 2048


class Write(NamedTuple):
    """A call that may have written."""

    number: int  # its place in the order of all
    name: str  # the entry of the call, or a function's name
    place: str  # file and line of the user that made it, or ""
    memory: list[
        tuple[Memory, int]
    ]  # the pieces, each with the number of writes that MindSpore has counted


class Writes:
    """Remembers writes by their addresses, and holds no tensor. ``tensor`` is the class of tensors."""

    def __init__(self, tensor: type) -> None:
        self._tensor = tensor
        self._lock = threading.Lock()
        self._written: deque[Write] = deque(maxlen=_MOST)
        #: numpy arrays whose memory tensors use
        self._arrays: deque[tuple[weakref.ref[Any], Write]] = deque(maxlen=_MOST)
        self.last = 0  # the number of the newest write

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._written.clear()
            self._arrays.clear()

    def begin(
        self, key: str, inputs: Iterable[Any], named: Mapping[str, Any]
    ) -> list[tuple[Any, int]]:
        """Return the tensors that a call may write, by its name, with MindSpore's counts of their writes."""
        which = ALL if "out" in named else written_inputs(key)
        if not which:
            return []
        found = (leaf for value in (*inputs, *named.values()) for leaf in leaves(value))
        tensors: Iterable[Any] = (leaf for leaf in found if isinstance(leaf, self._tensor))
        return [(tensor, tensor._version) for tensor in itertools.islice(tensors, which)]

    def note(self, name: str, tensors: Iterable[tuple[Any, int]]) -> None:
        """Note that a call has written tensors, which are given with their counts before it."""
        memory = [(memory_of(tensor), tensor._version - before) for tensor, before in tensors]
        if memory:
            with self._lock:
                self.last += 1
                self._written.append(Write(self.last, name, user_place(), memory))

    def share(self, name: str, array: Any) -> None:
        """Note that a call has made a tensor of the memory of a numpy array, which anybody may write."""
        if isinstance(array, np.ndarray):
            begin = array.__array_interface__["data"][0]
            write = Write(self.last, name, user_place(), [(Memory(begin, begin + array.nbytes), 0)])
            with self._lock:
                self._arrays.append((weakref.ref(array), write))

    def sharer(self, memory: Memory) -> Write | None:
        """Return the call that has made a tensor of a numpy array which is alive, and holds a piece of memory."""
        with self._lock:
            alive = [write for array, write in reversed(self._arrays) if array() is not None]
        return next((write for write in alive if write.memory[0][0].overlaps(memory)), None)

    def after(self, number: int, memory: Memory, keeper: str = "") -> tuple[Write | None, int]:
        """Return the first write after a number into a piece of memory, and how many such MindSpore has counted.

        A write by the call ``keeper``, which keeps the tensor, is returned if there is no other: it only may have
        written, as each BatchNorm may.
        """
        found: list[Write] = []  # the newest first
        count = 0
        with self._lock:
            for write in reversed(self._written):
                if write.number <= number:
                    break
                counts = [counted for own, counted in write.memory if own.overlaps(memory)]
                if counts:
                    found.append(write)
                    count += sum(counts)
        others = [write for write in found if write.name != keeper]
        return next(reversed(others or found), None), count


def user_place() -> str:
    """Return file and line of the innermost frame outside of MindSpore and probe, or ""."""
    inner = os.path.dirname(str(sys.modules["mindspore"].__file__)) + os.sep
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((_TOOL, inner, "<")):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}" if frame else ""


class Place(NamedTuple):
    """A tensor as its owner names it."""

    call: str  # the entry of the call that keeps it, or "" where none is recorded
    role: str  # "input", "output", "parameter" or "tensor"
    name: str  # the place of an input, the name of a parameter, or that of the graph's node

    @property
    def said(self) -> Sentence:
        """The name of the tensor in a finding."""
        if not self.call:
            return say("guard.unrecorded", name=self.name) if self.name else say("guard.unknown")
        if self.role in ("output", "tensor"):
            return say("guard.output" if self.role == "output" else "guard.tensor", call=self.call)
        return say(
            "guard.input" if self.role == "input" else "guard.parameter",
            call=self.call,
            name=self.name,
        )


class Noted(NamedTuple):
    """A tensor as it was when it was packed."""

    recorder: StepRecorder  # the recorder of the step
    checksum: Any
    memory: Memory
    number: int  # the number of the newest write before
    place: Place


class SavedFindings:
    """Compares the checksums of tensors that were kept, and tells each that changed once in a step."""

    def __init__(self, checksums: Checksums, writes: Writes) -> None:
        self._checksums = checksums
        self._writes = writes
        self._waiting: list[tuple[Noted, Any, Sentence]] = []
        self._told: set[Sentence] = set()

    def compare(self, noted: Noted, tensor: Any) -> None:
        """Compare a tensor with what it was: at once, or at the end of the step."""
        checksum = self._checksums.take(tensor)
        if self._checksums.waits and checksum == noted.checksum:
            return
        self._waiting.append((noted, checksum, self._cause(noted, memory_of(tensor))))
        if self._checksums.waits or len(self._waiting) >= _MOST_WAITING:
            self._tell()

    def _cause(self, noted: Noted, memory: Memory) -> Sentence:
        """Return who has written the memory since, as far as it is known."""
        write = self._writes.after(noted.number, memory, noted.place.call)[0]
        key = "guard.written"
        if write is None:
            write = self._writes.sharer(memory)
            key = "guard.array"
        if write is None:
            return say(
                "guard.unwritten" if memory.begin == noted.memory.begin else "guard.replaced"
            )
        return say(
            key,
            call=write.name,
            place=say("guard.place", place=write.place) if write.place else NOTHING,
        )

    def end_step(self) -> None:
        """Tell what waits, and forget the step."""
        if self._waiting:
            with self._waiting[0][0].recorder.guard(
                "comparing tensors that were kept for the backward"
            ):
                self._tell()
        self._waiting.clear()
        self._told.clear()

    def _tell(self) -> None:
        waiting = self._waiting
        self._waiting = []
        before = self._checksums.values(noted.checksum for noted, _, _ in waiting)
        after = self._checksums.values(checksum for _, checksum, _ in waiting)
        for was, now, (noted, _, cause) in zip(before, after, waiting):
            finding = say("guard.saved", which=noted.place.said, cause=cause)
            if was != now and finding not in self._told:
                self._told.add(finding)
                noted.recorder.sink.tell(finding)
