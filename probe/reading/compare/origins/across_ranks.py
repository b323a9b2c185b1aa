# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Origins across ranks and steps: differences that come through a collective, or from the update of the step before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from probe.findings.sentence import Sentence, clauses, say
from probe.reading.compare.judging.verdicts import is_state
from probe.reading.compare.origins.one_change import change_of, merged, of_lines, once
from probe.reading.compare.origins.origin import Kind, Origin
from probe.reading.compare.origins.unit_summary import UnitSummary
from probe.reading.dumps.call_kinds import is_collective
from probe.reading.dumps.entry_name import parse

_MOST = 100
_FEW = 3
#: the sentence about a call of one side alone, in that about an update
_ONLY = "compare.only_call"
_LATE = (Kind.CALLS, Kind.ARGUMENT, Kind.COMMUNICATION, Kind.OPTIMIZER)
#: the kinds that count after a step in which kernels round in another way: its update has changed all values
_CHANGES = frozenset((Kind.ARGUMENT, Kind.CALLS, Kind.DATA, Kind.OPTIMIZER, Kind.WIRING))


class _Told:
    """The newest form of each origin: a step that comes later may tell more about it."""

    def __init__(self) -> None:
        self._newest: dict[Origin, Origin] = {}

    def newest(self, origin: Origin) -> Origin:
        """Return an origin with all that is known about it by now."""
        return self._newest.get(origin, origin)

    def all_newest(self, origins: Iterable[Origin]) -> list[Origin]:
        """Return origins with all that is known about them by now."""
        return [self.newest(origin) for origin in origins]

    def change(self, origin: Origin, **fields: Any) -> None:
        """Take over what a later step tells about an origin."""
        self._newest[origin] = replace(self.newest(origin), **fields)


def first_origins(units: Sequence[UnitSummary]) -> tuple[list[Origin], list[Origin]]:
    """Return the origins of all steps and ranks in order, and those that may follow from them."""
    told = _Told()
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
            earlier = units[: units.index(of_step[0])]
            if any(unit.step != step and unit.counts.kernels for unit in earlier):
                own = [origin for origin in own if origin.kind in _CHANGES]
                follows = []
            first = [_since(origin, units, told) for origin in own or follows[:1]]
            origins += (
                _Handover(before, of_step, earlier, told).explained(first) if before else first
            )
            later += follows
        is_quiet = (is_quiet or not before) and all(unit.counts.is_exact for unit in of_step)
        before = of_step
    # calls of the same statement are the same change
    origins = told.all_newest(origins)
    same, rest = of_lines(origins, told.all_newest(later))
    return merged([*origins, *same])[:_MOST], once(rest)[:_MOST]


def _since(origin: Origin, units: Sequence[UnitSummary], told: _Told) -> Origin:
    """Return the same change in the first step that has it: a factor of zeros changes no value there.

    A call between gradients and optimizer that one side lacks is named in the update, which stays the place.
    """
    soft = [found for unit in units for found in unit.origins.soft if found.step != origin.step]
    first = next((found for found in soft if _is_earlier_form(found, origin)), None)
    if first is None or first.step is None or origin.step is None or first.step > origin.step:
        return origin
    if origin.kind == Kind.OPTIMIZER:
        first = replace(origin, site=origin.site._replace(step=first.step))
    said = clauses(told.newest(first).said, say("compare.acts_in", step=origin.acts_in))
    told.change(first, later=origin.acts_in, said=said)
    return first


def _is_earlier_form(found: Origin, origin: Origin) -> bool:
    """Return whether a change without effect in its step is the same as an origin, or is the call that it lacks."""
    if found.rank != origin.rank:
        return False
    if origin.kind in (Kind.ARGUMENT, Kind.CALLS):
        return change_of(found) == change_of(origin)
    lacking = _lacking_call(origin)
    return lacking != "" and found.kind == Kind.CALLS and found.name == lacking


def _lacking_call(origin: Origin) -> str:
    """Return the call of one side alone that has changed the gradients of an update; "" where none is known."""
    cause = origin.said.facts.get("cause")
    if isinstance(cause, Sentence) and cause.key == _ONLY:
        return str(cause.facts["name"])
    return ""


def _of_ranks(units: Sequence[UnitSummary], is_quiet: bool) -> tuple[list[Origin], list[Origin]]:
    """Return the origins of one step, and those that another rank has sent or that may follow."""
    own: list[Origin] = []
    follows: list[Origin] = []
    for unit in units:
        others = [other for other in units if other is not unit]
        # all steps before agree in all bits: then there is no noise, and any other bit is a difference
        exact = unit.origins.exact if is_quiet else ()
        for origin in exact or unit.origins.first:
            if _was_sent(unit, origin, others):
                follows.append(origin)
            else:
                own.append(origin)
        follows += unit.origins.later
    return sorted(own, key=lambda origin: origin.site.order), follows


