# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Task "nan_check": whether tensors are finite, as cheaply as that can be known."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from probe.measure.exact import Array, Reader, Sum
from probe.measure.host import Host
from probe.measure.meters import Save, Trouble
from probe.measure.records import Record, record
from probe.measure.statistics import magnitudes

#: calls that may change what they are given: its values are copied before
_CHANGES = re.compile(
    r"^(?!(Tensor|Functional|Mint|MintFunctional)\.)|_\.\d+\.forward\.|\.__i\w+__\.|__setitem__|assign|scatter|batch_norm"
)
#: what is given to a call, or to its backward: looked at only where what it makes is not finite
_GIVEN = re.compile(r"\.(forward|backward)(\.\d+)?\.(input|kwargs)\.")
_FLOAT = np.dtype(np.float32)
_maximum, _minimum = np.maximum.reduce, np.minimum.reduce

Ends = tuple[Any, Any]


class Seen:
    """What is known of a tensor: its two ends, and its values for as long as they may be wanted.

    Args:
        array: the values; None for those that the tensor has.
        tensor: what is held, as the array may be its memory.
        read: tensor -> array.
        ends: the largest and the smallest element, or None where nobody has looked yet.
    """

    __slots__ = ("_array", "_dtype", "_ends", "_name", "_read", "_record", "_save", "_shape", "_tensor")

    def __init__(
        self,
        array: Array | None,
        tensor: Any,
        read: Callable[[Any], Array],
        dtype: Any,
        shape: tuple[int, ...],
        ends: Ends | None,
        name: str,
        save: Save | None,
    ) -> None:
        self._array, self._tensor, self._read = array, tensor, read
        self._dtype, self._shape, self._ends, self._name, self._save = dtype, shape, ends, name, save
        self._record: Record | None = None

    @property
    def finite(self) -> bool:
        """Whether all of its elements are."""
        if self._ends is None:
            array = self._values()
            self._ends = None if array is None else _ends(array)
        return self._ends is None or is_finite(self._ends)

    @property
    def low(self) -> bool:
        """Whether those that are not are -inf, all of them."""
        return self._ends is not None and self._ends[0] is not None and self._ends[0] < np.inf

    def _values(self) -> Array | None:
        return self._array if self._array is not None or self._tensor is None else self._read(self._tensor)

    def text(self, pad: str) -> str:
        """Return the text of the record; see ``Record``."""
        if self._record is not None:
            return self._record.text(pad)
        largest, smallest = self._ends or (None, None)
        numbers = {"Max": largest, "Min": smallest, "Mean": None, "Norm": None}
        return record(str(self._dtype), self._shape, numbers).text(pad)

    def release(self) -> None:
        """Let go of the values; what is known of them stays."""
        self._array = self._tensor = None

    def complete(self, host: Host) -> bool:
        """Take all numbers and save the values; return False where the values were changed meanwhile."""
        array = self._values()
        if array is not None:
            if self._ends is not None and repr(_ends(array)) != repr(self._ends):
                self.release()
                return False
            array = array.reshape(self._shape)
            self._record = host.array(array, str(self._dtype), self._name, self._save)
            self.release()
        return True


def is_finite(ends: Ends) -> bool:
    """Return whether both ends are; None stands for there being none."""
    largest, smallest = ends
    return largest is None or (largest - largest == 0 and smallest - smallest == 0)


def _ends(array: Array) -> Ends:
    kind = array.dtype.kind
    if array.size == 0 or kind == "b":
        return None, None
    flat = (magnitudes(array) if kind == "c" else array).ravel(order="K")
    if kind == "c" and not np.isfinite(flat).all():  # or only the absolute value is not finite
        flat = array.ravel().view(array.real.dtype)
    if kind in "fV" and flat.dtype.itemsize == 2:
        flat = flat.astype(np.float32)
    return _maximum(flat).item(), _minimum(flat).item()


class Finite:
    """Looks at the largest and the smallest element of what calls make, when it is given.

    Args:
        host: takes the numbers of those that turn out to matter.

    Attributes:
        strange: whether anything that is not finite was seen.
    """

    at_once = True
    full = True  # where the training is to be stopped, the recorder looks for that at every occasion

    def __init__(self, host: Host) -> None:
        import mindspore

        self.host = host
        self.strange = False
        self._read = Reader()
        self._float = mindspore.float32

    def tensor(self, tensor: Any, name: str, save: Save | None) -> Seen:
        """Return what is seen of a tensor."""
        dtype, read = tensor._dtype, self._read
        if _GIVEN.search(name):
            array = read(tensor).copy() if _CHANGES.search(name) else None
            return Seen(array, tensor, read, dtype, tensor._shape, None, name, save)
        flat = read.flat(tensor, _FLOAT) if dtype is self._float else None
        array = read(tensor) if flat is None else flat
        ends = _ends(array) if flat is None else (_maximum(flat).item(), _minimum(flat).item())
        self.strange = self.strange or not is_finite(ends)
        return Seen(array, tensor, read, dtype, tensor._shape, ends, name, save)

    def sum(self) -> Sum:
        """Return a new sum of gradients."""
        return Sum(self._read)

    def total(self, total: Sum, name: str, save: Save | None) -> Seen:
        """Return what is seen of such a sum."""
        assert total.array is not None
        ends = _ends(total.array)
        self.strange = self.strange or not is_finite(ends)
        return Seen(total.array, None, self._read, total.dtype, total.array.shape, ends, name, save)

    def collect(self, trouble: Trouble) -> None:
        """Nothing waits."""

    def forget(self) -> None:
        """Let go of what was remembered; the step is over."""
        self.host.forget()
