# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Parameters that are not trained: without a gradient or an optimizer, unused, unchanged; and Cells in wrong modes.

A gradient is followed from the parameter on in the direction of the loss, to the call at which it ends.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, NamedTuple

from probe.findings.sentence import Sentence, say
from probe.reading.check.difference import listed
from probe.reading.check.snapshot import RunSnapshot
from probe.reading.dumps.entry_name import CELL, FORWARD
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import Record, is_tensor, leaves, real
from probe.reading.one_run.health.step import (
    FAULT,
    NOTE,
    SUSPICIOUS,
    HealthFinding,
    Step,
    Update,
    is_zero,
    norm,
)

#: calls whose derivative is zero or none
_STOPS = re.compile(
    r"^(stop_?gradient|detach|arg(max|min|sort)(withvalue)?|sign|ceil|floor|round|trunc|floor_?div(ide)?|__floordiv__|"
    r"one_?hot(ext)?|heaviside|rint|bernoulli|multinomial|non_?zero|searchsorted|bucketize)$",
    re.IGNORECASE,
)
#: calls that only ask for a shape or a dtype
_NO_VALUE = re.compile(
    r"(shape|size|rank|dtype|ndim|zeros|ones|full|empty)(op|_op|_like|like)?$", re.IGNORECASE
)
_FLOATS = ("Float", "BFloat", "Complex", "HiFloat")
_HALF = 0.5
SAME_NAME = "#"  # stands behind a name that another parameter has; a number follows it
#: so small a part of a parameter is lost when it is added; that of 16 bits tells of parameters that stand still
_ROUNDING = {"Float16": 1e-3, "BFloat16": 8e-3}
_OF_FLOAT32 = 5e-7
#: Cells that compute something else in training mode
_BY_MODE = re.compile(r"BatchNorm|Dropout|DropPath|StochasticDepth|DropBlock", re.IGNORECASE)


class End(NamedTuple):
    """The end of a gradient."""

    place: int  # the call
    said: Sentence
    is_sure: bool  # whether it holds in one step already; else a parameter that begins with zeros may explain it


def _is_float(record: Record) -> bool:
    return str(record.get("dtype")).startswith(_FLOATS)


def stops(step: Step, place: int) -> Sentence | None:
    """Return why no gradient passes a call whatever its values are; None if one may."""
    name = step.flow.names[place]
    parts = step.flow.parts[place]
    entry = step.entry(place)
    outputs = step.outputs(place)
    given = [link.record for link in step.flow.links[place] if _is_float(link.record)]
    if not given or not outputs or parts.kind == CELL or _NO_VALUE.search(parts.api):
        return None
    if _STOPS.match(parts.api):
        return say("health.stops", name=name)
    if not any(map(_is_float, outputs)) and type(entry) is dict:
        dtypes = {"given": given[0]["dtype"], "made": outputs[0].get("dtype")}
        return say("health.stops_dtype", name=name, **dtypes)
    return None


