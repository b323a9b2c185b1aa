# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Level "debug": what the user saves by name."""

from __future__ import annotations

from typing import Any

from probe import naming
from probe.recording.step_recorder import StepRecorder


class DebugTask(StepRecorder):
    """Records values by the names that the user gives, and the gradients that arrive at them."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._names: set[str] = set()

    def names(self, name: str) -> tuple[str, str]:
        """Return the names of what is saved now under a name, and of its gradient."""
        while True:  # "w_grad" may be saved beside "w"
            names = naming.debug_names(name, next(self._counters[naming.debug_names(name, 0)]))
            if self._names.isdisjoint(names):
                self._names.update(names)
                return names

    def value(self, name: str, value: Any) -> None:
        """Record a value of any kind as it is now."""
        self.put_value(name, self._describer.value(value, name, self._save(name)))

    def put_value(self, name: str, shape: Any) -> None:
        """Record what is known of a value, in place of what was known before."""
        with self._lock:
            if not self.closed:
                self._pace.put((name, shape, -1, []))

    def gradient_of(self, place: str, tensor: Any) -> Any:
        """Return the record of a gradient that arrived now at a value that was saved."""
        return self._pace.meter.tensor(tensor, place, self._save(place))
