# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compares the rows of the monitor of two runs: the first step in which a series differs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.naming import ranges
from probe.series.call_file import CallContent
from probe.series.call_pairs import CallDifference, compare_calls
from probe.series.file import RankSeries
from probe.series.series_name import kind_of
from probe.store.file_names import Rank

#: the relative difference that counts as equal: another processor adds in another order
SAME = 1e-5
#: the kind of series that differs in any two runs
_TIME = "seconds"
_SHOWN = 4
_ENOUGH = 0.5  # so large a part of the records of calls must have a counterpart
#: series -> its number in one step
_Values = Mapping[str, float]
#: step -> the numbers
_Rows = Mapping[int, _Values]


class RowPairs(NamedTuple):
    """The answer about the rows of two runs."""

    first: Sentence = NOTHING  # the first difference
    compared: int = 0  # how many numbers were compared
    lacks: Sequence[Sentence] = ()  # the parts that one side lacks
    call: CallDifference | None = None  # the call with which rolling records begin to differ

    @property
    def said(self) -> Sentence:
        """The first difference, and the call; NOTHING where all agree."""
        return clauses(self.first, self.call.said) if self.first and self.call else self.first

    @property
    def status(self) -> int:
        """The exit status: 0 where all agrees, 1 for a difference, 2 where a part is lacking."""
        return 1 if self.first else 2 * bool(self.lacks or not self.compared)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer for JSON."""
        return {
            "first": str(self.first),
            "call": None if self.call is None else self.call.to_dict(),
            "compared": self.compared,
            "lacks": [str(lack) for lack in self.lacks],
            "status": self.status,
        }


def compare_rows(
    ranks_a: Sequence[RankSeries], ranks_b: Sequence[RankSeries], factor: float = 1.0
) -> RowPairs:
    """Return the first difference between the rows of A and B; ``factor`` multiplies the tolerance."""
    compared = 0
    lacks: list[Sentence] = []
    apart: list[_Apart] = []
    calls: list[CallDifference] = []
    for rank, left, right in _pairs(ranks_a, ranks_b):
        rows_a = dict(left.rows())
        rows_b = dict(right.rows())
        lacks += _lacking(rank, rows_a, rows_b)
        for step in rows_a.keys() & rows_b.keys():
            compared += len(_common(rows_a[step], rows_b[step]))
        apart += _first_apart(rank, rows_a, rows_b, SAME * factor)
        if left.calls is not None and right.calls is not None:
            difference, count = compare_calls(left.calls, right.calls, rank, factor)
            calls += filter(None, [difference])
            total = min(_records(left.calls), _records(right.calls))
            if count < _ENOUGH * total:
                lacks.append(say("rows.other_calls", count=count, total=total))
    lacks += _lacking_ranks(ranks_a, ranks_b)
    first = min(apart, key=lambda item: item.step, default=None)
    return RowPairs(
        first=NOTHING if first is None else first.said,
        compared=compared,
        lacks=lacks,
        call=min(calls, key=lambda item: item.first, default=None),
    )


def _records(calls: CallContent) -> int:
    """Return the number of records of calls."""
    return sum(len(records) for _, records in calls.records())


def _pairs(
    ranks_a: Sequence[RankSeries], ranks_b: Sequence[RankSeries]
) -> Iterator[tuple[Rank, RankSeries, RankSeries]]:
    """Yield the ranks of both runs; one rank of each is a pair, whatever its number."""
    if len(ranks_a) == len(ranks_b) == 1:
        yield ranks_b[0].rank, ranks_a[0], ranks_b[0]
        return
    left = {item.rank: item for item in ranks_a}
    right = {item.rank: item for item in ranks_b}
    for rank, item in right.items():
        if rank in left:
            yield rank, left[rank], item


def _lacking_ranks(
    ranks_a: Sequence[RankSeries], ranks_b: Sequence[RankSeries]
) -> Iterator[Sentence]:
    """Yield the ranks that one side lacks; one rank of each is a pair."""
    if len(ranks_a) == len(ranks_b) == 1:
        return
    left = dict.fromkeys(item.rank for item in ranks_a)
    right = dict.fromkeys(item.rank for item in ranks_b)
    for side, own, other in (("A", left, right), ("B", right, left)):
        missing = [_named(rank) for rank in other if rank not in own]
        if missing:
            yield say("rows.lacks_ranks", side=side, ranks=missing)


def _named(rank: Rank) -> Sentence:
    return say("rows.no_number") if rank is None else say("rows.rank", rank=rank)


def _lacking(rank: Rank, rows_a: _Rows, rows_b: _Rows) -> Iterator[Sentence]:
    """Yield the steps, and the series, that one side lacks."""
    names_a = {name for values in rows_a.values() for name in values}
    names_b = {name for values in rows_b.values() for name in values}
    where = _of_rank(rank)
    for side, own, other in (("A", rows_a, rows_b), ("B", rows_b, rows_a)):
        steps = sorted(other.keys() - own.keys())
        if steps:
            yield say("rows.lacks_steps", side=side, steps=", ".join(ranges(steps)), rank=where)
    for side, names in (("A", names_b - names_a), ("B", names_a - names_b)):
        if names:
            shown = sorted(names)[:_SHOWN]
            yield say("rows.lacks_series", side=side, names=shown, count=len(names), rank=where)


class _Apart(NamedTuple):
    """The first step in which the rows of a rank differ."""

    step: int
    said: Sentence


def _first_apart(rank: Rank, rows_a: _Rows, rows_b: _Rows, tolerance: float) -> Iterator[_Apart]:
    """Yield the first step in which a series differs; nothing without one."""
    for step in sorted(rows_a.keys() & rows_b.keys()):
        names = _apart(rows_a[step], rows_b[step], tolerance)
        if names:
            yield _Apart(step, _difference(rank, step, rows_a[step], rows_b[step], names))
            return


def _apart(left: _Values, right: _Values, tolerance: float) -> list[str]:
    """Return the series that differ in one step."""
    common = _common(left, right)
    return [name for name in common if not _is_same(left[name], right[name], tolerance)]


def _common(left: _Values, right: _Values) -> list[str]:
    """Return the series of one step that are compared, in the order of B."""
    return [name for name in right if name in left and kind_of(name) != _TIME]


def _is_same(left: float, right: float, tolerance: float) -> bool:
    if not math.isfinite(left) or not math.isfinite(right):
        return left == right or (math.isnan(left) and math.isnan(right))
    return abs(left - right) <= tolerance * max(abs(left), abs(right))


def _difference(
    rank: Rank,
    step: int,
    left: _Values,
    right: _Values,
    names: Sequence[str],
) -> Sentence:
    """Return how the first step that differs is told: the first series with its two numbers, and the others."""
    first = names[0]
    others = names[1 : 1 + _SHOWN]
    more = say("rows.apart_more", count=len(names) - 1, names=others) if others else NOTHING
    values = {"left": left[first], "right": right[first]}
    return say("rows.apart", step=step, rank=_of_rank(rank), name=first, more=more, **values)


def _of_rank(rank: Rank) -> Sentence:
    return NOTHING if rank is None else say("rows.of_rank", rank=rank)
