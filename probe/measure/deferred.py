# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Deferred measuring: tensors are copied without waiting, and the copies are measured later."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from probe.executor import OwnOperations
from probe.measure.dtype_name import dtype_name
from probe.measure.measurer import ArraySink, GradientSum, Guard, Measurer, PendingRecord, Role
from probe.measure.one_byte import ByteViews, numpy_dtype
from probe.measure.tensor_reader import MeasureError
from probe.process.progress import progress

Result = TypeVar("Result")

#: a batch is measured when it holds this many tensors: they wait in memory, and a killed process loses them
_MOST_TENSORS = 1024
_MOST_BYTES = (
    64 << 20
)  # and when its copies have this many bytes, as they wait in the device's memory
_FILLS = "Tensor.assign_value."  # the names of the API that fills a tensor of an initializer
#: and of the API whose outputs share the memory of MindSpore's random generator
_SHARES = "Functional.speed_fusion_attention."


class DeferredMeasurer:
    """Has MindSpore copy each tensor, which joins its pipeline and waits for nothing, and measures the copies later.

    A copy is taken in the order of the program: later changes of the tensor do not reach it. Nothing else is asked of
    a tensor, as even its size may wait for pending operations.
    """

    is_immediate = False

    def __init__(self, measurer: Measurer) -> None:
        from mindspore.ops.auto_generate import copy_op

        self.read = measurer.read
        self._measurer = measurer
        self._bytes = 0
        #: several threads add to it, also while it is completed: it is never replaced
        self._waiting: deque[tuple[PendingRecord, Callable[[], Any]]] = deque()
        self.own_operations = OwnOperations()  # runs the operations of the tool
        self._copy_op = copy_op
        self._views = ByteViews()

    @property
    def has_pending(self) -> bool:
        """Whether copies wait to be measured."""
        return bool(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether a batch is complete."""
        return self._bytes > _MOST_BYTES or len(self._waiting) >= _MOST_TENSORS

    def tensor(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> Any:
        """Return the record of one tensor, known after ``complete``."""
        if self.is_untouchable(tensor, name):
            return self._measurer.tensor(tensor, name, sink, role)
        if self._is_of_bytes(tensor):
            return self._later(
                partial(self._of_bytes, self.copy(tensor), dtype_name(tensor._dtype), name, sink)
            )
        return self._later(partial(self._measurer.tensor, self.copy(tensor), name, sink, role))

    def _is_of_bytes(self, tensor: Any) -> bool:
        """Return whether the elements are floats of one byte; on CPU, to ask that might wait for a communication."""
        return False

    def _of_bytes(self, copy: Any, dtype: str, name: str, sink: ArraySink | None) -> Any:
        return self._measurer.array(
            self.read(copy).copy().view(numpy_dtype(dtype)), dtype, name, sink
        )

    def is_untouchable(self, tensor: Any, name: str) -> bool:
        """Whether no operation may take a tensor. To ask others than these might wait.

        One that comes of an initializer has no memory until its first assignment: an operation would fail, and the
        training with it. An operation on the seed that an API returns frees memory that the generator writes again.
        """
        is_unfilled = name.startswith(_FILLS) and not tensor._data_ptr()
        return is_unfilled or (name.startswith(_SHARES) and dtype_name(tensor._dtype) == "Int64")

    def array(self, array: Any, dtype: str, name: str, sink: ArraySink | None) -> Any:
        """Return the record of an array; see ``Measurer``."""
        return self._measurer.array(array, dtype, name, sink)

    def sum_later(self, total: GradientSum, name: str, sink: ArraySink | None) -> PendingRecord:
        """Return the record of a sum, known after ``complete``; null where nothing is left of it."""
        return self._later(partial(total.record, self._measurer, name, sink))

    def complete(self, guard: Guard) -> None:
        """Measure the copies. A record whose measuring fails stays null."""
        self.complete_first(len(self._waiting), guard)

    def complete_first(self, count: int, guard: Guard) -> None:
        """Measure the first ``count`` copies; another thread may add some meanwhile."""
        self._bytes = 0
        for pending, measure in progress(
            [self._waiting.popleft() for _ in range(count)], "measuring"
        ):
            with guard("measuring a tensor"):
                pending.record = measure()

    def drop(self) -> None:
        """Release what waits. Its records stay null."""
        self._waiting.clear()
        self._bytes = 0

    def forget(self) -> None:
        """Release remembered values and copies; the step is over."""
        self.drop()
        self._measurer.forget()

    def copy(self, tensor: Any) -> Any:
        """Return a copy of a tensor, taken in the order of the program; of one byte an element, as Int8."""
        return self._retry_to_find_culprit(self._copied, tensor)

    def _copied(self, tensor: Any) -> Any:
        if self._is_of_bytes(tensor):
            tensor = self.own_operations.run(self._views.integers, tensor)
        return self.own_operations.run(
            self._copy_op, tensor
        )  # recorded for a gradient, the copy would hold the graph

    def _later(self, measure: Callable[[], Any]) -> PendingRecord:
        pending = PendingRecord()
        self._waiting.append((pending, measure))
        return pending

    def _retry_to_find_culprit(
        self, operation: Callable[[Any], Result], tensor: Any, first: bool = True
    ) -> Result:
        """Run an operation of the tool. If it raises, run it again."""
        try:
            return operation(tensor)
        except Exception as error:
            if not first:
                raise MeasureError(str(error).strip().partition("\n")[0]) from error
            # MindSpore reports a pending error of the training only once, so a second failure is ours
            self._retry_to_find_culprit(operation, tensor, first=False)
            raise
