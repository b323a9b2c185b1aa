# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The interface of measurers: a tensor becomes a record."""

from __future__ import annotations

import enum
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from probe.measure.tensor_reader import Array

#: writes one array under a name (without ending) and returns the file's name, or "" where it was not written
ArraySink = Callable[[str, Array], str]
#: place of an operation -> the context in which an error of the tool ends
Guard = Callable[[str], AbstractContextManager[Any]]


class MeasureError(Exception):
    """An operation of the tool failed, and no pending error of the training was the cause."""


class Role(enum.Enum):
    """The role of a tensor in its call."""

    INPUT = "input of the call, or of its backward"
    CHANGEABLE_INPUT = "input that the call may modify in place"
    OUTPUT = "output of the call or of its backward, or parameter"


class Measurer(Protocol):
    """Obtains numbers. Every measurer gives the same record."""

    is_immediate: bool  # records are complete when they are returned, and tensors must be complete when they are given

    @property
    def read(self) -> Callable[[Any], Array]:
        """Return the function that reads a tensor's values."""

    def tensor(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> Any:
        """Return the record of one tensor as it is now; its array goes to the sink, under this name without ending.

        Returns:
            ``{"type": "mindspore.Tensor", "dtype": "Float32", "shape": [2], "Max": …, "Min": …, "Mean": …, "Norm": …}``
        """

    def array(self, array: Array, dtype: str, name: str, sink: ArraySink | None) -> Any:
        """Return the record of an array that has the values of a tensor of this dtype."""

    def forget(self) -> None:
        """Release remembered values; the step is over."""
