# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Follows the handles of asynchronous communication, from their creation until the training waits for them."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from probe.capture.patches import Patch, PatchSet, around
from probe.naming import message_of
from probe.recording.call import Call
from probe.recording.step_recorder import StepRecorder


@dataclass
class _TrackedHandle:
    """One handle that the training has not waited for.

    Attributes:
        recorder: the recorder of the step.
        handle: the handle, held so that its identity stays unique.
        calls: the recorded calls that it belongs to. MindSpore shares one handle among calls that need no waiting.
    """

    recorder: StepRecorder
    handle: Any
    calls: list[_AwaitedCall] = field(default_factory=list)


@dataclass
class _AwaitedCall:
    """A recorded call whose output is still to come, and the identities of its handles."""

    recorder: StepRecorder
    call: Call
    outcome: Any
    handles: set[int]

    def finish(self, handle: Any) -> None:
        """Record the output of the call if this was its last handle."""
        if id(handle) not in self.handles:  # it was returned twice
            return
        self.handles.discard(id(handle))
        if not self.handles:
            self.recorder.record_awaited_output(self.call, self.outcome)

    def fail(self, error: BaseException) -> None:
        """Record that waiting raised."""
        self.recorder.note_unfinished(self.call, "raised", message_of(error))


class CommHandleTracker:
    """Tracks every handle of a step, also of calls that are not recorded. ``wait`` is patched while there are any.

    Attributes:
        recorder: the recorder of the step, while calls are recorded.
    """

    def __init__(self) -> None:
        import mindspore
        from mindspore._c_expression import CommHandle

        self.recorder: StepRecorder | None = None
        self._tensor: type = mindspore.Tensor
        self._handle: type = CommHandle
        self._lock = threading.RLock()  # a signal may come while it is held, and ends the step
        self._tracked: dict[int, _TrackedHandle] = {}
        made = {*_classes(CommHandle)}
        self._creation = PatchSet([Patch(kind, "__init__", around(self._created)) for kind in made])
        self._waits = PatchSet([Patch(kind, "wait", around(self._waited)) for kind in {CommHandle, *made}])

    def install(self) -> None:
        """Begin to track new handles."""
        self._creation.install()

    def remove(self) -> None:
        """Track no new handles."""
        self._creation.remove()

    def find(self, result: Any) -> list[Any]:
        """Return the handles in the result of a call."""
        items = result if isinstance(result, (list, tuple)) else (result,)
        return [item for item in items if isinstance(item, self._handle)]

    def has_tensors(self, result: Any) -> bool:
        """Return whether a call returned tensors, rather than only changed its arguments."""
        items = result if isinstance(result, (list, tuple)) else (result,)
        return any(isinstance(item, (self._tensor, list, tuple)) for item in items)

    def follow(self, recorder: StepRecorder, handles: list[Any], call: Call, outcome: Any) -> None:
        """Record the output of a call when the training has waited for all of its handles."""
        with recorder.guard("following a communication"):
            recorder.put_without_output(call)
            awaited = _AwaitedCall(recorder, call, outcome, set(map(id, handles)))
            with self._lock:
                for handle in handles:
                    self._track(recorder, handle).calls.append(awaited)

    def end_step(self) -> None:
        """Stop tracking. Mark the calls that the training has not waited for."""
        for awaited in self._clear():
            awaited.recorder.note_unfinished(awaited.call, "pending", "not waited for before step()")

    def detach(self) -> None:
        """Stop tracking, in a forked child: the communication is the parent's."""
        self._lock = threading.RLock()
        self.recorder = None
        self._clear()

    def _clear(self) -> list[_AwaitedCall]:
        with self._lock:
            awaited = {id(call): call for tracked in self._tracked.values() for call in tracked.calls}
            self._tracked.clear()
            self._waits.remove()
        return list(awaited.values())

    def _track(self, recorder: StepRecorder, handle: Any) -> _TrackedHandle:
        """Return the tracked handle. Begin to track it if it is new."""
        with self._lock:
            tracked = self._tracked.get(id(handle))
            if tracked is None:
                tracked = self._tracked[id(handle)] = _TrackedHandle(recorder, handle)
                self._waits.install()
                recorder.queue.communication_started()
            return tracked

    def _created(self, original: Callable[..., Any], handle: Any, *args: Any, **kwargs: Any) -> None:
        original(handle, *args, **kwargs)
        recorder = self.recorder
        if recorder is not None:
            with recorder.guard("following a communication"):
                self._track(recorder, handle)

    def _waited(self, original: Callable[..., Any], handle: Any, *args: Any, **kwargs: Any) -> Any:
        tracked = self._tracked.get(id(handle))
        if tracked is None:
            return original(handle, *args, **kwargs)
        returned = finished = False
        try:
            result = original(handle, *args, **kwargs)
            returned, finished = True, self._untrack(tracked)
            if finished:  # no other thread has waited for it too, and the step has not ended
                tracked.recorder.queue.communication_finished(ok=True)
        except BaseException as error:
            if not returned and self._untrack(tracked):
                finished = True
                tracked.recorder.queue.communication_finished(ok=False)
            if finished:
                for call in tracked.calls:
                    call.fail(error)
            raise
        if finished:
            for call in tracked.calls:
                call.finish(handle)
        return result

    def _untrack(self, tracked: _TrackedHandle) -> bool:
        """Stop tracking a handle. Return False if another thread has done so before."""
        with self._lock:
            known = self._tracked.pop(id(tracked.handle), None)
            with tracked.recorder.guard("following a communication"):
                if not self._tracked:
                    self._waits.remove()
        return known is tracked


def _classes(base: type) -> Iterator[type]:
    """Yield the classes of handles that MindSpore makes in Python."""
    for name in ("mindspore.communication.comm_func", "mindspore.ops.function.comm_func"):
        try:
            found = getattr(importlib.import_module(name), "CommHandle", None)
        except ImportError:
            continue
        if isinstance(found, type) and issubclass(found, base):
            yield found
