# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One tensor of a tensor-parallel group: its records on all ranks, added up one rank after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from probe.reading.compare.distances.tolerance import distance, of_dtype
from probe.reading.compare.judging.arrays import Stored
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import Record, element_count

#: the axis of a tensor that every rank has as a whole
WHOLE = -1
#: the axis of a tensor that can be neither
ODD = -2
#: the axis of a tensor that only one side has
ALONE = -3
_KEPT = ("type", "dtype", "requires_grad")
_NOT_COUNTS = frozenset((*_KEPT, "shape", "Max", "Min", "Mean", "Norm", "md5", "data_name"))


class Shards:
    """The records of one tensor; that of the first rank comes first.

    ``axis`` is the one along which the ranks' parts are put together; ``WHOLE``, ``ODD`` or ``ALONE``. ``same`` says
    whether the records of all ranks agree.
    """

    __slots__ = ("axis", "record", "same", "variants", "length", "_sums", "_counts")

    def __init__(self, record: Record, axis: int) -> None:
        self.axis, self.record, self.same = axis, record, True
        #: of a whole tensor on whose records ranks disagree: each record with its ranks
        self.variants: list[tuple[Record, list[int]]] | None = None
        self._counts: dict[str, Any] | None = None
        self._sums: list[Any] | None = None
        self.length = 0  # of all parts together along the axis
        if axis >= 0:
            self._sums = [None, None, 0.0, 0, 0.0]
            self._add_up(record)

    def add(self, record: Record | None, rank: int) -> None:
        """Add the record of a further rank, by its place in its group; None where it has none."""
        if record is None or record.get("dtype") != self.record.get("dtype"):
            self.axis, self.same = ODD, False
        elif self.axis == WHOLE:
            self._compare(record, rank)
        else:
            self.same = self.same and agree(self.record, record)
            if self.axis >= 0 and _fits(self.record.get("shape"), record.get("shape"), self.axis):
                self._add_up(record)
            elif self.axis != ALONE:
                self.axis = ODD

    def _compare(self, record: Record, rank: int) -> None:
        if self.variants is None:
            if agree(self.record, record):
                return
            self.variants, self.same = [(self.record, list(range(rank)))], False
        for other, ranks in self.variants:
            if agree(other, record):
                ranks.append(rank)
                return
        self.variants.append((record, [rank]))

    def _add_up(self, record: Record) -> None:
        sums, shape = self._sums, record["shape"]
        assert sums is not None
        self.length += shape[self.axis]
        for key, value in record.items():
            if key not in _NOT_COUNTS and type(value) in (int, float):
                self._counts = self._counts or {}
                self._counts[key] = self._counts.get(key, 0) + value
        count = element_count(shape) or 0
        if not count:
            return
        sums[0] = _extreme(sums[0], record.get("Max"), max)
        sums[1] = _extreme(sums[1], record.get("Min"), min)
        mean, norm = record.get("Mean"), record.get("Norm")
        try:
            sums[2] = None if mean is None or sums[2] is None else sums[2] + mean * count
            sums[4] = None if norm is None or sums[4] is None else math.hypot(sums[4], norm)
        except TypeError:  # a document may hold anything
            sums[2] = sums[4] = None
        sums[3] += count

    @property
    def agrees(self) -> bool:
        """Whether every rank has the tensor as a whole, and all have the same."""
        return self.axis == WHOLE and self.same

    def whole(self, folders: Sequence[str]) -> Record:
        """Return the record of the tensor that the parts make."""
        sums, shape = self._sums, list(self.record["shape"])
        assert sums is not None
        shape[self.axis] = self.length
        total = sums[3]
        made: Record = {key: self.record[key] for key in _KEPT if key in self.record}
        made["shape"] = shape
        numbers = (sums[0], sums[1], sums[2] / total if total and sums[2] is not None else None, sums[4])
        for key, value in zip(("Max", "Min", "Mean", "Norm"), numbers if total else (None,) * 4):
            if key in self.record:
                made[key] = value
        made.update(self._counts or {})
        if self.record.get("data_name"):
            made.update(data_name=self.record["data_name"], stored=Stored(tuple(folders), self.axis))
        return made


def together(records: Sequence[Record], axis: int) -> Record:
    """Return the record of the tensor that parts make along an axis."""
    shards = Shards(records[0], axis)
    for rank, record in enumerate(records[1:], 1):
        shards.add(record, rank)
    return shards.whole(())


def _extreme(so_far: Any, value: Any, choose: Any) -> Any:
    """Return the greater or the lesser of two values; NaN where one is NaN."""
    if so_far is None or value is None:
        return value if so_far is None else so_far
    try:
        return next((one for one in (so_far, value) if math.isnan(one)), None) or choose(so_far, value)
    except TypeError:  # a document may hold anything
        return so_far


def _fits(a: Any, b: Any, axis: int) -> bool:
    if type(a) is not list or type(b) is not list or len(a) != len(b) or element_count(b) is None:
        return False
    return all(left == right or place == axis for place, (left, right) in enumerate(zip(a, b)))


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
    places = [place for place, (left, right) in enumerate(zip(a, b)) if left != right]
    return WHOLE if not places else places[0] if len(places) == 1 else ODD


def not_combined(record: Record, reason: str) -> Record:
    """Return the record of a tensor that the ranks' records do not tell."""
    return {**{key: record[key] for key in (*_KEPT, "shape") if key in record}, "not_combined": reason}
