# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Tensors of a compiled graph: their values arrive as arrays on the host."""

from __future__ import annotations

from typing import Any

from probe.config.settings import Settings
from probe.measure.deferred import DeferredMeasurer
from probe.measure.host import HostMeasurer
from probe.measure.measurer import ArraySink, Role
from probe.measure.records import TensorRecord, tensor_record
from probe.measure.select import Measurers, host_measurer
from probe.measure.statistics import FOUR
from probe.measure.tensor_reader import Array


class HostValue:
    """The values of one tensor, and the dtype that it has in the graph: "Float32". A measurer takes it for a tensor.

    The values are read at once and never kept; None where they are unknown.
    """

    __slots__ = ("array", "dtype", "shape")
    is_tensor_value = True

    def __init__(self, array: Array | None, dtype: str, shape: tuple[int, ...]) -> None:
        self.array, self.dtype, self.shape = array, dtype, shape


class HostValueMeasurer(HostMeasurer):
    """Measures values that are arrays already, and tensors."""

    def tensor(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> TensorRecord:
        """Return the record of one value; an unknown one has null for its numbers."""
        if not isinstance(tensor, HostValue):
            return super().tensor(tensor, name, sink, role)
        if tensor.array is None:
            return tensor_record(tensor.dtype, tensor.shape, dict.fromkeys(FOUR))
        return self.array(tensor.array, tensor.dtype, name, sink)


def select_measurers(settings: Settings) -> Measurers:
    """Return the measurers for values that arrive as arrays on the host."""
    host = host_measurer(settings, HostValueMeasurer)
    return Measurers(host, DeferredMeasurer(host))
