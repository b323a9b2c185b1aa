# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Parameters that are not trained: without a gradient or an optimizer, unused, or unchanged."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, NamedTuple

from probe.findings.sentence import Sentence, say
from probe.naming import ranges
from probe.reading.check.difference import listed
from probe.reading.one_run.health.gradient_ends import End
from probe.reading.one_run.health.modes import is_below
from probe.reading.one_run.health.step import FAULT, NOTE, SUSPICIOUS, HealthFinding
from probe.reading.one_run.health.trained import Trained, optimizer_of

_HALF = 0.5
SAME_NAME = "#"  # stands behind a name that another parameter has; a number follows it


class TrainingRules:
    """The rules about parameters over the steps of a rank; ``trainable``: those of the snapshot -> their Cells.

    ``models`` are the paths of the models that are in training mode, if there are several models. ``idle`` are the
    parameters of optimizers that may update in other steps.
    """

    def __init__(
        self,
        steps: Sequence[Trained],
        trainable: dict[str, str],
        models: dict[str, str],
        idle: Sequence[str],
        elsewhere: Set[str] = frozenset(),
    ) -> None:
        self._steps = steps
        self._trainable = trainable
        self._models = models
        #: parameters that an idle optimizer holds, or one of another rank: each may hold a part of them
        self._further = elsewhere | set(idle)
        self._with_update = [step for step in steps if step.held]
        self._held: dict[str, str] = {}  # parameter -> its last update
        self._used: set[str] = set()
        self._order: list[str] = []  # the parameters of the step that uses most, by their first use
        for step in steps:
            self._held.update(step.held)
            self._used.update(step.used)
            if len(step.used) > len(self._order):
                self._order = list(step.used)
        #: steps after an update: before it a parameter may begin with zeros that hide others
        self._is_told = any(step.moving for step in self._with_update[:-1])

    def __iter__(self) -> Iterator[HealthFinding]:
        if not self._with_update:
            yield from self._never_updated()
            return
        yield from self._held_twice()
        yield from self._without_gradient()
        yield from self._not_held()
        yield from self._left_as_it_is()

    def _never_updated(self) -> Iterator[HealthFinding]:
        """Yield that gradients are computed, and no parameter changes."""
        steps = [step for step in self._steps if step.has_backward]
        if len(steps) < 2 or not steps[0].asked:
            return
        first = steps[0].contents
        for step in steps[1:]:
            if any(step.contents.get(name) != first.get(name) for name in self._trainable):
                return
        said = say("health.no_update", count=len(steps))
        yield _found(SUSPICIOUS, "no update", said, list(self._trainable), name="")

    def _held_twice(self) -> Iterator[HealthFinding]:
        """Yield parameters that two optimizers update in one step."""
        found: dict[tuple[str, ...], list[str]] = {}
        for name in self._held:
            holders = [step.holders.get(name, ()) for step in self._steps]
            several = next((own for own in holders if len(own) > 1), ())
            if several:
                found.setdefault(several, []).append(name)
        for optimizers, names in found.items():
            first, second = optimizers[:2]
            said = say("health.held_twice", first=first, second=second, names=listed(names))
            yield HealthFinding(SUSPICIOUS, "held twice", said, names[0])

    def _without_gradient(self) -> Iterator[HealthFinding]:
        zero = self._in_each_update(lambda step: step.zero)
        every = len(zero) == len(self._held)
        if every:
            known = [step.step for step in self._with_update if step.step is not None]
            said = say("health.all_gradients_zero", steps=", ".join(ranges(known)) or "?")
            yield _found(FAULT, "zero gradient", said, list(self._held), name="")
        unused = [name for name in self._unused if not every]
        if unused:
            optimizer = self._held[unused[0]]
            said = say("health.unused", names=listed(unused), optimizer=optimizer)
            yield _found(SUSPICIOUS, "unused", said, unused)
        yield from self._ends(zero, every)

    def _ends(self, zero: list[str], every: bool) -> Iterator[HealthFinding]:
        """Yield the calls at which gradients end, then the parameters that no call explains."""
        last = self._with_update[-1]
        causes: dict[
            int, list[str]
        ] = {}  # place of an end -> the parameters whose gradient ends there
        unknown = []
        for name in zero:
            end = last.ends[name][0] if name in last.ends else None
            if end is not None and (end.is_sure or (self._is_told and not every)):
                causes.setdefault(end.place, []).append(name)
            elif name in self._used and self._is_told and not self._has_brother(name, zero):
                unknown.append(name)
        for names in sorted(causes.values(), key=len, reverse=True)[:3]:
            end, finding = self._first_end(names[0], last.ends[names[0]][0])
            said = say("health.gradient_ends", end=end.said, names=listed(names))
            yield dataclasses.replace(finding, said=said, parameters=tuple(names))
        if unknown:
            said = say("health.zero_gradient", names=listed(unknown))
            yield _found(FAULT, "zero gradient", said, unknown)

    def _first_end(self, name: str, end: End) -> tuple[End, HealthFinding]:
        """Return the same end of the gradient of a parameter in the first step that has it."""
        ends = [step.ends[name] for step in self._with_update if name in step.ends]
        return next(item for item in ends if item[0].said == end.said)

    def _is_held(self, name: str) -> bool:
        return name in self._held or name in self._further

    @property
    def _unused(self) -> list[str]:
        """The held parameters that no recorded call uses."""
        zero = self._in_each_update(lambda step: step.zero)
        return [name for name in zero if name not in self._used]

    def _in_each_update(self, named: Callable[[Trained], frozenset[str]]) -> list[str]:
        """Return the held parameters that each step with an update of them names."""
        missing: set[str] = set()  # held parameters that a step does not name
        for step in self._with_update:
            missing.update(step.held.keys() - named(step))
        return [name for name in self._held if name not in missing]

    def _has_brother(self, name: str, zero: list[str]) -> bool:
        """Return whether another parameter of the Cell has a gradient: then this one's parts may add up to zero."""
        cell = self._trainable.get(name)
        if cell is None:
            return False
        others = [other for other in self._held if other != name and other not in zero]
        return any(self._trainable.get(other) == cell for other in others)

    def _not_held(self) -> Iterator[HealthFinding]:
        """Yield trainable parameters that recorded calls use, and no optimizer holds."""
        used = [name for name in self._trainable if name in self._used]
        loose = [name for name in used if not self._is_held(name)]
        asked_in_steps = {name for step in self._steps for name in step.asked}
        asked = [name for name in loose if name in asked_in_steps]
        if asked:
            said = say("health.asked_not_held", names=listed(asked))
            yield _found(FAULT, "not held", said, asked)
        told = {*asked}
        for found in (*self._replaced(loose), *self._whole_models(loose)):
            if told.isdisjoint(found.names):
                told.update(found.names)
                yield found.finding
        rest = [name for name in loose if name not in told]
        if rest:
            weight = SUSPICIOUS if self._are_forgotten(rest) else NOTE
            said = say("health.not_held", names=listed(rest))
            yield _found(weight, "not held", said, rest)

    def _are_forgotten(self, names: list[str]) -> bool:
        """Return whether parameters that no optimizer holds are few, and behind or beside held ones: not frozen."""
        if len(names) >= _HALF * len(self._trainable):
            return False
        uses = {name: place for place, name in enumerate(self._order)}
        begin = min((uses[name] for name in self._held if name in uses), default=0)
        is_late = any(uses.get(name, begin) > begin for name in names)
        cells = {self._trainable[name] for name in self._held if name in self._trainable}
        is_beside = any(self._trainable[name] in cells for name in names)
        return is_late or is_beside

    def _replaced(self, loose: list[str]) -> Iterator[_NotHeld]:
        """Yield that an optimizer holds other parameters of these names, which no call uses."""
        others: dict[str, str] = {}
        for other in self._unused:
            name, _, _ = other.rpartition(SAME_NAME)
            if name in loose:
                others[name] = other
        for other in list(others.values())[:1]:
            optimizer = optimizer_of(self._held[other])
            said = say("health.replaced", optimizer=optimizer, names=listed(others))
            yield _NotHeld(_found(FAULT, "not held", said, list(others)), list(others))

    def _whole_models(self, loose: list[str]) -> Iterator[_NotHeld]:
        """Yield that gradients reach a model of which no optimizer holds a parameter."""
        reached = {name for step in self._steps for name in step.reached}
        for path, kind in self._models.items():
            own = [name for name, cell in self._trainable.items() if is_below(cell, path)]
            is_held = any(map(self._is_held, own))
            if not is_held and reached.intersection(own):
                said = say("health.model_not_held", model=f"{path} ({kind})")
                finding = _found(SUSPICIOUS, "not held", said, own, path)
                yield _NotHeld(finding, [name for name in own if name in loose])

    def _left_as_it_is(self) -> Iterator[HealthFinding]:
        """Yield parameters that updates do not change."""
        moving = {name for step in self._steps for name in step.moving}
        if not moving and self._are_all_as_they_were():
            said = say("health.all_as_they_are", names=listed(self._held))
            yield _not_updated(SUSPICIOUS, said, list(self._held))
        same = [name for name in self._held if self._is_as_it_was(name)]
        if same:
            every = len(same) == len(moving)
            key = "health.all_as_they_are" if every else "health.as_it_is"
            yield _not_updated(FAULT, say(key, names=listed(same)), same)
        lost = self._in_each_update(lambda step: step.lost)
        if lost:
            said = say("health.lost_update", names=listed(lost))
            yield _not_updated(SUSPICIOUS, said, lost)
        still = self._in_each_update(lambda step: step.still)
        if still and (moving or len(self._with_update) > 2):
            said = say("health.rate_of_zero", names=listed(still))
            yield _not_updated(SUSPICIOUS, said, still)

    def _is_as_it_was(self, name: str) -> bool:
        """Return whether no update that should change a parameter has changed it."""
        is_seen = False
        for step, after in zip(self._steps, self._steps[1:]):
            if name in step.moving and name in step.contents and name in after.contents:
                is_seen = True
                if not _has_same_content(step, after, name):
                    return False
        return is_seen

    def _are_all_as_they_were(self) -> bool:
        """Return whether updates that have a rate and a gradient for some parameters have changed none."""
        neighbours = [
            (step, after)
            for step, after in zip(self._steps, self._steps[1:])
            if len(step.still) + len(step.zero) < len(step.held)
        ]
        for step, after in neighbours:
            if not all(_has_same_content(step, after, name) for name in step.held):
                return False
        return bool(neighbours)


class _NotHeld(NamedTuple):
    """A finding about parameters that no optimizer holds."""

    finding: HealthFinding
    names: list[str]


def _found(
    weight: str, rule: str, said: Sentence, names: list[str], name: str | None = None
) -> HealthFinding:
    """Return a finding about parameters, which has the name of the first one where no other is given."""
    own = names[0] if name is None else name
    return HealthFinding(weight, rule, said, own, parameters=tuple(names))


def _not_updated(weight: str, said: Sentence, names: list[str]) -> HealthFinding:
    return _found(weight, "not updated", said, names)


def _has_same_content(step: Trained, after: Trained, name: str) -> bool:
    """Return whether a parameter is known to be the same when two steps begin."""
    content = step.contents.get(name)
    return content is not None and content == after.contents.get(name)


def trainable_cells(parameters: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return the trainable parameters of a snapshot, each with the path of its Cell."""
    return {
        name: str(item.get("cell") or "")
        for name, item in parameters.items()
        if item.get("trainable") is True
    }
