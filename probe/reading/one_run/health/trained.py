# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The facts of one step about its parameters: which are held, used, moving, and where their gradients end."""

from __future__ import annotations

from typing import Any, NamedTuple

from probe.reading.dumps.entry_name import FORWARD
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import greatest, is_tensor
from probe.reading.one_run.health.gradient_ends import End, EndFinder
from probe.reading.one_run.health.step import FAULT, HealthFinding, Step, Update, is_zero

#: so small a part of a parameter is lost when it is added; that of 16 bits tells of parameters that stand still
_ROUNDING = {"Float16": 1e-3, "BFloat16": 8e-3}
_OF_FLOAT32 = 5e-7


class Trained(NamedTuple):
    """The facts of one step about its parameters."""

    step: int | None
    held: dict[str, str]  # the parameters of the updates
    zero: frozenset[str]  # those of them whose gradient is zeros
    asked: frozenset[str]  # the parameters of which a gradient that is not zero was computed
    used: dict[str, int]  # the parameters in the order of their first use -> the place of it
    contents: dict[str, Any]  # parameter -> a key of its content when the step began
    #: held parameters whose update has a learning rate and a gradient that are not zero
    moving: frozenset[str]
    #: held parameters of 16 bits whose update is smaller than half of their last bit
    lost: frozenset[str]
    still: frozenset[str]  # held parameters whose learning rate is 0
    ends: dict[str, tuple[End, HealthFinding]]  # parameter -> where its gradient ends
    has_backward: bool  # whether a gradient was computed
    holders: dict[str, tuple[str, ...]]  # parameter -> the optimizers that update it in this step
    #: parameters that no update has, and a gradient arrives at a call that uses them
    reached: frozenset[str]


def facts(step: Step) -> Trained:
    """Return the facts of a step."""
    held = {name: update.name for update in step.updates for name in update.entered}
    zero = _zero(step)
    used = {name: places[0] for name, places in step.uses.items()}
    asked = frozenset(name for name, records in step.gradients.items() if not is_zero(records))
    return Trained(
        step=step.dump.step,
        held=held,
        zero=zero,
        asked=asked,
        used=used,
        contents={name: content_key(record) for name, record in step.records.items()},
        moving=_moving(step),
        lost=_lost(step),
        still=_still(step),
        ends=_ends(step, zero),
        has_backward=bool(asked) or bool(step.losses),
        holders=_holders(step),
        reached=frozenset(name for name in used if name not in held and _is_reached(step, name)),
    )


def _zero(step: Step) -> frozenset[str]:
    finder = EndFinder(step)
    zeros = [name for name, records in step.entered.items() if is_zero(records)]
    return frozenset(name for name in zeros if not finder.is_cancelled(name))


def _ends(step: Step, zero: frozenset[str]) -> dict[str, tuple[End, HealthFinding]]:
    finder = EndFinder(step)
    ends = {}
    for name in zero:
        end = finder.find(name)
        if end is not None:
            ends[name] = (end, step.found(FAULT, "gradient ends", end.said, end.place))
    return ends


def _moving(step: Step) -> frozenset[str]:
    moving = set()
    for update in step.updates:
        for name, gradient in update.entered.items():
            size = _size(step.records.get(name))
            if _change(update, name, gradient) > _OF_FLOAT32 * size:
                moving.add(name)
    return frozenset(moving)


def _lost(step: Step) -> frozenset[str]:
    lost = set()
    for update in step.updates:
        for name, gradient in update.entered.items():
            record = step.records.get(name) or {}
            dtype = str(record.get("dtype"))
            last_bit = _ROUNDING.get(dtype, 0.0) * _size(record)
            if 0 < _change(update, name, gradient) < last_bit / 4:
                lost.add(name)
    return frozenset(lost)


def _still(step: Step) -> frozenset[str]:
    rates: dict[str, float] = {}  # of the last update of each parameter
    for update in step.updates:
        for name in update.entered:
            rates[name] = update.number("learning_rate", name, 1.0)
    return frozenset(name for name, rate in rates.items() if not rate)


def _is_reached(step: Step, name: str) -> bool:
    return any(step.arrives(place) for place in step.uses[name])


def _holders(step: Step) -> dict[str, tuple[str, ...]]:
    """Return the optimizers of each parameter; {} where the names of a dump do not tell one parameter from another."""
    known = step.snapshot.parameters if step.snapshot is not None else {}
    if known and not step.records.keys() <= known.keys():
        return {}  # an older probe has kept one of several parameters of a name
    holders: dict[str, list[str]] = {}
    for update in step.updates:
        for name in update.entered:
            holders.setdefault(name, []).append(optimizer_of(update.name))
    return {name: tuple(dict.fromkeys(several)) for name, several in holders.items()}


def optimizer_of(update: str) -> str:
    """Return the optimizer of an update.

    >>> optimizer_of("Cell.optimizer1.SGD.forward.2")
    'Cell.optimizer1.SGD'
    """
    return update.rpartition(f".{FORWARD}.")[0] or update


def _size(record: Any) -> float:
    return greatest(record) if is_tensor(record) else 0.0


def _change(update: Update, name: str, record: Any) -> float:
    """Return about how far an update changes the elements of a parameter at most."""
    rate = update.number("learning_rate", name, 1.0)
    gradient = _size(record)
    if "beta2" in update.numbers:  # Adam divides it by its size
        return rate * min(gradient * 1e8, 1.0)
    return rate * gradient
