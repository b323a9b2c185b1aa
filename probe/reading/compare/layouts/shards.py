# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One tensor of a tensor-parallel group: its records on all ranks, added up one rank after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from probe.reading.compare.distances.distance import distance
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.judging.parts import Stored
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import Record, element_count

#: the axis of a tensor that every rank has as a whole
WHOLE = -1
#: the axis of a tensor that can be neither
ODD = -2
#: the axis of a tensor that only one side has
ALONE = -3
#: the axis of a tensor of which ranks have parts, or terms of a sum, as their layouts tell
GRID = -4
_STATISTICS = ("Max", "Min", "Mean", "Norm")
_KEPT = ("type", "dtype", "requires_grad")
_NOT_COUNTS = frozenset((*_KEPT, *_STATISTICS, "shape", "md5", "data_name"))


class Variant(NamedTuple):
    """One of several records of a tensor that every rank has as a whole."""

    record: Record
    ranks: list[int]  # the ranks that have it, by their places in their group


class _Sums:
    """The statistics of parts, added up; None for one that a part does not tell."""

    def __init__(self) -> None:
        self.most: Any = None
        self.least: Any = None
        self.count = 0
        self._total: Any = 0.0
        self._norm: Any = 0.0

    def add(self, record: Record, count: int) -> None:
        """Add those of a part of so many elements."""
        self.most = _extreme(self.most, record.get("Max"), max)
        self.least = _extreme(self.least, record.get("Min"), min)
        self.count += count
        mean = record.get("Mean")
        norm = record.get("Norm")
        try:
            if mean is None or self._total is None:
                self._total = None
            else:
                self._total += mean * count
            if norm is None or self._norm is None:
                self._norm = None
            else:
                self._norm = math.hypot(self._norm, norm)
        except TypeError:  # a document may hold anything
            self._total = None
            self._norm = None

    def statistics(self) -> dict[str, Any]:
        """Return the statistics of the whole."""
        if not self.count:
            return dict.fromkeys(_STATISTICS)
        mean = None if self._total is None else self._total / self.count
        return dict(zip(_STATISTICS, (self.most, self.least, mean, self._norm)))


class Shards:
    """The records of one tensor; that of the first rank comes first.

    ``axis`` is the one along which the ranks' parts are put together; ``WHOLE``, ``ODD`` or ``ALONE``. ``same`` says
    whether the records of all ranks agree.
    """

    __slots__ = ("axis", "record", "same", "variants", "length", "_sums", "_counts")

    def __init__(self, record: Record, axis: int) -> None:
        self.axis = axis
        self.record = record
        self.same = True
        #: of a whole tensor on whose records ranks disagree
        self.variants: list[Variant] | None = None
        self._counts: dict[str, Any] | None = None
        self._sums: _Sums | None = None
        self.length = 0  # of all parts together along the axis
        if axis >= 0:
            self._sums = _Sums()
            self._add_up(record)

    def add(self, record: Record | None, rank: int) -> None:
        """Add the record of a further rank, by its place in its group; None where it has none."""
        if record is None or not self._is_like(record):
            self.axis = ODD
            self.same = False
        elif self.axis == WHOLE:
            self._compare(record, rank)
        else:
            self.same = self.same and agree(self.record, record)
            if self.axis >= 0 and _fits(self.record.get("shape"), record.get("shape"), self.axis):
                self._add_up(record)
            elif self.axis not in (ALONE, GRID):
                self.axis = ODD

    def _is_like(self, record: Record) -> bool:
        return bool(record.get("dtype") == self.record.get("dtype"))

    def _compare(self, record: Record, rank: int) -> None:
        if self.variants is None:
            if agree(self.record, record):
                return
            self.variants = [Variant(self.record, list(range(rank)))]
            self.same = False
        for variant in self.variants:
            if agree(variant.record, record):
                variant.ranks.append(rank)
                return
        self.variants.append(Variant(record, [rank]))

    def _add_up(self, record: Record) -> None:
        assert self._sums is not None
        shape = record["shape"]
        self.length += shape[self.axis]
        for key, value in record.items():
            if key not in _NOT_COUNTS and type(value) in (int, float):
                self._counts = self._counts or {}
                self._counts[key] = self._counts.get(key, 0) + value
        count = element_count(shape) or 0
        if count:
            self._sums.add(record, count)

    @property
    def agrees(self) -> bool:
        """Whether every rank has the tensor as a whole, and all have the same."""
        return self.axis == WHOLE and self.same

    def whole(self, folders: Sequence[str]) -> Record:
        """Return the record of the tensor that the parts make."""
        assert self._sums is not None
        made = _kept(self.record)
        made["shape"] = list(self.record["shape"])
        made["shape"][self.axis] = self.length
        for key, value in self._sums.statistics().items():
            if key in self.record:
                made[key] = value
        made.update(self._counts or {})
        name = self.record.get("data_name")
        if name:
            made["data_name"] = name
            made["stored"] = Stored(tuple(folders), self.axis)
        return made


def _kept(record: Record) -> Record:
    return {key: record[key] for key in _KEPT if key in record}


def together(records: Sequence[Record], axis: int) -> Record:
    """Return the record of the tensor that parts make along an axis."""
    shards = Shards(records[0], axis)
    for rank, record in enumerate(records[1:], 1):
        shards.add(record, rank)
    return shards.whole(())


def _extreme(so_far: Any, value: Any, choose: Callable[..., Any]) -> Any:
    """Return the greater or the lesser of two values; NaN where one is NaN."""
    if so_far is None:
        return value
    if value is None:
        return so_far
    try:
        if math.isnan(so_far):
            return so_far
        return value if math.isnan(value) else choose(so_far, value)
    except TypeError:  # a document may hold anything
        return so_far


def _fits(a: Any, b: Any, axis: int) -> bool:
    """Return whether two shapes are equal but for an axis."""
    if type(a) is not list or type(b) is not list:
        return False
    if len(a) != len(b) or element_count(b) is None:
        return False
    return all(place == axis for place in _other_axes(a, b))


def _other_axes(a: Sequence[Any], b: Sequence[Any]) -> list[int]:
    """Return the axes in which two shapes differ."""
    return [place for place, (left, right) in enumerate(zip(a, b)) if left != right]


def agree(a: Record, b: Record) -> bool:
    """Return whether two records may be of one tensor: equal content, or numbers within the dtype's tolerance."""
    if a.get("shape") != b.get("shape"):
        return False
    key = content_key(a)
    if key is not None and key == content_key(b):
        return True
    apart = distance(a, b).rel_l2
    if apart is None:  # no numbers
        return not a.get("md5") or not b.get("md5")
    return apart <= max(of_dtype(a.get("dtype")), of_dtype(b.get("dtype")))


def axis_between(a: Any, b: Any) -> int:
    """Return the one axis in which two shapes differ; ``WHOLE`` where they are equal, else ``ODD``.

    >>> axis_between([4, 8], [4, 16]), axis_between([4], [4]), axis_between([4, 8], [2, 16])
    (1, -1, -2)
    """
    if element_count(a) is None or element_count(b) is None or len(a) != len(b):
        return ODD
    axes = _other_axes(a, b)
    if not axes:
        return WHOLE
    return axes[0] if len(axes) == 1 else ODD


def not_combined(record: Record, reason: str) -> Record:
    """Return the record of a tensor that the ranks' records do not tell."""
    made = _kept(record)
    if "shape" in record:
        made["shape"] = record["shape"]
    made["not_combined"] = reason
    return made
