# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Follows the handles of asynchronous communication, from their creation until the training waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from probe.capture.patches import HookGroup, Patch, around
from probe.executor import found_in
from probe.naming import message_of
from probe.recording.call import Call
from probe.recording.step_recorder import StepRecorder


@dataclass
class _AwaitedCall:
    """A recorded call whose output is still to come, and the identities of its handles."""

    call: Call
    outcome: Any
    handles: set[int]


#: a handle that the training has not waited for, held so that its identity stays unique, and the recorded calls that it
#: belongs to. MindSpore shares one handle among calls that need no waiting.
_Tracked = tuple[Any, list[_AwaitedCall]]


class CommHandleTracker(HookGroup):
    """Tracks every handle of a step, also of calls that are not recorded. ``wait`` is patched while there are any."""

    def __init__(self) -> None:
        import mindspore
        from mindspore._c_expression import CommHandle

        # the classes of handles that MindSpore makes in Python
        homes = "mindspore.communication.comm_func", "mindspore.ops.function.comm_func"
        found = {found_in("CommHandle", home) for home in homes}
        made = {kind for kind in found if isinstance(kind, type) and issubclass(kind, CommHandle)}
        super().__init__([Patch(kind, "__init__", around(self._created)) for kind in made])
        self.recorder: StepRecorder | None = None
        self._tensor: type = mindspore.Tensor
        self._handle: type = CommHandle
        self._lock = threading.RLock()  # a signal may come while it is held, and ends the step
        self._tracked: dict[int, _Tracked] = {}
        self._waits = HookGroup(
            [Patch(kind, "wait", around(self._waited)) for kind in {CommHandle, *made}]
        )

    def find(self, result: Any) -> dict[int, Any]:
        """Return the handles in the result of a call by their identities."""
        items = result if isinstance(result, (list, tuple)) else (result,)
        return {id(item): item for item in items if isinstance(item, self._handle)}

    def has_tensors(self, result: Any) -> bool:
        """Return whether a call returned tensors, rather than only changed its arguments."""
        items = result if isinstance(result, (list, tuple)) else (result,)
        return any(isinstance(item, (self._tensor, list, tuple)) for item in items)

    def follow(
        self, recorder: StepRecorder, handles: dict[int, Any], call: Call, outcome: Any
    ) -> None:
        """Record the output of a call when the training has waited for all of its handles."""
        with recorder.guard("following a communication"):
            recorder.put_without_output(call)
            awaited = _AwaitedCall(call, outcome, set(handles))
            with self._lock:
                for handle in handles.values():
                    self._track(recorder, handle)[1].append(awaited)

    def end_step(self) -> None:
        """Stop tracking. Mark the calls that the training has not waited for."""
        recorder = self.recorder
        awaited = self._clear()
        if recorder is not None:
            for one in awaited:
                recorder.note_unfinished(one.call, "pending", "not waited for before step()")

    def detach(self) -> None:
        """Stop tracking, in a forked child: the communication is the parent's."""
        self._lock = threading.RLock()
        self._clear()

    def _clear(self) -> list[_AwaitedCall]:
        with self._lock:
            self.recorder = None
            awaited = {id(call): call for _, calls in self._tracked.values() for call in calls}
            self._tracked.clear()
            self._waits.remove()
        return list(awaited.values())

    def _track(self, recorder: StepRecorder, handle: Any) -> _Tracked:
        """Return the tracked handle. Begin to track it if it is new."""
        with self._lock:
            tracked = self._tracked.get(id(handle))
            if tracked is None:
                tracked = self._tracked[id(handle)] = handle, []
                self._waits.install()
                recorder.queue.communication_started()
            return tracked

    def _created(
        self, original: Callable[..., Any], handle: Any, *args: Any, **kwargs: Any
    ) -> None:
        original(handle, *args, **kwargs)
        recorder = self.recorder
        if recorder is not None:
            with recorder.guard("following a communication"):
                self._track(recorder, handle)

    def _waited(self, original: Callable[..., Any], handle: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = self.recorder
        tracked = self._tracked.get(id(handle))
        if recorder is None or tracked is None:
            return original(handle, *args, **kwargs)
        returned = finished = False
        try:
            result = original(handle, *args, **kwargs)
            returned = True
            finished = self._untrack(recorder, tracked)
            if finished:  # no other thread has waited for it too, and the step has not ended
                recorder.queue.communication_finished(ok=True)
        except BaseException as error:
            if not returned and self._untrack(recorder, tracked):
                finished = True
                recorder.queue.communication_finished(ok=False)
            for awaited in tracked[1] if finished else ():
                recorder.note_unfinished(awaited.call, "raised", message_of(error))
            raise
        for awaited in tracked[1] if finished else ():
            awaited.handles.discard(id(handle))
            if not awaited.handles:
                recorder.record_awaited_output(awaited.call, awaited.outcome)
        return result

    def _untrack(self, recorder: StepRecorder, tracked: _Tracked) -> bool:
        """Stop tracking a handle. Return False if another thread has done so before."""
        with self._lock:
            known = self._tracked.pop(id(tracked[0]), None)
            with recorder.guard("following a communication"):
                if not self._tracked:
                    self._waits.remove()
        return known is tracked
