# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Guards the tensors that a forward keeps for its backward: one that changed in between makes wrong gradients.

MindSpore calls ``pack`` for each tensor that an operation keeps, and ``unpack`` when its backward needs it. The guard
keeps what MindSpore would keep: the tensor itself, or an alias of an output. An output that kept itself would keep its
node, which keeps it: it would never be freed. While hooks are there, MindSpore leaves its own checks out. So the guard
makes them: a training that ends in such an error without the guard ends in it with the guard too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from probe.capture.autograd.hook_stack import HookStack
from probe.capture.autograd.nodes import LEAF, AutogradNodes
from probe.capture.autograd.saved_findings import Noted, Place, SavedFindings
from probe.capture.autograd.writes import Writes
from probe.executor import pynative_executor
from probe.measure.checksums import Checksums
from probe.measure.storage import memory_of
from probe.pytree import leaves
from probe.recording.call import Call
from probe.recording.step_recorder import StepRecorder

_NOTHING: list[tuple[Any, int]] = []


class Saved:
    """A tensor that MindSpore keeps for a backward. Only MindSpore holds it.

    Attributes:
        kept: the tensor, or an alias of an output.
        version: counts the writes that MindSpore knows.
        is_leaf: it is a parameter or a constant.
        noted: the tensor as it was, or None where it is not guarded.
        name: names it in an error.
    """

    __slots__ = ("is_leaf", "is_output", "kept", "name", "noted", "version")

    def __init__(self, tensor: Any, is_output: bool) -> None:
        self.is_leaf, self.is_output, self.version = tensor._is_leaf, is_output, tensor._version
        self.kept = tensor.data if is_output else tensor
        self.noted: Noted | None = None
        self.name: Place | str = "a saved tensor"

    def refuse_changed(self, writes: Writes) -> None:
        """Raise as MindSpore does without hooks.

        Args:
            writes: the calls that have written: an alias of an output does not count them itself.

        Raises:
            RuntimeError: when the tensor was detached or written in place, as far as MindSpore counts writes.
        """
        tensor, current = self.kept, self.version
        if not self.is_output:
            if not self.is_leaf and tensor._grad_node is None:
                raise RuntimeError(
                    "Trying to use a saved tensor that has been detached in-place, This is not supported, please use "
                    f"out-of-place detach instead. It is {self.name}."
                )
            current = tensor._version
        elif self.noted is not None:
            current += writes.count_after(self.noted.number, self.noted.memory)
        if current != self.version:
            raise RuntimeError(
                "One of the Tensor needed for gradient computation has been modified by an inplace operation, which "
                f"is {self.name}; and its version is {current} , expected version {self.version}"
            )


class _Thread(threading.local):
    """The state of one thread.

    Attributes:
        is_inside: the guard works; its own operations keep nothing.
        call: the innermost API call that runs, with its inputs, and whether it may write them.
        own: the first and the last sequence number of the newest nodes in a row that the guard has made.
    """

    def __init__(self) -> None:
        self.is_inside = False
        self.call = cast("tuple[Call, tuple[Any, ...], Mapping[str, Any], bool] | None", None)
        self.own = (0, -1)


