# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Parameters that are not trained: without a gradient or an optimizer, unused, unchanged; and Cells in wrong modes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from probe.findings.sentence import say
from probe.reading.check.difference import listed
from probe.reading.check.snapshot import RunSnapshot
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import is_tensor, real
from probe.reading.one_run.health.gradient_ends import End, EndFinder
from probe.reading.one_run.health.step import FAULT, NOTE, SUSPICIOUS, HealthFinding, Step, Update, is_zero

_HALF = 0.5
#: so small a part of a parameter is lost when it is added; that of 16 bits tells of parameters that stand still
_ROUNDING = {"Float16": 1e-3, "BFloat16": 8e-3}
_OF_FLOAT32 = 5e-7


class Trained(NamedTuple):
    """The facts of one step about its parameters."""

    held: dict[str, str]  # the parameters of the updates
    zero: frozenset[str]  # those of them whose gradient is zeros
    asked: frozenset[str]  # the parameters of which a gradient that is not zero was computed
    used: dict[str, int]  # the parameters in the order of their first use -> the place of it
    contents: dict[str, Any]  # parameter -> a key of its content when the step began
    moving: frozenset[str]  # held parameters whose update has a learning rate and a gradient that are not zero
    lost: frozenset[str]  # held parameters of 16 bits whose update is smaller than half of their last bit
    still: frozenset[str]  # held parameters whose learning rate is 0
    ends: dict[str, tuple[End, HealthFinding]]  # parameter -> where its gradient ends
    has_backward: bool  # whether a gradient was computed


def facts(step: Step) -> Trained:
    """Return the facts of a step."""
    held = {name: update.name for update in step.updates for name in update.entered}
    entered = step.entered
    zero = frozenset(name for name in held if is_zero(entered[name]))
    finder = EndFinder(step)
    zero = frozenset(name for name in zero if not finder.is_cancelled(name))
    ends = {}
    for name in zero:
        end = finder.find(name)
        if end is not None:
            ends[name] = end, step.found(FAULT, "gradient ends", end.said, end.place)
    arrived = {name for name, records in step.gradients.items() if not is_zero(records)}
    contents = {name: content_key(record) for name, record in step.records.items()}
    rates = {name: update.number("learning_rate", name, 1.0) for update in step.updates for name in update.entered}
    moving, lost = set(), set()
    for update in step.updates:
        for name, record in update.entered.items():
            change, size = _change(update, name, record), _size(step.records.get(name))
            if change > _OF_FLOAT32 * size:
                moving.add(name)
            dtype = str((step.records.get(name) or {}).get("dtype"))
            if 0 < change < _ROUNDING.get(dtype, 0.0) * size / 4:
                lost.add(name)
    still = frozenset(name for name, rate in rates.items() if not rate)
    uses = {name: places[0] for name, places in step.uses.items()}
    has_backward = bool(arrived) or bool(step.losses)
    return Trained(
        held, zero, frozenset(arrived), uses, contents, frozenset(moving), frozenset(lost), still, ends, has_backward
    )


def _size(record: Any) -> float:
    """Return the greatest element of a tensor, without its sign."""
    return max((abs(real(record.get(key)) or 0.0) for key in ("Max", "Min")), default=0.0) if is_tensor(record) else 0.0


def _change(update: Update, name: str, record: Any) -> float:
    """Return about how far an update changes the elements of a parameter at most."""
    rate, gradient = update.number("learning_rate", name, 1.0), _size(record)
    return rate * (min(gradient * 1e8, 1.0) if "beta2" in update.numbers else gradient)


