# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compares the parameters of two ranks by their series, while both train."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from probe.findings.sentence import say
from probe.series.file import SeriesTail
from probe.series.rules import Alarm
from probe.series.series_name import parse
from probe.store.file_names import SERIES, rank_name, rank_of

RULE = "ranks apart"
_SAME = 1e-5  # norms of equal parameters are equal on all ranks; this allows for other processors


class Neighbour:
    """The next rank. Parameters that differ from the first comparison on are shards, and not compared."""

    def __init__(self, folder: str) -> None:
        self._above, self._own = os.path.split(folder)
        self._tail: SeriesTail | None = None
        self._name = ""
        self._waiting: dict[int, dict[str, float]] = {}  # step -> our norms of parameters
        self._equal: dict[str, bool] = {}

    def compare(self, step: int, values: Mapping[str, float]) -> Iterator[Alarm]:
        """Yield the parameters that differ from those of the next rank, from the steps that both have written."""
        own = {name: value for name, value in values.items() if parse(name).is_parameter}
        tail = self._find() if own else None
        if tail is None:
            return
        self._waiting[step] = own
        while len(self._waiting) > 8:  # the other rank is gone
            del self._waiting[min(self._waiting)]
        for other_step, others in tail.new_rows():
            for name, value in self._waiting.pop(other_step, {}).items():
                other = others.get(name)
                if other is None:
                    continue
                is_equal = abs(value - other) <= _SAME * abs(value)
                if self._equal.setdefault(name, is_equal) and not is_equal:
                    self._equal[name] = False  # told once
                    facts = {"value": value, "other": other, "rank": self._name, "step": other_step}
                    yield Alarm(RULE, name, other_step, say("alarm.ranks_apart", **facts))

    def _find(self) -> SeriesTail | None:
        own = rank_of(self._own)
        if self._tail is None and own is not None:
            files = {rank_of(name): os.path.join(self._above, name, SERIES) for name in os.listdir(self._above)}
            others = [rank for rank, file in files.items() if rank is not None and rank != own and os.path.isfile(file)]
            if others:
                found = min((rank for rank in others if rank > own), default=min(others))
                self._name, self._tail = rank_name(found), SeriesTail(files[found])
        return self._tail
