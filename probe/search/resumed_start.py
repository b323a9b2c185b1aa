# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The step of the first run with which a program from a checkpoint on begins: their losses tell it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from probe.errors import UsageError
from probe.reading.one_run.health.rows import read_rows

_LOSS = "loss"
#: so many losses are looked at, so many must be there, and they must agree by so much
_MOST = 3
_LEAST = 2
_NEAR = 1e-5


def resumed_start(first: str, resumed: str) -> int | None:
    """Return the step of the first run whose losses are those with which the resumed one begins; None for none.

    Args:
        first: the folder of the rows of the first run.
        resumed: that of the resumed one.
    """
    _, wanted = _losses(resumed)
    steps, known = _losses(first)
    begin = list(itertools.takewhile(math.isfinite, wanted[:_MOST]))
    count = len(begin)
    if count < _LEAST:
        return None
    places = range(len(known) - count + 1)
    found = [steps[place] for place in places if _agree(known[place : place + count], begin)]
    return int(found[0]) if len(found) == 1 else None


def _losses(path: str) -> tuple[Sequence[int], Sequence[float]]:
    """Return the steps and losses of the first rank."""
    try:
        ranks = read_rows(path).ranks
    except UsageError:
        return (), ()
    for rank in ranks:
        if _LOSS in rank.names:
            return rank[_LOSS].steps, rank[_LOSS].values
    return (), ()


def _agree(known: Sequence[float], wanted: Sequence[float]) -> bool:
    """Return whether losses are the same but for their last bits.

    >>> _agree([1.0, 0.5], [1.0000001, 0.5]), _agree([1.0, 0.5], [1.0, 0.6])
    (True, False)
    """
    return all(abs(a - b) <= _NEAR * max(abs(a), abs(b)) for a, b in zip(known, wanted))
