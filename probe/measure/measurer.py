# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Measurers make records of tensors: the JSON text that stands for them in dump.json. So do sums of gradients."""

from __future__ import annotations

import enum
import functools
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from probe.measure.dtype_name import dtype_name
from probe.measure.tensor_reader import Array, local_tensor

ITEM = "    "  # indentation of a record in an entry's list (the common case)
#: writes one array under a name (without ending); returns the name of its file, or "" where it was not written, and
#: what all arrays of the step have in common that are equal to it
ArraySink = Callable[[str, Array], tuple[str, object]]
#: place of an operation -> the context in which an error of the tool ends
Guard = Callable[[str], AbstractContextManager[Any]]


class TensorRecord:
    """The record of one tensor: the JSON text that stands for it in an entry."""

    __slots__ = ("_here",)

    def __init__(self, here: str) -> None:
        self._here = here  # the text of ``json.dumps(…, indent=1)`` at a place indented by ``ITEM``

    def text(self, pad: str) -> str:
        """Return the text at a place indented by ``pad``."""
        return self._here if pad == ITEM else self._here.replace(f"\n{ITEM}", f"\n{pad}")

    def with_key(self, key: str) -> TensorRecord:
        """Return the record with one more key and its value, as JSON: ``"micro": "0"``."""
        end = f"\n{ITEM}}}"
        return TensorRecord(f"{self._here[: -len(end)]},\n{ITEM} {key}{end}")


def tensor_record(dtype: str, shape: tuple[int, ...], values: Mapping[str, Any]) -> TensorRecord:
    """Return the record of a tensor with these numbers and texts.

    >>> print(tensor_record("Float32", (), {"Max": 1.0, "Min": 1.0, "Mean": 1.0, "Norm": 1.0}).text(""))
    {
     "type": "mindspore.Tensor",
     "dtype": "Float32",
     "shape": [],
     "Max": 1.0,
     "Min": 1.0,
     "Mean": 1.0,
     "Norm": 1.0
    }
    """
    texts = [f',\n{ITEM} "{key}": {_text(value)}' for key, value in values.items()]
    return TensorRecord(f"{_head(dtype, shape)}{''.join(texts)}\n{ITEM}}}")


def unmeasured_record(dtype: Any, shape: tuple[int, ...], **why: Any) -> TensorRecord:
    """Return the record of values that no kernel wrote, so that they differ from run to run, or that nothing reads."""
    return tensor_record(
        dtype_name(dtype), shape, {"Max": None, "Min": None, "Mean": None, "Norm": None, **why}
    )


class FiniteRecord(TensorRecord):
    """The record of a tensor with four finite numbers and nothing else. Its text is made when it is asked for.

    The numbers are Max, Min, Mean and Norm.
    """

    __slots__ = ("_dtype", "_numbers", "_shape")

    def __init__(
        self, dtype: str, shape: tuple[int, ...], numbers: tuple[float, float, float, float]
    ) -> None:
        self._dtype = dtype
        self._shape = shape
        self._numbers = numbers

    @property
    def _here(self) -> str:  # type: ignore[override]  # read-only here
        largest, smallest, mean, norm = self._numbers
        return (
            f'{_head(self._dtype, self._shape)},\n{ITEM} "Max": {largest!r},\n{ITEM} "Min": {smallest!r}'
            f',\n{ITEM} "Mean": {mean!r},\n{ITEM} "Norm": {norm!r}\n{ITEM}}}'
        )


@functools.lru_cache(4096)
def _head(dtype: str, shape: tuple[int, ...]) -> str:
    separator = f",\n{ITEM}  "
    sizes = separator.join(map(str, shape))
    sizes = f"[\n{ITEM}  {sizes}\n{ITEM} ]" if sizes else "[]"
    return f'{{\n{ITEM} "type": "mindspore.Tensor",\n{ITEM} "dtype": "{dtype}",\n{ITEM} "shape": {sizes}'


class ScalarRecord(TensorRecord):
    """The record of one number.

    >>> print(ScalarRecord("int", 3).text(""))
    {
     "type": "int",
     "value": 3
    }
    """

    __slots__ = ("value",)

    def __init__(self, kind: str, value: Any) -> None:
        super().__init__(
            f'{{\n{ITEM} "type": "{kind}",\n{ITEM} "value": {json.dumps(value)}\n{ITEM}}}'
        )
        self.value = value


