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
from typing import Any

from probe.capture.autograd.moving_statistics import is_moving_statistic
from probe.capture.autograd.nodes import LEAF, AutogradNodes
from probe.capture.autograd.saved_writes import Noted, Place, SavedFindings, Writes
from probe.capture.patches import HookGroup, Patch, around
from probe.capture.pynative.thread_state import ThreadState
from probe.executor import pynative_executor
from probe.measure.storage import Checksums, memory_of
from probe.pytree import leaves
from probe.recording.call import Call
from probe.recording.step_recorder import StepRecorder


class Saved:
    """A tensor that MindSpore keeps for a backward. Only MindSpore holds it."""

    __slots__ = ("is_leaf", "is_output", "kept", "noted", "place", "version")

    def __init__(self, tensor: Any, is_output: bool) -> None:
        self.is_leaf = tensor._is_leaf  # a parameter or a constant
        self.is_output = is_output
        self.version = tensor._version  # counts the writes that MindSpore knows
        self.kept = tensor.data if is_output else tensor  # the tensor, or an alias of an output
        self.noted: Noted | None = None  # the tensor as it was, or None where it is not guarded
        self.place = Place("", "tensor", "")

    def refuse_changed(self, writes: Writes) -> None:
        """Raise RuntimeError as MindSpore does without hooks, as far as it counts writes; an alias counts none."""
        tensor = self.kept
        current = self.version
        if not self.is_output:
            if not self.is_leaf and tensor._grad_node is None:
                raise RuntimeError(
                    "Trying to use a saved tensor that has been detached in-place, This is not supported, please use "
                    f"out-of-place detach instead. It is {self.place.said}."
                )
            current = tensor._version
        elif self.noted is not None:
            current += writes.after(self.noted.number, self.noted.memory)[1]
        if current != self.version:
            raise RuntimeError(
                "One of the Tensor needed for gradient computation has been modified by an inplace operation, which "
                f"is {self.place.said}; and its version is {current} , expected version {self.version}"
            )


class _Thread(threading.local):
    """The state of one thread; a new one has the values here."""

    is_inside = False  # the guard works; its own operations keep nothing
    #: the innermost API call that runs, with its inputs, and whether it may write them
    call: tuple[Call, tuple[Any, ...], Mapping[str, Any], bool] | None = None
    own = (
        0,
        -1,
    )  # the first and the last sequence number of the newest nodes in a row that the guard has made
    is_armed = False  # the hooks are on its stack
    above: tuple[Any, ...] = ()  # hooks of others that were pushed later


class SavedTensors:
    """Takes a checksum of each tensor that is kept for a backward, and another one when the backward uses it."""

    def __init__(self, nodes: AutogradNodes, checksums: Checksums, state: ThreadState) -> None:
        self._nodes = nodes
        self._checksums = checksums
        self._state = state
        self._tensor: Any = nodes.tensor
        self.recorder: StepRecorder | None = (
            None  # records the step; None while nothing is recorded
        )
        self.writes = Writes(nodes.tensor)
        self._findings = SavedFindings(checksums, self.writes)
        self._executor = pynative_executor()
        self._thread = _Thread()
        self._stack = HookStack((self._pack, self._unpack), self._thread)
        self._data = Patch(nodes.tensor, "data", self._with_noted_writes)

    def begin(self, recorder: StepRecorder) -> None:
        """Guard the tensors that are kept from now on."""
        self.recorder = recorder
        self._stack.install()
        self._data.install()

    def remove(self) -> None:
        """Guard nothing more. Tensors that are kept stay guarded until the end of the step."""
        self.recorder = None
        self._data.remove()
        self._stack.remove()

    def end_step(self) -> None:
        """Tell what is known only now, and forget the step."""
        self._findings.end_step()
        self.writes.clear()

    # -- calls --------------------------------------------------------------------------------------------------------

    def around(
        self,
        call: Call,
        original: Callable[..., Any],
        inputs: tuple[Any, ...],
        named: Mapping[str, Any],
    ) -> Callable[..., Any]:
        """Return the original as a function that notes the call as the owner of the tensors that are kept in it."""
        thread = self._thread

        def run(*args: Any, **kwargs: Any) -> Any:
            outer = thread.call
            recorder = self.recorder
            writing: list[tuple[Any, int]] = []
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
            if inputs and recorder is not None and call.key.endswith(".from_numpy"):
                with recorder.guard("noting shared memory", call):
                    self.writes.share(call.forward, inputs[0])
            return result

        return run

    def _with_noted_writes(self, original: Any) -> property:
        """Return the attribute ``Tensor.data``, which notes what is assigned to it. No listed API does that."""

        def assign(tensor: Any, value: Any) -> None:
            recorder = self.recorder  # another thread may end the recording meanwhile
            before = tensor._version
            original.__set__(tensor, value)
            if recorder is not None:
                with recorder.guard("noting writes", key="Tensor.data"):
                    self.writes.note("Tensor.data =", [(tensor, before)])

        return property(original.__get__, assign, doc=original.__doc__)

    def note_update(self, name: str, parameters: Iterable[Any]) -> None:
        """Note that an optimizer has written its parameters."""
        if self.recorder is not None:
            with self.recorder.guard("noting writes", key=name):
                self.writes.note(
                    name, [(parameter, parameter._version) for parameter in parameters]
                )

    # -- pack and unpack --------------------------------------------------------------------------------------------

    def _pack(self, tensor: Any) -> Any:
        thread = self._thread
        recorder = self.recorder
        if thread.is_inside:
            return tensor
        thread.is_inside = True
        try:
            is_leaf = tensor._is_leaf or tensor._grad_node is None
            place = self._input(tensor)
            saved = Saved(
                tensor,
                not is_leaf and place is None and self._state.unseen(self._is_output, tensor),
            )
            if recorder is not None:
                recorder.queue.synchronize()
                with recorder.guard("reading a tensor that is kept for the backward"):
                    place = saved.place = place or self._other(saved, tensor)
                    is_in_flight = (
                        self._checksums.waits and recorder.queue.has_communication_in_flight
                    )
                    if (
                        tensor._nbytes
                        and not is_in_flight
                        and not is_moving_statistic(tensor)
                        and (taken := self._checksums.take(saved.kept)) is not None
                    ):
                        saved.noted = Noted(
                            recorder, taken, memory_of(saved.kept), self.writes.last, place
                        )
            return saved
        finally:
            thread.is_inside = False

    def _unpack(self, saved: Any) -> Any:
        if not isinstance(saved, Saved):
            return saved
        noted = saved.noted
        if noted is not None and not noted.recorder.closed:
            noted.recorder.queue.synchronize()
            with noted.recorder.guard("comparing a tensor that was kept for the backward"):
                self._state.unseen(self._findings.compare, noted, saved.kept)
        saved.refuse_changed(self.writes)
        return saved.kept

    def _is_output(self, tensor: Any) -> bool:
        """Return whether a tensor is an output of the operation that keeps it: its node is the newest of others."""
        thread = self._thread
        executor = self._executor
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
        if self._thread.call is None:
            return None
        call, inputs, named, writes = self._thread.call
        address = tensor._data_ptr()
        for key, value in (*enumerate(inputs), *named.items()):
            for leaf in (value,) if isinstance(value, self._tensor) else leaves(value):
                if isinstance(leaf, self._tensor) and leaf._data_ptr() == address:
                    # a call that writes its input may keep it as its output
                    return (
                        None
                        if writes and leaf._grad_node is not None
                        else Place(call.forward, "input", str(key))
                    )
        return None

    def _other(self, saved: Saved, tensor: Any) -> Place:
        node = tensor._grad_node
        running = self._thread.call
        call = self._state.cell if running is None else running[0]
        role = (
            "output"
            if saved.is_output
            else "parameter"
            if saved.is_leaf and node is not None
            else "tensor"
        )
        return Place(
            "" if call is None else call.forward, role, "" if node is None else node.name()
        )