class TrainingRules:
    """The rules about parameters, over the steps of one rank.

    ``trainable`` has the parameters that the snapshot calls so -> the path of their Cell.
    """

    def __init__(self, steps: Sequence[Trained], trainable: dict[str, str]) -> None:
        self._steps, self._trainable = steps, trainable
        self._with_update = [step for step in steps if step.held]
        self._held = {name: key for step in steps for name, key in step.held.items()}
        self._used = {name for step in steps for name in step.used}
        self._order = list(max(steps, key=lambda step: len(step.used)).used) if steps else []
        #: steps after an update: before it a parameter may begin with zeros that hide others
        self._is_told = len(self._with_update) > 1 and any(step.moving for step in self._with_update[:-1])

    def __iter__(self) -> Iterator[HealthFinding]:
        if not self._with_update:
            yield from self._never_updated()
            return
        yield from self._without_gradient()
        yield from self._not_held()
        yield from self._left_as_it_is()

    def _never_updated(self) -> Iterator[HealthFinding]:
        """Yield that gradients are computed, and no parameter changes."""
        steps = [step for step in self._steps if step.has_backward]
        same = [name for name in self._trainable if len({step.contents.get(name) for step in steps}) == 1]
        if len(steps) > 1 and steps[0].asked and len(same) == len(self._trainable):
            yield HealthFinding(SUSPICIOUS, "no update", say("health.no_update", count=len(steps)))

    def _without_gradient(self) -> Iterator[HealthFinding]:
        zero = self._in_each_update(lambda step: step.zero)
        every = len(zero) == len(self._held)
        if every:
            count = len(self._with_update)
            yield HealthFinding(FAULT, "zero gradient", say("health.all_gradients_zero", count=count))
        unused = [name for name in zero if name not in self._used and not every]
        if unused:
            names = {"names": listed(unused), "optimizer": self._held[unused[0]]}
            yield HealthFinding(SUSPICIOUS, "unused", say("health.unused", **names), unused[0])
        last = self._with_update[-1]
        causes: dict[int, list[str]] = {}
        unknown = []
        for name in zero:
            end = last.ends.get(name, (None,))[0]
            if end is not None and (end.is_sure or (self._is_told and not every)):
                causes.setdefault(end.place, []).append(name)
            elif name in self._used and self._is_told and not self._has_brother(name, zero):
                unknown.append(name)
        for names_of_cause in sorted(causes.values(), key=len, reverse=True)[:3]:
            end, finding = last.ends[names_of_cause[0]]
            said = say("health.gradient_ends", end=end.said, names=listed(names_of_cause))
            yield dataclasses.replace(finding, said=said)
        if unknown:
            yield HealthFinding(FAULT, "zero gradient", say("health.zero_gradient", names=listed(unknown)), unknown[0])

    def _in_each_update(self, named: Callable[[Trained], frozenset[str]]) -> list[str]:
        """Return the held parameters that each step with an update of them names."""
        steps = self._with_update
        return [name for name in self._held if all(name in named(step) for step in steps if name in step.held)]

    def _has_brother(self, name: str, zero: list[str]) -> bool:
        """Return whether another parameter of the Cell has a gradient: then this one's parts may add up to zero."""
        cell = self._trainable.get(name)
        return cell is not None and any(
            other not in zero and self._trainable.get(other) == cell for other in self._held if other != name
        )

    def _not_held(self) -> Iterator[HealthFinding]:
        """Yield trainable parameters that recorded calls use, and no optimizer holds."""
        loose = [name for name in self._trainable if name in self._used and name not in self._held]
        asked = [name for name in loose if any(name in step.asked for step in self._steps)]
        cells = {self._trainable[name] for name in self._held if name in self._trainable}
        if asked:
            yield HealthFinding(FAULT, "not held", say("health.asked_not_held", names=listed(asked)), asked[0])
        rest = [name for name in loose if name not in asked]
        if not rest:
            return
        begin = min((self._order.index(name) for name in self._held if name in self._order), default=0)
        is_late = any(name in self._order and self._order.index(name) > begin for name in rest)
        is_beside = any(self._trainable[name] in cells for name in rest)
        is_few = len(rest) < _HALF * len(self._trainable)
        weight = SUSPICIOUS if is_few and (is_late or is_beside) else NOTE
        yield HealthFinding(weight, "not held", say("health.not_held", names=listed(rest)), rest[0])

    def _left_as_it_is(self) -> Iterator[HealthFinding]:
        """Yield parameters that an update leaves as they are."""
        same = []
        for name in self._held:
            pairs = [
                (a.contents[name], b.contents[name]) for a, b in zip(self._steps, self._steps[1:])
                if name in a.moving and name in a.contents and name in b.contents
            ]  # fmt: skip
            if pairs and all(x is not None and x == y for x, y in pairs):
                same.append(name)
        moving = {name for step in self._steps for name in step.moving}
        pairs_of_all = [
            (a, b) for a, b in zip(self._steps, self._steps[1:]) if len(a.still) + len(a.zero) < len(a.held)
        ]
        kept = (a.contents.get(name) == b.contents.get(name) is not None for a, b in pairs_of_all for name in a.held)
        if not moving and pairs_of_all and all(kept):
            said = say("health.all_as_they_are", names=listed(self._held))
            yield HealthFinding(SUSPICIOUS, "not updated", said, next(iter(self._held)))
        if same:
            every = len(same) == len(moving)
            said = say("health.all_as_they_are" if every else "health.as_it_is", names=listed(same))
            yield HealthFinding(FAULT, "not updated", said, same[0])
        lost = self._in_each_update(lambda step: step.lost)
        if lost:
            yield HealthFinding(SUSPICIOUS, "not updated", say("health.lost_update", names=listed(lost)), lost[0])
        still = self._in_each_update(lambda step: step.still)
        if (still and moving) or (still and len(self._with_update) > 2):
            yield HealthFinding(SUSPICIOUS, "not updated", say("health.rate_of_zero", names=listed(still)), still[0])


