# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The dtypes of a dump: which operators ran in which, the casts in each Cell, where half precision enters and leaves.

And ``probe show --fits``: the calls whose numbers a narrower dtype would lose, worst first.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import Sentence, said_of, say
from probe.reading.dumps import text
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, CELL, FORWARD, cell_label, parse
from probe.reading.dumps.entry_view import INPUTS, OUTPUTS
from probe.reading.dumps.query import Query, folders, words
from probe.reading.dumps.run import Run
from probe.reading.dumps.tables import write_csv
from probe.reading.dumps.values import Record, count_of, real, tensors_in

#: bytes -> dtypes with fractions; of half precision are those of at most two
_SIZES = {
    8: "float64 double",
    4: "float32 float",
    2: "float16 half bfloat16",
    1: "hifloat8 float8_e4m3fn float8_e5m2",
}
_BYTES = {dtype: size for size, dtypes in _SIZES.items() for dtype in dtypes.split()}
#: APIs that only change the dtype
CASTS = re.compile(r"(?i)to|astype|cast|type_as|type|float|half|bfloat16|double")
_TITLES = {"casts": "show.casts", "enters": "show.half_enters", "leaves": "show.half_leaves"}
#: worst first
_VERDICTS = OVERFLOW, UNDERFLOW, UNKNOWN, FITS = "overflow", "underflow", "unknown", "fits"
#: so large a part of a tensor may become zero
_LOST = 0.01
_HEADER = (
    "fits.call",
    "show.tensor",
    "show.dtype",
    "fits.largest",
    "fits.overflow",
    "fits.underflow",
)


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
    before, after = (
        min(found, key=lambda dtype: (size_of(dtype), dtype), default="")
        for found in map(list, sides)
    )
    cell = cell_label(dump.construct.get(name)) or ""
    return (
        Change(name, cell, before, after) if "" not in (before, after) and before != after else None
    )


def dtype_table(dump: Dump) -> dict[str, list[dict[str, Any]]]:
    """Return operators, casts, and where half enters and leaves. Calls of APIs count; without them those of Cells."""
    kind = API if any(parse(name).kind == API for name in dump.data) else CELL
    calls = [(name, parse(name)) for name in dump.data]
    operators = Counter[tuple[str, ...]]()
    casts = Counter[tuple[str, ...]]()
    changes = list[Change]()
    for name, parts in (
        call for call in calls if call[1].kind == kind and call[1].direction == FORWARD
    ):
        made = dict.fromkeys(dtypes_of(dump.data[name]))
        change = change_of(dump, name)
        operators[parts.key if kind == API else parts.api, "/".join(made) or "-"] += 1
        changes += [change] if change else []
        casts.update([change[1:]] if change and CASTS.fullmatch(parts.api) else [])
    return {
        "operators": [
            dict(zip(("operator", "dtype", "calls"), (*key, operators[key])))
            for key in sorted(operators)
        ],
        "casts": [
            dict(zip(("cell", "from", "to", "calls"), (*key, casts[key]))) for key in sorted(casts)
        ],
        "enters": [change._asdict() for change in changes if change.enters],
        "leaves": [
            change._asdict()
            for change in changes
            if size_of(change.before) <= 2 < size_of(change.after)
        ],
    }


def show_dtypes(run: Run, query: Query, form: str, width: int, language: str) -> int:
    """Print the dtypes of the steps and ranks of a query, and return the exit status."""
    if form == "csv":
        raise UsageError(say("error.csv_dtypes"))
    tables = [
        (folder, dtype_table(Dump(folder))) for folder in folders(run, query.steps, query.ranks)
    ]
    for folder, table in tables if form == "text" else ():
        print(text.safe(folder.label))
        for key, found in ((key, found) for key, found in table.items() if found):
            most = query.rows if query.rows and key in _TITLES else len(found)
            title = f"\n{say(_TITLES[key]).text(language)}" if key in _TITLES else ""
            body = text.columns(
                [list(found[0]), *([*map(text.safe, row.values())] for row in found[:most])], width
            )
            more = [say("show.more", count=len(found) - most).text(language)] * (len(found) > most)
            print(title, body, *more, sep="\n")
    if form == "json":
        print(
            json.dumps(
                [{"step": folder.step, "rank": folder.rank, **table} for folder, table in tables],
                indent=1,
            )
        )
    return 0


class Fit(NamedTuple):
    """How one tensor fits into a dtype."""

    verdict: str
    overflow: Any  # the part that becomes Inf or NaN, a float; None for unknown
    underflow: Any  # the part that becomes zero and is not, likewise; None for unknown
    largest: float  # the greatest magnitude

    @property
    def rank(self) -> tuple[float, ...]:
        """Its place: the worst has the smallest."""
        return (
            _VERDICTS.index(self.verdict),
            -(self.overflow or 0),
            -(self.underflow or 0),
            -self.largest,
        )