class EndFinder:
    """Finds where gradients end in one step."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._flow = step.flow

    def find(self, parameter: str) -> End | None:
        """Return where the gradient of a parameter ends; None where that cannot be told."""
        waiting: list[tuple[int, tuple[int, ...]]] = [
            (place, ()) for place in self._step.uses.get(parameter, ())
        ]
        seen: set[int] = set()
        last: tuple[int, ...] = ()
        while waiting:
            place, road = waiting.pop(0)
            if place in seen:
                continue
            seen.add(place)
            if self._step.arrives(place):
                return self._between((*road, place))
            road = (*road, place)
            if said := stops(self._step, place):
                return End(place, said, True)
            users = [user for user in self._flow.used_by.get(place, ()) if user > place]
            waiting += [(user, road) for user in users]
            if (
                not users
                and len(road) > len(last)
                and not _NO_VALUE.search(self._flow.parts[place].api)
            ):
                last = road
        return self._left(last) if last else None

    def is_cancelled(self, parameter: str) -> bool:
        """Return whether a call gives a parameter a gradient that is not zero: several of them add up to zero."""
        return any(
            self._gradient(place, link.place)
            for place in self._step.uses.get(parameter, ())
            for link in self._flow.links[place]
            if link.parameter is not None and self._step.name_of(link.parameter) == parameter
        )

    def _gradient(self, place: int, where: str) -> float | None:
        outputs = dict(leaves(self._backward(place).get("output")))
        return norm(outputs.get(where.partition(".")[2]))

    def _between(self, road: tuple[int, ...]) -> End | None:
        """Return the end between a call that gets no gradient and the next one, which gets one."""
        last = road[-1]
        for place in road[-2:-1]:
            for cell in self._step.ancestors(place):
                if self._step.arrives(cell) and self._gives_zeros(cell):
                    return End(cell, say("health.bprop", name=self._flow.names[cell]), True)
        if self._gives_zeros(last) and (said := self._zeros(last)):
            return End(last, said, False)
        if len(road) > 1 and not self._gives_zeros(last):
            names = {"last": self._flow.names[road[-2]], "next": self._flow.names[last]}
            return End(road[-2], say("health.ends_between", **names), True)
        return None

    def _backward(self, place: int) -> Any:
        backward = self._flow.backward_of(place)
        return self._step.entry(backward) if backward is not None else {}

    def _gives_zeros(self, place: int) -> bool:
        return any(is_zero([record]) for _, record in leaves(self._backward(place).get("output")))

    def _zeros(self, place: int) -> Sentence | None:
        """Return why the backward of a call gives zeros of a gradient that is none."""
        name = self._flow.names[place]
        for link in self._flow.links[place]:
            high = real(link.record.get("Max"))
            if "relu" in self._flow.parts[place].api.lower() and high is not None and high <= 0:
                return say("health.dead", name=name)
            if is_zero([link.record]) and len(self._flow.links[place]) > 1:
                return say("health.other_zero", name=name, place=link.place)
        return say("health.zero_backward", name=name)

    def _left(self, road: tuple[int, ...]) -> End | None:
        """Return the end at a call whose output no recorded call uses: it has left MindSpore, as by asnumpy."""
        last = road[-1]
        if last in self._step.losses:
            return None
        for place, parts, _ in self._step.forwards():
            if place > last and parts.kind != CELL and self._step.arrives(place):
                links = [
                    link
                    for link in self._flow.links[place]
                    if link.producer < 0 and link.parameter is None
                ]
                given = [link.record for link in links if _is_float(link.record)]
                if any(record.get("Max") != record.get("Min") for record in given):
                    names = {"last": self._flow.names[last], "next": self._flow.names[place]}
                    return End(last, say("health.left", **names), True)
        return End(last, say("health.unused_output", name=self._flow.names[last]), False)


class Trained(NamedTuple):
    """The facts of one step about its parameters."""

    held: dict[str, str]  # the parameters of the updates
    zero: frozenset[str]  # those of them whose gradient is zeros
    asked: frozenset[str]  # the parameters of which a gradient that is not zero was computed
    used: dict[str, int]  # the parameters in the order of their first use -> the place of it
    contents: dict[str, Any]  # parameter -> a key of its content when the step began
    moving: frozenset[
        str
    ]  # held parameters whose update has a learning rate and a gradient that are not zero
    lost: frozenset[
        str
    ]  # held parameters of 16 bits whose update is smaller than half of their last bit
    still: frozenset[str]  # held parameters whose learning rate is 0
    ends: dict[str, tuple[End, HealthFinding]]  # parameter -> where its gradient ends
    has_backward: bool  # whether a gradient was computed
    holders: dict[str, tuple[str, ...]]  # parameter -> the optimizers that update it in this step
    reached: frozenset[
        str
    ]  # parameters that no update has, and a gradient arrives at a call that uses them


def facts(step: Step) -> Trained:
    """Return the facts of a step."""
    held = {name: update.name for update in step.updates for name in update.entered}
    entered = step.entered
    finder = EndFinder(step)
    zero = frozenset(
        name for name in held if is_zero(entered[name]) and not finder.is_cancelled(name)
    )
    ends = {}
    for name in zero:
        end = finder.find(name)
        if end is not None:
            ends[name] = end, step.found(FAULT, "gradient ends", end.said, end.place)
    arrived = {name for name, records in step.gradients.items() if not is_zero(records)}
    contents = {name: content_key(record) for name, record in step.records.items()}
    rates = {
        name: update.number("learning_rate", name, 1.0)
        for update in step.updates
        for name in update.entered
    }
    moving = set()
    lost = set()
    for update in step.updates:
        for name, record in update.entered.items():
            change = _change(update, name, record)
            size = _size(step.records.get(name))
            if change > _OF_FLOAT32 * size:
                moving.add(name)
            dtype = str((step.records.get(name) or {}).get("dtype"))
            if 0 < change < _ROUNDING.get(dtype, 0.0) * size / 4:
                lost.add(name)
    still = frozenset(name for name, rate in rates.items() if not rate)
    uses = {name: places[0] for name, places in step.uses.items()}
    asked = frozenset(arrived)
    has_backward = bool(arrived) or bool(step.losses)
    loose = [name for name in uses if name not in held]
    reached = frozenset(name for name in loose if any(map(step.arrives, step.uses[name])))
    return Trained(
        held,
        zero,
        asked,
        uses,
        contents,
        frozenset(moving),
        frozenset(lost),
        still,
        ends,
        has_backward,
        _holders(step),
        reached,
    )


def _holders(step: Step) -> dict[str, tuple[str, ...]]:
    """Return the optimizers of each parameter; {} where the names of a dump do not tell one parameter from another."""
    known = step.snapshot.parameters if step.snapshot is not None else {}
    if known and not step.records.keys() <= known.keys():
        return {}  # an older probe has kept one of several parameters of a name
    found: dict[str, list[str]] = {}
    for update in step.updates:
        for name in update.entered:
            found.setdefault(name, []).append(_optimizer(update.name))
    return {name: tuple(dict.fromkeys(several)) for name, several in found.items()}


def _optimizer(update: str) -> str:
    """Return the optimizer of an update.

    >>> _optimizer("Cell.optimizer1.SGD.forward.2")
    'Cell.optimizer1.SGD'
    """
    return update.rpartition(f".{FORWARD}.")[0] or update


def _size(record: Any) -> float:
    """Return the greatest element of a tensor, without its sign."""
    return (
        max((abs(real(record.get(key)) or 0.0) for key in ("Max", "Min")), default=0.0)
        if is_tensor(record)
        else 0.0
    )


def _change(update: Update, name: str, record: Any) -> float:
    """Return about how far an update changes the elements of a parameter at most."""
    rate = update.number("learning_rate", name, 1.0)
    gradient = _size(record)
    return rate * (min(gradient * 1e8, 1.0) if "beta2" in update.numbers else gradient)


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
        self._held = {name: key for step in steps for name, key in step.held.items()}
        self._used = {name for step in steps for name in step.used}
        self._order = list(max(steps, key=lambda step: len(step.used)).used) if steps else []
        #: steps after an update: before it a parameter may begin with zeros that hide others
        self._is_told = len(self._with_update) > 1 and any(
            step.moving for step in self._with_update[:-1]
        )

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
        same = [
            name
            for name in self._trainable
            if len({step.contents.get(name) for step in steps}) == 1
        ]
        if len(steps) > 1 and steps[0].asked and len(same) == len(self._trainable):
            yield HealthFinding(SUSPICIOUS, "no update", say("health.no_update", count=len(steps)))

    def _held_twice(self) -> Iterator[HealthFinding]:
        """Yield parameters that two optimizers update in one step."""
        found: dict[tuple[str, ...], list[str]] = {}
        for name in self._held:
            several = next(
                (step.holders[name] for step in self._steps if len(step.holders.get(name, ())) > 1),
                (),
            )
            if several:
                found.setdefault(several, []).append(name)
        for optimizers, names in found.items():
            facts = {"first": optimizers[0], "second": optimizers[1], "names": listed(names)}
            yield HealthFinding(
                SUSPICIOUS, "held twice", say("health.held_twice", **facts), names[0]
            )

    def _without_gradient(self) -> Iterator[HealthFinding]:
        zero = self._in_each_update(lambda step: step.zero)
        every = len(zero) == len(self._held)
        if every:
            count = len(self._with_update)
            yield HealthFinding(
                FAULT, "zero gradient", say("health.all_gradients_zero", count=count)
            )
        unused = [name for name in self._unused if not every]
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
            yield HealthFinding(
                FAULT,
                "zero gradient",
                say("health.zero_gradient", names=listed(unknown)),
                unknown[0],
            )

    def _is_held(self, name: str) -> bool:
        return name in self._held or name in self._further

    @property
    def _unused(self) -> list[str]:
        """The held parameters that no recorded call uses."""
        return [
            name for name in self._in_each_update(lambda step: step.zero) if name not in self._used
        ]

    def _in_each_update(self, named: Callable[[Trained], frozenset[str]]) -> list[str]:
        """Return the held parameters that each step with an update of them names."""
        steps = self._with_update
        return [
            name
            for name in self._held
            if all(name in named(step) for step in steps if name in step.held)
        ]

    def _has_brother(self, name: str, zero: list[str]) -> bool:
        """Return whether another parameter of the Cell has a gradient: then this one's parts may add up to zero."""
        cell = self._trainable.get(name)
        others = (other for other in self._held if other != name and other not in zero)
        return cell is not None and any(self._trainable.get(other) == cell for other in others)

    def _not_held(self) -> Iterator[HealthFinding]:
        """Yield trainable parameters that recorded calls use, and no optimizer holds."""
        loose = [name for name in self._trainable if name in self._used and not self._is_held(name)]
        asked = [name for name in loose if any(name in step.asked for step in self._steps)]
        cells = {self._trainable[name] for name in self._held if name in self._trainable}
        if asked:
            yield HealthFinding(
                FAULT, "not held", say("health.asked_not_held", names=listed(asked)), asked[0]
            )
        told = {*asked}
        for finding, names in (self._replaced(loose), *self._whole_models(loose)):
            if finding is not None and told.isdisjoint(names):
                told.update(names)
                yield finding
        rest = [name for name in loose if name not in told]
        if not rest:
            return
        begin = min(
            (self._order.index(name) for name in self._held if name in self._order), default=0
        )
        is_late = any(name in self._order and self._order.index(name) > begin for name in rest)
        is_beside = any(self._trainable[name] in cells for name in rest)
        is_few = len(rest) < _HALF * len(self._trainable)
        weight = SUSPICIOUS if is_few and (is_late or is_beside) else NOTE
        yield HealthFinding(weight, "not held", say("health.not_held", names=listed(rest)), rest[0])

    def _replaced(self, loose: list[str]) -> tuple[HealthFinding | None, list[str]]:
        """Return that an optimizer holds other parameters of these names, which no call uses; and the names."""
        others = {
            name: other
            for other in self._unused
            for name in [other.rpartition(SAME_NAME)[0]]
            if name in loose
        }
        if not others:
            return None, []
        optimizer = _optimizer(self._held[next(iter(others.values()))])
        said = say("health.replaced", optimizer=optimizer, names=listed(others))
        return HealthFinding(FAULT, "not held", said, next(iter(others))), list(others)

    def _whole_models(self, loose: list[str]) -> Iterator[tuple[HealthFinding, list[str]]]:
        """Yield that gradients reach a model of which no optimizer holds a parameter; and its parameters."""
        reached = {name for step in self._steps for name in step.reached}
        for path, kind in self._models.items():
            own = [name for name, cell in self._trainable.items() if _is_below(cell, path)]
            if own and not any(map(self._is_held, own)) and reached.intersection(own):
                said = say("health.model_not_held", model=f"{path} ({kind})")
                yield (
                    HealthFinding(SUSPICIOUS, "not held", said, path),
                    [name for name in own if name in loose],
                )

    def _left_as_it_is(self) -> Iterator[HealthFinding]:
        same = []
        for name in self._held:
            pairs = [
                (a.contents[name], b.contents[name])
                for a, b in zip(self._steps, self._steps[1:])
                if name in a.moving and name in a.contents and name in b.contents
            ]
            if pairs and all(x is not None and x == y for x, y in pairs):
                same.append(name)
        moving = {name for step in self._steps for name in step.moving}
        neighbours = zip(self._steps, self._steps[1:])
        pairs_of_all = [(a, b) for a, b in neighbours if len(a.still) + len(a.zero) < len(a.held)]
        kept = (
            a.contents.get(name) == b.contents.get(name) is not None
            for a, b in pairs_of_all
            for name in a.held
        )
        if not moving and pairs_of_all and all(kept):
            said = say("health.all_as_they_are", names=listed(self._held))
            yield HealthFinding(SUSPICIOUS, "not updated", said, next(iter(self._held)))
        if same:
            every = len(same) == len(moving)
            said = say("health.all_as_they_are" if every else "health.as_it_is", names=listed(same))
            yield HealthFinding(FAULT, "not updated", said, same[0])
        lost = self._in_each_update(lambda step: step.lost)
        if lost:
            yield HealthFinding(
                SUSPICIOUS, "not updated", say("health.lost_update", names=listed(lost)), lost[0]
            )
        still = self._in_each_update(lambda step: step.still)
        if (still and moving) or (still and len(self._with_update) > 2):
            yield HealthFinding(
                SUSPICIOUS, "not updated", say("health.rate_of_zero", names=listed(still)), still[0]
            )


