# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls in place that change nothing, and parameters that something else than the update changes."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from probe.findings.sentence import say
from probe.reading.check.difference import listed
from probe.reading.dumps.entry_name import FORWARD
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import Record, count_of, is_tensor, leaves
from probe.reading.one_run.health.step import (
    FAULT,
    NOTE,
    SUSPICIOUS,
    HealthFinding,
    Step,
    Update,
    norm,
)

#: optimizers whose update is the gradient times the rate; FTRL, Adagrad, RMSProp, Rprop and LARS scale it
_LINEAR = frozenset(("SGD", "Momentum"))
#: the statistics of a norm, which the forward itself changes
_MOVING = ("moving_mean", "moving_variance", "running_mean", "running_var", "num_batches_tracked")
_FEW = 2
#: calls that only copy: they do not explain a value
_COPIES = re.compile(r"^(assign|copy_|inplace_?copy|load)", re.IGNORECASE)


def bound(update: Update, name: str, size: int) -> float | None:
    """Return how far an update can change the norm of a parameter; None where its kind is not known."""
    rate = update.number("learning_rate", name)
    entered = norm(update.entered.get(name))
    if entered is None:
        return None
    if "beta1" in update.numbers or "beta2" in update.numbers:
        return _rates_of_adam(update, name) * rate * math.sqrt(size)
    if update.number("momentum", name) and update.number("global_step", name, 1.0):
        return None  # how much the steps before have gathered is not known
    optimizer, _, _ = update.name.rpartition(f".{FORWARD}.")
    _, _, kind = optimizer.rpartition(".")
    return 4 * rate * entered if kind in _LINEAR else None


def _rates_of_adam(update: Update, name: str) -> float:
    """Return how many times the rate one update of Adam can change an element, by the inequality of Cauchy and Schwarz.

    With the usual betas it is 7.3. Without a correction of the bias all elements come near to it in the first steps.
    """
    beta1 = update.number("beta1", name)
    beta2 = update.number("beta2", name)
    if not beta1 * beta1 < beta2 < 1:
        return math.inf
    return max(4.0, (1 - beta1) / math.sqrt((1 - beta2) * (1 - beta1 * beta1 / beta2)))


class Kept(NamedTuple):
    """The facts of one step about what stays as it is."""

    found: list[HealthFinding]  # findings of this step alone
    records: dict[str, Record]  # parameter -> its record when the step began
    #: parameter -> how far its update can change its norm; None where that is not known
    bounds: dict[str, float | None]
    #: keys of the outputs of the calls after the first update: such a call may give a parameter its value
    made: frozenset[Any]
    step: int | None


def facts(step: Step) -> Kept:
    """Return the facts of a step."""
    return Kept(
        list(_without_effect(step)),
        step.records,
        _bounds(step),
        frozenset(_made_after_update(step)),
        step.dump.step,
    )


def _bounds(step: Step) -> dict[str, float | None]:
    bounds: dict[str, float | None] = {}
    for update in step.updates:
        for name in update.entered:
            record = step.records.get(name) or {}
            size = count_of(record)
            limit = bound(update, name, size) if size else None
            if limit is None or name in bounds:  # two updates may add up
                bounds[name] = None
                continue
            decay = update.number("weight_decay", name) * update.number("learning_rate", name)
            before = norm(record) or 0.0
            bounds[name] = limit + 2 * decay * before
    return bounds


def _made_after_update(step: Step) -> Iterator[Any]:
    """Yield keys of the outputs of the calls after the first update, but for those of copies."""
    begin = step.updates[0].position if step.updates else len(step.flow.names)
    for place, parts, _ in step.forwards():
        if place > begin and not _COPIES.match(parts.api):
            for record in step.outputs(place):
                yield content_key(record)


def over_steps(steps: Sequence[Kept]) -> Iterator[HealthFinding]:
    """Yield parameters that change between an update and the next forward."""
    beyond: dict[str, int | None] = {}  # parameter -> the step in which it changed too much
    buffers: dict[
        str, int | None
    ] = {}  # parameter without an update -> the step in which it changed
    held = {name for step in steps for name in step.bounds}
    for a, b in zip(steps, steps[1:]):
        if a.step is None or b.step != a.step + 1 or not a.bounds:
            continue
        for name, record in a.records.items():
            after = b.records.get(name)
            if after is None or name.endswith(_MOVING) or content_key(after) in a.made:
                continue
            if name not in held and content_key(record) != content_key(after):
                buffers.setdefault(name, a.step)
            elif _is_beyond(a.bounds.get(name), norm(record), norm(after)):
                beyond.setdefault(name, a.step)
    if beyond:
        yield _changed("health.changed_beyond", SUSPICIOUS, beyond)
    if buffers:
        weight = SUSPICIOUS if len(buffers) <= _FEW else NOTE
        yield _changed("health.buffer", weight, buffers)


def _is_beyond(limit: float | None, before: float | None, behind: float | None) -> bool:
    """Return whether a norm has changed by more than an update can change it."""
    if limit is None or before is None or behind is None:
        return False
    return abs(before - behind) > limit + 1e-6 * before


def _changed(key: str, weight: str, names: dict[str, int | None]) -> HealthFinding:
    first, step = next(iter(names.items()))
    said = say(key, names=listed(names), step=step)
    return HealthFinding(weight, "in place", said, first, step)


def _without_effect(step: Step) -> Iterator[HealthFinding]:
    """Yield calls in place whose input stays as it was, and whose result no call uses."""
    for place, parts, entry in step.forwards():
        is_in_place = parts.api.endswith("_") and not parts.api.endswith("__")
        if not is_in_place or parts.prefix not in ("Tensor", "Functional", "Mint"):
            continue
        outputs = step.outputs(place)
        arguments = [leaf for _, leaf in leaves(entry.get("input_args"))]
        given = next((leaf for leaf in arguments if is_tensor(leaf)), None)
        before = content_key(given) if given else None
        if before is None or not outputs or content_key(outputs[0]) == before:
            continue
        if any(user > place for user in step.flow.used_by.get(place, ())):
            continue
        later = _next_with(step, place, before)
        if later is not None:
            names = step.flow.names
            said = say("health.no_effect", name=names[place], next=names[later])
            yield step.found(FAULT, "in place", said, place)


def _next_with(step: Step, place: int, content: Hashable) -> int | None:
    """Return the next call after one that is given a content."""
    for later in range(place + 1, len(step.flow.names)):
        if any(content_key(link.record) == content for link in step.flow.links[later]):
            return later
    return None
