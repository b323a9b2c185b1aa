# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Level "debug": values that the user saves by name, and the gradients that arrive at them."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from probe import naming
from probe.entry import Entry, Kind
from probe.measure.describe import ValueDescriber
from probe.measure.measurer import ArraySink, Role
from probe.recording.call import GradientUse, Task
from probe.recording.measurement_queue import MeasurementQueue


class DebugTask(Task):
    """Records named values; no call is recorded. Without a sink no arrays are written."""

    def __init__(self, queue: MeasurementQueue, sink: ArraySink | None) -> None:
        super().__init__(frozenset(), GradientUse.NONE)
        self._queue, self._sink = queue, sink
        self._describe = ValueDescriber(queue.measure).value
        self._counters: defaultdict[tuple[str, str], Iterator[int]] = defaultdict(itertools.count)
        self._names: set[str] = set()

    def new_names(self, name: str) -> tuple[str, str]:
        """Return the names of the value that is saved now, and of its gradient."""
        while True:  # "w_grad" may be saved beside "w"
            names = naming.debug_names(name, next(self._counters[naming.debug_names(name, 0)]))
            if self._names.isdisjoint(names):
                self._names.update(names)
                return names

    def record_value(self, name: str, value: Any) -> None:
        """Record a value of any kind as it is now."""
        self.put(name, self._describe(value, name, self._sink, Role.OUTPUT))

    def put(self, name: str, shape: Any) -> None:
        """Record the known records of a value. They replace those of an earlier call."""
        self._queue.put(Entry(name, shape, Kind.DEBUG_VALUE))

    def gradient_of(self, place: str, tensor: Any) -> Any:
        """Return the record of a gradient that arrived now at a saved value."""
        return self._queue.measure(tensor, place, self._sink, Role.OUTPUT)
