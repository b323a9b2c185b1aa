# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which operators ran in which dtype, the casts in each Cell, and the places where half precision enters and leaves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from probe.findings.sentence import say
from probe.reading.dumps import text
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, CELL, FORWARD, cell_label, parse
from probe.reading.dumps.entry_view import INPUTS, OUTPUTS
from probe.reading.dumps.values import tensors_in

#: dtypes with fractions; of half precision are those of at most two bytes
_BYTES = {"float64": 8, "double": 8, "float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2, "hifloat8": 1}
_CASTS = re.compile(r"to|astype|cast|type_as|type|float|half|bfloat16|double", re.IGNORECASE)


def size_of(dtype: object) -> int:
    """Return the bytes of a number of a dtype with fractions; 0 for all other dtypes.

    >>> size_of("Float32"), size_of("torch.bfloat16"), size_of("Float8_e4m3fn"), size_of("Int64")
    (4, 2, 1, 0)
    """
    name = str(dtype).rpartition(".")[2].lower()
    return 1 if name.startswith("float8") else _BYTES.get(name, 0)


def is_cast(api: str) -> bool:
    """Return whether an API only changes the dtype."""
    return _CASTS.fullmatch(api) is not None


class Change(NamedTuple):
    """A call whose outputs have another dtype than its inputs."""

    name: str
    cell: str  # path and class of the Cell around it; "" outside of Cells
    before: str  # the dtype of the inputs with the fewest bytes
    after: str  # the dtype of the outputs with the fewest bytes

    @property
    def is_cast(self) -> bool:
        """Whether the call does nothing else."""
        return is_cast(parse(self.name).api)

    @property
    def enters(self) -> bool:
        """Whether half precision begins here."""
        return size_of(self.before) > 2 >= size_of(self.after)

    @property
    def leaves(self) -> bool:
        """Whether half precision ends here."""
        return size_of(self.before) <= 2 < size_of(self.after)


class DtypeTable(NamedTuple):
    """The dtypes of one step of one rank."""

    operators: Mapping[tuple[str, str], int]  # (API, dtype of the outputs) -> calls
    casts: Mapping[tuple[str, str, str], int]  # (Cell, before, after) -> calls
    changes: list[Change]  # in the order of the calls

    def to_dict(self) -> dict[str, Any]:
        """Return the table for JSON."""
        return {
            "operators": _rows(("operator", "dtype", "calls"), self.operators),
            "casts": _rows(("cell", "from", "to", "calls"), self.casts),
            "enters": [item._asdict() for item in self.changes if item.enters],
            "leaves": [item._asdict() for item in self.changes if item.leaves],
        }

    def text(self, rows: int, width: int, language: str) -> str:
        """Return the table for people, with so many places; a line has ``width`` letters at most, 0 cuts nothing."""
        found = self.to_dict()
        titles = {"casts": "show.casts", "enters": "show.half_enters", "leaves": "show.half_leaves"}
        parts = [_columns(found["operators"], width)]
        for key, title in titles.items():
            more = len(found[key]) - rows
            cut = f"\n{say('show.more', count=more).text(language)}" if more > 0 else ""
            if found[key]:
                parts.append(f"{say(title).text(language)}\n{_columns(found[key][:rows], width)}{cut}")
        return "\n\n".join(parts)


def _rows(keys: tuple[str, ...], counts: Mapping[Any, int]) -> list[dict[str, Any]]:
    return [dict(zip(keys, (*key, count))) for key, count in counts.items()]


def _columns(rows: list[dict[str, Any]], width: int) -> str:
    body = [[text.safe(value) for value in row.values()] for row in rows]
    return text.columns([list(rows[0]) if rows else [], *body], width)


def dtypes_of(entry: Any, keys: Iterable[str]) -> list[str]:
    """Return the dtypes of the tensors in parts of an entry."""
    return [str(record.get("dtype")) for key in keys for record in tensors_in(entry, key)]


def change_of(dump: Dump, name: str) -> Change | None:
    """Return how a call changes the precision; None where it does not, or has none."""
    entry = dump.data[name]
    given, made = (
        sorted(filter(size_of, dtypes_of(entry, keys)), key=lambda dtype: (size_of(dtype), dtype))
        for keys in (INPUTS, OUTPUTS)
    )
    if not given or not made or given[0] == made[0]:
        return None
    return Change(name, cell_label(dump.construct.get(name)) or "", given[0], made[0])


def dtype_table(dump: Dump) -> DtypeTable:
    """Return the dtypes of a dump. Calls of APIs count; of a dump without them those of Cells."""
    names = list(_calls(dump, API)) or list(_calls(dump, CELL))
    operators: Counter[tuple[str, str]] = Counter()
    for name in names:
        parts, made = parse(name), dtypes_of(dump.data[name], OUTPUTS)
        key = parts.key if parts.kind == API else parts.api
        operators[key, "/".join(dict.fromkeys(made)) or "-"] += 1
    changes = [change for change in (change_of(dump, name) for name in names) if change is not None]
    casts = Counter((change.cell, change.before, change.after) for change in changes if change.is_cast)
    return DtypeTable(dict(sorted(operators.items())), dict(sorted(casts.items())), changes)


def _calls(dump: Dump, kind: str) -> Iterator[str]:
    for name in dump.data:
        parts = parse(name)
        if parts.kind == kind and parts.direction == FORWARD:
            yield name
