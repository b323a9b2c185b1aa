# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Compares the parameters of this rank with those of the next rank, whose file lies beside ours."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from probe.findings.sentence import say
from probe.series.file import SeriesTail
from probe.series.rules import Alarm
from probe.series.series_name import parse
from probe.store.file_names import SERIES, rank_of

RULE = "ranks apart"
#: norms of equal parameters are equal on all ranks; this allows for other processors
_SAME = 1e-5


class Neighbour:
    """The next rank. Parameters that differ from the first comparison on are shards, and not compared.

    Args:
        folder: the folder of this rank's file.
    """

    def __init__(self, folder: str) -> None:
        self._above, self._own = os.path.split(folder)
        self._tail: SeriesTail | None = None
        self._name = ""
        self._waiting: dict[int, dict[str, float]] = {}  # step -> our norms of parameters
        self._equal: dict[str, bool] = {}
        self._said: set[str] = set()

    def compare(self, step: int, values: Mapping[str, float]) -> Iterator[Alarm]:
        """Yield the parameters that differ from those of the next rank, from the steps that both have written."""
        own = {name: value for name, value in values.items() if parse(name).is_parameter}
        if not own or not self._find():
            return
        self._waiting[step] = own
        while len(self._waiting) > 8:  # the other rank is gone
            del self._waiting[min(self._waiting)]
        for other_step, others in self._tail.new_rows() if self._tail else ():
            ours = self._waiting.pop(other_step, None)
            for name, value in ours.items() if ours else ():
                other = others.get(name)
                if other is None:
                    continue
                is_equal = abs(value - other) <= _SAME * abs(value)
                if self._equal.setdefault(name, is_equal) and not is_equal and name not in self._said:
                    self._said.add(name)
                    facts = {"value": value, "other": other, "rank": self._name, "step": other_step}
                    yield Alarm(RULE, name, other_step, say("alarm.ranks_apart", **facts))

    def _find(self) -> bool:
        own = rank_of(self._own)
        if self._tail is None and own is not None:
            ranks = {rank_of(name): name for name in os.listdir(self._above)}
            there = sorted(
                rank for rank, name in ranks.items()
                if rank is not None and (rank == own or os.path.isfile(os.path.join(self._above, name, SERIES)))
            )  # fmt: skip
            place = there.index(own) if own in there else 0
            if len(there) > 1:
                self._name = ranks[there[(place + 1) % len(there)]]
                self._tail = SeriesTail(os.path.join(self._above, self._name, SERIES))
        return self._tail is not None
