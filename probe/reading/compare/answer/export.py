# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The rows of a comparison: csv, JSON lines, and msprobe's own columns."""

from __future__ import annotations

import csv
import functools
import io
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from typing import Any

from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.judging.judged_pairs import JudgedPairs
from probe.reading.compare.judging.verdicts import HARD, Slot
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps import entry_name
from probe.reading.dumps.flow import user_frame
from probe.reading.dumps.tables import create
from probe.reading.dumps.text import csv_text
from probe.reading.dumps.values import NUMBERS, element_count, is_tensor, plain, real

COLUMNS = (
    "step", "rank", "cell", "call_a", "call_b", "how", "place", "verdict", "rel_l2", "max_abs", "exact", "distance",
    "dtype_a", "dtype_b", "shape_a", "shape_b",
    "Max_a", "Max_b", "Min_a", "Min_b", "Mean_a", "Mean_b", "Norm_a", "Norm_b",
)  # fmt: skip

_NUMBERS = frozenset((float, int, bool, type(None)))
#: the end of a line of csv; nine digits tell all float32 apart
_LINE = "%s,%s,%s,%.9g,%.9g,%s" + ",%.9g" * 8 + "\n"
STATISTICS_COLUMNS = (
    "NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape",
    "NPU Requires_grad", "Bench Requires_grad", "Max diff", "Min diff", "Mean diff", "L2norm diff",
    "MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr",
    "NPU max", "NPU min", "NPU mean", "NPU l2norm", "Bench max", "Bench min", "Bench mean", "Bench l2norm",
    "Requires_grad Consistent", "Result", "Err_message", "NPU_Stack_Info",
)  # fmt: skip
_NONE = "N/A"


def _heads(comparing: JudgedPairs) -> Iterator[tuple[tuple[Any, ...], list[Slot]]]:
    """Yield the columns that all places of a pair share, and its places."""
    flow_a, flow_b = comparing.alignment.flows
    step = comparing.b.step
    rank = comparing.b.rank
    labels: dict[str | None, str | None] = {}
    for pair, slots in zip(comparing.pairs, comparing.slots):
        name_a = flow_a.names[pair.a] if pair.a != NONE else None
        name_b = flow_b.names[pair.b] if pair.b != NONE else None
        flow = flow_a if name_b is None else flow_b
        around = flow.cells[pair.a if name_b is None else pair.b]
        if around not in labels:
            own = flow.position.get(around or "")
            labels[around] = entry_name.cell_label(
                around, flow.parts[own] if own is not None else None
            )
        yield (step, rank, labels[around], name_a, name_b, pair.how), slots


def unit_rows(comparing: JudgedPairs) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of one step and rank, with the values of ``COLUMNS``."""
    for head, slots in _heads(comparing):
        if not slots and None in head[3:5]:
            yield (*head, *_alone(head))
        for slot in slots:
            row = _row(slot)
            if row is not None:
                yield (*head, *row)


def _alone(head: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the columns after the head of a call that has no partner."""
    return (None, "only in B" if head[3] is None else "only in A", *(None,) * 16)


def _row(slot: Slot) -> tuple[Any, ...] | None:
    """Return the columns after the head; None for plain values that are equal."""
    place, _, a, b, distance, verdict = slot
    if not is_tensor(a) and not is_tensor(b):
        return (
            (place, verdict, *(None,) * 6, _plain(a), _plain(b), *(None,) * 8) if verdict else None
        )
    get_a, get_b = ((side if type(side) is dict else {}).get for side in (a, b))
    return (
        place,
        verdict,
        *distance,
        get_a("dtype"),
        get_b("dtype"),
        _shape(get_a("shape")),
        _shape(get_b("shape")),
        *(get(key) for key in NUMBERS for get in (get_a, get_b)),
    )


def _plain(value: Any) -> str | None:
    return None if value is None else str(plain(value))


def _shape(value: Any) -> str | None:
    return "x".join(map(str, value)) if element_count(value) is not None else None


def write_unit(path: str, form: str, comparing: JudgedPairs) -> None:
    """Write the rows of one step and rank into a file of their own."""
    with create(path, "") as file:
        if form == "csv":
            file.writelines(_csv_lines(comparing))
        elif form == "jsonl":
            for row in unit_rows(comparing):
                file.write(json.dumps(dict(zip(COLUMNS, row))) + "\n")
        else:
            safe = functools.lru_cache(None)(csv_text)
            made = (
                [it if type(it) in _NUMBERS else safe(str(it)) for it in row]
                for row in rows(comparing)
            )
            csv.writer(file, lineterminator="\n").writerows(made)


