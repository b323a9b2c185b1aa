# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The summary of one step of one rank. Its size does not grow with the size of the dump."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from probe.findings.sentence import Sentence
from probe.reading.compare.judging.verdicts import FAINT, HARD
from probe.reading.compare.origins.origin import Origin
from probe.store.file_names import Rank

#: how tensors, calls and Cells are counted
Counts = dict[str, int]


class Collective(NamedTuple):
    """One collective of one rank. The ranks are linked by it.

    Attributes:
        key: (group, API, number of this call in its group).
        sent_off: whether the input of this rank differs, or follows from a difference.
        origin: whether this rank alone would call it an origin.
    """

    key: tuple[str, str, int]
    sent_off: bool
    origin: bool


class UnitCounts(NamedTuple):
    """The numbers of one step of one rank.

    Attributes:
        pairs: the way in which calls were paired -> their number; "" is for calls without a partner.
        verdicts: verdict -> number of tensors.
        only_a: calls that are only in A, the first of them.
        only_b: calls that are only in B, the first of them.
        only: the number of calls that are only in A, and only in B.
        cells: Cell -> (number of tensors that differ, greatest rel_l2).
        rules_used: for each rule of the user the number of its tensors.
        unmapped: the lines of the user's map that rename no call of A into a name that B has.
    """

    pairs: Counts = {}  # noqa: RUF012
    verdicts: Counts = {}  # noqa: RUF012
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    only: tuple[int, int] = (0, 0)
    cells: dict[str, tuple[int, float]] = {}  # noqa: RUF012
    rules_used: tuple[int, ...] = ()
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


class UnitOrigins(NamedTuple):
    """The origins of one step of one rank.

    Attributes:
        first: places where a difference begins.
        later: places that follow from an origin by the dataflow, but are suspicious by themselves.
        soft: differences that may be harmless.
        collectives: the collectives, in order.
        exact: places where a difference begins if every other bit is one; where they may be others than ``first``.
        parameters: how many parameters there are, and how many of them differ in any bit.
        updates: whether both sides have the update of an optimizer.
        settled: whether the results of all updates are recorded, and agree.
        before: how the values before the first origin agree: one of BITS, NUMBERS_EQUAL and CLOSE; "" without values.
    """

    first: tuple[Origin, ...] = ()
    later: tuple[Origin, ...] = ()
    soft: tuple[Origin, ...] = ()
    collectives: tuple[Collective, ...] = ()
    exact: tuple[Origin, ...] = ()
    parameters: tuple[int, int] = (0, 0)
    updates: bool = False
    settled: bool = False
    before: str = ""


@dataclass
class UnitSummary:
    """The summary of one step of one rank.

    Attributes:
        step: the step of B.
        rank: the rank of B.
        error: the reason why a dump could not be read, or "".
        notes: remarks on the two dumps, as sentences.
        header: differences of the two headers, likewise.
        counts: the numbers.
        origins: the origins.
    """

    step: int | None
    rank: Rank
    error: str = ""
    notes: list[Sentence] = field(default_factory=list)
    header: list[Any] = field(default_factory=list)
    counts: UnitCounts = UnitCounts()  # noqa: RUF009
    origins: UnitOrigins = UnitOrigins()  # noqa: RUF009
