# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One tensor whose layout was recorded: the parts of the ranks as a grid, and the whole that they make."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.reading.compare.judging.parts import Stored, fold_grid, joined_grid
from probe.reading.compare.layouts.placements import REPLICATE, Part, has_placements, part_of
from probe.reading.compare.layouts.shards import GRID, ODD, WHOLE, Shards, agree, together
from probe.reading.dumps.values import Record, array_name
from probe.store import file_names as files

_COUNTED_SHARD = re.compile(r"Shard\(\d+\)$")
_SHARD = re.compile(r"^Shard\((-?\d+)\)$")


class _Holder(NamedTuple):
    """A rank that has a part."""

    rank: int  # its place in its group
    record: Record


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
        if not has_placements(record):
            return False
        placements = self.record["layout"]["placements"]
        return bool(record["layout"]["placements"] == placements) and super()._is_like(record)

    def gathered(self, folders: Sequence[str]) -> Record | None:
        """Return the record of the tensor that the parts make; None for a sum without arrays."""
        placements = self.record["layout"]["placements"]
        dims = tuple(_dim(text) for text in placements if text != REPLICATE)
        parts = self._parts()
        made: Record = {key: self.record[key] for key in ("type", "dtype") if key in self.record}
        name = self.record.get("data_name")
        if name:
            own = tuple(folders[holder.rank] for holder in parts.values())
            made["data_name"] = name
            made["stored"] = Stored(own, 0, tuple(parts), dims)
        if None not in dims:
            records = {part: holder.record for part, holder in parts.items()}
            whole = fold_grid(records, dims, _row)
            return {**whole, **made}
        try:
            arrays: dict[Part, Any] = {}
            for part, holder in parts.items():
                arrays[part] = array_of(folders[holder.rank], holder.record)
            return {**made, **_numbers(joined_grid(arrays, dims))}
        except (UsageError, OSError, ValueError):
            return None

    def _parts(self) -> dict[Part, _Holder]:
        """Return one rank for each part in the order of the parts. Of replicas that differ, one that does."""
        found: dict[Part, _Holder] = {}
        for rank, record in enumerate(self._records):
            if record is not None:
                part = part_of(record)
                known = found.get(part)
                if known is None or not agree(known.record, record):
                    found[part] = _Holder(rank, record)
        return {part: found[part] for part in sorted(found)}


def _row(records: list[Record], dim: int | None) -> Record:
    return together(records, dim or 0)


def array_of(folder: str, record: Record) -> Any:
    """Return the array of a record; raise UsageError when it was not written, or cannot be read."""
    from probe.reading.dumps.load import load_array

    name = array_name(record)
    if not name:
        raise UsageError(say("error.unwritten"))
    path = os.path.join(folder, files.ARRAYS, name)
    return load_array(path, str(record.get("dtype")), True)


def piece(whole: Any, record: Record) -> Any:
    """Return the part of an array that a rank has; None where it has a term of a sum, or an uneven part."""
    import numpy as np

    layout = record["layout"]
    sizes = list(layout.get("mesh", {}).values())
    for index, placement, count in zip(layout["coordinate"], layout["placements"], sizes):
        if placement == REPLICATE:
            continue
        dim = _dim(placement)
        if dim is None or dim >= whole.ndim or whole.shape[dim] % count:
            return None
        whole = np.split(whole, count, dim)[index]
    return whole


def _numbers(array: Any) -> Record:
    import numpy as np

    wide = array.astype(np.float64)
    record: Record = {"shape": list(wide.shape)}
    if wide.size:
        record["Max"] = float(wide.max())
        record["Min"] = float(wide.min())
        record["Mean"] = float(wide.mean())
        record["Norm"] = float(np.linalg.norm(wide))
    return record


def _dim(placement: Any) -> int | None:
    match = _SHARD.match(str(placement))
    return int(match[1]) if match else None


def _axis(placements: Sequence[Any]) -> int:
    """Return ``GRID`` where ranks have parts or terms, else ``WHOLE``.

    >>> _axis(["Replicate"]) == WHOLE, _axis(["Shard(0)", "Partial(sum)"]) == GRID, _axis(["Partial(max)"]) == ODD
    (True, True, True)
    """
    split = [str(text) for text in placements if text != REPLICATE]
    if not all(text == "Partial(sum)" or _COUNTED_SHARD.match(text) for text in split):
        return ODD
    return GRID if split else WHOLE
