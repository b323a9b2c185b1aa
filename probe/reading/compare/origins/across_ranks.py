# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The summary of one step of one rank, of a size that does not grow; and origins across ranks and steps.

Differences come through a collective or from the step before. Values that one step leaves to the next are such as the
moments of an optimizer that the user wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.reading.check.snapshot import read_snapshots
from probe.reading.compare.judging.verdicts import FAINT, HARD, Slot, is_state
from probe.reading.compare.origins.origin import Kind, Origin, is_collective
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import FORWARD, parse
from probe.reading.dumps.flow import content_key, is_constant
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.values import grouped, is_tensor, tensors_in
from probe.store.file_names import Rank

#: how tensors, calls and Cells are counted
Counts = dict[str, int]
_MOST = 100
_FEW = 3
_LATE = (Kind.CALLS, Kind.ARGUMENT, Kind.COMMUNICATION)
#: the kinds that count after a step in which kernels round in another way: its update has changed all values
_CHANGES = frozenset((Kind.ARGUMENT, Kind.CALLS, Kind.DATA, Kind.OPTIMIZER, Kind.WIRING))
#: the cause of parameters that differ in the next step, as far as it is known: without and with the entry of the update
_LEFT = "compare.optimizer", "compare.optimizer_state"
WHY = "the two sides take it from two calls of the step before"
#: content that more calls of a step have made is no evidence
_COMMON = 8


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
    #: Cell -> (number of tensors that differ, greatest rel_l2)
    cells: dict[str, tuple[int, float]] = {}  # noqa: RUF012
    rules_used: tuple[int, ...] = ()  # for each rule of the user the number of its tensors
    kernels: tuple[
        str, ...
    ] = ()  # kinds of calls that round in another way, by the noise of the net
    unmapped: tuple[
        str, ...
    ] = ()  # the lines of the user's map that rename no call of A into a name that B has

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
    """The origins of one step of one rank."""

    first: tuple[Origin, ...] = ()  # places where a difference begins
    #: places that follow from an origin by the dataflow, but are suspicious by themselves
    later: tuple[Origin, ...] = ()
    soft: tuple[Origin, ...] = ()  # differences that may be harmless
    collectives: tuple[Collective, ...] = ()  # the collectives, in order
    #: places where a difference begins if every other bit is one; where they may be others than ``first``
    exact: tuple[Origin, ...] = ()
    parameters: tuple[int, int] = (
        0,
        0,
    )  # how many parameters there are, and how many of them differ in any bit
    updates: bool = False  # whether both sides have the update of an optimizer
    settled: bool = False  # whether the results of all updates are recorded, and agree
    casts: tuple[
        dict[str, Any], ...
    ] = ()  # where half precision enters on one side alone, the worst first
    #: how the values before the first origin agree: one of BITS, NUMBERS_EQUAL and CLOSE; "" without values
    before: str = ""


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


def first_origins(units: Sequence[UnitSummary]) -> tuple[list[Origin], list[Origin]]:
    """Return the origins of all steps and ranks in order, and those that may follow from them."""
    origins: list[Origin] = []
    later: list[Origin] = []
    before: list[UnitSummary] = []
    is_quiet = False
    for step in dict.fromkeys(unit.step for unit in units):
        of_step = [unit for unit in units if unit.step == step]
        own, follows = _of_ranks(of_step, is_quiet)
        if origins or any(unit.counts.differs for unit in before):
            later += [*own, *follows]
        else:
            if any(
                unit.step != step and unit.counts.kernels
                for unit in units[: units.index(of_step[0])]
            ):
                own = [origin for origin in own if origin.kind in _CHANGES]
                follows = []
            own = [_since(origin, units) for origin in own or follows[:1]]
            origins += _from_step_before(own, before, of_step)
            later += follows
        is_quiet = (is_quiet or not before) and all(unit.counts.is_exact for unit in of_step)
        before = of_step
    return _merged(origins)[:_MOST], once(later)[:_MOST]


