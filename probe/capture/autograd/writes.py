# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which recorded call wrote a piece of memory: the addresses that calls have written, in order."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any, NamedTuple

from probe.measure.storage import ALL, Memory, memory_of, written_inputs
from probe.pytree import leaves

_TOOL = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
#: writes that are remembered
_MOST = 10_000


class Write(NamedTuple):
    """A call that may have written.

    Attributes:
        number: its place in the order of all.
        name: the entry of the call, or a function's name.
        place: file and line of the user that made it, or "".
        memory: the pieces that it may have written, each with the number of writes that MindSpore has counted.
    """

    number: int
    name: str
    place: str
    memory: tuple[tuple[Memory, int], ...]


class Writes:
    """Remembers writes by their addresses, and holds no tensor.

    Args:
        tensor: the class of tensors.
    """

    def __init__(self, tensor: type) -> None:
        self._tensor = tensor
        self._numbers = itertools.count(1)
        self._written: deque[Write] = deque(maxlen=_MOST)
        self._lock = threading.Lock()
        self._last = 0

    @property
    def last(self) -> int:
        """The number of the newest write."""
        return self._last

    def clear(self) -> None:
        """Forget all."""
        self._written.clear()

    def begin(self, key: str, inputs: Iterable[Any], named: Mapping[str, Any]) -> list[tuple[Any, int]]:
        """Return the tensors that a call may write, by its name, with MindSpore's counts of their writes."""
        which = ALL if "out" in named else written_inputs(key)
        if not which:
            return []
        tensors: Iterable[Any] = (
            leaf for value in (*inputs, *named.values()) for leaf in leaves(value) if isinstance(leaf, self._tensor)
        )
        return [(tensor, tensor._version) for tensor in itertools.islice(tensors, which)]

    def note(self, name: str, tensors: Iterable[tuple[Any, int]]) -> None:
        """Note that a call has written tensors, which are given with their counts before it."""
        memory = tuple((memory_of(tensor), tensor._version - before) for tensor, before in tensors)
        if memory:
            with self._lock:
                self._last = next(self._numbers)
                self._written.append(Write(self._last, name, user_place(), memory))

    def after(self, number: int, memory: Memory) -> Write | None:
        """Return the first write after a number that touches a piece of memory."""
        with self._lock:
            for write in self._written:
                if write.number > number and any(own.overlaps(memory) for own, _ in write.memory):
                    return write
        return None

    def count_after(self, number: int, memory: Memory) -> int:
        """Return how many writes after a number into a piece of memory MindSpore has counted."""
        with self._lock:
            later = [piece for write in self._written if write.number > number for piece in write.memory]
        return sum(counted for own, counted in later if counted and own.overlaps(memory))


def user_place() -> str:
    """Return file and line of the innermost frame outside of MindSpore and probe, or ""."""
    inner = os.path.dirname(str(sys.modules["mindspore"].__file__)) + os.sep
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((_TOOL, inner, "<")):
            return f"{os.path.basename(path)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
