# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Walks the content of an entry: tensor records, plain values, and lists and objects of them."""

from __future__ import annotations

import math
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from probe.reading.dumps.shapes import RECORD, lengths, wrong_fields

#: how deep a value may be nested; deeper ones are none that a recorder writes
MAX_DEPTH = 64
#: the types of records of tensors; those of PyTorch have further kinds of tensors
TENSORS = frozenset(
    (
        "mindspore.Tensor",
        "numpy.ndarray",
        "torch.Tensor",
        "torch.nn.parameter.Parameter",
        "torch.distributed.tensor.DTensor",
        "torch.nested._internal.nested_tensor.NestedTensor",
        "torch.distributed._functional_collectives.AsyncCollectiveTensor",
        "torch._subclasses.fake_tensor.FakeTensor",
        "BatchedTensor",
        "GradTrackingTensor",
    )
)
#: the four numbers that every task records
NUMBERS = ("Max", "Min", "Mean", "Norm")
#: the numbers that tables of tensors have
SHOWN = (*NUMBERS, "nan_count", "inf_count")
#: keys of a record whose numbers are no statistics, or have a column; and the types of the others
_COLUMNS = frozenset((*SHOWN, "storage", "storage_offset"))
_NUMBER_TYPES = frozenset((float, int, type(None)))
#: counts of elements that are not ordinary
COUNTS = ("nan_count", "inf_count", "negative_inf_count", "positive_inf_count")

#: no tensor has so many elements
_LONGEST = 1 << 63
#: a plain value with more digits may be a number that no float holds
_MOST_DIGITS = 308
_DIGITS = tuple("0123456789")

#: names of dtypes that records spell in another way
_SPELLINGS = {
    "bfloat16": "BFloat16",
    "uint": "UInt32",
    "int": "Int32",
    "float": "Float32",
    "double": "Float64",
}

#: (key, value): ("0", record), ("1.axis", record), ("2", None)
Leaf = tuple[str, Any]
#: a tensor's record
Record = dict[str, Any]
Key = TypeVar("Key")
Item = TypeVar("Item")
_NUMBERS = ("Norm", "Max", "Min", "Mean")
_numbers = operator.itemgetter(*_NUMBERS)


def is_tensor(value: Any) -> bool:
    """Return whether a value is the record of a tensor."""
    if type(value) is not dict:
        return False
    kind = value.get("type")
    return type(kind) is str and kind in TENSORS


def leaves(part: Any) -> list[Leaf]:
    """Return the values in a part of an entry, each with its key; None stays.

    >>> leaves([{"type": "int", "value": 1}, [None]])
    [('0', {'type': 'int', 'value': 1}), ('1.0', None)]
    >>> leaves({"axis": {"type": "int", "value": -1}})
    [('axis', {'type': 'int', 'value': -1})]
    """
    found: list[Leaf] = []
    if type(part) is list:  # mostly a few records
        for place, item in enumerate(part):
            if item is None or (type(item) is dict and type(item.get("type")) is str):
                found.append((_DIGITS[place] if place < 10 else str(place), item))
            elif type(item) is list or type(item) is dict:
                _collect(item, f"{place}.", found, MAX_DEPTH - 1)
            else:
                found.append((str(place), item))
    elif part:
        _collect(part, "", found, MAX_DEPTH)
    return found


def _collect(part: Any, above: str, found: list[Leaf], depth: int) -> None:
    if type(part) is list:
        items: Any = enumerate(part)
    elif type(part) is dict:
        items = part.items()
    elif part is None:
        return
    else:
        found.append((above[:-1], part))
        return
    for key, item in items:
        if item is None or (type(item) is dict and type(item.get("type")) is str):
            found.append((f"{above}{key}", item))
        elif type(item) is list or type(item) is dict:
            if depth:
                _collect(item, f"{above}{key}.", found, depth - 1)
        else:
            found.append((f"{above}{key}", item))


