# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The memory of tensors: checksums of it; stride, offset and shared storage in records; and memory no view shares."""

from __future__ import annotations

import weakref
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Union

import numpy as np

from probe.executor import OwnOperations
from probe.findings.sentence import Sentence, say
from probe.measure.describe import Measure
from probe.measure.measurer import ITEM, ArraySink, Role
from probe.measure.reductions import Reductions
from probe.measure.tensor_reader import TensorReader, local_tensor
from probe.naming import MODULES, written_inputs

_ROW = 512  # words of a row
#: tensors that are looked at when an output is made, and calls that run one inside of the other
_MOST_ALIVE = 2048
_MOST_CALLS = 64
_OUTPUT = ".forward.output"


def checksum(data: Any) -> int:
    """Return a CRC-32 of bytes: of all, or of the sums of the rows and columns that their words make.

    The sums take a fifth of the time. A word that changes changes two of them, and so do words that change places.

    >>> zeros = np.zeros(9000, np.uint8)
    >>> ones = np.ones(9000, np.uint8)
    >>> checksum(zeros) == checksum(zeros), checksum(zeros) == checksum(ones)
    (True, False)
    """
    rows = data.size // (8 * _ROW)
    words = data[: rows * 8 * _ROW].view(np.uint64).reshape(rows, _ROW)
    rest = zlib.crc32(data[rows * 8 * _ROW :])
    return zlib.crc32(words.sum(1), zlib.crc32(words.sum(0), rest)) if rows else rest


class HostChecksums:
    """Checksums of bytes, known at once: so the values must be there."""

    waits = True

    def __init__(self) -> None:
        self._read = TensorReader()

    def take(self, tensor: Any) -> Any:
        """Return the checksum of the bytes of a tensor."""
        tensor = local_tensor(tensor)
        values: Any = self._read.flat(tensor)
        if values is None:
            values = np.ascontiguousarray(self._read(tensor)).reshape(-1)
        return checksum(values.view(np.uint8))

    def values(self, taken: Iterable[Any]) -> list[int]:
        """Return the checksums as they are."""
        return list(taken)


class DeviceChecksums:
    """The sum of the bits as integers, which no order of additions changes. Nothing waits for it."""

    waits = False

    def __init__(self, reductions: Reductions) -> None:
        import mindspore
        from mindspore.ops.auto_generate import gen_ops_prim

        self._operations = OwnOperations()
        self._reductions = reductions
        self._view = gen_ops_prim.ViewDtype()
        #: bytes of an element -> the integers that its bits are read as
        self._integers = {size: getattr(mindspore, f"int{8 * size}") for size in (1, 2, 4, 8)}
        self._flag = mindspore.bool_

    def take(self, tensor: Any) -> Any:
        """Return the sum as a tensor on the device; None for complex numbers of 16 bytes."""
        tensor = local_tensor(tensor)
        integers = self._integers.get(tensor._itemsize)
        return None if integers is None else self._operations.run(self._reduce, tensor, integers)

    def _reduce(self, tensor: Any, integers: Any) -> Any:
        is_ready = tensor._dtype in (integers, self._flag)  # true and false are added as they are
        return self._reductions.count(tensor if is_ready else self._view(tensor, integers))

    def values(self, taken: Iterable[Any]) -> list[int]:
        """Fetch the sums, all at once."""
        return [
            int(found) for found in self._operations.run(self._reductions.fetch, list(taken), "int")
        ]


Checksums = Union[HostChecksums, DeviceChecksums]


class Memory(NamedTuple):
    """The first byte of a piece of memory, and the one after its last."""

    begin: int
    end: int

    def overlaps(self, other: Memory) -> bool:
        """Return whether a byte belongs to both. A tensor that is not on the device yet has the address 0."""
        return self.begin > 0 and self.begin < other.end and other.begin < self.end


def memory_of(tensor: Any) -> Memory:
    """Return the memory from the first to the last element of a tensor."""
    size = tensor._itemsize
    begin = tensor._data_ptr()
    last = sum((length - 1) * abs(stride) for length, stride in zip(tensor._shape, tensor.stride()))
    return Memory(begin, begin + (last + 1) * size)


class _Alive(NamedTuple):
    tensor: weakref.ref[Any]
    memory: Memory
    name: str  # its first place in the dump


class StorageNotes:
    """Adds the memory to the records of one step, which ``measure`` makes. ``tell`` receives a finding."""

    def __init__(self, measure: Measure, tell: Callable[[Sentence], None]) -> None:
        self._measure = measure
        self._tell = tell
        self._numbers: dict[int, int] = {}
        self._alive: deque[_Alive] = deque(maxlen=_MOST_ALIVE)
        self._inputs: deque[tuple[str, Memory]] = deque(maxlen=_MOST_CALLS)
        self._in_flight: dict[str, list[Memory]] = {}

    def flight(self, call: str, is_over: bool) -> None:
        """Note that a communication has the memory of its inputs, until it is over."""
        if is_over:
            self._in_flight.pop(call, None)
        else:
            self._in_flight[call] = [
                memory for name, memory in self._inputs if f"{name}.".startswith(f"{call}.")
            ]

    def measure(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> Any:
        """Return the record of a tensor with its memory; see ``MeasurementQueue.measure``."""
        record = self._measure(tensor, name, sink, role)
        tensor = local_tensor(tensor)
        if record is None or not tensor._nbytes:
            return record
        memory = memory_of(tensor)
        base = tensor.untyped_storage().data_ptr()
        number = self._numbers.setdefault(base, len(self._numbers))
        self._compare(tensor, memory, name)
        offset = f'"storage_offset": {tensor.storage_offset()},\n{ITEM} "storage": {number}'
        return record.with_key(f'"stride": {list(tensor.stride())},\n{ITEM} {offset}')

    def _compare(self, tensor: Any, memory: Memory, name: str) -> None:
        """Tell an output that shares memory with a tensor that is alive, but with no input of its call."""
        call, is_output, _ = name.partition(_OUTPUT)
        known = [
            one for one in self._alive if one.memory.overlaps(memory) and one.tensor() is not None
        ]
        is_new = not any(one.tensor() is tensor for one in known)
        if not is_output:
            self._compare_in_flight(name, memory)
            self._inputs.append((name, memory))
        elif known and is_new and not name.startswith(MODULES):
            own = f"{call}.forward."
            if not any(
                f"{place}.".startswith(own) and other.overlaps(memory)
                for place, other in self._inputs
            ):
                self._tell(say("guard.shared", first=known[0].name, second=name))
        if is_new:
            self._alive.append(_Alive(weakref.ref(tensor), memory, name))

    def _compare_in_flight(self, name: str, memory: Memory) -> None:
        """Tell a call that writes an input which a communication has."""
        call = name.partition(".forward")[0]
        for communication, pieces in self._in_flight.items():
            before = sum(place.partition(".forward")[0] == call for place, _ in self._inputs)
            if before < written_inputs(call.rpartition(".")[0]) and any(
                piece.overlaps(memory) for piece in pieces
            ):
                self._tell(say("guard.in_flight", call=communication, writer=f"{call}.forward"))
