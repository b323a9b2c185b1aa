# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Numbers taken in batches, where every look at a fresh tensor would wait for a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from probe.executor import OwnOperations
from probe.measure.measurer import MeasureError, Measurer, Save, Trouble
from probe.measure.records import PendingRecord
from probe.measure.tensor_reader import Sum
from probe.process.progress import progress

Result = TypeVar("Result")

#: a batch is measured when it holds so many tensors or bytes: what may wait in memory, and what a killed process loses
MOST_TENSORS = 1024
MOST_BYTES = 64 << 20


class Made(Protocol):
    """A sum that is made later."""

    def made(self, new: Callable[[], Sum]) -> Sum | None:
        """Make it, perhaps from a new one; return None where nothing is left."""


class DeferredMeasurer:
    """Has MindSpore copy each tensor, which joins its pipeline and waits for nothing, and measures the copies later.

    A copy is taken in the order of the program: whatever changes the tensor afterwards does not reach it.

    Args:
        host: measures the copies, at once.
        blind: nothing of a tensor is asked for, not even its size: also that may wait for what was begun before.
    """

    at_once = False
    most = MOST_TENSORS

    def __init__(self, host: Measurer, blind: bool = False) -> None:
        from mindspore.ops.auto_generate import copy_op

        self.full = False
        self._host, self._blind = host, blind
        self._waiting: list[Callable[[], None]] = []
        self._bytes = 0
        self._own = OwnOperations()
        self._copy_op = copy_op

    def tensor(self, tensor: Any, name: str, save: Save | None) -> Any:
        """Return the record of one tensor, complete after ``collect``."""
        if not self._blind and not self._surely(_size, tensor):
            return self._host.tensor(tensor, name, save)
        copy, later = self._copy(tensor), PendingRecord()

        def measure() -> None:
            later.record = self._host.tensor(copy, name, save)

        self._waiting.append(measure)
        return later

    def sum(self) -> LaterSum:
        """Return a new sum of gradients."""
        return LaterSum(self._copy)

    def total(self, total: Made, name: str, save: Save | None) -> PendingRecord:
        """Return the record of such a sum, complete after ``collect``."""
        later = PendingRecord()

        def measure() -> None:
            made = total.made(self._host.sum)
            if made is not None:
                later.record = self._host.total(made, name, save)

        self._waiting.append(measure)
        return later

    def collect(self, trouble: Trouble) -> None:
        """Measure what waits."""
        self.measure(self.take(), trouble)

    @property
    def waits(self) -> bool:
        """Whether there are copies that were not measured."""
        return bool(self._waiting)

    def take(self) -> list[Callable[[], None]]:
        """Return what measures the copies that there are now; later ones belong to the next batch."""
        waiting, self._waiting = self._waiting, []
        self._bytes, self.full = 0, False
        return waiting

    def measure(self, waiting: list[Callable[[], None]], trouble: Trouble) -> None:
        """Measure a batch."""
        for measure in progress(waiting, "measuring"):
            _attempt(measure, trouble)

    def forget(self) -> None:
        """Let go of what was remembered; the step is over."""
        self._host.forget()

    def _surely(self, operation: Callable[[Any], Result], tensor: Any) -> Result:
        """Run an operation of our own, where an error of the training may be pending: that one comes only once."""
        try:
            return operation(tensor)
        except Exception as error:
            try:
                operation(tensor)
            except Exception as again:
                raise MeasureError(str(again).strip().partition("\n")[0]) from again
            raise error

    def _copy(self, tensor: Any) -> Any:
        return self._surely(self._copied, tensor)

    def _copied(self, tensor: Any) -> Any:
        if not self._blind:
            self._bytes += tensor._nbytes
            self.full = self._bytes > MOST_BYTES or len(self._waiting) >= self.most
        return self._own.run(self._copy_op, tensor)  # recorded for a gradient, the copy would hold the graph


def _size(tensor: Any) -> int:
    size: int = tensor._nbytes
    return size


def _attempt(measure: Callable[[], None], trouble: Trouble) -> None:
    try:
        measure()
    except Exception as error:  # its record stays null, the others can still be measured
        trouble("measuring a tensor", error)


class LaterSum:
    """The terms of a sum that is made later; see ``Sum``."""

    __slots__ = ("_copy", "_minuend", "_terms")

    def __init__(self, copy: Callable[[Any], Any]) -> None:
        self._copy = copy
        self._terms: list[Any] = []
        self._minuend: Any = None

    def __bool__(self) -> bool:
        """Return whether anything was added."""
        return bool(self._terms) or self._minuend is not None

    def add(self, tensor: Any) -> None:
        """Add one contribution; its memory may be reused afterwards."""
        self._terms.append(self._copy(tensor))

    def take_from(self, total: Any) -> bool:
        """Become what ``total`` is without this sum; whether anything is left shows later."""
        self._minuend = self._copy(total)
        return True

    def made(self, new: Callable[[], Sum]) -> Sum | None:
        """Make the sum from a new one; return None where nothing is left."""
        real = new()
        return real if self.resolve(real) else None

    def resolve(self, real: Sum) -> bool:
        """Make the sum; return whether anything is left."""
        for term in self._terms:
            real.add(term)
        return bool(real) if self._minuend is None else real.take_from(self._minuend)