def tensors(place: str, value: Any) -> Iterator[tuple[str, Record]]:
    """Yield (place, record) of every tensor in an entry or a part of one.

    >>> [place for place, _ in tensors("a", {"output": [{"type": "mindspore.Tensor"}]})]
    ['a.output.0']
    """
    if is_tensor(value):
        yield place, value
        return
    for key, leaf in leaves(value):
        if is_tensor(leaf):
            yield f"{place}.{key}", leaf


def tensors_in(entry: Any, key: str) -> list[Record]:
    """Return the records of the tensors in a part of an entry; none where the entry has no parts.

    >>> tensors_in({"output": [{"type": "mindspore.Tensor"}, None]}, "output"), tensors_in([], "output")
    ([{'type': 'mindspore.Tensor'}], [])
    """
    return (
        [leaf for _, leaf in leaves(entry.get(key)) if is_tensor(leaf)]
        if type(entry) is dict
        else []
    )


def plain(value: Any) -> Any:
    """Return a plain value as Python has it.

    >>> plain({"type": "int", "value": 4}), plain({"type": "slice", "value": [0, 2, None]}), plain(None)
    (4, slice(0, 2, None), None)
    """
    if type(value) is not dict:
        return value
    if (
        value.get("type") == "slice"
        and isinstance(value.get("value"), list)
        and len(value["value"]) == 3
    ):
        return slice(*value["value"])
    return value.get("value", value)


def plain_values(
    entry: dict[str, Any], keys: Iterable[str] = ("input_args", "input_kwargs")
) -> list[Any]:
    """Return the plain values in parts of an entry, as Python has them."""
    return [
        plain(leaf) for key in keys for _, leaf in leaves(entry.get(key)) if not is_tensor(leaf)
    ]


def real(value: Any) -> float | None:
    """Return a number as a float; None for anything else.

    >>> real(True), real(3), real("3"), real(None), real(10**400)
    (1.0, 3.0, None, None, inf)
    """
    kind = type(value)
    if kind is float:
        return value  # type: ignore[no-any-return]  # a value of JSON
    if kind is int or kind is bool:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return None


def further(record: Record) -> dict[str, Any]:
    """Return the statistics that tables have no column for: chosen ones, and those of the user's own."""
    return {
        key: value
        for key, value in record.items()
        if type(value) in _NUMBER_TYPES and key not in _COLUMNS
    }


def count_of(record: Record) -> int | None:
    """Return how many elements the tensor of a record has; None where that is not known."""
    return element_count(record.get("shape"))


def part_of(entry: Any, key: str) -> Any:
    """Return a part of an entry, such as "input_args"; None where it lacks that, or is no entry."""
    return entry.get(key) if isinstance(entry, dict) else None


def element_count(shape: Any) -> int | None:
    """Return how many elements a tensor of this shape has; None where that is no shape.

    >>> element_count([2, 3]), element_count([]), element_count(None), element_count(["a"]), element_count([-1])
    (6, 1, None, None, None)
    >>> element_count([10**18] * 3)  # of no machine
    """
    if type(shape) is not list and type(shape) is not tuple:
        return None
    count = 1
    for length in shape:
        if type(length) is not int or not 0 <= length < _LONGEST or count >= _LONGEST:
            return None
        count *= length
    return count


def dtype_name(name: str) -> str:
    """Return the name of a dtype as records have it.

    >>> dtype_name("float16"), dtype_name("uint8"), dtype_name("BFLOAT16"), dtype_name("bool")
    ('Float16', 'UInt8', 'BFloat16', 'Bool')
    """
    name = name.strip().lower()
    return _SPELLINGS.get(name) or (f"UI{name[2:]}" if name.startswith("ui") else name.capitalize())


