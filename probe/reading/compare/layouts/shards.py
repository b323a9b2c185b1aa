# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One tensor of a tensor-parallel group: its records on all ranks, added up one rank after the other.

Records may have layouts: which ranks hold which part of the tensor, or which term of a sum.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from probe.door import open_text
from probe.errors import UsageError
from probe.findings.sentence import Sentence, say
from probe.reading.compare.distances.distance import distance
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.judging.parts import Stored, fold_grid, joined_grid
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.values import Record, array_name, element_count
from probe.store import file_names as files

#: the axis of a tensor that every rank has as a whole
WHOLE = -1
#: the axis of a tensor that can be neither
ODD = -2
#: the axis of a tensor that only one side has
ALONE = -3
_KEPT = ("type", "dtype", "requires_grad")
_NOT_COUNTS = frozenset((*_KEPT, "shape", "Max", "Min", "Mean", "Norm", "md5", "data_name"))
#: the axis of a tensor of which ranks have parts, or terms of a sum, as their layouts tell
GRID = -4
_LAYOUT = re.compile(r'^ +"layout": (\{.*\}),?$', re.MULTILINE)
_SHARD = re.compile(r"^Shard\((-?\d+)\)$")
_STAGES = ("pp", "stage", "pipe")


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
            self.variants = [(self.record, list(range(rank)))]
            self.same = False
        for other, ranks in self.variants:
            if agree(other, record):
                ranks.append(rank)
                return
        self.variants.append((record, [rank]))

    def _add_up(self, record: Record) -> None:
        sums = self._sums
        shape = record["shape"]
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
        mean = record.get("Mean")
        norm = record.get("Norm")
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
        sums = self._sums
        shape = list(self.record["shape"])
        assert sums is not None
        shape[self.axis] = self.length
        total = sums[3]
        made: Record = {key: self.record[key] for key in _KEPT if key in self.record}
        made["shape"] = shape
        numbers = (
            sums[0],
            sums[1],
            sums[2] / total if total and sums[2] is not None else None,
            sums[4],
        )
        for key, value in zip(("Max", "Min", "Mean", "Norm"), numbers if total else (None,) * 4):
            if key in self.record:
                made[key] = value
        made.update(self._counts or {})
        if self.record.get("data_name"):
            made.update(
                data_name=self.record["data_name"], stored=Stored(tuple(folders), self.axis)
            )
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
        return next((one for one in (so_far, value) if math.isnan(one)), None) or choose(
            so_far, value
        )
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
    return {
        **{key: record[key] for key in (*_KEPT, "shape") if key in record},
        "not_combined": reason,
    }


def recorded_layout(folder: DumpFolder) -> dict[str, Any] | None:
    """Return the sizes of the groups that the records of a dump name; None where they name none.

    Ranks along an axis in which any tensor is split, or a term of a sum, make one whole. Those along another axis are
    replicas, and the axis "pp" has stages.
    """
    try:
        with open_text(os.path.join(folder.path, files.DUMP)) as file:
            texts = set(_LAYOUT.findall(file.read()))
    except (OSError, ValueError):
        return None
    axes: dict[str, int] = {}
    split: set[str] = set()
    for text in texts:
        try:
            layout = json.loads(text)
        except ValueError:
            continue
        mesh = layout.get("mesh")
        placements = layout.get("placements")
        if isinstance(mesh, dict) and isinstance(placements, list) and len(mesh) == len(placements):
            axes.update(mesh)
            split.update(
                axis for axis, placement in zip(mesh, placements) if placement != "Replicate"
            )
    if not axes:
        return None
    found = {"tp": 1, "pp": 1, "dp": 1}
    order: list[str] = []
    for axis in reversed(axes):  # the last axis has the neighbours
        group = "pp" if axis in _STAGES else "tp" if axis in split else "dp"
        found[group] *= int(axes[axis])
        if group not in order:
            order.append(group)
    return {**found, "order": "-".join([*order, *(group for group in found if group not in order)])}


def has_placements(record: Mapping[str, Any]) -> bool:
    """Return whether a record tells where the parts of its tensor are."""
    layout = record.get("layout")
    if not isinstance(layout, dict):
        return False
    placements = layout.get("placements")
    place = layout.get("coordinate")
    return (
        isinstance(placements, list)
        and isinstance(place, list)
        and 0 < len(placements) == len(place)
    )


def placements_of(record: Mapping[str, Any]) -> list[str | Sentence]:
    """Return how a tensor is laid out: "Shard(0) over dp", "Partial(sum) over tp"; none where that is not recorded."""
    layout = record.get("layout")
    if (
        not isinstance(layout, dict)
        or not has_placements(record)
        or not isinstance(layout.get("mesh"), dict)
    ):
        return []
    mesh = layout["mesh"]
    placed = [(axis, text) for axis, text in zip(mesh, layout["placements"]) if text != "Replicate"]
    return [say("compare.over", placement=text, axis=axis) for axis, text in placed] or [
        "Replicate"
    ]


