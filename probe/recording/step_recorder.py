# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A call becomes an entry: numbered, filtered, described by the task, put into the queue. Errors of ours end here."""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

from probe import naming
from probe.config.settings import Settings
from probe.config.validators import regex_of
from probe.entry import Entry, Kind, Parent
from probe.findings.sentence import Sentence
from probe.measure.measurer import Role
from probe.pytree import SlotLayout
from probe.recording.call import Call, GradientUse, ReadNumber, Task
from probe.recording.call_stacks import CallStacks
from probe.recording.measurement_queue import MeasurementQueue
from probe.snapshot.snapshot import Snapshot
from probe.store.error_log import ErrorGuard, ErrorLog

_RECORDING = "recording a call"


class NameFilter:
    """Decides by name, for one step.

    ``scope`` is an interval in time: it opens when the first name begins and closes when the second has ended.
    ``list`` and ``exclude`` match by substring or regular expression. A Cell that matches stands for every call that
    runs inside it.
    """

    def __init__(self, settings: Settings) -> None:
        self._first, self._last = settings.scope or ("", "")
        self._list = settings.list
        self._tensor_list = settings.tensor_list
        self._exclude = settings.exclude
        items = {*settings.list, *settings.tensor_list, *settings.exclude}
        self._regexes = {item: regex for item in items if (regex := regex_of(item)) is not None}
        self.is_open = not settings.scope  # there is no scope, or it has begun and not ended
        self._unseen = {*settings.scope, *items}
        #: whether any name filter is set; if not, callers skip the check
        self.is_active = bool(settings.scope or settings.list or settings.exclude)

    def begin(self, call: Call, backward: bool = False) -> bool:
        """Return whether the call that begins now is recorded."""
        name = call.name(backward)
        if self._first:
            if name == self._first:
                self.is_open = True
                self._unseen.discard(name)
            if not self.is_open:
                return False
        return self._is_chosen(call, backward)

    def may_record_backward(self, call: Call) -> bool:
        """Return False if the backward of this call is surely not recorded. It has not begun yet."""
        return bool(self._first) or self._is_chosen(call, backward=True)

    def end(self, name: str) -> None:
        """Note that a call has ended: after the last name of ``scope`` nothing more is recorded."""
        if name == self._last and self.is_open:
            self.is_open = False
            self._unseen.discard(name)

    def keeps_arrays(self, name: str) -> bool:
        """Return whether ``tensor_list`` asks for the arrays of this entry."""
        return self._matches(name, self._tensor_list)

    def unmatched(self) -> list[str]:
        """Return the names of scope, list, exclude and tensor_list that matched no call, sorted."""
        return sorted(self._unseen)

    def _is_chosen(self, call: Call, backward: bool) -> bool:
        if self._exclude and self._is_within(call, backward, self._exclude):
            return False
        return not self._list or self._is_within(call, backward, self._list)

    def _is_within(self, call: Call, backward: bool, wanted: tuple[str, ...]) -> bool:
        around: Call | None = call
        while around is not None:
            if self._matches(around.name(backward), wanted):
                return True
            around = around.cell
        return False

    def _matches(self, name: str, wanted: tuple[str, ...]) -> bool:
        regexes = self._regexes
        hits = [
            item
            for item in wanted
            if (regexes[item].search(name) if item in regexes else item in name)
        ]
        self._unseen.difference_update(hits)
        return bool(hits)


class Sink(Protocol):
    """Takes the entries of a step. ``errors`` reports errors of the tool."""

    errors: ErrorLog

    def accept(self, entry: Entry) -> None:
        """Take a finished entry, or further keys of one."""

    def draft(self, entry: Entry) -> None:
        """Take an entry that is not finished."""

    def has_parent(self, name: str) -> bool:
        """Return whether construct.json will have this name as a key."""
        return True

    def tell(self, said: Sentence) -> None:
        """Take a finding that is known while the training runs."""


