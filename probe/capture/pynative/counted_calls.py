# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Counts the calls of a step, and lets the chosen ones alone reach the recorder: for records of a few calls a step.

A function, Cell or Primitive is patched only in the steps that have chosen one of its calls. The number of a call
counts the calls of its own name, so these patches are enough. A call inside another listed call has no number; so
the functions that call a chosen one are patched with it.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from types import CodeType, FrameType
from typing import Any, Optional

from probe.capture.pynative.thread_state import ThreadState
from probe.recording.call import Call
from probe.recording.step_recorder import NameFilter, StepRecorder

RunCall = Callable[..., Any]  # takes (key, original, args, kwargs, …); runs and records a call
#: takes the code of a function; returns the key of its calls if it is listed
_LOOKING = "looking for the caller of a call"
KeyOfCode = Callable[[CodeType], Optional[str]]


class CountedCalls(NameFilter):
    """Counts calls by key, and chooses among them.

    The first step is a census: everything is patched, all calls are counted, none is recorded. ``known`` has then the
    number of calls of each key. A key that comes later is known from the first step that has patched it.
    """

    is_active = True
    is_open = True

    def __init__(self) -> None:
        #: key -> the most calls that a step had; Cells and updates are counted by ``begin``
        self.known: dict[str, int] = {}
        #: key -> the keys of functions that call it: patched with it, as its calls inside them have no number
        self.callers: defaultdict[str, set[str]] = defaultdict(set)
        self.recorder: StepRecorder | None = None
        self.key_of_code: KeyOfCode = lambda code: None
        self.is_census = False
        self._counts: dict[str, int] = {}
        self._wanted: dict[str, Collection[int]] = {}

    def begin_step(self, wanted: Mapping[str, Collection[int]], is_census: bool) -> None:
        """Begin a step in which the calls with these numbers are recorded, by their keys."""
        self._wanted = dict(wanted)
        self._counts = {}
        self.is_census = is_census

    def end_step(self) -> bool:
        """Remember the counts of this step; return whether a key has more calls than before."""
        grown = {
            key: count for key, count in self._counts.items() if count > self.known.get(key, 0)
        }
        self.known.update(grown)
        return bool(grown)

    def counted(self, call: RunCall, state: ThreadState) -> RunCall:
        """Return what a patch of a function calls in place of ``call``."""

        def enter(
            key: str, original: Callable[..., Any], args: Any, kwargs: Any, *further: Any
        ) -> Any:
            if self.is_census:
                return self._take_census(key, original, args, kwargs, state)
            recorder = self.recorder
            if recorder is None or recorder.queue.runs_own_operation:
                return original(*args, **kwargs)
            if state.replays:  # the log of the first run has None for a call that was not chosen
                return call(key, original, args, kwargs, *further)
            counts = self._counts
            number = counts.get(key, 0)
            is_wanted = number in self._wanted.get(key, ())
            if (is_wanted or key not in self.known) and recorder.safely(
                _LOOKING, None, self._is_inside_listed, key, key=key
            ):
                self._wanted.pop(key, None)  # calls before it may have been inside too
                return original(*args, **kwargs)
            counts[key] = number + 1
            if not is_wanted:
                for log in state.logs:  # the calls of a second run are taken from it in order
                    log.add(key, None)
                return original(*args, **kwargs)
            recorder.number_next(key, number)
            return call(key, original, args, kwargs, *further)

        return enter

    def _take_census(
        self, key: str, original: Callable[..., Any], args: Any, kwargs: Any, state: ThreadState
    ) -> Any:
        outer = state.census
        if outer:
            self.callers[key].add(outer[0])
        elif not state.replays:
            self._counts[key] = self._counts.get(key, 0) + 1
        if (
            not state.in_recorded_call
        ):  # a backward of the user's own: the calls inside have numbers
            return original(*args, **kwargs)
        outer.append(key)
        state.in_recorded_call = False  # the listed calls inside are seen too
        try:
            return original(*args, **kwargs)
        finally:
            state.in_recorded_call = True
            outer.pop()

    def _is_inside_listed(self, key: str) -> bool:
        """Return whether a call runs inside another listed call, whose function is not patched in this step."""
        found = ""
        frame: FrameType | None = sys._getframe(3)
        while frame is not None:
            name = self.key_of_code(frame.f_code)
            if name is not None and name != key:
                found = name
            frame = frame.f_back
        if found:
            self.callers[key].add(found)
        return bool(found)

    # -- of the recorder ------------------------------------------------------------------------------------------

    def begin(self, call: Call, backward: bool = False) -> bool:
        """Return whether the call that begins now is recorded; see ``NameFilter``."""
        key = call.key
        if not backward and self._counts.get(key, 0) <= call.number:
            self._counts[key] = call.number + 1
        return call.number in self._wanted.get(key, ())

    def may_record_backward(self, call: Call) -> bool:
        """Return whether the backward of a call is recorded; see ``NameFilter``."""
        return call.number in self._wanted.get(call.key, ())

    def end(self, name: str) -> None:
        """Do nothing at the end of a call."""

    def unmatched(self) -> list[str]:
        """Return no names: none is given."""
        return []
