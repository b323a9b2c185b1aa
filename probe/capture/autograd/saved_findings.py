# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compares the checksums of tensors that were kept for a backward, and tells which have changed."""

from __future__ import annotations

from typing import Any, NamedTuple

from probe.capture.autograd.writes import Write, Writes
from probe.findings.sentence import NOTHING, Sentence, say
from probe.measure.checksums import Checksums
from probe.measure.storage import Memory, memory_of
from probe.recording.step_recorder import StepRecorder

#: pairs of checksums on a device that wait for one fetch
_MOST_WAITING = 2048


class Place(NamedTuple):
    """A tensor as its owner names it.

    Attributes:
        call: the entry of the call that keeps it, or "" where none is recorded.
        role: "input", "output", "parameter" or "tensor".
        name: the place of an input, the name of a parameter, or that of the graph's node.
    """

    call: str
    role: str
    name: str

    def __str__(self) -> str:
        return f"{self.role} {self.name} of {self.call}" if self.call else f"{self.role} {self.name}"

    @property
    def said(self) -> Sentence:
        """The name of the tensor in a finding."""
        if not self.call:
            return say("guard.unrecorded", name=self.name) if self.name else say("guard.unknown")
        if self.role in ("output", "tensor"):
            return say("guard.output" if self.role == "output" else "guard.tensor", call=self.call)
        return say("guard.input" if self.role == "input" else "guard.parameter", call=self.call, name=self.name)


class Noted(NamedTuple):
    """A tensor as it was when it was packed.

    Attributes:
        recorder: the recorder of the step.
        checksum: its checksum.
        memory: its memory.
        number: the number of the newest write before.
        place: the call that keeps it, and where.
    """

    recorder: StepRecorder
    checksum: Any
    memory: Memory
    number: int
    place: Place


class SavedFindings:
    """Tells each changed tensor once in a step.

    Args:
        checksums: takes checksums.
        writes: the calls that have written.
    """

    def __init__(self, checksums: Checksums, writes: Writes) -> None:
        self._checksums, self._writes = checksums, writes
        self._waiting: list[tuple[Any, Any, StepRecorder, Place, Sentence]] = []
        self._told: set[Sentence] = set()

    def compare(self, noted: Noted, tensor: Any) -> None:
        """Compare a tensor with what it was: at once, or at the end of the step."""
        checksum = self._checksums.take(tensor)
        if self._checksums.waits and checksum == noted.checksum:
            return
        memory = memory_of(tensor)
        is_replaced = memory.begin != noted.memory.begin
        cause = _cause(self._writes.after(noted.number, memory), is_replaced)
        self._waiting.append((noted.checksum, checksum, noted.recorder, noted.place, cause))
        if self._checksums.waits or len(self._waiting) >= _MOST_WAITING:
            self._tell()

    def end_step(self) -> None:
        """Tell what waits, and forget the step."""
        recorder = next((waiting[2] for waiting in self._waiting), None)
        if recorder is not None:
            with recorder.guard("comparing tensors that were kept for the backward"):
                self._tell()
        self._waiting.clear()
        self._told.clear()

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        before = self._checksums.values(pair[0] for pair in waiting)
        after = self._checksums.values(pair[1] for pair in waiting)
        for was, now, (_, _, recorder, place, cause) in zip(before, after, waiting):
            finding = say("guard.saved", which=place.said, cause=cause)
            if was != now and finding not in self._told:
                self._told.add(finding)
                recorder.writer.findings.tell(finding)


def _cause(write: Write | None, is_replaced: bool) -> Sentence:
    if write is not None:
        place = say("guard.place", place=write.place) if write.place else NOTHING
        return say("guard.written", call=write.name, place=place)
    return say("guard.replaced" if is_replaced else "guard.unwritten")
