# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The curves of a page: the series of the monitor, each with the lines of all its ranks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from probe.reading.dumps.text import safe
from probe.reading.one_run.trend import lines_of
from probe.reading.report.part import rank_text
from probe.series.file import RankSeries
from probe.series.series_name import is_main, kind_of

#: limits of a page: lines, and points of all lines and of each
_MOST_LINES = 2000
_MOST_POINTS = 400_000
_MOST_OF_ONE = 2000
_FEWEST_OF_ONE = 200
#: kinds of series in the order in which the page lists them, behind the main ones; others come last
_KINDS = (
    "loss",
    "total",
    "logged",
    "scale",
    "scalar",
    "grad",
    "grad_in",
    "update",
    "param",
    "bias",
)


class Curves(NamedTuple):
    """The curves of a page."""

    shown: list[
        dict[str, Any]
    ]  # each with name, whether it is a main one, and side -> rank -> [[step, number], ...]
    left_out: int  # how many series the page has no room for


def curves_of(sides: Sequence[Sequence[RankSeries]], alarmed: Collection[str]) -> Curves:
    """Return the curves of A and B; series that have alarms stand before the others of their kind."""
    ranks = [rank for side in sides for rank in side]
    names = list(dict.fromkeys(name for rank in ranks for name in rank.names))
    ordered = sorted(
        names, key=lambda name: (not is_main(name), name not in alarmed, _place_of(kind_of(name)))
    )
    shown = ordered[: max(_MOST_LINES // max(len(ranks), 1), 1)]
    most = _MOST_POINTS // max(len(shown) * len(ranks), 1)
    points = min(max(most, _FEWEST_OF_ONE), _MOST_OF_ONE)
    return Curves([_curve(name, sides, points) for name in shown], len(ordered) - len(shown))


def _place_of(kind: str) -> int:
    return _KINDS.index(kind) if kind in _KINDS else len(_KINDS)


def _curve(name: str, sides: Sequence[Sequence[RankSeries]], points: int) -> dict[str, Any]:
    lines = {
        side: {
            rank_text(rank.rank): lines_of(rank, name, points)
            for rank in ranks
            if name in rank.names
        }
        for side, ranks in zip("ab", sides)
    }
    return {"name": safe(name), "main": is_main(name), **lines}
