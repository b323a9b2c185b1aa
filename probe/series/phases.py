# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The phases of a training, which have no trained parameter in common: a teacher and then its student."""

from __future__ import annotations


class Phases:
    """Tells the phase of each step by the gradients in it.

    Two steps are of one phase if a gradient is in both. Experts, frozen layers and layers that are dropped by chance
    change some of the gradients, and so begin no phase.
    """

    def __init__(self) -> None:
        self._gradients: list[set[str]] = [set()]  # of each phase
        self._now = 0
        self._last: list[str] = []  # the gradients of the step before: most steps have the same

    def of(self, gradients: list[str]) -> int:
        """Return the phase of a step; one without gradients is of the phase of the step before.

        >>> phases = Phases()
        >>> [phases.of(step) for step in (["a", "b"], ["b", "c"], ["d"], [], ["c"])]
        [0, 0, 1, 1, 0]
        """
        if not gradients or gradients == self._last:
            return self._now
        self._last = gradients
        found = set(gradients)
        first = self._gradients[0]
        if not first:
            first.update(found)
        for number, known in enumerate(self._gradients):
            if not known.isdisjoint(found):
                known.update(found)
                self._now = number
                return number
        self._gradients.append(found)
        self._now = len(self._gradients) - 1
        return self._now
