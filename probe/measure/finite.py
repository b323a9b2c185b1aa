# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Task "nan_check": whether tensors are finite, as cheaply as that can be known."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from probe.measure.exact import Array, Reader, Sum
from probe.measure.host import Host
from probe.measure.meters import Save, Trouble
from probe.measure.records import Record, record

#: calls that may change what they are given: its values are copied before
_CHANGES = re.compile(r"^(Primitive|Cell|Jit)\.|_\.\d+\.forward\.|\.__i\w+__\.|__setitem__|assign|scatter|batch_norm")
#: what a call gives is looked at before anybody else has it
_NEW = re.compile(r"\.forward(\.\d+)?\.(output|parameters)\.")
_FLOAT = np.dtype(np.float32)
_maximum, _minimum = np.maximum.reduce, np.minimum.reduce


class Seen:
    """What is known of a tensor: its two ends, and its values for as long as they may be wanted.

    Attributes:
        finite: whether all of its elements are.
    """

    __slots__ = ("_array", "_dtype", "_ends", "_name", "_record", "_save", "_shape", "_tensor", "finite")

    def __init__(
        self,
        array: Array,
        tensor: Any,
        dtype: Any,
        shape: tuple[int, ...],
        ends: tuple[Any, Any],
        name: str,
        save: Save | None,
    ) -> None:
        self._array: Array | None = array
        self._tensor = tensor  # held: the array may be its memory
        self._dtype, self._shape, self._ends, self._name, self._save = dtype, shape, ends, name, save
        self._record: Record | None = None
        largest, smallest = ends
        self.finite = largest is None or (largest - largest == 0 and smallest - smallest == 0)

    def text(self, pad: str) -> str:
        """Return the text of the record; see ``Record``."""
        if self._record is not None:
            return self._record.text(pad)
        numbers = {"Max": self._ends[0], "Min": self._ends[1], "Mean": None, "Norm": None}
        return record(str(self._dtype), self._shape, numbers).text(pad)

    def release(self) -> None:
        """Let go of the values; what is known of them stays."""
        self._array = self._tensor = None

    def complete(self, host: Host) -> bool:
        """Take all numbers and save the values; return False where the values were changed meanwhile."""
        array = self._array
        if array is not None:
            if repr(_ends(array)) != repr(self._ends):
                self.release()
                return False
            array = array.reshape(self._shape)
            self._record = host.array(array, str(self._dtype), self._name, self._save)
            self.release()
        return True


def _ends(array: Array) -> tuple[Any, Any]:
    kind = array.dtype.kind
    if array.size == 0 or kind == "b":
        return None, None
    flat = (np.abs(array) if kind == "c" else array).ravel(order="K")
    if kind in "fV" and flat.dtype.itemsize == 2:
        flat = flat.astype(np.float32)
    return _maximum(flat).item(), _minimum(flat).item()


class Finite:
    """Looks at the largest and the smallest element of each tensor, when it is given.

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
        dtype = tensor._dtype
        flat = self._read.flat(tensor, _FLOAT) if dtype is self._float else None
        array = self._read(tensor) if flat is None else flat
        if _CHANGES.search(name) and not _NEW.search(name):
            array = array.copy()
        ends = _ends(array) if flat is None else (_maximum(array).item(), _minimum(array).item())
        return self._noted(Seen(array, tensor, dtype, tensor._shape, ends, name, save))

    def _noted(self, seen: Seen) -> Seen:
        self.strange = self.strange or not seen.finite
        return seen

    def sum(self) -> Sum:
        """Return a new sum of gradients."""
        return Sum(self._read)

    def total(self, total: Sum, name: str, save: Save | None) -> Seen:
        """Return what is seen of such a sum."""
        assert total.array is not None
        return self._noted(Seen(total.array, None, total.dtype, total.array.shape, _ends(total.array), name, save))

    def collect(self, trouble: Trouble) -> None:
        """Nothing waits."""

    def forget(self) -> None:
        """Let go of what was remembered; the step is over."""
        self.host.forget()
