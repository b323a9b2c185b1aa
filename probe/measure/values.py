# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Nested arguments as the JSON shape of FORMAT: what is a tensor is measured, what is anything else is named."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from typing import Any, Union

import numpy as np

from probe.measure.exact import Array, Reader, Sum, storable
from probe.measure.records import Record
from probe.measure.statistics import Numbers, crc32, numpy_statistics, statistics
from probe.naming import harmless

_log = logging.getLogger("probe")

Shape = Union[dict[str, Any], list[Any], Record, None]
#: saves one array under a name (without ending) and returns the file's name
Save = Callable[[str, Array], str]

#: deeper than this, and inside a cycle, a value is null; no argument of a real API comes near
_DEEPEST = 40
#: more items than this of one list or dict are left out; the record then says how many there were
_MOST = 4096
#: records of tensors of at most so many bytes are remembered by their content: the same bytes have the same numbers
_SMALL = 2048
_REMEMBERED = 4096


class Describer:
    """Turns values into records, by these rules for the whole window.

    Args:
        md5: whether a tensor's record carries the CRC-32 of its bytes.
    """

    def __init__(self, md5: bool) -> None:
        import mindspore
        from mindspore._c_expression import typing as dtypes
        from mindspore.mint import distributed

        self._md5 = md5
        self._read = Reader()
        self._memo: dict[tuple[bytes, Any, tuple[int, ...]], Record] = {}
        self._tensor: type = mindspore.Tensor
        self._dtype: tuple[type, ...] = (dtypes.Type,) if hasattr(dtypes, "Type") else (dtypes.Number,)
        self._p2p: tuple[type, ...] = (distributed.P2POp,) if hasattr(distributed, "P2POp") else ()
        self._dtype_names: dict[Any, str] = {}
        self._plain: dict[type, Callable[[Any], Shape]] = {
            type(None): lambda value: None,
            bool: lambda value: {"type": "bool", "value": value},
            int: lambda value: {"type": "int", "value": value},
            float: lambda value: {"type": "float", "value": value},
            str: lambda value: {"type": "str", "value": harmless(value)},
            slice: _slice,
            type(...): lambda value: {"type": "ellipsis", "value": "..."},
        }

    def forget(self) -> None:
        """Let go of what was remembered; the step is over."""
        self._memo.clear()

    def sum(self) -> Sum:
        """Return a new sum of gradients."""
        return Sum(self._read)

    def tensor(self, tensor: Any, name: str, save: Save | None) -> Record:
        """Return the record of one tensor.

        Args:
            tensor: a mindspore Tensor or Parameter.
            name: the file name, without its ending, that its array would have.
            save: writes the array, where one is wanted.

        Returns:
            ``{"type": "mindspore.Tensor", "dtype": "Float32", "shape": [2], "Max": …, "Min": …, "Mean": …, "Norm": …}``
        """
        dtype = tensor._dtype
        if save is None:
            content = self._read.content(tensor, _SMALL)
            if content is not None:
                key = (content, dtype, tensor._shape)
                record = self._memo.get(key)
                if record is None:
                    if len(self._memo) >= _REMEMBERED:
                        self._memo.clear()
                    record = self._memo[key] = self.array(self._read(tensor), self._name(dtype), name, None)
                return record
        return self.array(self._read(tensor), self._name(dtype), name, save)

    def array(self, array: Array, dtype: str, name: str, save: Save | None) -> Record:
        """Return the record of an array that stands for a tensor of this dtype; see ``tensor``."""
        numbers: Numbers = statistics(array)
        if not self._md5 and save is None:
            return Record(dtype, array.shape, numbers)
        array = storable(array)
        further = {"md5": crc32(array)} if self._md5 else {}
        if save is not None:
            further["data_name"] = save(name, array)
        return Record(dtype, array.shape, numbers, further)

    def value(self, value: Any, name: str, save: Save | None) -> Shape:
        """Return the JSON shape of any value; tensors inside get ``name`` and their place as the file name."""
        return self._walk(value, name, save, 0, ())

    def _walk(self, value: Any, name: str, save: Save | None, depth: int, around: tuple[int, ...]) -> Shape:
        kind = type(value)
        plain = self._plain.get(kind)
        if plain is not None:
            return plain(value)
        if isinstance(value, self._tensor):
            return self.tensor(value, name, save)
        if depth >= _DEEPEST or id(value) in around:
            return None
        items = items_of(value)
        if items is None:
            return self._object(value, name, save)
        around = (*around, id(value))
        walked = {key: self._walk(item, f"{name}.{key}", save, depth + 1, around) for key, item in items[:_MOST]}
        if len(items) > _MOST:
            _log.warning("%s has %d items; only the first %d are recorded", name, len(items), _MOST)
        return walked if is_mapping(value) else list(walked.values())

    def _object(self, value: Any, name: str, save: Save | None) -> Shape:
        if isinstance(value, self._dtype):
            return {"type": "mindspore.dtype", "value": str(value)}
        if isinstance(value, np.ndarray):
            record = {"type": "numpy.ndarray", "dtype": str(value.dtype), "shape": list(value.shape)}
            record.update(numpy_statistics(value))
            if save is not None and value.dtype.kind not in "OSU":
                record["data_name"] = save(name, value)
            return record
        if isinstance(value, np.generic):
            return {"type": type(value).__name__, "value": _finite(value.item())}
        if isinstance(value, self._p2p):
            return self._point_to_point(value, name, save)
        for plain in (bool, int, float, str):  # their subclasses: enums, numpy-like scalars
            if isinstance(value, plain):
                return self._plain[plain](plain(value))
        return None

    def _point_to_point(self, value: Any, name: str, save: Save | None) -> Shape:
        return {
            "class_type": "mindspore.mint.distributed.P2POp",
            "tensor": self.tensor(value.tensor, name, save),
            "op": getattr(value.op, "__name__", str(value.op)),
            "peer": value.peer,
            "tag": getattr(value, "tag", 0),
            "group_id": str(value.group) if getattr(value, "group", None) else None,
        }

    def _name(self, dtype: Any) -> str:
        name = self._dtype_names.get(dtype)
        if name is None:
            name = self._dtype_names[dtype] = str(dtype)
        return name


def is_mapping(value: Any) -> bool:
    """Return whether a container becomes a JSON object: dict, namedtuple and dataclass do."""
    return isinstance(value, Mapping) or hasattr(value, "_fields") or dataclasses.is_dataclass(value)


def items_of(value: Any) -> list[tuple[str, Any]] | None:
    """Return the items of a container with their places, or None for what is no container.

    >>> items_of((3, 4))
    [('0', 3), ('1', 4)]
    """
    if isinstance(value, Mapping):
        return [(str(key), item) for key, item in value.items()]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value))
    if isinstance(value, (list, tuple)):
        return [(str(place), item) for place, item in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    return None


def _slice(value: slice) -> Shape:
    return {"type": "slice", "value": [_whole(value.start), _whole(value.stop), _whole(value.step)]}


def _whole(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None


def _finite(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float)) else harmless(str(value))
