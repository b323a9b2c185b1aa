# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which calls a step records: a stable share of them, by a hash of their names."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping

from probe.monitor.rolling.stride import apart

#: numbers of a key that are looked for, as a part of the most that a step had: a later step may have more calls
_GROWTH = 2
_MORE = 8


def round_of(every: int) -> int:
    """Return the number of steps of a round: the greatest prime that is not above ``every``, else 1.

    A call that runs in each seventh step is so recorded too, unless a round has seven steps.

    >>> round_of(50), round_of(1000), round_of(1)
    (47, 997, 1)
    """
    return next(
        (size for size in range(every, 1, -1) if all(size % part for part in _parts(size))), 1
    )


def _parts(size: int) -> range:
    return range(2, int(size**0.5) + 1)


class Shares:
    """The share of each step of a round.

    The hash of a call's name is the step of a round that records it. So ranks, and a repeated run, choose alike. In a
    long round, neighbours among these steps are one. ``seed`` is another choice.
    """

    def __init__(self, every: int, seed: int = 0) -> None:
        self.steps = round_of(every)  # of a round
        self._apart = apart(every)  # of the steps that record
        self._seed = seed
        self._known: dict[str, int] = {}
        self._by_place: list[dict[str, set[int]]] = []

    def place(self, key: str, number: int) -> int:
        """Return the place in a round at which a call is recorded."""
        place = zlib.crc32(f"{self._seed}:{key}.{number}".encode()) % self.steps
        return place - place % self._apart

    def know(self, known: Mapping[str, int], keys: Iterable[str]) -> None:
        """Take the most calls that a step had of each key, and all keys; of those that never ran the first call."""
        counts = {**dict.fromkeys(keys, 0), **known}
        self._by_place = [{} for _ in range(self.steps)]
        for key, count in counts.items():
            numbers: defaultdict[int, set[int]] = defaultdict(set)
            for number in range(max(1, count)):
                numbers[self.place(key, number)].add(number)
            for number in range(max(1, count), _GROWTH * count + _MORE):
                place = self.place(key, number)
                if place in numbers:  # no patch for a call that may never come
                    numbers[place].add(number)
            for place, found in numbers.items():
                self._by_place[place][key] = found

    def of(self, step: int) -> Mapping[str, set[int]]:
        """Return the numbers of the calls that this step records, by their keys."""
        return self._by_place[step % self.steps] if self._by_place else {}
