# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Deferred measuring: tensors are copied without waiting, and the copies are measured later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from probe.executor import OwnOperations
from probe.measure.gradient_sum import GradientSum
from probe.measure.measurer import ArraySink, Guard, MeasureError, Measurer, Role
from probe.measure.records import PendingRecord
from probe.process.progress import progress

Result = TypeVar("Result")

#: a batch is measured when it holds this many tensors or bytes: they wait in memory, and a killed process loses them
MOST_TENSORS = 1024
MOST_BYTES = 64 << 20


class DeferredMeasurer:
    """Has MindSpore copy each tensor, which joins its pipeline and waits for nothing, and measures the copies later.

    A copy is taken in the order of the program: later changes of the tensor do not reach it.

    Args:
        measurer: measures the copies.
        may_query: whether a tensor's size may be asked for; that may wait for pending operations.

    Attributes:
        most: the number of tensors in a batch.
    """

    is_immediate = False
    most = MOST_TENSORS

    def __init__(self, measurer: Measurer, may_query: bool = True) -> None:
        from mindspore.ops.auto_generate import copy_op

        self.read = measurer.read
        self._measurer, self._may_query = measurer, may_query
        self._waiting: list[Callable[[], None]] = []
        self._bytes = 0
        self._own = OwnOperations()
        self._copy_op = copy_op

    @property
    def has_pending(self) -> bool:
        """Whether copies wait to be measured."""
        return bool(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether a batch is complete."""
        return self._bytes > MOST_BYTES or len(self._waiting) >= self.most

    def tensor(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> Any:
        """Return the record of one tensor, known after ``complete``."""
        if self._may_query and not self._retry_to_find_culprit(_size, tensor):
            return self._measurer.tensor(tensor, name, sink, role)
        copy, pending = self.copy(tensor), PendingRecord()

        def measure() -> None:
            pending.record = self._measurer.tensor(copy, name, sink, role)

        self._waiting.append(measure)
        return pending

    def array(self, array: Any, dtype: str, name: str, sink: ArraySink | None) -> Any:
        """Return the record of an array; see ``Measurer``."""
        return self._measurer.array(array, dtype, name, sink)

    def sum_later(self, total: GradientSum, name: str, sink: ArraySink | None) -> PendingRecord:
        """Return the record of a sum, known after ``complete``; null where nothing is left of it."""
        pending = PendingRecord()

        def measure() -> None:
            if total.resolve() and total.array is not None:
                pending.record = self._measurer.array(total.array, total.dtype, name, sink)

        self._waiting.append(measure)
        return pending

    def complete(self, guard: Guard) -> None:
        """Measure the copies. A record whose measuring fails stays null."""
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        for measure in progress(waiting, "measuring"):
            with guard("measuring a tensor"):
                measure()

    def forget(self) -> None:
        """Release remembered values and copies; the step is over."""
        self._waiting, self._bytes = [], 0
        self._measurer.forget()

    def copy(self, tensor: Any) -> Any:
        """Return a copy of a tensor, taken in the order of the program."""
        return self._retry_to_find_culprit(self._copied, tensor)

    def _retry_to_find_culprit(self, operation: Callable[[Any], Result], tensor: Any) -> Result:
        """Run an operation of the tool. If it raises, run it again.

        MindSpore reports a pending error of the training only once, so a second failure is ours.
        """
        try:
            return operation(tensor)
        except Exception as error:
            try:
                operation(tensor)
            except Exception as again:
                raise MeasureError(str(again).strip().partition("\n")[0]) from again
            raise error

    def _copied(self, tensor: Any) -> Any:
        if self._may_query:
            self._bytes += tensor._nbytes
        return self._own.run(self._copy_op, tensor)  # recorded for a gradient, the copy would hold the graph


def _size(tensor: Any) -> int:
    size: int = tensor._nbytes
    return size