def trainable_cells(parameters: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return the trainable parameters of a snapshot, each with the path of its Cell."""
    return {
        name: str(item.get("cell") or "")
        for name, item in parameters.items()
        if item.get("trainable") is True
    }


def trained_models(snapshot: RunSnapshot, steps: Sequence[int]) -> dict[str, str]:
    """Return the paths of the models that are in training mode in one of the steps, with their classes.

    A lone model is left out.
    """
    cells = snapshot.cells
    roots = {} if "" in cells else {path: kind for path, kind in cells.items() if path.isdigit()}
    modes_of_steps = [snapshot.evaluating(step) for step in steps]
    return {
        path: kind
        for path, kind in roots.items()
        if any(path not in evaluating for evaluating in modes_of_steps)
    }


def modes(snapshot: RunSnapshot, steps: list[int], held: set[str]) -> Iterator[HealthFinding]:
    """Yield Cells in the wrong mode; ``steps`` are those with an update of the parameters ``held``."""
    cells = snapshot.cells
    #: outermost Cell that is not in training mode -> the steps, the Cells below it that the mode changes
    found: dict[str, tuple[list[int], list[str]]] = {}
    for step in steps:
        evaluating = [path for path in snapshot.evaluating(step) if path in cells]
        for top in _outermost(evaluating):
            changed = [
                path for path in evaluating if _is_below(path, top) and _differs(snapshot, path)
            ]
            if changed:
                found.setdefault(top, ([], changed))[0].append(step)
    trained = {
        str(item.get("cell") or "") for name, item in snapshot.parameters.items() if name in held
    }
    roots = {""} if "" in cells else {path for path in cells if "." not in path}
    for top, (where, changed) in found.items():
        first = where[0]
        kind = cells[top]
        facts = {
            "cell": f"{top} ({kind})" if top else kind,
            "names": listed(dict.fromkeys(changed)),
            "step": first,
        }
        if not any(_is_below(path, top) for path in trained):
            continue  # frozen on purpose: nothing in it is trained
        if top in roots:
            key = "health.no_return" if first > steps[0] else "health.never_training"
            yield HealthFinding(FAULT, "mode", say(key, **facts), "", first)
        else:
            norms = [path for path, name in cells.items() if "BatchNorm" in name]
            all_norms = len(norms) > 1 and set(norms) <= {
                path for item in found.values() for path in item[1]
            }
            weight = NOTE if all_norms else SUSPICIOUS
            yield HealthFinding(weight, "mode", say("health.other_mode", **facts), top, first)


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
    kind = snapshot.cells[path]
    values = snapshot.cell_values.get(path, {})
    if not _BY_MODE.search(kind):
        return False
    known = map(values.get, ("p", "drop_prob", "rate", "drop_rate"))
    rates = [rate for rate in known if isinstance(rate, (int, float))]
    return "BatchNorm" in kind or not rates or any(rates)
