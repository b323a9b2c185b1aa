# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Checksums of tensors that are compared later: at once on the host, or with one fetch for many from a device."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from probe.executor import OwnOperations
from probe.measure.reductions import Reductions
from probe.measure.shells import local_tensor, may_be_shell
from probe.measure.tensor_reader import TensorReader

#: bytes of an element -> the integers that its bits are read as
_INTEGERS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}


class Checksums(Protocol):
    """Takes checksums.

    Attributes:
        waits: tensors are read at once, so their values must be there.
    """

    waits: bool

    def take(self, tensor: Any) -> Any:
        """Return the checksum of a tensor, perhaps not known yet; None for one that has none."""

    def values(self, taken: Iterable[Any]) -> list[int]:
        """Return the values of checksums that were taken."""


class HostChecksums:
    """The CRC-32 of the bytes."""

    waits = True

    def __init__(self) -> None:
        self._read = TensorReader()

    def take(self, tensor: Any) -> Any:
        """Return the CRC-32 of a tensor."""
        tensor = local_tensor(tensor) if may_be_shell(type(tensor)) else tensor
        values: Any = self._read.flat(tensor)
        if values is None:
            values = np.ascontiguousarray(self._read(tensor)).reshape(-1).view(np.uint8)
        return zlib.crc32(values)

    def values(self, taken: Iterable[Any]) -> list[int]:
        """Return the checksums as they are."""
        return list(taken)


class DeviceChecksums:
    """The sum of the bits as integers, which no order of additions changes. Nothing waits for it.

    Args:
        reductions: fetches the sums.
    """

    waits = False

    def __init__(self, reductions: Reductions) -> None:
        import mindspore
        from mindspore.ops.auto_generate import gen_ops_prim

        self._operations, self._fetch = OwnOperations(), reductions.fetch
        self._view, self._sum = gen_ops_prim.ViewDtype(), gen_ops_prim.SumExt()
        self._integers = {size: getattr(mindspore, name) for size, name in _INTEGERS.items()}
        self._wide, self._flag = mindspore.int64, mindspore.bool_

    def take(self, tensor: Any) -> Any:
        """Return the sum as a tensor on the device; None for complex numbers of 16 bytes."""
        tensor = local_tensor(tensor) if may_be_shell(type(tensor)) else tensor
        integers = self._integers.get(tensor._itemsize)
        return None if integers is None else self._operations.run(self._reduce, tensor, integers)

    def _reduce(self, tensor: Any, integers: Any) -> Any:
        # true and false are added as they are
        bits = tensor if tensor._dtype in (integers, self._flag) else self._view(tensor, integers)
        return self._sum(bits, None, False, self._wide)

    def values(self, taken: Iterable[Any]) -> list[int]:
        """Fetch the sums, all at once."""
        return [int(found) for found in self._operations.run(self._fetch, list(taken), "int")]
