# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Nested arguments as the JSON shape of FORMAT: what is a tensor is measured, what is anything else is named."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from probe.measure.measurer import Save
from probe.measure.records import PendingRecord, ScalarRecord, TensorRecord
from probe.measure.statistics import numpy_statistics
from probe.naming import escape_formula

if TYPE_CHECKING:
    from probe.recording.measurement_queue import MeasurementQueue

_log = logging.getLogger("probe")

Shape = Union[dict[str, Any], list[Any], TensorRecord, ScalarRecord, PendingRecord, None]
#: deeper than this, and inside a cycle, a value is null; no argument of a real API comes near
_DEEPEST = 40
#: more items than this of one list or dict are left out; the record then says how many there were
_MOST = 4096
#: Python refuses to write larger numbers in decimal
_BITS = 8192


class ValueDescriber:
    """Turns values into records, by these rules for the whole window.

    Args:
        pace: holds what measures a tensor now.
    """

    def __init__(self, pace: MeasurementQueue) -> None:
        import mindspore
        from mindspore._c_expression import typing as dtypes
        from mindspore.communication import comm_func
        from mindspore.mint import distributed

        self._pace = pace
        self._tensor: type = mindspore.Tensor
        self._dtype: tuple[type, ...] = (dtypes.Type,) if hasattr(dtypes, "Type") else (dtypes.Number,)
        self._p2p = tuple(module.P2POp for module in (distributed, comm_func) if hasattr(module, "P2POp"))
        self._numbers: dict[tuple[type, float], ScalarRecord] = {}
        self._plain: dict[type, Callable[[Any], Shape]] = {
            type(None): lambda value: None,
            bool: self._number,
            int: self._number,
            float: self._number,
            str: lambda value: {"type": "str", "value": escape_formula(value)},
            slice: _slice,
            type(...): lambda value: {"type": "ellipsis", "value": "..."},
        }

    def _number(self, value: bool | float) -> ScalarRecord:
        """Return the record of a Python number. Those of a loop are the same again and again."""
        kind = type(value)
        if kind is int and value.bit_length() > _BITS:  # type: ignore[union-attr]
            return ScalarRecord({"type": "int", "value": f"a number of {value.bit_length()} bits"})  # type: ignore[union-attr]
        known = self._numbers.get((kind, value)) if value else None  # 0.0 and -0.0 are equal
        if known is None:
            known = ScalarRecord({"type": kind.__name__, "value": value})
            if value and len(self._numbers) < _MOST:
                self._numbers[kind, value] = known
        return known

    def value(self, value: Any, name: str, save: Save | None) -> Shape:
        """Return the JSON shape of any value; tensors inside get ``name`` and their place as the file name."""
        return self._walk(value, name, save, 0, ())

    def _walk(self, value: Any, name: str, save: Save | None, depth: int, around: tuple[int, ...]) -> Shape:
        kind = type(value)
        plain = self._plain.get(kind)
        if plain is not None:
            return plain(value)
        if isinstance(value, self._tensor):
            return self._pace.meter.tensor(value, name, save)  # type: ignore[no-any-return]
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
            saved = save(name, value) if save is not None and value.dtype.kind not in "OSU" else ""
            if saved:
                record["data_name"] = saved
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
            "tensor": self.value(value.tensor, name, save),
            "op": getattr(value.op, "__name__", str(value.op)),
            "peer": value.peer,
            "tag": getattr(value, "tag", 0),
            "group_id": str(value.group) if getattr(value, "group", None) else None,
        }


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
    return value if isinstance(value, (bool, int, float)) else escape_formula(str(value))