class Placed(Shards):
    """The records of one tensor whose layout was recorded; ``record`` is that of the first rank."""

    __slots__ = ("_records",)

    def __init__(self, record: Record) -> None:
        super().__init__(record, WHOLE)
        self.axis = _axis(record["layout"]["placements"])
        self._records: list[Record | None] = [record]

    def add(self, record: Record | None, rank: int) -> None:
        """Add the record of a further rank; see ``Shards``."""
        self._records.append(record)
        super().add(record, rank)

    def _is_like(self, record: Record) -> bool:
        is_one = (
            has_placements(record)
            and record["layout"]["placements"] == self.record["layout"]["placements"]
        )
        return is_one and super()._is_like(record)

    def gathered(self, folders: Sequence[str]) -> Record | None:
        """Return the record of the tensor that the parts make; None for a sum without arrays."""
        dims = tuple(
            _dim(text) for text in self.record["layout"]["placements"] if text != "Replicate"
        )
        parts = self._parts()
        made: Record = {key: self.record[key] for key in ("type", "dtype") if key in self.record}
        name = self.record.get("data_name")
        if name:
            stored = Stored(
                tuple(folders[place] for place, _ in parts.values()), 0, tuple(parts), dims
            )
            made.update(data_name=name, stored=stored)
        if None not in dims:
            records = {key: record for key, (_, record) in parts.items()}
            whole = fold_grid(records, dims, lambda row, dim: together(row, dim or 0))
            return {**whole, **made}
        try:
            arrays = {
                key: array_of(folders[place], record) for key, (place, record) in parts.items()
            }
            return {**made, **_numbers(joined_grid(arrays, dims))}
        except (UsageError, OSError, ValueError):
            return None

    def _parts(self) -> dict[tuple[int, ...], tuple[int, Record]]:
        """Return one rank for each part in the order of the parts. Of replicas that differ, one that does."""
        found: dict[tuple[int, ...], tuple[int, Record]] = {}
        for place, record in enumerate(self._records):
            if record is not None:
                key = part_of(record)
                if key not in found or not agree(found[key][1], record):
                    found[key] = place, record
        return dict(sorted(found.items()))


def part_of(record: Record) -> tuple[int, ...]:
    """Return the place of a rank's part among the parts of its tensor: equal for replicas."""
    placed = zip(record["layout"]["coordinate"], record["layout"]["placements"])
    return tuple(int(index) for index, placement in placed if placement != "Replicate")


def array_of(folder: str, record: Record) -> Any:
    """Return the array of a record; raise UsageError when it was not written, or cannot be read."""
    from probe.reading.dumps.load import load_array

    name = array_name(record)
    if not name:
        raise UsageError(say("error.unwritten"))
    return load_array(os.path.join(folder, files.ARRAYS, name), str(record.get("dtype")), True)


def piece(whole: Any, record: Record) -> Any:
    """Return the part of an array that a rank has; None where it has a term of a sum, or an uneven part."""
    import numpy as np

    layout = record["layout"]
    sizes = list(layout.get("mesh", {}).values())
    for index, placement, count in zip(layout["coordinate"], layout["placements"], sizes):
        if placement == "Replicate":
            continue
        dim = _dim(placement)
        if dim is None or dim >= whole.ndim or whole.shape[dim] % count:
            return None
        whole = np.split(whole, count, dim)[index]
    return whole


def _numbers(array: Any) -> Record:
    import numpy as np

    wide = array.astype(np.float64)
    numbers = (wide.max(), wide.min(), wide.mean(), np.linalg.norm(wide)) if wide.size else ()
    found = {key: float(number) for key, number in zip(("Max", "Min", "Mean", "Norm"), numbers)}
    return {"shape": list(wide.shape), **found}


def _dim(placement: Any) -> int | None:
    match = _SHARD.match(str(placement))
    return int(match[1]) if match else None


def _axis(placements: Sequence[Any]) -> int:
    """Return ``GRID`` where ranks have parts or terms, else ``WHOLE``.

    >>> _axis(["Replicate"]) == WHOLE, _axis(["Shard(0)", "Partial(sum)"]) == GRID, _axis(["Partial(max)"]) == ODD
    (True, True, True)
    """
    split = [str(text) for text in placements if text != "Replicate"]
    if any(text != "Partial(sum)" and not re.match(r"Shard\(\d+\)$", text) for text in split):
        return ODD
    return GRID if split else WHOLE