def _was_sent(unit: UnitSummary, origin: Origin, others: Sequence[UnitSummary]) -> bool:
    """Return whether an origin is a collective into which another member has put something different."""
    parts = parse(origin.name)
    if origin.kind not in (Kind.COMMUNICATION, Kind.COMPUTATION) or not is_collective(parts):
        return False
    own = {item.key for item in unit.origins.collectives if item.origin}
    is_received = "recv" in parts.key.lower()
    for other in others:
        for item in other.origins.collectives:
            _, api, _ = item.key
            is_same = item.key in own and api == parts.key
            is_pair = is_received and "send" in api.lower()
            if item.sent_off and (is_same or is_pair):
                return True
    return False


class _Handover:
    """The values that one step leaves to the next, on all ranks: the parameters, after the update."""

    def __init__(
        self,
        before: Sequence[UnitSummary],
        units: Sequence[UnitSummary],
        earlier: Sequence[UnitSummary],
        told: _Told,
    ) -> None:
        self._told = told
        self._earlier = earlier  # those of all steps before
        self._step = before[0].step
        self._has_gap = _is_gap(self._step, units[0].step)
        self._has_update = all(unit.origins.updates for unit in before)
        self._is_settled = all(unit.origins.settled for unit in before)
        counts = [unit.origins.parameters for unit in units]
        count = sum(every for every, _ in counts)
        differing = sum(off for _, off in counts)
        # the optimizer would change all
        is_few = 0 < differing <= _FEW * len(units)
        self._is_single = is_few and count > 2 * differing
        soft = [found for unit in before for found in unit.origins.soft]
        #: harmless-looking differences that may change gradients after they were recorded
        self._late = [it for it in soft if it.site.after_backward and it.kind in _LATE]
        # without Cells a parameter is a value from outside
        has_other_optimizer = any(found.kind == Kind.OPTIMIZER for found in self._late)
        self._is_outside = not count and has_other_optimizer

    def explained(self, origins: Iterable[Origin]) -> list[Origin]:
        """Return origins; a change of the step before stands for parameters that it made differ.

        Of other parameters that differ after a step without differences it is told that the optimizer made them differ.
        """
        made: list[Origin] = []
        cause: Origin | None = None
        for origin in origins:
            change = self._cause(origin) if self._is_handed_over(origin) else None
            if change is None:
                if self._is_handed_over(origin):
                    self._tell(origin)
                made.append(origin)
            elif cause is None:
                cause = self._first_of(change)
                follows = say("compare.parameters_follow", step=origin.step, finding=origin.said)
                said = clauses(self._told.newest(cause).said, follows)
                self._told.change(cause, later=origin.step, said=said)
                made.append(cause)
        return made

    def _first_of(self, change: Origin) -> Origin:
        """Return the same change in the first step that has it."""
        wanted = (*change_of(change), change.rank)
        soft = (found for unit in self._earlier for found in unit.origins.soft)
        return next((it for it in soft if (*change_of(it), it.rank) == wanted), change)

    def _is_handed_over(self, origin: Origin) -> bool:
        is_outside = self._is_outside and origin.kind == Kind.OUTSIDE
        return is_outside or origin.kind == Kind.PARAMETER

    def _is_written(self, origin: Origin) -> bool:
        """Return whether something else than the update has changed a parameter."""
        return self._is_settled or self._is_single or is_state(origin.place)

    def _cause(self, origin: Origin) -> Origin | None:
        """Return the change of the step before that made a parameter differ."""
        is_written = self._is_written(origin)
        # an optimizer of another class changes all parameters, and its results would differ
        causes = (it for it in self._late if it.kind != Kind.OPTIMIZER or not is_written)
        return next(causes, None)

    def _tell(self, origin: Origin) -> None:
        """Tell of a parameter without such a change how it came to differ."""
        step = self._step
        if self._has_gap:
            said = say("compare.after_gap", finding=origin.said, step=step, next=origin.step)
            self._told.change(origin, said=said, is_uncompared=True)
        elif self._is_written(origin):
            said = say("compare.changed_after_update", step=step, finding=origin.said)
            self._told.change(origin, said=said)
        else:
            key = "compare.optimizer_state" if self._has_update else "compare.optimizer"
            made = say(key, step=step, next=origin.step)
            said = clauses(made, origin.said)
            self._told.change(origin, kind=Kind.OPTIMIZER, said=said)


def _is_gap(step: int | None, later: int | None) -> bool:
    """Return whether there are steps between two recorded ones."""
    return step is not None and later is not None and later > step + 1
