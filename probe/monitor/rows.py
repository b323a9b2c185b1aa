# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The steps that have ended. The numbers of the last one may still be on the device: nothing waits for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol

from probe.monitor.numbers import HostNumbers
from probe.store.error_log import ErrorLog


class Row(Protocol):
    """The numbers of a step."""

    @property
    def scalars(self) -> list[Any]:
        """Those on the device."""

    def finish(self, fetched: list[float]) -> Any:
        """Return all, by the values of those."""


class Rows:
    """Gives the row of each step, when its numbers have been fetched.

    Args:
        numbers: fetches them.
        errors: reports errors of the tool.
    """

    def __init__(self, numbers: HostNumbers, errors: ErrorLog) -> None:
        self._numbers, self._errors = numbers, errors
        self._rows: deque[tuple[int, Row]] = deque()

    def add(self, step: int, row: Row) -> Iterator[tuple[int, Any]]:
        """Add a step; yield those that are complete: its numbers, if on the device, are fetched after the next one."""
        self._rows.append((step, row))
        yield from self.finish(keep=bool(row.scalars))

    def finish(self, keep: bool = False) -> Iterator[tuple[int, Any]]:
        """Yield the steps with their numbers; ``keep`` leaves out the last one."""
        while len(self._rows) > keep:
            step, row = self._rows.popleft()
            values: Any = {}
            with self._errors.guard("reading the numbers of a step"):
                values = row.finish(self._numbers.fetch(row.scalars))
            yield step, values
