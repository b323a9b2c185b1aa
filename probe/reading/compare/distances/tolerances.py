# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Judges distances: by the rules of the user, by noise, and by dtypes."""

from __future__ import annotations

from collections.abc import Mapping

from probe.reading.compare.distances.distance import Distance
from probe.reading.compare.distances.net_noise import NetNoise
from probe.reading.compare.distances.rule import ToleranceRule

#: how many times its own noise a tensor may differ
NOISE_FACTOR = 3.0
#: how many times that of the net
NET_FACTOR = 8.0


class Tolerances:
    """Judges distances by rules, of which the first that fits decides, and by dtypes; ``noise``: tensor -> rel_l2."""

    def __init__(
        self,
        rules: list[tuple[str, str]] | None = None,
        noise: Mapping[str, float] | None = None,
        factor: float = 1.0,
    ) -> None:
        self._rules = [ToleranceRule(pattern, condition) for pattern, condition in rules or ()]
        self._noise = noise or {}
        self.factor = factor  # multiplies the tolerances
        self.has_noise = bool(self._noise)
        # from one run that was moved; else empty
        self.net = noise if isinstance(noise, NetNoise) else NetNoise()
        self.is_plain = not self._rules and not self._noise

    def agrees(
        self, name: str, distance: Distance, tolerance: float, is_one_dtype: bool = True
    ) -> bool:
        """Return whether two tensors agree."""
        if distance.rel_l2 is None:
            return True
        if not self.is_plain:
            for rule in self._rules:
                if rule.fits(name) and not (rule.is_own and distance.own is None):
                    return rule.holds(distance)
            noise = self._noise.get(name, 0.0)
            own = noise * (NET_FACTOR if self.net else NOISE_FACTOR)
            is_of_net = own and self.net and is_one_dtype
            tolerance = own if is_of_net else max(tolerance, own)
        return distance.rel_l2 <= tolerance * self.factor

    def note(self, names: list[str]) -> None:
        """Count these tensors for the rules that are for them, also if they are equal, so that no rule asks."""
        for rule in self._rules:
            if not rule.used:
                rule.used = sum(map(rule.concerns, names))

    def is_ruled(self, name: str) -> bool:
        """Return whether a rule of the user is for this tensor."""
        return any(rule.concerns(name) for rule in self._rules)

    def used(self) -> list[int]:
        """Return how often each rule was applied."""
        return [rule.used for rule in self._rules]