def trainable_cells(parameters: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return the trainable parameters of a snapshot, each with the path of its Cell."""
    return {name: str(item.get("cell") or "") for name, item in parameters.items() if item.get("trainable") is True}


#: Cells that compute something else in training mode
_BY_MODE = re.compile(r"BatchNorm|Dropout|DropPath|StochasticDepth|DropBlock", re.IGNORECASE)


def modes(snapshot: RunSnapshot, steps: list[int], held: set[str]) -> Iterator[HealthFinding]:
    """Yield Cells in the wrong mode; ``steps`` are those with an update of the parameters ``held``."""
    cells = snapshot.cells
    #: outermost Cell that is not in training mode -> the steps, the Cells below it that the mode changes
    found: dict[str, tuple[list[int], list[str]]] = {}
    for step in steps:
        evaluating = [path for path in snapshot.evaluating(step) if path in cells]
        for top in _outermost(evaluating):
            changed = [path for path in evaluating if _is_below(path, top) and _differs(snapshot, path)]
            if changed:
                found.setdefault(top, ([], changed))[0].append(step)
    trained = {str(item.get("cell") or "") for name, item in snapshot.parameters.items() if name in held}
    roots = {""} if "" in cells else {path for path in cells if "." not in path}
    for top, (where, changed) in found.items():
        first = where[0]
        kind = cells[top]
        facts = {"cell": f"{top} ({kind})" if top else kind, "names": listed(dict.fromkeys(changed)), "step": first}
        if not any(_is_below(path, top) for path in trained):
            continue  # frozen on purpose: nothing in it is trained
        if top in roots and first > steps[0]:
            yield HealthFinding(FAULT, "mode", say("health.no_return", **facts), "", first)
        elif top in roots:
            yield HealthFinding(FAULT, "mode", say("health.never_training", **facts), "", first)
        else:
            norms = [path for path, name in cells.items() if "BatchNorm" in name]
            all_norms = len(norms) > 1 and set(norms) <= {path for item in found.values() for path in item[1]}
            yield HealthFinding(
                NOTE if all_norms else SUSPICIOUS, "mode", say("health.other_mode", **facts), top, first
            )


def _outermost(paths: list[str]) -> list[str]:
    known = set(paths)
    return [path for path in paths if not any(above in known for above in _above(path))]


def _above(path: str) -> Iterator[str]:
    """Yield the paths of the Cells around a Cell; that of the model is ""."""
    while path:
        path = path.rpartition(".")[0]
        yield path


def _is_below(path: str, top: str) -> bool:
    return not top or path == top or path.startswith(f"{top}.")


def _differs(snapshot: RunSnapshot, path: str) -> bool:
    """Return whether a Cell computes something else in training mode."""
    kind, values = snapshot.cells[path], snapshot.cell_values.get(path, {})
    if not _BY_MODE.search(kind):
        return False
    rates = [
        values[key] for key in ("p", "drop_prob", "rate", "drop_rate") if isinstance(values.get(key), (int, float))
    ]
    return "BatchNorm" in kind or not rates or any(rates)
