# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Nested arguments as JSON shapes: tensors are measured, other values are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Union

import numpy as np

from probe.measure.dtype_name import dtype_name
from probe.measure.measurer import ArraySink, PendingRecord, Role, ScalarRecord, TensorRecord
from probe.measure.one_byte import NARROW
from probe.measure.statistics import FOUR, statistics
from probe.measure.tensor_reader import to_storable
from probe.naming import escape_formula
from probe.pytree import MAX_ITEMS, tree_map

Shape = Union[dict[str, Any], list[Any], TensorRecord, ScalarRecord, PendingRecord, None]
Measure = Callable[
    [Any, str, Union[ArraySink, None], Role], Any
]  # tensor, file name, sink of arrays, role -> record
_MAX_BITS = 8192  # Python refuses to write larger numbers in decimal
_LISTS = (list, tuple)


class ValueDescriber:
    """Turns values into records."""

    def __init__(self, measure: Measure) -> None:
        import mindspore
        from mindspore._c_expression import typing as dtypes
        from mindspore.communication import comm_func
        from mindspore.mint import distributed

        self._measure = measure
        self._tensor: type = mindspore.Tensor
        self._dtype: tuple[type, ...] = (
            (dtypes.Type,) if hasattr(dtypes, "Type") else (dtypes.Number,)
        )
        self._p2p = tuple(
            module.P2POp for module in (distributed, comm_func) if hasattr(module, "P2POp")
        )
        self._numbers: dict[tuple[type, float], ScalarRecord] = {}
        self._texts: dict[str, ScalarRecord] = {}
        self._scalars: dict[type, Callable[[Any], Shape]] = {
            type(None): lambda value: None,
            bool: self._number,
            int: self._number,
            float: self._number,
            str: self._text,
            slice: _slice,
            type(...): lambda value: {"type": "ellipsis", "value": "..."},
        }

    def value(self, value: Any, name: str, sink: ArraySink | None, role: Role) -> Shape:
        """Return the JSON shape of any value; tensors inside get ``name`` and their place as the file name."""
        scalar = self._scalars.get(type(value))
        if scalar is not None:
            return scalar(value)
        if isinstance(value, self._tensor):
            measured: Shape = self._measure(value, name, sink, role)
            return measured
        if (
            type(value) in _LISTS
            and len(value) <= MAX_ITEMS
            and all(isinstance(item, self._tensor) for item in value)
        ):
            return [
                self._measure(item, f"{name}.{place}", sink, role)
                for place, item in enumerate(value)
            ]
        described: Shape = tree_map(
            lambda leaf, place: self._leaf(leaf, place, sink, role), value, name, self._tensor
        )
        return described

    def _number(self, value: bool | float) -> ScalarRecord:
        """Return the record of a Python number. Loops give the same numbers again and again: they are cached."""
        kind = type(value)
        if isinstance(value, int) and value.bit_length() > _MAX_BITS:
            return ScalarRecord("int", f"a number of {value.bit_length()} bits")
        known = self._numbers.get((kind, value)) if value else None  # 0.0 and -0.0 are equal
        if known is None:
            known = ScalarRecord(kind.__name__, value)
            if value and len(self._numbers) < MAX_ITEMS:
                self._numbers[kind, value] = known
        return known

    def _text(self, value: str) -> ScalarRecord:
        """Return the record of a string. An optimizer's entry has the names of all parameters: they are cached."""
        known = self._texts.get(value)
        if known is None:
            known = ScalarRecord("str", escape_formula(value))
            if len(self._texts) < MAX_ITEMS:
                self._texts[value] = known
        return known

    def _leaf(self, value: Any, name: str, sink: ArraySink | None, role: Role) -> Shape:  # noqa: PLR0911
        if isinstance(value, self._tensor) or getattr(value, "is_tensor_value", False):
            measured: Shape = self._measure(value, name, sink, role)
            return measured
        if type(value) in self._scalars:
            return self.value(value, name, sink, role)
        if isinstance(value, np.ndarray):
            return _array(value, name, sink)
        if isinstance(value, np.generic):
            item = value.item()
            plain = isinstance(item, (bool, int, float))
            return {
                "type": type(value).__name__,
                "value": item if plain else escape_formula(str(item)),
            }
        if isinstance(value, self._p2p):
            return self._point_to_point(value, name, sink, role)
        if isinstance(value, self._dtype):
            return {"type": "mindspore.dtype", "value": dtype_name(value)}
        # subclasses: enums, numpy-like scalars
        scalar_type = next(
            (kind for kind in (bool, int, float, str) if isinstance(value, kind)), None
        )
        return None if scalar_type is None else self._scalars[scalar_type](scalar_type(value))

    def _point_to_point(self, value: Any, name: str, sink: ArraySink | None, role: Role) -> Shape:
        return {
            "class_type": "mindspore.mint.distributed.P2POp",
            "tensor": self.value(value.tensor, name, sink, role),
            "op": getattr(value.op, "__name__", str(value.op)),
            "peer": value.peer,
            "tag": getattr(value, "tag", 0),
            "group_id": str(value.group) if getattr(value, "group", None) else None,
        }


def _array(value: np.ndarray[Any, Any], name: str, sink: ArraySink | None) -> Shape:
    record: dict[str, Any] = {
        "type": "numpy.ndarray",
        "dtype": str(value.dtype),
        "shape": list(value.shape),
    }
    array = np.asarray(value)  # of a masked array or a matrix
    is_number = array.dtype.kind in "biufc" or array.dtype in NARROW
    if array.dtype.char in "gG":  # JSON has no numbers of this precision
        array = array.astype(np.float64 if array.dtype.char == "g" else np.complex128)
    numbers = statistics(array) if is_number else {}
    record.update((key, numbers.get(key)) for key in FOUR)
    if sink is not None and (is_number or array.dtype.kind in "mM"):
        saved, _ = sink(name, to_storable(array))
        record.update({"data_name": saved} if saved else {})
    return record


def _slice(value: slice) -> Shape:
    return {"type": "slice", "value": [_whole(value.start), _whole(value.stop), _whole(value.step)]}


def _whole(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None
