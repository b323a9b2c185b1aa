# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The numbers of a tensor that the key ``ops`` names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Union

import numpy as np

from probe.executor import OwnOperations
from probe.measure.reductions import Reductions
from probe.measure.statistics import statistics
from probe.measure.tensor_reader import TensorReader
from probe.monitor.numbers import Fetcher

#: a number, a text, or None for a number that the device has not given yet
Cell = Union[float, str, None]
#: the numbers of a tensor in the order of ``ops``
Cells = list[Cell]

_KEYS = {"norm": "Norm", "min": "Min", "max": "Max", "mean": "Mean"}
#: the order of ``Reductions.four``, whose extrema of whole numbers come apart
_FOUR = ("max", "min", "mean", "norm")


class HostOps:
    """Reads tensors at once.

    Args:
        ops: the names of the numbers.
        eps: elements below it count as zeros.
        wait: waits for asynchronous work; raises a pending error of the training.

    Attributes:
        ops: see above.
        ready: waits before a tensor is read.
        fetcher: fetches from the device.
    """

    def __init__(self, ops: Sequence[str], eps: float, wait: Callable[[], None]) -> None:
        self.ops, self._eps, self.ready = ops, eps, wait
        self._read, self.fetcher = TensorReader(), Fetcher(wait)

    def measure(self, tensor: Any) -> Cells:
        """Return the numbers of a tensor, or of an array."""
        array = tensor if isinstance(tensor, np.ndarray) else self._read(tensor)
        numbers = statistics(array)
        found: dict[str, Cell] = {name: _number(numbers.get(key)) for name, key in _KEYS.items()}
        found["nans"] = float(numbers.get("nan_count") or 0)
        if "zeros" in self.ops:
            values = array.astype(np.float32, copy=False)
            found["zeros"] = float((np.abs(values) < self._eps).mean()) if array.size else math.nan
        found["shape"], found["dtype"] = str(tuple(tensor.shape)), dtype_name(tensor.dtype)
        return [found[name] for name in self.ops]

    def take(self) -> list[Fetched]:
        """Return the numbers that are still on the device."""
        return []

    def fetch(self, waiting: list[Fetched]) -> None:
        """Put them into their places."""


class Fetched(NamedTuple):
    """Numbers of a tensor that are on the device.

    Attributes:
        cells: the row of the tensor.
        names: the names of the numbers.
        scalars: the numbers.
        size: the number of elements.
    """

    cells: Cells
    names: list[str]
    scalars: list[Any]
    size: int


class DeviceOps(HostOps):
    """Adds operations to MindSpore's pipeline, and waits for nothing but ``fetch``.

    Args:
        ops: see ``HostOps``.
        eps: see ``HostOps``.
        wait: see ``HostOps``.
        on_cpu: whether the device is the CPU.
    """

    def __init__(self, ops: Sequence[str], eps: float, wait: Callable[[], None], on_cpu: bool) -> None:
        super().__init__(ops, eps, wait)
        self.ready = lambda: None
        self._reductions, self._own = Reductions(on_cpu, scaled=False), OwnOperations()
        self._waiting: list[Fetched] = []

    def measure(self, tensor: Any) -> Cells:
        """Return the row of a tensor, whose numbers ``fetch`` fills in; see ``HostOps``."""
        if isinstance(tensor, np.ndarray) or not tensor.size:
            return super().measure(tensor)
        given: dict[str, Cell] = {"shape": str(tuple(tensor.shape)), "dtype": dtype_name(tensor.dtype)}
        cells: Cells = [given.get(name) for name in self.ops]
        kind = "float" if "loat" in str(tensor.dtype) else "int"
        names, scalars = self._own.run(self._reduce, tensor, kind)
        self._waiting.append(Fetched(cells, names, scalars, tensor.size))
        return cells

    def _reduce(self, tensor: Any, kind: str) -> tuple[list[str], list[Any]]:
        reductions = self._reductions
        values, counts = reductions.values(tensor, kind), {}
        source = values if str(tensor.dtype) == "Bool" else tensor
        floats, whole = reductions.four(source, values, "float" if source is values else kind)
        if "nans" in self.ops or "zeros" in self.ops:
            counts["nans"] = reductions.count(values, "NotEqual")
        if "zeros" in self.ops:
            counts["below"] = reductions.count(values, "Less", self._eps)
            counts["above"] = reductions.count(values, "Greater", -self._eps)
        return [*_FOUR, *counts], [*whole, *floats, *counts.values()]

    def take(self) -> list[Fetched]:
        """Return the numbers of the step; see ``HostOps``."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def fetch(self, waiting: list[Fetched]) -> None:
        """Put them into their places, by one fetch."""
        scalars = [scalar for one in waiting for scalar in one.scalars]
        arrays = iter(self.fetcher.fetch(self._reductions, scalars))
        for one in waiting:
            found = {name: float(next(arrays).reshape(-1)[0]) for name in one.names}
            if self._reductions.norm_is_square:
                found["norm"] = math.sqrt(found["norm"])
            if "above" in found:  # the elements between -eps and eps are in both
                found["zeros"] = (found["below"] + found["above"] + found["nans"] - one.size) / one.size
            if math.isnan(found["norm"]):
                found.update(dict.fromkeys(_FOUR, math.nan))
            for place, name in enumerate(self.ops):
                if name in found:
                    one.cells[place] = _single(found[name])


def _number(value: float | bool | None) -> float:
    return math.nan if value is None else _single(float(value))


def _single(value: float) -> float:
    """Return a number as float32 holds it, as it is in msprobe's file."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def dtype_name(dtype: Any) -> str:
    """Return MindSpore's name of a dtype, also of numpy's.

    >>> dtype_name(np.dtype("float32")), dtype_name("BFloat16")
    ('Float32', 'BFloat16')
    """
    name = str(dtype)
    return "BFloat16" if name == "bfloat16" else name[:1].upper() + name[1:]