class PendingRecord:
    """The record of a tensor that is not measured yet; null if nothing turns out to be there."""

    __slots__ = ("keys", "record")

    def __init__(self) -> None:
        self.record: Any = None  # the record, as soon as it is known
        self.keys: tuple[str, ...] = ()  # its further keys, as JSON

    def known(self) -> Any:
        """Return the record, with the further keys; None where it is not known."""
        return self.record and with_keys(self.record, self.keys)

    def with_key(self, key: str) -> PendingRecord:
        """Add a key; see ``TensorRecord``."""
        self.keys += (key,)
        return self

    def text(self, pad: str) -> str:
        """Return the text of the record; see ``TensorRecord``."""
        record = self.known()
        return "null" if record is None else str(record.text(pad))


def with_keys(record: TensorRecord, keys: tuple[str, ...]) -> TensorRecord:
    """Return a record with further keys; see ``TensorRecord.with_key``."""
    return functools.reduce(lambda made, key: made.with_key(key), keys, record)


def resolve(value: Any) -> Any:
    """Return a JSON shape with every pending record replaced by the record that is known by now."""
    if type(value) is dict:
        return {key: resolve(item) for key, item in value.items()}
    if type(value) is list:
        return [resolve(item) for item in value]
    return value.known() if type(value) is PendingRecord else value


def _text(value: Any) -> str:
    if type(value) is float and value - value == 0.0:  # finite
        return repr(value)
    return json.dumps(value)


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


class GradientSum:
    """A sum of gradients in their own dtype, as the framework would add them."""

    __slots__ = ("_copies", "_copy", "_may_read", "_minuend", "_read", "array", "dtype")

    def __init__(
        self, read: Callable[[Any], Array], copy: Callable[[Any], Any], may_read: Callable[[], bool]
    ) -> None:
        self._read = read
        self._copy = copy
        self._may_read = may_read
        #: made without waiting while tensors may not be read, and added later, in the order of arrival
        self._copies: list[Any] = []
        self._minuend: Any = None
        self.array: Array | None = None  # the sum of the terms that were read
        self.dtype = ""  # the name of its dtype in MindSpore

    def __bool__(self) -> bool:
        """Return whether anything was added."""
        return self.array is not None or bool(self._copies) or self._minuend is not None

    def add(self, tensor: Any) -> None:
        """Add one contribution; its memory may be reused afterwards."""
        tensor = local_tensor(tensor)
        if self._may_read():
            self.resolve()
            self._add(tensor)
        else:
            self._copies.append(self._copy(tensor))

    def take_copies(self) -> list[Any]:
        """Return the terms that were copied, no longer part of the sum; none if something else belongs to it."""
        if self.array is not None or self._minuend is not None:
            return []
        copies = self._copies
        self._copies = []
        return copies

    def subtract_from(self, total: Any) -> bool:
        """Become ``total`` without this sum; return whether anything is left, as far as that is known."""
        total = local_tensor(total)
        may_read = self._may_read()
        self._minuend = total if may_read else self._copy(total)
        return self.resolve() if may_read else True

    def resolve(self) -> bool:
        """Read the terms that were copied; return whether the sum holds anything."""
        copies = self._copies
        self._copies = []
        for term in copies:
            self._add(term)
        total = self._minuend
        self._minuend = None
        if total is None:
            return self.array is not None
        array = self._read(total)
        self.dtype = dtype_name(total.dtype)
        has_nan = array.dtype.kind in "fcV"  # V: bfloat16
        if self.array is not None and np.array_equal(array, self.array, equal_nan=has_nan):
            return False
        self.array = np.array(array) if self.array is None else np.asarray(array - self.array)
        return True

    def record(self, measurer: Measurer, name: str, sink: ArraySink | None) -> Any:
        """Return the record of the sum, or None where nothing is left of it; tensors may be read now."""
        if not self.resolve() or self.array is None:
            return None
        return measurer.array(self.array, self.dtype, name, sink)

    def _add(self, tensor: Any) -> None:
        array = self._read(tensor)
        self.dtype = dtype_name(tensor.dtype)
        self.array = np.array(array) if self.array is None else np.asarray(self.array + array)