class _Quoted(dict[str, str]):
    """Texts as csv has them: safe for a spreadsheet, in quotes where they need some. Each is made once."""

    def __missing__(self, text: str) -> str:
        safe = csv_text(text)
        self[text] = quoted = (
            '"' + safe.replace('"', '""') + '"' if "," in safe or '"' in safe else safe
        )
        return quoted

    def cell(self, value: Any) -> str:
        """Return the text of a cell."""
        if type(value) is str:
            return self[value]
        if type(value) in _NUMBERS:
            return "" if value is None else f"{value:.9g}" if type(value) is float else str(value)
        return csv_text(str(value))

    def line(self, row: Iterable[Any]) -> str:
        """Return the line of a row."""
        return ",".join([self[value] if type(value) is str else self.cell(value) for value in row])


def _csv_lines(comparing: JudgedPairs) -> Iterator[str]:
    """Yield the lines of the rows, several times faster than csv's writer: most rows are of two tensors of floats."""
    known: dict[tuple[Any, ...], str] = {}
    quoted = _Quoted()
    for head, slots in _heads(comparing):
        start = quoted.line(head)
        if not slots and None in head[3:5]:
            yield f"{start},{quoted.line(_alone(head))}\n"
        for slot in slots:
            place, _, a, b, (rel_l2, max_abs, exact, own), verdict = slot
            try:
                key = (
                    exact,
                    own,
                    a["dtype"],
                    b["dtype"],
                    id(a["shape"]),
                    id(b["shape"]),
                )  # equal shapes are one object
                texts = known.get(key)
                if texts is None:
                    if own is not None or not all(
                        is_tensor(side) and of_dtype(side["dtype"]) > 0.0 for side in (a, b)
                    ):
                        raise TypeError
                    texts = known[key] = quoted.line(_row(slot)[4:10])  # type: ignore[index]  # a row is no None here
                yield _LINE % (
                    start,
                    quoted[place],
                    verdict,
                    rel_l2,
                    max_abs,
                    texts,
                    a["Max"],
                    b["Max"],
                    a["Min"],
                    b["Min"],
                    a["Mean"],
                    b["Mean"],
                    a["Norm"],
                    b["Norm"],
                )
            except (TypeError, KeyError):  # no two tensors of floats, or a number is unknown
                row = _row(slot)
                if row is not None:
                    yield f"{start},{quoted.line(row)}\n"


def join_parts(parts: list[str], form: str, path: str | os.PathLike[str]) -> None:
    """Put the files of all steps and ranks together, under one header."""
    with create(path, "") as text:
        if form != "jsonl":
            header = io.StringIO()
            csv.writer(header, lineterminator="\n").writerow(
                COLUMNS if form == "csv" else STATISTICS_COLUMNS
            )
            text.write(header.getvalue())
        text.flush()
        for part in parts:
            if os.path.exists(part):
                with open(part, "rb") as file:
                    shutil.copyfileobj(file, text.buffer)
                os.remove(part)


def rows(comparing: JudgedPairs) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each tensor; NPU is B, Bench is A, as msprobe has it."""
    flow_a, flow_b = comparing.alignment.flows
    for pair, slots in zip(comparing.pairs, comparing.slots):
        name_a = flow_a.names[pair.a] if pair.a != NONE else ""
        name_b = flow_b.names[pair.b] if pair.b != NONE else ""
        if not name_a or not name_b:
            yield (name_b or _NONE, name_a or _NONE, *(_NONE,) * 23, "warning", "no partner", _NONE)
            continue
        frame = user_frame(comparing.b.stacks.get(name_b, []))
        for place, _, a, b, _, verdict in slots:
            if is_tensor(a) and is_tensor(b):
                needs = b.get("requires_grad", _NONE), a.get("requires_grad", _NONE)
                yield (
                    f"{name_b}.{place}",
                    f"{name_a}.{place}",
                    b.get("dtype"),
                    a.get("dtype"),
                    str(b.get("shape")),
                    str(a.get("shape")),
                    *needs,
                    *_numbers(a, b),
                    _NONE in needs or needs[0] == needs[1],
                    "error" if verdict in HARD else "pass",
                    verdict,
                    str(frame or _NONE),
                )


def _numbers(a: dict[str, Any], b: dict[str, Any]) -> list[Any]:
    pairs = [(real(a.get(key)), real(b.get(key))) for key in NUMBERS]
    gaps = [_NONE if left is None or right is None else right - left for left, right in pairs]
    relative = [
        f"{abs(y - x) / abs(x) * 100:.6f}%" if x and y is not None else _NONE for x, y in pairs
    ]
    return [*gaps, *relative, *(b.get(key) for key in NUMBERS), *(a.get(key) for key in NUMBERS)]