def grouped(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """Return key -> the items that came with it, in their order."""
    found: dict[Key, list[Item]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return found


def array_name(record: Record) -> str:
    """Return the file name of the array of a record; "" where it has none, or one that is no plain name.

    >>> array_name({"data_name": "a.npy"}), array_name({"data_name": "../a.npy"}), array_name({})
    ('a.npy', '', '')
    """
    name = record.get("data_name")
    return name if type(name) is str and os.path.basename(name) == name else ""


def greatest(record: Record) -> float:
    """Return the greatest element of a tensor, without its sign; 0.0 where it is not known.

    >>> greatest({"Max": 1.0, "Min": -2.5}), greatest({})
    (2.5, 0.0)
    """
    return max(abs(real(record.get(key)) or 0.0) for key in ("Max", "Min"))


def has_nonfinite(record: Record) -> bool:
    """Return whether a record says that its tensor holds NaN or Inf.

    >>> has_nonfinite({"Max": float("inf"), "Min": 0.0}), has_nonfinite({"Max": 1.0, "Min": 0.0})
    (True, False)
    """
    for key in ("Max", "Min"):
        value = record.get(key)
        if type(value) is float and not math.isfinite(value):
            return True
    return any(key in record and real(record[key]) for key in COUNTS)


def has_nan(record: Record) -> bool:
    """Return whether a record says that its tensor holds NaN.

    The mean of a tensor with Inf and -Inf is NaN too.

    >>> has_nan({"Max": math.inf, "Min": -math.inf, "Mean": math.nan})
    False
    >>> has_nan({"Max": 1.0, "Min": 0.0, "Mean": math.nan})
    True
    """
    count = real(record.get("nan_count"))
    if count is not None:
        return count > 0
    keys = set(NUMBERS)
    if record.get("Max") == math.inf and record.get("Min") == -math.inf:
        keys.discard("Mean")
    return any(type(record.get(key)) is float and math.isnan(record[key]) for key in keys)


def _new_shape(
    known: dict[Any, Any], of_lengths: tuple[Any, ...], shape: Any, odd: list[str]
) -> Any:
    """Note a shape for later records, unless it is odd; return the one that all share."""
    if lengths(shape):
        odd.append("shape")
        return shape
    return known.setdefault(of_lengths, shape)


def _checked(
    record: dict[str, Any],
    names: list[Any],
    kinds: list[Any],
    usual: set[tuple[Any, ...]],
    odd: list[str],
) -> list[list[Any]]:
    """Check a record; return the names and types of its fields if the next one with these needs no check."""
    key = (*names, *kinds)
    if key in usual:
        return [names, kinds]
    if wrong_fields(record, RECORD):
        odd.append("record")
    elif (
        int not in kinds
    ):  # whole numbers are checked each by itself: none may be larger than a float
        usual.add(key)
        return [names, kinds]
    return [[], []]


def record_sharer(odd: list[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that returns one object for equal records or plain values; ``odd`` gets those to be sieved."""
    known: dict[Any, Any] = {}
    usual: set[tuple[Any, ...]] = set()  # names and types of fields that were checked
    last: list[list[Any]] = [[], []]  # those of the record before: mostly these again

    def share(record: dict[str, Any]) -> dict[str, Any]:
        kind = record.get("type")
        if type(kind) is not str:
            return record
        record["type"] = sys.intern(kind)
        try:
            if kind in TENSORS and "shape" in record:
                of_lengths = (*record["shape"],)
                if not of_lengths and type(record["shape"]) is not list:
                    raise TypeError  # "" and {} have no lengths, as [] has none
                shape = known.get(of_lengths)
                record["shape"] = shape = shape or _new_shape(
                    known, of_lengths, record["shape"], odd
                )
                dtype = record["dtype"] = known.setdefault(record["dtype"], record["dtype"])
                try:
                    key: Any = *_numbers(record), dtype, id(shape)
                except KeyError:  # of another choice of statistics
                    key = *map(record.get, _NUMBERS), dtype, id(shape)
            else:
                key = kind, repr(record.get("value"))
                if len(key[1]) > _MOST_DIGITS:
                    odd.append("value")
            place = hash(
                repr(key) if 0 in key else key
            )  # -0.0 is equal to 0.0, and is shown in another way
            other = known.get(place)
        except (TypeError, KeyError):  # a document may hold anything
            odd.append("record")
            return record
        if other == record:
            return other  # type: ignore[no-any-return]  # a value of JSON
        names = [*record]
        kinds = [*map(type, record.values())]
        if kinds != last[1] or names != last[0]:
            last[:] = _checked(record, names, kinds, usual, odd)
        known.setdefault(place, record)
        return record

    return share