class HookStack:
    """Puts hooks for saved tensors under those of the training, on MindSpore's stack of each thread.

    The training sees its own hooks alone: MindSpore's recompute asks whether there are any. MindSpore crashes if a
    thread ends that still has hooks: only the main thread has them between its calls.
    """

    def __init__(
        self, hooks: tuple[Callable[[Any], Any], Callable[[Any], Any]], thread: _Thread
    ) -> None:
        self._executor = pynative_executor()
        self._hooks = hooks
        self._thread = thread
        kind = type(self._executor)
        self._push = kind.push_saved_tensor_hook
        self._pop = kind.pop_saved_tensor_hook
        self._is_active = kind.is_saved_tensor_hook_active
        wrapped: dict[str, Callable[..., Any]] = {
            "push_saved_tensor_hook": self._pushed,
            "pop_saved_tensor_hook": self._popped,
            "is_saved_tensor_hook_active": self._is_asked,
            "disable_saved_tensor_hook": self._disabled,
        }
        self._patches = HookGroup(
            [Patch(kind, name, around(function)) for name, function in wrapped.items()]
        )
        self._is_installed = self._has_main = self._had_pipeline = False

    def install(self) -> None:
        """Begin to keep the hooks apart, and put them on the stack of the main thread."""
        if not self._is_installed:
            self._is_installed = True
            self._had_pipeline = not self._executor.disable_frontend_and_bprop_pipeline()
            self._patches.install()
        if threading.current_thread() is threading.main_thread():
            self._has_main = self.arm() or self._has_main

    def remove(self) -> None:
        """Undo ``install``. Another thread cannot do that for the main thread, which does it at the end of the step."""
        is_main = threading.current_thread() is threading.main_thread()
        if not self._is_installed or (self._has_main and not is_main):
            return
        self._is_installed = self._has_main = False
        self._patches.remove()
        above = self._thread.above
        self.disarm()
        for hooks in above:
            self._push(self._executor, *hooks)
        if self._had_pipeline and not above:
            self._executor.enable_frontend_and_bprop_pipeline()

    def arm(self) -> bool:
        """Put the hooks on the stack of this thread, unless there are some; return whether that was done."""
        if self._thread.is_armed or self._is_active(self._executor):
            return False
        self._thread.is_armed = True
        self._thread.above = ()
        self._push(self._executor, *self._hooks)
        return True

    def disarm(self) -> None:
        """Take the hooks from the stack of this thread, and those above them."""
        thread = self._thread
        if thread.is_armed:
            for _ in range(len(thread.above) + 1):
                self._pop(self._executor)
            thread.is_armed = False
            thread.above = ()

    # -- instead of MindSpore's functions ---------------------------------------------------------------------------

    def _pushed(self, original: Callable[..., Any], executor: Any, pack: Any, unpack: Any) -> Any:
        result = original(executor, pack, unpack)
        self._thread.above += ((pack, unpack),)
        return result

    def _popped(self, original: Callable[..., Any], executor: Any) -> Any:
        self._thread.above = self._thread.above[:-1]
        return original(executor)

    def _is_asked(self, original: Callable[..., Any], executor: Any) -> Any:
        return bool(self._thread.above) if self._thread.is_armed else original(executor)

    def _disabled(self, original: Callable[..., Any], executor: Any, *arguments: Any) -> Any:
        if not self._thread.above:
            self.disarm()
        return original(executor, *arguments)