class SavedTensors:
    """Takes a checksum of each tensor that is kept for a backward, and another one when the backward uses it.

    Args:
        nodes: access to the graph.
        checksums: takes the checksums.
        cell: returns the innermost Cell call that runs on this thread, or None.
        unseen: runs a function; nothing that it calls is recorded.

    Attributes:
        recorder: records the step; None while nothing is recorded.
        writes: the calls that have written.
    """

    def __init__(
        self, nodes: AutogradNodes, checksums: Checksums, cell: Callable[[], Call | None],
        unseen: Callable[..., Any],
    ) -> None:  # fmt: skip
        self._executor = pynative_executor()
        self._nodes, self._checksums, self._cell, self._unseen = nodes, checksums, cell, unseen
        self.recorder: StepRecorder | None = None
        self._tensor: Any = nodes.tensor
        self.writes = Writes(nodes.tensor)
        self._findings = SavedFindings(checksums, self.writes)
        self._thread = _Thread()
        self._stack = HookStack(self._pack, self._unpack)

    # -- install and remove -----------------------------------------------------------------------------------------

    def begin(self, recorder: StepRecorder) -> None:
        """Guard the tensors that are kept from now on."""
        self.recorder = recorder
        self._stack.install()

    def remove(self) -> None:
        """Guard nothing more. Tensors that are kept stay guarded until the end of the step."""
        self.recorder = None
        self._stack.remove()

    def end_step(self) -> None:
        """Tell what is known only now, and forget the step."""
        self._findings.end_step()
        self.writes.clear()

    # -- calls --------------------------------------------------------------------------------------------------------

    def around(
        self, call: Call, original: Callable[..., Any], inputs: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Return the original as a function that notes the call as the owner of the tensors that are kept in it."""
        thread = self._thread

        def run(*args: Any, **kwargs: Any) -> Any:
            outer, recorder, writing = thread.call, self.recorder, _NOTHING
            if recorder is not None:
                with recorder.guard("noting writes", call):
                    writing = self.writes.begin(call.key, inputs, named)
            thread.call = call, inputs, named, bool(writing)
            is_armed_now = recorder is not None and self._stack.arm()
            try:
                result = original(*args, **kwargs)
            finally:
                thread.call = outer
                if is_armed_now:
                    self._stack.disarm()
            if writing and recorder is not None:
                with recorder.guard("noting writes", call):
                    self.writes.note(call.forward, writing)
            return result

        return run

    def note_update(self, name: str, parameters: Iterable[Any]) -> None:
        """Note that an optimizer has written its parameters."""
        recorder = self.recorder
        if recorder is not None:
            with recorder.guard("noting writes", key=name):
                self.writes.note(name, [(parameter, parameter._version) for parameter in parameters])

    # -- pack and unpack --------------------------------------------------------------------------------------------

    def _pack(self, tensor: Any) -> Any:
        thread, recorder = self._thread, self.recorder
        if thread.is_inside:
            return tensor
        thread.is_inside = True
        try:
            is_leaf = tensor._is_leaf or tensor._grad_node is None
            place = self._input(tensor)
            saved = Saved(tensor, not is_leaf and place is None and self._unseen(self._is_output, tensor))
            if recorder is not None:
                recorder.synchronize()
                with recorder.guard("reading a tensor that is kept for the backward"):
                    self._note(recorder, saved, place or self._other(saved, tensor))
            return saved
        finally:
            thread.is_inside = False

    def _note(self, recorder: StepRecorder, saved: Saved, place: Place) -> None:
        tensor, saved.name = saved.kept, place
        if tensor._nbytes and not (self._checksums.waits and recorder.queue.has_communication_in_flight):
            checksum = self._checksums.take(tensor)
            if checksum is not None:
                saved.noted = Noted(recorder, checksum, memory_of(tensor), self.writes.last, place)

    def _unpack(self, saved: Any) -> Any:
        if not isinstance(saved, Saved):
            return saved
        noted = saved.noted
        if noted is not None and not noted.recorder.closed:
            noted.recorder.synchronize()
            with noted.recorder.guard("comparing a tensor that was kept for the backward"):
                self._unseen(self._findings.compare, noted, saved.kept)
        saved.refuse_changed(self.writes)
        return saved.kept

    def _is_output(self, tensor: Any) -> bool:
        """Return whether a tensor is an output of the operation that keeps it: its node is the newest of others."""
        thread, executor = self._thread, self._executor
        was_enabled = executor.enable_grad()
        executor.set_enable_grad(True)
        try:
            newest = self._nodes.newest_sequence_nr()
        finally:
            executor.set_enable_grad(was_enabled)
        if newest == LEAF:
            return True  # an alias is never wrong for long
        first, last = thread.own
        thread.own = first, _ = (first if newest == last + 1 else newest), newest
        return bool(tensor._grad_node._sequence_nr() == first - 1)

    def _input(self, tensor: Any) -> Place | None:
        """Return the place of a tensor among the inputs of the call that runs; None where it is none of them."""
        running = self._thread.call
        if running is None:
            return None
        call, inputs, named, writes = running
        address = tensor._data_ptr()
        for key, value in (*enumerate(inputs), *named.items()):
            for leaf in (value,) if isinstance(value, self._tensor) else leaves(value):
                if isinstance(leaf, self._tensor) and leaf._data_ptr() == address:
                    # a call that writes its input may keep it as its output
                    return None if writes and leaf._grad_node is not None else Place(call.forward, "input", str(key))
        return None

    def _other(self, saved: Saved, tensor: Any) -> Place:
        node, running = tensor._grad_node, self._thread.call
        call = self._cell() if running is None else running[0]
        role = "output" if saved.is_output else "parameter" if saved.is_leaf and node is not None else "tensor"
        return Place("" if call is None else call.forward, role, "" if node is None else node.name())
