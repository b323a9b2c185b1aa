# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which operators ran in which dtype, the casts in each Cell, and the places where half precision enters and leaves."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from typing import Any, NamedTuple

from probe.findings.sentence import say
from probe.reading.dumps import text
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, CELL, FORWARD, cell_label, parse
from probe.reading.dumps.entry_view import INPUTS, OUTPUTS
from probe.reading.dumps.query import Query, folders
from probe.reading.dumps.run import Run
from probe.reading.dumps.values import tensors_in

#: bytes -> dtypes with fractions; of half precision are those of at most two
_SIZES = {8: "float64 double", 4: "float32 float", 2: "float16 half bfloat16", 1: "hifloat8 float8_e4m3fn float8_e5m2"}
_BYTES = {dtype: size for size, dtypes in _SIZES.items() for dtype in dtypes.split()}
#: APIs that only change the dtype
CASTS = re.compile(r"(?i)to|astype|cast|type_as|type|float|half|bfloat16|double")
_TITLES = {"casts": "show.casts", "enters": "show.half_enters", "leaves": "show.half_leaves"}


def size_of(dtype: object) -> int:
    """Return the bytes of a number of a dtype with fractions; 0 for all other dtypes."""
    return _BYTES.get(str(dtype).rpartition(".")[2].lower(), 0)


class Change(NamedTuple):
    """A call whose outputs have another dtype than its inputs."""

    name: str
    cell: str  # path and class of the Cell around it; "" outside of Cells
    before: str  # the dtype of the inputs with the fewest bytes
    after: str  # the dtype of the outputs with the fewest bytes

    @property
    def enters(self) -> bool:
        """Whether half precision begins here."""
        return size_of(self.before) > 2 >= size_of(self.after)


def dtypes_of(entry: Any, keys: tuple[str, ...] = OUTPUTS) -> list[str]:
    """Return the dtypes of the tensors in parts of an entry."""
    return [str(record.get("dtype")) for key in keys for record in tensors_in(entry, key)]


def change_of(dump: Any, name: str) -> Change | None:
    """Return how a call changes the precision; None where it does not, or has none."""
    sides = (filter(size_of, dtypes_of(dump.data[name], keys)) for keys in (INPUTS, OUTPUTS))
    before, after = (min(found, key=lambda dtype: (size_of(dtype), dtype), default="") for found in map(list, sides))
    cell = cell_label(dump.construct.get(name)) or ""
    return Change(name, cell, before, after) if "" not in (before, after) and before != after else None


def dtype_table(dump: Dump) -> dict[str, list[dict[str, Any]]]:
    """Return operators, casts, and where half enters and leaves. Calls of APIs count; without them those of Cells."""
    kind = API if any(parse(name).kind == API for name in dump.data) else CELL
    calls = [(name, parse(name)) for name in dump.data]
    operators, casts, changes = Counter[tuple[str, ...]](), Counter[tuple[str, ...]](), list[Change]()
    for name, parts in (call for call in calls if call[1].kind == kind and call[1].direction == FORWARD):
        made, change = dict.fromkeys(dtypes_of(dump.data[name])), change_of(dump, name)
        operators[parts.key if kind == API else parts.api, "/".join(made) or "-"] += 1
        changes += [change] if change else []
        casts.update([change[1:]] if change and CASTS.fullmatch(parts.api) else [])
    return {
        "operators": [dict(zip(("operator", "dtype", "calls"), (*key, operators[key]))) for key in sorted(operators)],
        "casts": [dict(zip(("cell", "from", "to", "calls"), (*key, casts[key]))) for key in sorted(casts)],
        "enters": [change._asdict() for change in changes if change.enters],
        "leaves": [change._asdict() for change in changes if size_of(change.before) <= 2 < size_of(change.after)],
    }


def show_dtypes(run: Run, query: Query, form: str, width: int, language: str) -> int:
    """Print the dtypes of the steps and ranks of a query, and return the exit status."""
    if form == "csv":
        print("probe: --dtypes: --format csv is not allowed. Allowed: text, json.", file=sys.stderr)
        return 2
    tables = [(folder, dtype_table(Dump(folder))) for folder in folders(run, query.steps, query.ranks)]
    for folder, table in tables if form == "text" else ():
        print(text.safe(folder.label))
        for key, found in ((key, found) for key, found in table.items() if found):
            most = query.rows if query.rows and key in _TITLES else len(found)
            title = f"\n{say(_TITLES[key]).text(language)}" if key in _TITLES else ""
            body = text.columns([list(found[0]), *([*map(text.safe, row.values())] for row in found[:most])], width)
            more = [say("show.more", count=len(found) - most).text(language)] * (len(found) > most)
            print(title, body, *more, sep="\n")
    if form == "json":
        print(json.dumps([{"step": folder.step, "rank": folder.rank, **table} for folder, table in tables], indent=1))
    return 0
