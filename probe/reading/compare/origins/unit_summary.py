# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The summary of one step of one rank, of a size that does not grow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from probe.findings.sentence import NOTHING, Sentence
from probe.reading.compare.judging.verdicts import FAINT, HARD, Verdict
from probe.reading.compare.origins.origin import Origin
from probe.store.file_names import Rank

#: how tensors, calls and Cells are counted
Counts = dict[str, int]


class Collective(NamedTuple):
    """One collective of one rank. The ranks are linked by it."""

    key: tuple[str, str, int]  # (group, API, number of this call in its group)
    sent_off: bool  # whether the input of this rank differs, or follows from a difference
    origin: bool  # whether this rank alone would call it an origin


class UnitCounts(NamedTuple):
    """The numbers of one step of one rank."""

    #: the way in which calls were paired -> their number; "" is for calls without a partner
    pairs: Counts = {}  # noqa: RUF012
    #: verdict -> number of tensors
    verdicts: Counts = {}  # noqa: RUF012
    only_a: tuple[str, ...] = ()  # calls that are only in A, the first of them
    only_b: tuple[str, ...] = ()  # calls that are only in B, the first of them
    only: tuple[int, int] = (0, 0)  # the number of calls that are only in A, and only in B
    formed: tuple[int, int] = (0, 0)  # how many of these are in a region with another form
    #: Cell -> (number of tensors that differ, greatest rel_l2)
    cells: dict[str, tuple[int, float]] = {}  # noqa: RUF012
    rules_used: tuple[int, ...] = ()  # for each rule of the user the number of its tensors
    #: kinds of calls that round in another way, by the noise of the net
    kernels: tuple[str, ...] = ()
    #: the lines of the user's map that rename no call of A into a name that B has
    unmapped: tuple[str, ...] = ()

    @property
    def paired(self) -> int:
        """The number of calls with a partner."""
        return sum(count for how, count in self.pairs.items() if how)

    @property
    def is_exact(self) -> bool:
        """Whether no tensor is known to differ in any bit: the two runs have no noise."""
        return not self.differs and not any(self.verdicts.get(verdict) for verdict in FAINT)

    @property
    def differs(self) -> int:
        """The number of tensors that differ beyond tolerance."""
        return sum(self.verdicts.get(verdict, 0) for verdict in HARD)

    @property
    def differing_pairs(self) -> int:
        """The number of tensors that both sides have, and that differ beyond tolerance."""
        return self.differs - self.verdicts.get(Verdict.ONE_SIDE, 0)


class UnitOrigins(NamedTuple):
    """The origins of one step of one rank."""

    first: tuple[Origin, ...] = ()  # places where a difference begins
    #: places that follow from an origin by the dataflow, but are suspicious by themselves
    later: tuple[Origin, ...] = ()
    soft: tuple[Origin, ...] = ()  # differences that may be harmless
    collectives: tuple[Collective, ...] = ()  # the collectives, in order
    #: places where a difference begins if every other bit is one; where they may be others than ``first``
    exact: tuple[Origin, ...] = ()
    #: how many parameters there are, and how many of them differ in any bit
    parameters: tuple[int, int] = (0, 0)
    updates: bool = False  # whether both sides have the update of an optimizer
    settled: bool = False  # whether the results of all updates are recorded, and agree
    #: where half precision enters on one side alone, the worst first
    casts: tuple[dict[str, Any], ...] = ()
    #: how the values before the first origin agree: one of BITS, NUMBERS_EQUAL and CLOSE; "" without values
    before: str = ""

    def changed(self, newer: Mapping[Origin, Origin]) -> UnitOrigins:
        """Return the same with newer forms of some origins."""
        first, later, exact = (
            tuple(newer.get(origin, origin) for origin in origins)
            for origins in (self.first, self.later, self.exact)
        )
        return self._replace(first=first, later=later, exact=exact)


@dataclass
class UnitSummary:
    """The summary of one step of one rank."""

    step: int | None  # the step of B
    rank: Rank  # the rank of B
    error: Sentence = NOTHING  # the reason why a dump could not be read
    notes: list[Sentence] = field(default_factory=list)  # remarks on the two dumps, as sentences
    header: list[Any] = field(default_factory=list)  # differences of the two headers, likewise
    counts: UnitCounts = UnitCounts()  # noqa: RUF009
    origins: UnitOrigins = UnitOrigins()  # noqa: RUF009