def _since(origin: Origin, units: Sequence[UnitSummary]) -> Origin:
    """Return the same change in the first step that has it: a factor of zeros changes no value there."""
    if origin.kind not in (Kind.ARGUMENT, Kind.CALLS):
        return origin
    wanted = origin.kind, origin.name, origin.place, origin.rank
    earlier = (
        found
        for unit in units
        for found in unit.origins.soft
        if (found.kind, found.name, found.place, found.rank) == wanted and found.step != origin.step
    )
    first = next(earlier, None)
    if first is None or first.step is None or origin.step is None or first.step > origin.step:
        return origin
    first.said = clauses(first.said, say("compare.acts_in", step=origin.step))
    return first


def once(origins: Iterable[Origin]) -> list[Origin]:
    """Return the first of those that are one thing in several steps and ranks."""
    found: dict[tuple[str, ...], Origin] = {}
    for origin in origins:
        found.setdefault((origin.kind, origin.name, origin.place), origin)
    return list(found.values())


def _of_ranks(units: Sequence[UnitSummary], is_quiet: bool) -> tuple[list[Origin], list[Origin]]:
    """Take out of the origins of one step those that another rank has sent."""
    own: list[Origin] = []
    follows: list[Origin] = []
    for unit in units:
        others = [other for other in units if other is not unit]
        # all steps before agree in all bits: then there is no noise, and any other bit is a difference
        for origin in (unit.origins.exact if is_quiet else ()) or unit.origins.first:
            came = origin.kind in (Kind.COMMUNICATION, Kind.COMPUTATION) and is_collective(
                parse(origin.name)
            )
            (follows if came and _was_sent(unit, origin, others) else own).append(origin)
        follows += unit.origins.later
    return sorted(own, key=lambda origin: origin.site.order), follows


def _was_sent(unit: UnitSummary, origin: Origin, others: Sequence[UnitSummary]) -> bool:
    """Return whether another member has put something different into this collective."""
    keys = {item.key for item in unit.origins.collectives if item.origin}
    key = parse(origin.name).key
    sent = [item.key for other in others for item in other.origins.collectives if item.sent_off]
    is_received = "recv" in key.lower()
    return any(
        (it in keys and it[1] == key) or (is_received and "send" in it[1].lower()) for it in sent
    )


def _from_step_before(
    origins: list[Origin], before: Sequence[UnitSummary], units: Sequence[UnitSummary]
) -> list[Origin]:
    """Say of parameters that differ after a step without differences that the optimizer made them differ."""
    if not before:
        return origins
    made = []
    count, differing = (
        sum(numbers) for numbers in zip(*(unit.origins.parameters for unit in units))
    )
    updated = all(unit.origins.updates for unit in before)
    settled = all(unit.origins.settled for unit in before)
    is_single = (
        0 < differing <= _FEW * len(units) and count > 2 * differing
    )  # the optimizer would change all
    soft = [found for unit in before for found in unit.origins.soft]
    #: harmless-looking differences that may change gradients after they were recorded
    late = [found for found in soft if found.site.after_backward and found.kind in _LATE]
    step = before[0].step
    for origin in origins:
        if origin.kind != Kind.PARAMETER:
            made.append(origin)
            continue
        if late:
            follows = say("compare.parameters_follow", step=origin.step, finding=origin.said)
            late[0].said = clauses(late[0].said, follows)
        elif settled or is_single or is_state(origin.place):
            origin.said = say("compare.changed_after_update", step=step, finding=origin.said)
        else:
            origin.kind = Kind.OPTIMIZER
            origin.said = clauses(say(_LEFT[updated], step=step, next=origin.step), origin.said)
        made.append(late[0] if late else origin)
    return made


def _merged(origins: list[Origin]) -> list[Origin]:
    found: dict[tuple[Any, ...], Origin] = {}
    for origin in origins:
        key = origin.kind, origin.name, origin.place, origin.step
        if key not in found:
            found[key] = origin
        elif origin.rank not in (found[key].rank, *found[key].ranks):
            found[key].ranks.append(origin.rank)
    return _of_lines(list(found.values()))


