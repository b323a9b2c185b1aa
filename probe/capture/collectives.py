# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Communication between ranks: what it was given, and what came of it as soon as the training has waited for it."""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from probe.capture.apis import Watch
from probe.capture.patches import Patch, Patches
from probe.naming import COLLECTIVE

if TYPE_CHECKING:
    from probe.calls import Call
    from probe.capture.collection import Collection
    from probe.recorder import Recorder


def is_collective(key: str) -> bool:
    """Return whether entries of this name are of communication.

    >>> is_collective("MintDistributed.all_reduce"), is_collective("Mint.add")
    (True, False)
    """
    return key.partition(".")[0] in COLLECTIVE


class Collectives(Watch):
    """Records calls that communicate.

    Those that return no tensor have changed what they were given: that is their output. What an asynchronous one makes
    is recorded when the training waits for its handle; nobody waits in its place.

    Args:
        collection: what the calls are recorded by.
        records: whether they are recorded; otherwise it is only noted what is on its way.
    """

    def __init__(self, collection: Collection, records: bool) -> None:
        super().__init__(collection)
        self._records = records

    def wrap(self, key: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return what stands in for the original; see ``Watch``."""
        wrapper = super().wrap(key, original)
        return _Alike(wrapper, original) if key.endswith((".isend", ".irecv")) else wrapper

    def call(
        self, key: str, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], visible: int = 0
    ) -> Any:
        """Run the original and record the call; see ``Watch``."""
        recorder = self._collection.recorder
        if recorder is None:
            return original(*args, **kwargs)
        begun = self._begin(recorder, key, args, kwargs) if self._records else None
        flights = self._collection.flights
        handles: list[Any] = []
        try:
            result = original(*args, **kwargs)
            handles = flights.handles(result)
            if begun is not None and not handles:
                recorder.settle()
        except BaseException as error:
            if begun is not None:
                self._raised(recorder, begun, error)
            raise
        outcome = result if flights.gives_tensors(result) else (*args, *kwargs.values())
        if begun is not None:
            self._attach(recorder, begun, args, result)
            if not handles:
                self._finish(recorder, begun, outcome)
        if handles:
            recorded = begun is not None and not begun[2] and begun[0].recorded
            flights.follow(recorder, begun[0] if begun is not None and recorded else None, handles, outcome)
        if recorder.theirs is not None:
            recorder.settle()
        return result


class _Alike:
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


class _Flight:
    """One asynchronous call that the training has not waited for."""

    __slots__ = ("call", "handles", "outcome", "recorder")

    def __init__(self, recorder: Recorder, call: Call | None, handles: list[Any], outcome: Any) -> None:
        self.recorder, self.call, self.outcome = recorder, call, outcome
        self.handles = {id(handle): handle for handle in handles}  # held, so that no other takes over an identity

    def landed(self, handle: Any) -> None:
        """Record what came of the call if this was the last handle. Raises errors of the training."""
        del self.handles[id(handle)]
        if self.handles:
            return
        try:
            self.recorder.lands()
        except BaseException as error:
            self.failed(error)
            raise
        if self.call is None:
            return
        try:
            self.recorder.arrives(self.call, self.outcome)
        except Exception as error:
            self.recorder.failed(self.call, "recording a communication", error)

    def failed(self, error: BaseException) -> None:
        """Record that waiting raised."""
        if self.call is None:
            return
        try:
            self.recorder.adds(self.call, raised=error)
        except Exception as own:
            self.recorder.failed(self.call, "recording an exception", own)


class Flights:
    """The asynchronous communications of a step; ``wait`` of their handles is watched while there are any."""

    def __init__(self) -> None:
        import mindspore
        from mindspore._c_expression import CommHandle

        self._tensor: type = mindspore.Tensor
        self._handle: type = CommHandle
        self._lock = threading.Lock()
        self._open: dict[int, list[_Flight]] = {}
        self._patches = Patches([Patch(kind, "wait", self._watched) for kind in {CommHandle, *_classes(CommHandle)}])

    def handles(self, result: Any) -> list[Any]:
        """Return the handles in what a call gave back."""
        items = result if isinstance(result, (list, tuple)) else (result,)
        return [item for item in items if isinstance(item, self._handle)]

    def gives_tensors(self, result: Any) -> bool:
        """Return whether a call gave back what it made, not only changed what it was given."""
        items = result if isinstance(result, (list, tuple)) else (result,)
        return any(isinstance(item, (self._tensor, list, tuple)) for item in items)

    def follow(self, recorder: Recorder, call: Call | None, handles: list[Any], outcome: Any) -> None:
        """Record what comes of a call when all of its handles were waited for; None for a call that is not recorded."""
        flight = _Flight(recorder, call, handles, outcome)
        try:
            with self._lock:
                for handle in handles:
                    self._open.setdefault(id(handle), []).append(flight)
                self._patches.install()
            recorder.departs(call)
        except Exception as error:
            recorder.trouble("following a communication", error)

    def end(self) -> None:
        """Follow no more: the step is over. What nobody has waited for is marked."""
        for flight in self._forget():
            if flight.call is not None:
                flight.recorder.adds(flight.call, pending="the training had not waited for it when the step ended")

    def orphan(self) -> None:
        """Follow no more in a forked child: the communication is the parent's."""
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> list[_Flight]:
        with self._lock:
            flights = {id(flight): flight for group in self._open.values() for flight in group}
            self._open.clear()
            self._patches.remove()
        return list(flights.values())

    def _watched(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wait(handle: Any, *args: Any, **kwargs: Any) -> Any:
            with self._lock:
                flights = self._open.pop(id(handle), [])
            try:
                result = original(handle, *args, **kwargs)
            except BaseException as error:
                for flight in flights:
                    flight.failed(error)
                raise
            for flight in flights:
                flight.landed(handle)
            with self._lock:
                if not self._open:
                    self._patches.remove()
            return result

        return functools.update_wrapper(wait, original)


def _classes(base: type) -> Iterator[type]:
    """Yield the classes of handles that MindSpore makes in Python."""
    for name in ("mindspore.communication.comm_func", "mindspore.ops.function.comm_func"):
        try:
            found = getattr(importlib.import_module(name), "CommHandle", None)
        except ImportError:
            continue
        if isinstance(found, type) and issubclass(found, base):
            yield found
