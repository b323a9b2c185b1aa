# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The result of a comparison, put together from the summaries of all steps and ranks."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from probe.findings.sentence import say
from probe.reading.compare.judging.verdicts import Verdict
from probe.reading.compare.origins.across_ranks import first_origins, once
from probe.reading.compare.origins.origin import Origin
from probe.reading.compare.origins.unit_summary import UnitSummary

_LEAST_PAIRED = 0.5


class ComparisonResult:
    """The result of a comparison.

    Attributes:
        units: the summaries of every step and rank.
        origins: the places where differences begin, in the order of execution.
        later: places that follow from an origin by the dataflow, but are suspicious by themselves.
    """

    def __init__(self, paths: tuple[str, str], units: list[UnitSummary], alone: tuple[list[Any], list[Any]]) -> None:
        self.paths, self.units, self.alone = paths, units, alone
        self.origins, self.later = first_origins(units)

    @property
    def errors(self) -> list[str]:
        """The dumps that could not be read, each with the reason."""
        return [unit.error for unit in self.units if unit.error]

    @property
    def first(self) -> Origin | None:
        """The first place where a difference begins; None where there is none."""
        return self.origins[0] if self.origins else None

    @property
    def soft(self) -> list[Origin]:
        """Changes that alone change no value: a call more, an argument. Each is there once, for all steps and ranks."""
        return once(origin for unit in self.units for origin in unit.origins.soft)

    @property
    def verdicts(self) -> dict[str, int]:
        """Verdict -> number of tensors."""
        return dict(sum((Counter(unit.counts.verdicts) for unit in self.units), Counter()))

    @property
    def pairs(self) -> dict[str, int]:
        """The way in which calls were paired -> their number."""
        found = dict(sum((Counter(unit.counts.pairs) for unit in self.units), Counter()))
        return {how: count for how, count in found.items() if how}

    @property
    def only_a(self) -> list[str]:
        """Calls that are only in A; of many the first of each step and rank."""
        return [name for unit in self.units for name in unit.counts.only_a]

    @property
    def only_b(self) -> list[str]:
        """Calls that are only in B."""
        return [name for unit in self.units for name in unit.counts.only_b]

    @property
    def before(self) -> str:
        """How all values before the first origin agree: "same" bits, "equal numbers" or "close"; "" for unknown."""
        first = self.first
        own = [unit for unit in self.units if first is not None and (unit.step, unit.rank) == (first.step, first.rank)]
        if first is None or not own or own[0].origins.before in (Verdict.CLOSE, ""):
            return own[0].origins.before if own else ""
        earlier = [unit for unit in self.units if (unit.step or 0) < (first.step or 0)]
        if not all(unit.counts.is_exact for unit in earlier):
            return Verdict.CLOSE
        known = {verdict for unit in earlier for verdict in unit.counts.verdicts} | {own[0].origins.before}
        return (
            Verdict.NUMBERS_EQUAL if Verdict.NUMBERS_EQUAL in known else Verdict.BITS if Verdict.BITS in known else ""
        )

    @property
    def unmapped(self) -> list[str]:
        """The lines of the user's map that rename no call, in no step and rank."""
        found = [unit.counts.unmapped for unit in self.units if not unit.error]
        return [line for line in found[0] if all(line in other for other in found)] if found else []

    @property
    def is_comparable(self) -> bool:
        """Whether at least half of the calls have a partner, and every dump could be read."""
        paired = sum(unit.counts.paired for unit in self.units)
        least = min(paired + sum(unit.counts.only[side] for unit in self.units) for side in (0, 1))
        return paired > 0 and paired >= _LEAST_PAIRED * least and not self.errors

    @property
    def agrees(self) -> bool:
        """Whether nothing differs beyond tolerance."""
        last = min((unit.step or 0 for unit in self.units if unit.counts.kernels), default=math.inf)  # then all differs
        differs = any(unit.counts.differs for unit in self.units if (unit.step or 0) <= last)
        return self.is_comparable and not self.origins and not differs

    @property
    def status(self) -> int:
        """The exit status: 0 no difference beyond tolerance, 1 differences, 2 not comparable."""
        return 0 if self.agrees else 1 if self.is_comparable else 2

    def to_dict(self) -> dict[str, Any]:
        """Return the summary for JSON."""
        outside = str(say("compare.outside_cells"))
        return {
            "a": self.paths[0],
            "b": self.paths[1],
            "ok": self.agrees,
            "status": self.status,
            "origins": [origin.to_dict() for origin in self.origins],
            "later": [origin.to_dict() for origin in self.later],
            "pairs": self.pairs,
            "verdicts": self.verdicts,
            "only_a": self.only_a,
            "only_b": self.only_b,
            "not_compared": {side: [str(label) for label in labels] for side, labels in zip("ab", self.alone)},
            "errors": self.errors,
            "unmapped": self.unmapped,
            "before_first": self.before,
            "header": [str(line) for unit in self.units[:1] for line in unit.header],
            "units": [
                {
                    "step": unit.step,
                    "rank": unit.rank,
                    "verdicts": unit.counts.verdicts,
                    "pairs": unit.counts.pairs,
                    "cells": {name or outside: cell for name, cell in unit.counts.cells.items()},
                }
                for unit in self.units
            ],
        }
