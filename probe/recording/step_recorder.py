# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A call becomes an entry: filtered, named, measured, handed to the store. Errors of ours end here."""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from probe import naming
from probe.config.settings import Settings
from probe.measure.describe import ValueDescriber
from probe.measure.extrema import ExtremaMeasurer
from probe.measure.measurer import MeasureError, Measurer, Save
from probe.recording.call import Call, mark
from probe.recording.measurement_queue import MeasurementQueue
from probe.recording.name_filter import NameFilter
from probe.store.disk_budget import DiskBudget
from probe.store.documents import Place
from probe.store.dump_writer import DumpWriter
from probe.tasks.nan_check import NanCheck

if TYPE_CHECKING:
    from probe.recording.call_stacks import CallStacks


#: stands in the errors that MindSpore's operations raise
_MINDSPORES = "C++ Call Stack"


class StepRecorder:
    """Records one step of one rank.

    Args:
        settings: what to record.
        meter: how numbers are obtained.
        stacks: numbers and texts of stacks, which the steps share.
        folder: the rank folder.
        room: how much arrays may take of the disk.
        told: the kinds of errors that were on the log already.
        wait: waits for what runs asynchronously; raises an error of the training that is pending.

    After ``close()`` everything that still arrives is ignored.
    """

    def __init__(
        self,
        settings: Settings,
        meter: Measurer,
        stacks: CallStacks,
        folder: str,
        room: DiskBudget,
        told: set[tuple[str, str]],
        wait: Callable[[], None],
    ) -> None:
        self.closed = False
        self.files = DumpWriter(settings, stacks, folder, room, told)
        self._documents = self.files.documents
        self._settings = settings
        self._filters = NameFilter(settings)
        self._saves_all = settings.task in ("tensor", "nan_check")
        self._saves_some = settings.task == "statistics" and bool(settings.tensor_list)
        self._stacks = stacks
        self._counters: defaultdict[str | tuple[str, str], Iterator[int]] = defaultdict(itertools.count)
        self._lock = threading.RLock()  # a signal may come while it is held, and ends the step
        modes = settings.data_mode
        self._measures = settings.task != "structure"
        self._inputs, self._outputs = "input" in modes, "output" in modes
        self.records_forward = "forward" in modes
        self.records_backward = "backward" in modes
        self.order_only = not self._measures
        #: at task "structure" gradients are awaited for their place in construct.json alone
        self.wants_gradients = self.records_backward and (self._measures or settings.extra_info)
        #: task "nan_check" looks at every entry and writes few
        self.first = NanCheck(meter, self._documents, settings, self) if isinstance(meter, ExtremaMeasurer) else None
        take = self.files.entry if self.first is None else self.first.take
        interrupts = self.first is not None and settings.on_nan == "raise"
        self._pace = MeasurementQueue(
            meter, self._measures, interrupts, wait, take, self.trouble, self._lock, self.first is not None
        )
        self._describer = ValueDescriber(self._pace)

    # -- forward ------------------------------------------------------------------------------------------------

    def call(self, key: str, cell: Call | None) -> Call:
        """Return a new call of an API, Primitive or jit function."""
        return Call(naming.call_names(key, next(self._counters[key])), cell)

    def cell_call(self, key: str, cell: Call | None) -> Call:
        """Return a new call of a Cell."""
        return Call(naming.cell_names(key, next(self._counters[key])), cell)

    def opens(self, call: Call) -> bool:
        """Decide whether the call is recorded, and return it."""
        call.recorded = not self._filters.narrow or self._filters.begins(call)
        return call.recorded

    def begins(self, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any], frame: FrameType | None) -> None:
        """Take the inputs of a call that is recorded as they are now, and its stack."""
        if not (call.recorded and self.records_forward):
            return
        if self._settings.extra_info:
            with self._lock:
                call.stack, call.frame = self._stacks.number(frame, call.cell)
                if self.first is None:
                    self._documents.stack(call.forward, call.stack)
        if self._measures and self._inputs:
            describe, name = self._describer.value, call.forward
            save = self._save(name)
            if save is None and not kwargs:
                call.parts = {"input_args": [describe(arg, name, None) for arg in args], "input_kwargs": {}}
                return
            call.parts = {
                "input_args": [describe(arg, f"{name}.input.{i}", save) for i, arg in enumerate(args)],
                "input_kwargs": {key: describe(arg, f"{name}.kwargs.{key}", save) for key, arg in kwargs.items()},
            }

    def ends(self, call: Call, result: Any, parameters: Mapping[str, Any] | None = None) -> None:
        """Take the outputs (and a Cell's parameters) as they are now and finish the forward entry."""
        if call.recorded and self.records_forward and self._measures and self._outputs:
            try:
                self._take_outputs(call, result, parameters)
            except Exception as error:
                self.failed(call, "recording the results of a call", error)
        self._finish_forward(call)

    def _take_outputs(self, call: Call, result: Any, parameters: Mapping[str, Any] | None) -> None:
        save = self._save(call.forward)
        describe = self._describer.value
        plain_tuple = isinstance(result, tuple) and not hasattr(result, "_fields")
        items = result if plain_tuple else (result,)
        call.parts["output"] = [describe(item, f"{call.forward}.output.{i}", save) for i, item in enumerate(items)]
        if parameters is not None:
            call.parts["parameters"] = {
                name: self._pace.meter.tensor(value, f"{call.forward}.parameters.{name}", save)
                for name, value in parameters.items()
            }

    def raised(self, call: Call, error: BaseException) -> None:
        """Finish the forward entry of a call that raised: its message stands in place of the output."""
        if call.recorded and self._measures:
            message = naming.escape_formula(f"{type(error).__name__}: {error}")
            call.parts["raised"] = message[:2000]
        self._finish_forward(call)

    def _finish_forward(self, call: Call) -> None:
        call.frame = None
        if call.recorded and self.records_forward:
            self._enter(call, call.parts, backward=False)
            call.parts = {}
        self._filters.ends(call.forward)

    # -- communication that goes on ------------------------------------------------------------------------------

    def departs(self) -> None:
        """Note that something is on its way, and nobody waits until it has landed."""
        self._pace.departs()

    def awaits(self, call: Call) -> None:
        """Let the forward entry of a call stand from now on, but for its results, which are on their way."""
        if self.first is None:  # which judges entries that are complete
            self._finish_forward(call)

    def lands(self, well: bool = True) -> None:
        """Note that the training has waited for it, well or in vain. Raises errors of the training."""
        self._pace.lands(well)

    def arrives(self, call: Call, result: Any) -> None:
        """Take the results of such a call as they are now."""
        if self.first is not None:
            self.ends(call, result)
        elif call.recorded and self.records_forward and self._measures and self._outputs and not self.closed:
            self._take_outputs(call, result, None)
            self.adds(call)

    def adds(self, call: Call, raised: BaseException | None = None, pending: str = "") -> None:
        """Add to the forward entry of such a call, which stands already: why it has no results."""
        if raised is not None:
            call.parts["raised"] = naming.escape_formula(f"{type(raised).__name__}: {raised}")[:2000]
        if pending:
            call.parts["pending"] = pending
        parts, call.parts = call.parts, {}
        with self._lock:
            if call.recorded and self.records_forward and self._measures and not self.closed:
                self._pace.put((call.forward, parts, -1, []))

    # -- backward -----------------------------------------------------------------------------------------------

    def follows(self, call: Call) -> bool:
        """Return whether the gradients of this call are to be watched: its backward entry may be recorded."""
        return self.wants_gradients and (not self._filters.narrow or self._filters.may_follow(call))

    def backward_begins(self, call: Call) -> bool:
        """Return whether the backward entry that opens now is recorded."""
        return not self.closed and (not self._filters.narrow or self._filters.begins(call, backward=True))

    def gradient(self, call: Call, place: str, tensor: Any) -> Any:
        """Return the record of a gradient that arrived now; ``place`` is "input.0", "output.1.0", …"""
        if self._lacks(place):
            return None
        return self._pace.meter.tensor(tensor, f"{call.backward}.{place}", self._save(call.backward))

    def sum(self) -> Any:
        """Return a new sum of gradients, with ``add`` and ``take_from``."""
        return self._pace.sum()

    def gradient_sum(self, call: Call, place: str, total: Any) -> Any:
        """Return the record of a gradient that was summed from several contributions."""
        if self._lacks(place) or not total:
            return None
        return self._pace.total(total, f"{call.backward}.{place}", self._save(call.backward))

    def _lacks(self, place: str) -> bool:
        return not self._measures or not (self._inputs if place.startswith("input") else self._outputs)

    def backward_ends(self, call: Call, inputs: list[Any], outputs: list[Any], keywords: Mapping[str, Any]) -> None:
        """Finish the backward entry: gradients of the outputs, of the positional and of the keyword inputs."""
        parts: dict[str, Any] = {}
        if self._inputs:
            parts["input"] = inputs
        if self._outputs:
            parts["output"] = outputs
            if keywords:
                parts["output_kwargs"] = keywords
        self._enter(call, parts, backward=True)
        self._filters.ends(call.backward)

    def later_pass(self, call: Call, passes: int) -> None:
        """Note that gradients of a finished backward entry came again, for the ``passes``-th time."""
        with self._lock:
            if self._measures and not self.closed:
                self._pace.put((call.backward, {"later_passes": passes}, -1, []))

    def parameter_gradient(self, key: str, parameter: str, gradient: Any) -> None:
        """Record a parameter's gradient under its Cell."""
        if self.closed or not self._measures or not self._filters.open:
            return
        name = naming.parameters_grad_name(key, next(self._counters[key, parameter]))
        record = self._pace.meter.tensor(gradient, f"{name}.{parameter}", self._save(name))
        with self._lock:
            self._pace.put((name, {parameter: [record]}, -1, []))

    # -- the step -----------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Wait for what runs asynchronously, where values are about to be looked at. Raises errors of the training."""
        self._pace.settle()

    @property
    def theirs(self) -> BaseException | None:
        """An error for the training: of its own, or one that it asked for; ``settle`` raises it."""
        return self._pace.theirs

    @theirs.setter
    def theirs(self, error: BaseException | None) -> None:
        """Put an error there."""
        self._pace.theirs = error

    def finish(self, ends: bool = False) -> None:
        """Wait for what runs asynchronously and complete the entries of it. Raises errors of the training.

        Args:
            ends: the step is over: wait also for communications that the training has not waited for.
        """
        self._pace.finish(ends)

    @property
    def is_awaiting(self) -> bool:
        """Whether a communication is on its way that the training has not waited for."""
        return self._pace.is_awaiting

    def give_up(self) -> None:
        """Complete the entries as far as that is possible without waiting: the process ends."""
        self._pace.give_up()

    def write(self, ends: bool = True) -> bool:
        """Bring the documents on disk up to date; return whether that was necessary.

        Args:
            ends: False where the recording goes on in the middle of whatever it is doing.
        """
        with self._lock:
            return (self.first is None or bool(self.first.found)) and self.files.write(ends)

    def close(self) -> list[str]:
        """Take nothing more; return what scope, list and tensor_list named but no call matched."""
        self.closed = True
        self.files.close()
        self._pace.meter.forget()
        return self._filters.unmatched()

    def discard(self) -> None:
        """Take nothing more, and leave nothing of the entries on disk."""
        self.closed = True
        self.files.discard()

    def orphan(self) -> None:
        """Take nothing more in a forked child, and leave the parent's files alone."""
        self.closed, self._lock = True, threading.RLock()
        self._pace.lock = self._lock
        self.files.close()

    @property
    def folder(self) -> str:
        """The rank folder."""
        return self.files.folder

    def trouble(self, place: str, error: BaseException, what: str = "") -> bool:
        """End an error of the tool here: once per kind on the log, and in dump_error_info.log. Never raises.

        Returns:
            False for an error that is the training's; it will be raised at the next occasion.
        """
        if not self._pace.at_once and not isinstance(error, MeasureError) and _MINDSPORES in str(error):
            self.theirs = error  # of an operation of the training that failed meanwhile: our look was the first
            return False
        self.files.troubles.report(place, error, what)
        return True

    def failed(self, call: Call, place: str, error: BaseException, backward: bool = False) -> None:
        """End an error of the tool, and say in the call's entry that it lacks something. Never raises."""
        if not self.trouble(place, error, call.name(backward)):
            return
        noted = mark(error)
        if not backward:
            call.parts.update(noted)
        elif self._measures and not self.closed:
            with self._lock:
                self._pace.put((call.backward, noted, -1, []))

    # -- helpers ------------------------------------------------------------------------------------------------

    def _save(self, entry: str) -> Save | None:
        if self._saves_all or (self._saves_some and self._filters.keeps_arrays(entry)):
            return self.files.array
        return None

    def _enter(self, call: Call, parts: Mapping[str, Any], backward: bool) -> None:
        with self._lock:
            if self.closed:
                return
            places: list[Place] = []
            if self._settings.extra_info and self._settings.cells:
                # every parent in construct.json is a key itself, also where its own entry is not recorded
                here: Call | None = call
                while here is not None and not self._documents.has_construct(here.name(backward)):
                    above = here.cell
                    places.append((here.name(backward), None if above is None else above.name(backward)))
                    here = above
            stack = -1 if backward else call.stack
            self._pace.put((call.name(backward), parts if self._measures else None, stack, places))
