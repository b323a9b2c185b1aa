# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe show --fits``: the calls of a dump whose numbers a narrower dtype would lose, worst first."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from probe.errors import UsageError
from probe.findings.sentence import Sentence, say
from probe.reading.dumps import text
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.query import Query, folders, words
from probe.reading.dumps.run import Run
from probe.reading.dumps.tables import write_csv
from probe.reading.dumps.values import Record, element_count, real

#: worst first
_VERDICTS = OVERFLOW, UNDERFLOW, UNKNOWN, FITS = "overflow", "underflow", "unknown", "fits"
#: so large a part of a tensor may become zero
_LOST = 0.01
_HEADER = ("fits.call", "show.tensor", "show.dtype", "fits.largest", "fits.overflow", "fits.underflow")


class Fit(NamedTuple):
    """How one tensor fits into a dtype."""

    verdict: str
    overflow: Any  # the part that becomes Inf or NaN, a float; None for unknown
    underflow: Any  # the part that becomes zero and is not, likewise; None for unknown
    largest: float  # the greatest magnitude

    @property
    def rank(self) -> tuple[float, ...]:
        """Its place: the worst has the smallest."""
        return _VERDICTS.index(self.verdict), -(self.overflow or 0), -(self.underflow or 0), -self.largest


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
    if not is_float or element_count(record.get("shape")) == 0 or (overflow is None and (None in extrema or not ends)):
        return None
    is_beyond, is_zero = not math.isfinite(_rounded(largest, name)), not _rounded(largest, name)
    if len(ends) == 2:  # beside NaN/Inf, the greatest magnitude is unknown
        overflow = 0.0 if overflow is None and not is_beyond else overflow
        underflow = (1.0 - (zeros or 0.0)) * bool(largest) if underflow is None and is_zero else underflow
    if underflow is None and smallest is not None and _rounded(smallest, name):
        underflow = 0.0
    verdict = UNKNOWN if overflow is None or underflow is None else FITS
    verdict = OVERFLOW if overflow or is_beyond else UNDERFLOW if (underflow or 0.0) > _LOST else verdict
    return Fit(verdict, overflow, underflow, largest)


def _rounded(magnitude: float, name: str) -> float:
    with np.errstate(over="ignore"):
        return float(np.float64(magnitude).astype(np.dtype(getattr(ml_dtypes, name, name))))


def answer_fits(run: Run, query: Query, name: str, form: str, width: int, language: str) -> tuple[list[Sentence], int]:
    """Print the calls and how they fit into a dtype; return as ``answer_to`` does."""
    found, notes = list[tuple[dict[str, Any], Fit]](), list[Sentence]()
    for folder in folders(run, query.steps, query.ranks):
        try:
            found += list(_rows(Dump(folder), query, name))
        except UsageError as error:  # noqa: PERF203 - one broken dump does not hide the others
            notes.append(say("show.broken_because", reason=str(error)))
    rows = [{**row, **fit._asdict()} for row, fit in sorted(found, key=lambda item: item[1].rank)]
    if form == "text":
        print("\n".join(_lines(rows, query.rows, name, width, language)))
    elif form == "json":
        print(json.dumps(rows, indent=1))
    else:
        write_csv(sys.stdout, ("step", "rank", "call", "place", "dtype", *Fit._fields), map(dict.values, rows))
    return notes, len(notes)


def _rows(dump: Dump, query: Query, name: str) -> Iterator[tuple[dict[str, Any], Fit]]:
    """Yield the worst tensor of each call, with how it fits."""
    for call in dump.calls(like=query.like or None, regex=query.regex or None, cell=query.cell or None):
        fits = [(fit, tensor) for tensor in call.tensors() if (fit := fit_of(tensor.record, name))]
        if fits:
            fit, tensor = min(fits, key=lambda item: item[0].rank)
            place = {"step": dump.step, "rank": dump.rank, "call": call.name}
            yield {**place, "place": tensor.place, "dtype": tensor.dtype}, fit


def _lines(rows: list[dict[str, Any]], most: int, dtype: str, width: int, language: str) -> Iterator[str]:
    """Yield the answer for people; of calls that fit, only the number. Max alone tells an overflow of unknown share."""
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in _VERDICTS}
    yield say("fits.head", calls=len(rows), dtype=dtype, **counts).text(language)
    wrong = [row for row in rows if row["verdict"] in (OVERFLOW, UNDERFLOW)]
    body = [
        [*(text.safe(row[key]) for key in ("call", "place", "dtype")), text.number(row["largest"])]
        + ["> 0" if row[key] is None and row["verdict"] == key else text.number(row[key]) for key in _VERDICTS[:2]]
        for row in wrong[: most or None]
    ]
    if body:
        yield text.columns([words(language, *_HEADER), *body], width, 3)
    if len(wrong) > len(body):
        yield say("show.more", count=len(wrong) - len(body)).text(language)
    if counts[UNKNOWN]:
        yield say("fits.unknown", count=counts[UNKNOWN], dtype=dtype).text(language)
