# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Decides when tensors are read: now, or after asynchronous work has finished."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from probe.entry import Entry
from probe.measure.deferred import DeferredMeasurer
from probe.measure.dtype_name import dtype_name
from probe.measure.measurer import (
    ArraySink,
    GradientSum,
    Guard,
    Measurer,
    Role,
    resolve,
    unmeasured_record,
)
from probe.measure.one_byte import ONE_BYTE
from probe.measure.tensor_reader import MeasureError, layout_text, local_tensor, may_be_shell

_MINDSPORE_ERROR = "C++ Call Stack"  # text found in every error raised by a MindSpore operation


class TrainingWork:
    """The asynchronous work of the training; ``wait`` raises a pending error of it."""

    def __init__(self, wait: Callable[[], None]) -> None:
        self._wait = wait
        self.has_raised = False

    def finish(self) -> None:
        """Wait for it. Raises errors of the training."""
        error = self.failure()
        if error is not None:
            self.has_raised = True
            raise error

    def failure(self) -> Exception | None:
        """Wait; return the error of the training that this raised. A device that has failed raises it every time."""
        try:
            self._wait()
        except Exception as error:
            return error
        return None


class MeasurementQueue:
    """Measures tensors and passes entries on, in order.

    * ``measure`` returns a record. If reading is allowed, the record is complete. If a communication is in flight, or
      the measurer is deferred, the tensor is copied and the record is pending.
    * ``put`` passes an entry on: at once, if nothing waits; else in order, at the next ``flush``. With an immediate
      measurer, an entry that waits is also passed on at once, with nulls.
    * ``synchronize`` is called before values are read. It raises the training's own pending error, never ours.
    * ``flush`` waits, completes the pending records and passes on the waiting entries.
    * ``communication_started`` and ``communication_finished`` count handles.

    The measurer obtains numbers while reading is allowed; the copier copies tensors otherwise, and a deferred measurer
    is its own. ``wait`` waits for asynchronous work; it raises a pending error of the training. If ``complete_only``,
    ``accept`` takes only complete entries.
    """

    def __init__(
        self,
        measurer: Measurer,
        copier: DeferredMeasurer,
        wait: Callable[[], None],
        accept: Callable[[Entry], None],
        guard: Guard,
        complete_only: bool = False,
    ) -> None:
        self._measurer = measurer
        self._copier = copier
        self._work = TrainingWork(wait)
        self._accept = accept
        self._guard = guard
        self._passes_incomplete = measurer.is_immediate and not complete_only
        self._in_flight = 0
        self._has_copied = not measurer.is_immediate
        self._waiting: list[Entry] = []
        self._completing: list[Entry] = []
        #: held while entries are passed on; a signal may come meanwhile, and ends the step
        self.lock = threading.RLock()
        #: raised at the next ``synchronize``: an error of the training that our read received first, or one of a task
        self.pending_error: BaseException | None = None

    # -- tensors ------------------------------------------------------------------------------------------------

    @property
    def may_read(self) -> bool:
        """Whether tensors may be read now."""
        return self._measurer.is_immediate and not self._in_flight

    @property
    def runs_own_operation(self) -> bool:
        """Whether an operation of the tool runs on this thread."""
        return self._copier.own_operations.is_running

    def measure(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> Any:
        """Return the record of a tensor as it is now; see ``Measurer.tensor``. A shell has that of its local tensor."""
        measurer = self._copier if self._in_flight else self._measurer
        local = local_tensor(tensor) if may_be_shell(type(tensor)) else tensor
        try:
            record = measurer.tensor(local, name, sink, role)
        except MeasureError as error:
            if dtype_name(local._dtype) not in ONE_BYTE:
                raise
            reason = f"MindSpore gives no bytes of {local._dtype}: {error}"
            record = unmeasured_record(local._dtype, local._shape, unread=reason)
        return record if local is tensor else record.with_key(layout_text(tensor))

    def new_sum(self) -> GradientSum:
        """Return a new sum of gradients."""
        return GradientSum(self._measurer.read, self._copier.copy, lambda: self.may_read)

    def measure_sum(self, total: GradientSum, name: str, sink: ArraySink | None) -> Any:
        """Return the record of a sum, or None if the sum is empty."""
        if not self.may_read:
            return self._copier.sum_later(total, name, sink)
        return total.record(self._measurer, name, sink)

    # -- entries ------------------------------------------------------------------------------------------------

    def put(self, entry: Entry) -> None:
        """Pass an entry on, now or in order."""
        with self.lock:
            if self._waiting or self._completing or self._copier.has_pending:
                self._waiting.append(entry)
                if not self._passes_incomplete:
                    return
            elif (
                self._has_copied and not self._passes_incomplete
            ):  # its records were pending before it was put
                entry = entry._replace(parts=resolve(entry.parts))
            self._accept(entry)

    def synchronize(self) -> None:
        """Wait for asynchronous work before values are read. Raises errors of the training."""
        if self.pending_error is not None:
            self.raise_pending()
        if self._in_flight:
            return
        if self._measurer.is_immediate and not self._waiting:
            self._work.finish()
        elif self._measurer.is_immediate or self._copier.is_full:
            self.flush()

    def raise_pending(self) -> None:
        """Raise the pending error, if there is one."""
        error = self.pending_error
        self.pending_error = None
        if error is not None:
            raise error

    def claim(self, error: BaseException) -> bool:
        """Return whether an error that our read received is the training's. It is then raised at the next occasion."""
        if isinstance(error, MeasureError) and not self._in_flight:
            return (
                self._work.failure() is not None
            )  # the device has failed: the training's operations raise that
        if self.may_read or isinstance(error, MeasureError) or _MINDSPORE_ERROR not in str(error):
            return False
        self.pending_error = error
        self._give_up()
        return True

    def flush(self, end_of_step: bool = False) -> None:
        """Wait, complete the pending records and pass on the waiting entries. Raises errors of the training.

        A device that has failed raises its error again and again: it is raised here only if nobody has seen it yet. At
        the end of a step, communications that the training has not waited for are waited for too.
        """
        if end_of_step:
            self._in_flight = 0
        if not self._in_flight and self._is_done():
            with self.lock:
                if not self._in_flight:
                    self._complete()
        self.raise_pending()

    def _is_done(self) -> bool:
        """Wait. Returns False if the device has failed, which the training knows; the entries have been passed on."""
        work = self._work
        was_raised = work.has_raised
        error = work.failure()
        if error is None:
            return True
        work.has_raised = True
        self._give_up()
        if (
            was_raised and work.failure() is not None
        ):  # an error of one operation is raised only once
            return False
        raise error

    def _complete(self) -> None:
        self._completing += self._waiting
        self._waiting = []
        self._copier.complete(self._guard)
        while self._completing:
            with self._guard("completing an entry"):
                entry = self._completing[0]
                parts = resolve(entry.parts)
                self._accept(
                    entry.further(parts) if self._passes_incomplete else entry._replace(parts=parts)
                )
            del self._completing[:1]  # empty where a signal has ended the step meanwhile

    def flush_incomplete(self) -> None:
        """Pass on the waiting entries, with null for unknown records: the process ends."""
        with self.lock:
            waiting = self._completing + self._waiting
            self._completing = []
            self._waiting = []
            for entry in waiting:
                self._accept(entry)

    def _give_up(self) -> None:
        """Pass on the waiting entries: an operation failed."""
        # MindSpore drops the operations behind it, also ours: nobody knows which values were ever written
        with self.lock:
            self._copier.drop()
            self.flush_incomplete()

    # -- communication ------------------------------------------------------------------------------------------

    @property
    def has_communication_in_flight(self) -> bool:
        """Whether a communication was started that the training has not waited for."""
        return self._in_flight > 0

    def communication_started(self) -> None:
        """Note that an asynchronous communication started: tensors are not read until it finishes."""
        with self.lock:
            self._in_flight += 1
            self._has_copied = True

    def communication_finished(self, ok: bool) -> None:
        """Note that the training has waited for a communication. Raises errors of the training."""
        with self.lock:
            self._in_flight -= self._in_flight > 0
            still = self._in_flight
        if (
            ok and not still and self._measurer.is_immediate
        ):  # else waiting raised, and others may never end
            self.flush()

    def detach(self) -> None:
        """Replace the lock in a forked child: another thread of the parent may hold the old one."""
        self.lock = threading.RLock()