def _of_lines(origins: list[Origin]) -> list[Origin]:
    """Sum up the same change of one line of code: a line in a loop runs for each layer or parameter."""
    found: dict[tuple[Any, ...], Origin] = {}
    counts: Counter[tuple[Any, ...]] = Counter()
    for origin in origins:
        line = (origin.file, origin.line) if origin.file is not None else (origin.name,)
        key = (origin.step, origin.kind, *line, parse(origin.name).key, origin.place)
        first = found.setdefault(key, origin)
        if origin.name not in (first.name, *first.more):
            first.more.append(origin.name)
            counts[key] += 1
    for key, count in counts.items():
        found[key].said = clauses(found[key].said, say("compare.more_calls", count=count))
    return list(found.values())


def given(slot: Slot | None) -> tuple[Any, ...]:
    """Return the content of a value in A and in B; a constant tells nothing of who made it."""
    if slot is None or not is_tensor(slot.a) or not is_tensor(slot.b):
        return ()
    return tuple(None if is_constant(side) else content_key(side) for side in (slot.a, slot.b))


def link_steps(
    units: Sequence[UnitSummary], pairs: Sequence[tuple[DumpFolder, DumpFolder]]
) -> None:
    """Name, in the origins of units, the calls of the step before that made a value which no call of its own made."""
    before: dict[Any, int] = {}
    differing: set[Any] = set()
    for place, (unit, (_, folder)) in enumerate(zip(units, pairs)):
        key = folder.tree, folder.rank
        outside = [
            origin
            for origin in unit.origins.first
            if origin.kind == Kind.OUTSIDE and any(origin.given)
        ]
        if key in before and key not in differing:
            if outside:
                _name_makers(outside, pairs[before[key]])
            last = units[before[key]]
            is_parameter = any(origin.kind == Kind.PARAMETER for origin in unit.origins.first)
            if (
                is_parameter
                and not last.origins.settled
                and _are_one_after_update(pairs[before[key]])
            ):
                last.origins = last.origins._replace(settled=True)
        if unit.origins.first or unit.counts.differs:
            differing.add(key)  # what comes later follows from it
        before[key] = place


def _are_one_after_update(pair: tuple[DumpFolder, DumpFolder]) -> bool:
    """Return whether run.jsonl of both has the checksums of the parameters after the updates, and they are equal."""
    try:
        found = [read_snapshots(folder.path)[0].updates.get(folder.step or 0) for folder in pair]
    except UsageError:
        return False
    return bool(found[0]) and found[0] == found[1]


def _name_makers(origins: Sequence[Origin], pair: tuple[DumpFolder, DumpFolder]) -> None:
    try:
        made = [
            _made(folder, {origin.given[side] for origin in origins})
            for side, folder in enumerate(pair)
        ]
    except UsageError:
        return  # the unit of that step has told it
    for origin in origins:
        makers = [made[side].get(origin.given[side], []) for side in (0, 1)]
        if makers[0][-1:] == makers[1][-1:] or max(map(len, makers)) > _COMMON:
            continue
        left, right = (
            _maker(given, names, pair[1].step) for given, names in zip(origin.given, makers)
        )
        parts = (
            [origin.said] if origin.said.key == "compare.outside" else origin.said.facts["parts"]
        )
        facts = {key: parts[0].facts[key] for key in ("name", "place", "numbers")}
        origin.kind = Kind.WIRING
        origin.why = WHY
        origin.said = clauses(say("compare.step_link", **facts, left=left, right=right), *parts[1:])


def _maker(given: Any, names: Sequence[str], step: int | None) -> Sentence:
    if given is None:
        return say("compare.constant")
    return (
        say("compare.step_maker", name=names[-1], step=step)
        if names
        else say("compare.no_step_maker", step=step)
    )


def _made(folder: DumpFolder, wanted: set[Any]) -> dict[Any, list[str]]:
    dump = Dump(folder)
    try:
        forwards = [item for item in dump.data.items() if parse(item[0]).direction == FORWARD]
        made = (
            (content_key(record), name)
            for name, entry in forwards
            for record in tensors_in(entry, "output")
        )
        return grouped(item for item in made if item[0] is not None and item[0] in wanted)
    finally:
        dump.release()