def fit_of(record: Record, name: str) -> Fit | None:
    """Return how a tensor fits into a dtype; None for one that is not of floats, is empty, or has no finite extrema.

    >>> fit_of({"dtype": "Float32", "Max": 7e4, "Min": 0.0}, "float16").verdict
    'overflow'
    """
    keys = "Max", "Min", "smallest_magnitude", "zero_share", f"overflow:{name}", f"underflow:{name}"
    *extrema, smallest, zeros, overflow, underflow = (real(record.get(key)) for key in keys)
    ends = [abs(end) for end in extrema if end is not None and math.isfinite(end)]
    largest = max(ends, default=0.0)
    is_float = str(record.get("dtype")).startswith(("Float", "BFloat", "HiFloat"))
    if (
        not is_float
        or count_of(record) == 0
        or (overflow is None and (None in extrema or not ends))
    ):
        return None
    is_beyond = not math.isfinite(_rounded(largest, name))
    is_zero = not _rounded(largest, name)
    if len(ends) == 2:  # beside NaN/Inf, the greatest magnitude is unknown
        overflow = 0.0 if overflow is None and not is_beyond else overflow
        underflow = (
            (1.0 - (zeros or 0.0)) * bool(largest) if underflow is None and is_zero else underflow
        )
    if underflow is None and smallest is not None and _rounded(smallest, name):
        underflow = 0.0
    verdict = UNKNOWN if overflow is None or underflow is None else FITS
    verdict = (
        OVERFLOW if overflow or is_beyond else UNDERFLOW if (underflow or 0.0) > _LOST else verdict
    )
    return Fit(verdict, overflow, underflow, largest)


def _rounded(magnitude: float, name: str) -> float:
    import ml_dtypes
    import numpy as np  # compare looks at dtypes without it

    with np.errstate(over="ignore"):
        return float(np.float64(magnitude).astype(np.dtype(getattr(ml_dtypes, name, name))))


def answer_fits(
    run: Run, query: Query, name: str, form: str, width: int, language: str, file: IO[str]
) -> tuple[list[Sentence], int]:
    """Write the calls and how they fit into a dtype; return as ``answer_to`` does."""
    found = list[tuple[dict[str, Any], Fit]]()
    notes = list[Sentence]()
    for folder in folders(run, query.steps, query.ranks):
        try:
            found += list(_rows(Dump(folder), query, name))
        except UsageError as error:  # noqa: PERF203 - one broken dump does not hide the others
            notes.append(say("show.broken_because", reason=said_of(error)))
    rows = [{**row, **fit._asdict()} for row, fit in sorted(found, key=lambda item: item[1].rank)]
    if form == "text":
        print("\n".join(_lines(rows, query.rows, name, width, language)), file=file)
    elif form == "json":
        print(json.dumps(rows, indent=1), file=file)
    else:
        write_csv(
            file, ("step", "rank", "call", "place", "dtype", *Fit._fields), map(dict.values, rows)
        )
    return notes, len(notes)


def _rows(dump: Dump, query: Query, name: str) -> Iterator[tuple[dict[str, Any], Fit]]:
    for call in dump.calls(query.names.name, query.names.regex, cell=query.names.cell):
        fits = [(fit, tensor) for tensor in call.tensors() if (fit := fit_of(tensor.record, name))]
        if fits:
            fit, tensor = min(fits, key=lambda item: item[0].rank)
            place = {"step": dump.step, "rank": dump.rank, "call": call.name}
            yield {**place, "place": tensor.place, "dtype": tensor.dtype}, fit


def _lines(
    rows: list[dict[str, Any]], most: int, dtype: str, width: int, language: str
) -> Iterator[str]:
    """Yield the answer for people; of calls that fit, only the number. Max alone tells an overflow of unknown share."""
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in _VERDICTS}
    yield say("fits.head", calls=len(rows), dtype=dtype, **counts).text(language)
    wrong = [row for row in rows if row["verdict"] in (OVERFLOW, UNDERFLOW)]
    body = [
        [*(text.safe(row[key]) for key in ("call", "place", "dtype")), text.number(row["largest"])]
        + [
            "> 0" if row[key] is None and row["verdict"] == key else text.number(row[key])
            for key in (OVERFLOW, UNDERFLOW)
        ]
        for row in wrong[: most or None]
    ]
    if body:
        yield text.columns([words(language, *_HEADER), *body], width, 3)
    if len(wrong) > len(body):
        yield say("show.more", count=len(wrong) - len(body)).text(language)
    if counts[UNKNOWN]:
        yield say("fits.unknown", count=counts[UNKNOWN], dtype=dtype).text(language)
