# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Communication between ranks: what it was given, and what came of it as soon as the training has waited for it."""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from probe.capture.patches import Patch, PatchSet
from probe.capture.pynative.apis import ApiHooks
from probe.naming import COLLECTIVE

if TYPE_CHECKING:
    from probe.recording.call import Call
    from probe.recording.step_recorder import StepRecorder


def is_collective(key: str) -> bool:
    """Return whether entries of this name are of communication.

    >>> is_collective("MintDistributed.all_reduce"), is_collective("Mint.add")
    (True, False)
    """
    return key.partition(".")[0] in COLLECTIVE


class CollectiveHooks(ApiHooks):
    """Records calls that communicate.

    Those that return no tensor have changed what they were given: that is their output. What an asynchronous one makes
    is recorded when the training waits for its handle; nobody waits in its place.
    """

    def wrap(self, key: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return what stands in for the original; see ``Watch``."""
        wrapper = super().wrap(key, original)
        return _EqualToOriginal(wrapper, original) if key.endswith((".isend", ".irecv")) else wrapper

    def call(
        self, key: str, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], visible: int = 0
    ) -> Any:
        """Run the original and record the call; see ``Watch``."""
        recorder = self._collection.recorder
        if recorder is None:
            return original(*args, **kwargs)
        begun = self._begin(recorder, key, args, kwargs)
        flights = self._collection.flights
        try:
            result = original(*args, **kwargs)
            handles = flights.handles(result)
            if begun is not None and not handles:
                recorder.settle()
        except BaseException as error:
            if begun is not None:
                self._raised(recorder, begun, error)
            raise
        if begun is None:
            return result
        outcome = result if flights.gives_tensors(result) else (*args, *kwargs.values())
        self._attach(recorder, begun, args, result)
        call, _, repeated = begun
        if not handles:
            self._finish(recorder, begun, outcome)
        elif not repeated and call.recorded:
            flights.follow(recorder, handles, call, outcome)
        if recorder.theirs is not None:
            recorder.settle()
        return result


class _EqualToOriginal:
    """A function that is equal to the one it stands in for: P2POp takes no other."""

    def __init__(self, wrapper: Callable[..., Any], original: Callable[..., Any]) -> None:
        functools.update_wrapper(self, original)
        self._wrapper, self._original = wrapper, original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrapper(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._original

    def __hash__(self) -> int:
        return hash(self._original)


class _TrackedHandle:
    """One handle that the training has not waited for.

    Attributes:
        recorder: knows that something is on its way.
        calls: the recorded calls that it belongs to; MindSpore has one handle for all that need no waiting.
    """

    __slots__ = ("calls", "handle", "recorder")

    def __init__(self, recorder: StepRecorder, handle: Any) -> None:
        self.recorder, self.handle = recorder, handle  # held, so that no other takes over its identity
        self.calls: list[_AwaitedCall] = []


class _AwaitedCall:
    """A recorded call whose result is still to come."""

    __slots__ = ("call", "handles", "outcome", "recorder")

    def __init__(self, recorder: StepRecorder, call: Call, handles: list[Any], outcome: Any) -> None:
        self.recorder, self.call, self.outcome = recorder, call, outcome
        self.handles = {id(handle) for handle in handles}

    def landed(self, handle: Any) -> None:
        """Record what came of the call if this was the last handle."""
        if id(handle) not in self.handles:  # it was given back twice
            return
        self.handles.discard(id(handle))
        if self.handles:
            return
        try:
            self.recorder.arrives(self.call, self.outcome)
        except Exception as error:
            self.recorder.failed(self.call, "recording a communication", error)

    def failed(self, error: BaseException) -> None:
        """Record that waiting raised."""
        try:
            self.recorder.adds(self.call, raised=error)
        except Exception as own:
            self.recorder.failed(self.call, "recording an exception", own)


class CommHandleTracker:
    """The asynchronous communications of a step: every handle that is made, by whatever name the call was called.

    ``wait`` of the handles is watched for as long as there are any.

    Attributes:
        recorder: the recorder of the step, while something is recorded or could be.
        patches: what notices handles when they are made.
    """

    def __init__(self) -> None:
        import mindspore
        from mindspore._c_expression import CommHandle

        self.recorder: StepRecorder | None = None
        self._tensor: type = mindspore.Tensor
        self._handle: type = CommHandle
        self._lock = threading.RLock()  # a signal may come while it is held, and ends the step
        self._open: dict[int, _TrackedHandle] = {}
        made = {*_classes(CommHandle)}
        self.patches = PatchSet([Patch(kind, "__init__", self._made) for kind in made])
        self._waits = PatchSet([Patch(kind, "wait", self._waited) for kind in {CommHandle, *made}])

    def handles(self, result: Any) -> list[Any]:
        """Return the handles in what a call gave back."""
        items = result if isinstance(result, (list, tuple)) else (result,)
        return [item for item in items if isinstance(item, self._handle)]

    def gives_tensors(self, result: Any) -> bool:
        """Return whether a call gave back what it made, not only changed what it was given."""
        items = result if isinstance(result, (list, tuple)) else (result,)
        return any(isinstance(item, (self._tensor, list, tuple)) for item in items)

    def follow(self, recorder: StepRecorder, handles: list[Any], call: Call, outcome: Any) -> None:
        """Record what comes of a call when all of its handles were waited for."""
        try:
            recorder.awaits(call)
            opened = _AwaitedCall(recorder, call, handles, outcome)
            with self._lock:
                for handle in handles:
                    self._departs(recorder, handle).calls.append(opened)
        except Exception as error:
            recorder.trouble("following a communication", error)

    def end(self) -> None:
        """Follow no more: the step is over. What nobody has waited for is marked."""
        for opened in self._forget():
            opened.recorder.adds(opened.call, pending="the training had not waited for it when the step ended")

    def orphan(self) -> None:
        """Follow no more in a forked child: the communication is the parent's."""
        self._lock = threading.RLock()
        self._forget()

    def _forget(self) -> list[_AwaitedCall]:
        with self._lock:
            opened = {id(call): call for flight in self._open.values() for call in flight.calls}
            self._open.clear()
            self._waits.remove()
        return list(opened.values())

    def _departs(self, recorder: StepRecorder, handle: Any) -> _TrackedHandle:
        """Return the flight of a handle, a new one where it is not followed yet."""
        with self._lock:
            flight = self._open.get(id(handle))
            if flight is None:
                flight = self._open[id(handle)] = _TrackedHandle(recorder, handle)
                self._waits.install()
                recorder.departs()
            return flight

    def _made(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(handle: Any, *args: Any, **kwargs: Any) -> None:
            original(handle, *args, **kwargs)
            recorder = self.recorder
            if recorder is not None:
                try:
                    self._departs(recorder, handle)
                except Exception as error:
                    recorder.trouble("following a communication", error)

        return functools.update_wrapper(__init__, original)

    def _waited(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wait(handle: Any, *args: Any, **kwargs: Any) -> Any:
            flight = self._open.get(id(handle))
            if flight is None:
                return original(handle, *args, **kwargs)
            try:
                result = original(handle, *args, **kwargs)
            except BaseException as error:
                if self._take(flight):
                    flight.recorder.lands(well=False)
                    for call in flight.calls:
                        call.failed(error)
                raise
            if self._take(flight):  # no other thread has waited for it too, and the step has not ended
                try:
                    flight.recorder.lands()
                except BaseException as error:
                    for call in flight.calls:
                        call.failed(error)
                    raise
                for call in flight.calls:
                    call.landed(handle)
            return result

        return functools.update_wrapper(wait, original)

    def _take(self, flight: _TrackedHandle) -> bool:
        """Follow a handle no more; return False where somebody else has done so."""
        with self._lock:
            known = self._open.pop(id(flight.handle), None)
            try:
                if not self._open:
                    self._waits.remove()
            except Exception as error:
                flight.recorder.trouble("following a communication", error)
        return known is flight


def _classes(base: type) -> Iterator[type]:
    """Yield the classes of handles that MindSpore makes in Python."""
    for name in ("mindspore.communication.comm_func", "mindspore.ops.function.comm_func"):
        try:
            found = getattr(importlib.import_module(name), "CommHandle", None)
        except ImportError:
            continue
        if isinstance(found, type) and issubclass(found, base):
            yield found
