# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes the gradient functions of a step again, records them, and says what the runs tell together."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.dumps import entry_name
from probe.reading.dumps.dump import Call, Dump, Tensor
from probe.reading.dumps.flow import user_frame
from probe.reading.dumps.run import open as open_run
from probe.repeats.held_call import HeldCalls
from probe.series.series_name import parse
from probe.session.dump_recording import DumpRecording
from probe.store.file_names import REPEATS

#: numbers of the monitor are equal up to this part of them: its norms are sums in float32
_SAME = 1e-6
#: calls gradient functions, and returns their numbers
Measure = Callable[[Callable[[], Any]], Mapping[str, float]]


class Run(NamedTuple):
    """One run of the step."""

    numbers: Mapping[str, float]  # series -> number, as in a row of the monitor
    folder: str  # the dump, or "" where it was not recorded


def again(measure: Measure, held: HeldCalls, dump: DumpRecording, first: Run) -> Sentence:
    """Make the gradient functions of a step again and record them; return what that says. All is put back.

    ``first`` is the step itself. ``dump`` is used again only with new settings.
    """
    settings = dump.settings
    parts = dump.parts
    runs = [first]
    home = parts.root if first.folder else settings.dump_path
    with held.put_back():
        for number in range(settings.times):
            # the dump of the step itself stays in its place
            place = os.path.join(home, REPEATS[number]) if number or first.folder else home
            runs.append(
                _repeat(measure, held, dump.with_settings(replace(settings, dump_path=place)))
            )
            home = home if number or first.folder else parts.root
        parts.root = home
    return verdict(runs, home)


def _repeat(measure: Measure, held: HeldCalls, dump: DumpRecording) -> Run:
    held.calls[0].put()  # before the circumstances of the run are noted
    window = dump.parts.window
    folder = ""
    try:
        dump.start(None)
        if window.open_step is not None:
            folder = window.open_step.writer.folder
        numbers = measure(held.make_again)
    finally:
        try:
            dump.stop()
        finally:
            dump.end_step()
            dump.parts.backends.current = None
    return Run(numbers, folder)


def verdict(runs: Sequence[Run], root: str) -> Sentence:
    """Return what a step and its repeats say together."""
    first = runs[0]
    repeats = runs[1:]
    path = shlex.quote(root)
    apart = [difference(first, repeat) for repeat in repeats]
    if len(repeats) == 1:
        return (
            say("again.once", apart=apart[0])
            if apart[0]
            else say("again.repeats", count=1, path=path)
        )
    between = difference(*repeats)
    if not between:
        if not apart[0]:
            return say("again.repeats", count=len(repeats), path=path)
        unnamed = NOTHING if first.folder else say("again.unnamed")
        return say("again.transient_first", apart=apart[0], unnamed=unnamed)
    if apart[0] and not apart[1]:
        return say("again.transient_repeat", apart=between)
    if not _numbers_apart(first, repeats[0]) and not _numbers_apart(first, repeats[1]):
        return say("again.last_bits", apart=between, path=path)
    return say("again.not_repeatable", apart=between)


def difference(left: Run, right: Run) -> Sentence:
    """Return where two runs differ first; NOTHING where they are equal, as far as both are known."""
    if not left.folder or not right.folder:
        return _numbers_apart(left, right)
    found = first_apart(open_run(left.folder).dump(), open_run(right.folder).dump())
    if found is None:
        return NOTHING
    frame = user_frame(found.call.stack)
    place = (
        say("again.place", file=os.path.basename(frame.file), line=frame.line) if frame else NOTHING
    )
    return say("again.call", name=found.name, place=place)


def _numbers_apart(left: Run, right: Run) -> Sentence:
    for series, value in right.numbers.items():
        own = left.numbers.get(series)
        kind = parse(series).kind
        if (
            own is None
            or kind not in ("loss", "grad")
            or own == value
            or (math.isnan(own) and math.isnan(value))
        ):
            continue
        if not abs(own - value) <= _SAME * min(abs(own), abs(value)):
            return say("again.numbers", series=series, left=own, right=value)
    return NOTHING


def first_apart(left: Dump, right: Dump) -> Tensor | None:
    """Return the first tensor of ``right`` whose bits differ; of Cells only where no other call differs."""
    cells: list[tuple[Tensor, str]] = []
    for own, other in _pairs(left, right):
        tensors = zip(own.tensors(), other.tensors())
        found = next(
            (b for a, b in tensors if a.md5 != b.md5 and not (b.record or {}).get("unwritten")),
            None,
        )
        if found is not None and other.parts.kind != entry_name.CELL:
            return found
        if found is not None:
            cells.append((found, other.parts.path))
    outputs = [item for item in cells if not item[0].place.startswith("input")] or cells
    inner = (
        item for item in outputs if not any(path.startswith(f"{item[1]}.") for _, path in outputs)
    )
    return next((tensor for tensor, _ in inner), None)


def _pairs(left: Dump, right: Dump) -> Iterator[tuple[Call, Call]]:
    """Yield the calls of two dumps that stand for each other; one of them may have more calls, and other numbers."""
    if list(left.data) == list(right.data):
        yield from zip(left, right)
        return
    ours = [(_place(call), call) for call in left]
    begin = 0
    for other in right:
        place = _place(other)
        found = next((at for at in range(begin, len(ours)) if ours[at][0] == place), None)
        if found is not None:
            begin = found + 1
            yield ours[found][1], other


def _place(call: Call) -> tuple[object, ...]:
    frame = call.stack[0] if call.stack else ""
    return call.parts.kind, call.parts.key, call.direction, frame