class StepRecorder:
    """Records one step of one rank."""

    def __init__(
        self,
        settings: Settings,
        task: Task,
        queue: MeasurementQueue,
        sink: Sink,
        stacks: CallStacks,
        name_filter: NameFilter,
    ) -> None:
        self.closed = False  # the step is over; later calls and gradients are ignored
        #: records the compiled Cells of the same step into a tree of its own
        self.companion = cast("StepRecorder | None", None)
        self.snapshot: Snapshot | None = None  # notes the inputs of the model and its optimizers
        self.task = task
        self.queue = queue
        self.sink = sink
        self._stacks = stacks
        self._filter = name_filter
        self._counters: defaultdict[str | tuple[str, str], Iterator[int]] = defaultdict(
            itertools.count
        )
        self._has_stacks = settings.extra_info
        self._has_tree = settings.extra_info and settings.cells
        self._models: dict[
            str, Mapping[str, Any]
        ] = {}  # parameters that the next entry will hold, then none

    # -- forward ------------------------------------------------------------------------------------------------

    def number_next(self, key: str, number: int) -> None:
        """Give the next call of a key this number: calls before it were not told."""
        self._counters[key] = itertools.count(number)

    def begin(
        self,
        kind: Kind,
        key: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        cell: Call | None = None,
        repeats: Call | None = None,
        stack: tuple[str, ...] | None = None,
    ) -> Call | None:
        """Begin a call: number it, and record its inputs as they are now; return None if it cannot be recorded.

        ``key`` has the names of its entries without number and direction. ``repeats`` is the call that it repeats, when
        a recomputed Cell runs again; ``stack`` the formatted stack, where it is not that of the caller. Raises a
        pending error of the training; never one of ours.
        """
        call: Call | None = self.safely(
            _RECORDING, None, self._number, kind, key, cell, repeats, key=key
        )
        if call is None or not (call.recorded or call.watched):
            return call
        self.queue.synchronize()
        if repeats is None and call.recorded:
            self.safely(_RECORDING, call, self._note_inputs, call, args, kwargs, stack)
        return call

    def _number(self, kind: Kind, key: str, cell: Call | None, repeats: Call | None) -> Call:
        """Return the call that begins, and decide what is recorded of it."""
        call = repeats
        names = self._filter
        if call is None:
            call = Call(kind, key, next(self._counters[key]), cell)
            call.recorded = (not names.is_active or names.begin(call)) and self.task.records_forward
        wants_gradients = self.task.gradients is not GradientUse.NONE
        call.watched = wants_gradients and (not names.is_active or names.may_record_backward(call))
        if kind is Kind.API and not (call.recorded or call.watched):
            names.end(call.forward)  # its end is not seen, and may be that of the scope
        return call

    def _note_inputs(
        self,
        call: Call,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        stack: tuple[str, ...] | None,
    ) -> None:
        if self._has_stacks:
            with self.queue.lock:
                if stack is None:
                    call.stack, call.frame = self._stacks.number(sys._getframe(3), call.cell)
                else:
                    call.stack = self._stacks.add(stack)
        call.parts = self.task.inputs(call, args, kwargs)
        if self._models:
            call.parts.update(self._model_parameters(call))

    def _model_parameters(self, call: Call) -> dict[str, Any]:
        if not any(self._models.values()):
            return {}
        waiting = {
            f"{path}.{name}" if path else name: parameter
            for path, named in self._models.items()
            for name, parameter in named.items()
        }
        self._models = {path: {} for path in self._models}
        return self.task.named(call, "model_parameters", waiting, Role.INPUT)

    def note_model(self, path: str, parameters: Mapping[str, Any]) -> None:
        """Note that a model begins to run: the next entry has its own parameters, once in a step."""
        self._models.setdefault(
            path, parameters
        )  # the path is "", or the model's index when several were given

    def note_inputs(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Note the inputs of a model that begins to run: once in a step."""
        if self.snapshot is not None and self.snapshot.wants_inputs:
            self.queue.synchronize()
            with self.guard("noting the inputs of the model"):
                self.snapshot.inputs(args, kwargs)

    def note_arguments(
        self, function: str, names: Sequence[str], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """Note the arguments of a function that is differentiated; ``names`` are those of the positional ones."""
        if self.snapshot is not None and self.snapshot.wants_arguments:
            self.queue.synchronize()
            with self.guard("noting the arguments of a gradient function"):
                self.snapshot.arguments(function, names, args, kwargs)

    def note_attributes(self, call: Call, primitive: Any) -> None:
        """Record the attributes of the Primitive that is called. A user's class may call anything `attrs`."""
        with self.guard("recording attributes", call):
            attributes = getattr(primitive, "attrs", None)
            if call.recorded and isinstance(attributes, Mapping):
                call.parts.update(self.task.attributes(attributes))

    def note_scalars(self, call: Call, numbers: Callable[[ReadNumber], Mapping[str, Any]]) -> None:
        """Record the numbers of an optimizer's update; ``numbers`` receives the function that reads a tensor."""
        call.parts.update(self.task.scalars(call, numbers))

    def note_states(self, call: Call, states: Mapping[str, Any], role: Role = Role.INPUT) -> None:
        """Record the states of an optimizer, or the parameters that a Cell has used, as they are now."""
        if call.recorded and not self.closed:
            call.parts.update(self.task.named(call, "parameters", states, role))

    def end(self, call: Call, result: Any, parameters: Mapping[str, Any] | None = None) -> None:
        """End a call: record its outputs, and a Cell's parameters, as they are now. Raises ``queue.pending_error``."""
        self.safely("recording a result", call, self._record_outputs, call, result, parameters)
        self.safely("recording a result", call, self._finish_forward, call)
        if self.queue.pending_error is not None:
            self.queue.raise_pending()

    def fail(self, call: Call, error: BaseException) -> None:
        """End a call that raised: the entry has the message instead of outputs."""
        with self.guard("recording an exception", call):
            if call.recorded and self.task.has_values:
                call.parts["raised"] = naming.message_of(error)
        with self.guard("recording an exception", call):
            self._finish_forward(call)

    def _record_outputs(
        self, call: Call, result: Any, parameters: Mapping[str, Any] | None
    ) -> None:
        if call.recorded and not self.closed:
            call.parts.update(self.task.outputs(call, result, parameters))

    def _finish_forward(self, call: Call) -> None:
        call.frame = None
        if call.recorded:
            parts = call.parts
            call.parts = {}
            self._emit(call, parts, backward=False)
        if self._filter.is_active:
            self._filter.end(call.forward)

    # -- communication in flight ----------------------------------------------------------------------------------

    def put_without_output(self, call: Call) -> None:
        """Write the forward entry now, without outputs; they follow when the communication finishes."""
        self.task.flight(call, is_over=False)
        if not self.task.needs_complete_entries:
            self._finish_forward(call)

    def record_awaited_output(self, call: Call, result: Any) -> None:
        """Record the outputs of a call whose communication has finished."""
        self.task.flight(call, is_over=True)
        if self.task.needs_complete_entries:
            self.end(call, result)
            return
        with self.guard("recording a communication", call):
            self._record_outputs(call, result, None)
            self._amend(call)

    def note_unfinished(self, call: Call, key: str, text: str) -> None:
        """Add to an entry that was written without outputs why it has none."""
        with self.guard("recording a communication", call):
            call.parts[key] = text
            self._amend(call)

    def _amend(self, call: Call) -> None:
        parts = call.parts
        call.parts = {}
        if parts and call.recorded:
            self._put(call.entry(parts))

    # -- backward -----------------------------------------------------------------------------------------------

    def begin_backward(self, call: Call) -> bool:
        """Return whether the backward entry that opens now is recorded."""
        return not self.closed and (
            not self._filter.is_active or self._filter.begin(call, backward=True)
        )

    def end_backward(
        self,
        call: Call,
        in_layout: SlotLayout,
        inputs: list[Any],
        out_layout: SlotLayout,
        outputs: list[Any],
    ) -> None:
        """End the backward entry with the records of the gradients of the call's outputs, then of its inputs."""
        parts = self.task.backward(
            in_layout.fill(inputs), out_layout.fill(outputs), out_layout.fill_keywords(outputs)
        )
        self._emit(call, parts, backward=True)
        if self._filter.is_active:
            self._filter.end(call.backward)

    def note_unassigned_gradients(self, call: Call) -> None:
        """Log, once in a run, that the gradients of a compiled call cannot be assigned to its arguments."""
        self.sink.errors.note(
            "assigning gradients",
            f"{call.backward}: MindSpore does not tell which arguments the gradients of this compiled call belong to; "
            "gradients of such calls are null",
        )

    def draft(self, call: Call, parts: dict[str, Any], backward: bool = False) -> None:
        """Append an entry as it is now to the journal: a value is safe there as soon as its report has returned."""
        if self.closed or not (self.task.has_values and parts):
            return
        with self.sink.errors.guard("writing the journal", call.name(backward)), self.queue.lock:
            self.sink.draft(
                call.entry(parts, backward, call.stack, self._new_parents(call, backward))
            )

    def note_later_pass(self, call: Call, passes: int) -> None:
        """Note that gradients reached a finished backward entry again, for the ``passes``-th time."""
        self._put(
            call.entry({"later_passes": str(passes)}, backward=True)
        )  # msprobe's compare fails on numbers

    def parameter_gradient(
        self, key: str, parameter: str, gradient: Any, micro: str | None = None
    ) -> None:
        """Record a parameter's gradient under its Cell, with the number of the micro-batch in its record."""
        if self.closed or not self.task.has_values or not self._filter.is_open:
            return
        name = naming.parameters_grad_name(key, next(self._counters[key, parameter]))
        parts = self.task.parameter_gradient(name, parameter, gradient)
        if micro is not None:
            parts[parameter] = [
                record.with_key(f'"micro": "{micro}"') for record in parts[parameter]
            ]
        self._put(Entry(name, parts, Kind.PARAMETER_GRADIENT, key))

    # -- the step -----------------------------------------------------------------------------------------------

    def close(self) -> list[str]:
        """Accept nothing more; return the names in the settings that no call matched."""
        self.closed = True
        return self._filter.unmatched()

    def detach(self) -> None:
        """Accept nothing more in a forked child."""
        self.closed = True
        self.queue.detach()

    # -- errors -------------------------------------------------------------------------------------------------

    def guard(
        self, operation: str, call: Call | None = None, backward: bool = False, key: str = ""
    ) -> ErrorGuard:
        """Return the context in which an error of ours ends: it is reported, and noted in the call's entry."""
        return ErrorGuard(
            self.report, operation, call, backward, key
        )  # the key is for a call that has no number yet

    def safely(
        self,
        operation: str,
        call: Call | None,
        function: Callable[..., Any],
        *args: Any,
        backward: bool = False,
        key: str = "",
        **kwargs: Any,
    ) -> Any:
        """Return the result of a function, or None where an error of ours ends, as in ``guard``; quicker than this."""
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if not self.guard(operation, call, backward, key).__exit__(None, error, None):
                raise
            return None

    def report(
        self, operation: str, error: BaseException, call: Call | None, backward: bool, key: str
    ) -> None:
        """Report an error once per kind: on the log, in dump_error_info.log, and in the call's entry. Never raises."""
        with self.sink.errors.guard("reporting an error"):
            if self.queue.claim(
                error
            ):  # an error of the training: it is raised at the next occasion
                return
            self.sink.errors.report(operation, error, key if call is None else call.name(backward))
            note = {"error": naming.message_of(error)}
            if call is not None and not backward:
                call.parts.update(note)
            elif call is not None:
                self._put(call.entry(note, backward=True))

    # -- helpers ------------------------------------------------------------------------------------------------

    def _emit(self, call: Call, parts: dict[str, Any], backward: bool) -> None:
        if not self.task.keeps_entries:
            return
        with self.queue.lock:
            if not self.closed:
                if call.micro is not None:
                    parts["micro"] = call.micro
                parents = self._new_parents(call, backward) if self._has_tree else ()
                kept = parts if self.task.has_values else None
                self.queue.put(call.entry(kept, backward, call.stack, parents))

    def _new_parents(self, call: Call, backward: bool) -> list[Parent]:
        """Return the items that construct.json lacks. Every parent is a key too, even without its own entry."""
        parents: list[Parent] = []
        current: Call | None = call
        while current is not None and not self.sink.has_parent(current.name(backward)):
            cell = current.cell
            parents.append((current.name(backward), None if cell is None else cell.name(backward)))
            current = cell
        return parents

    def _put(self, entry: Entry) -> None:
        with self.queue.lock:
            if self.task.has_values and not self.closed:
                self.queue.put(entry)
