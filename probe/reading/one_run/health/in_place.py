# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Outputs that are zero or saturated, half precision, epsilons of zero, and loss scales that stay in the gradients.

Also calls in place that change nothing, and parameters that something else than the update changes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from probe.findings.sentence import say
from probe.reading.check.difference import listed
from probe.reading.dumps.entry_name import FORWARD, EntryName
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import (
    Record,
    element_count,
    is_tensor,
    leaves,
    plain,
    plain_values,
    real,
)
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

#: dtype -> the largest number, and half of the smallest one above zero: smaller ones are rounded to zero
_RANGES = {
    "Float16": (65504.0, 2.98e-8),
    "Float32": (3.4e38, 7e-46),
    "BFloat16": (3.39e38, 4.6e-41),
}
_SUMS = re.compile(
    r"^(reduce)?_?(sum|norm|square|prod|cumsum|pow|__pow__|logsumexp|matmul|mul|__mul__)",
    re.IGNORECASE,
)
_ADDITIONS = re.compile(
    r"^(r?sqrt|(__)?r?add|maximum|clamp|clip_by_value|layer_?norm|rms_?norm)", re.IGNORECASE
)
_NEAR = 1 / 16
_SATURATED = 0.99
_LEAST_SIZE = 64
#: powers of two from here on are taken for loss scales
_LEAST_SCALE = 64.0
_NORMS = re.compile(r"norm", re.IGNORECASE)
#: optimizers whose update is the gradient times the rate; FTRL, Adagrad, RMSProp, Rprop and LARS scale it
_LINEAR = frozenset(("SGD", "Momentum"))
#: the statistics of a norm, which the forward itself changes
_MOVING = ("moving_mean", "moving_variance", "running_mean", "running_var", "num_batches_tracked")
_FEW = 2
#: calls that only copy: they do not explain a value
_COPIES = re.compile(r"^(assign|copy_|inplace_?copy|load)", re.IGNORECASE)


def in_step(step: Step) -> Iterator[HealthFinding]:
    """Yield what the numbers of one step tell."""
    for place, parts, entry in step.forwards():
        for output in step.outputs(place)[:1]:
            yield from _of_output(step, place, parts, output)
            yield from _epsilon(step, place, parts, entry, output)
    yield from _scale(step)
    yield from _decay(step)


def _of_output(step: Step, place: int, parts: EntryName, output: Record) -> Iterator[HealthFinding]:
    name = step.flow.names[place]
    api = parts.api.lower()
    size = element_count(output.get("shape")) or 0
    length = norm(output)
    low, high, mean = (real(output.get(key)) for key in ("Min", "Max", "Mean"))
    if length is None or low is None or high is None or mean is None or not math.isfinite(length):
        return
    given = [link.record for link in step.flow.links[place]]
    if size >= _LEAST_SIZE and "relu" in api and high == low == 0 and not is_zero(given[:1]):
        yield step.found(SUSPICIOUS, "numbers", say("health.all_zero", name=name, size=size), place)
    elif size >= _LEAST_SIZE and api in ("tanh", "sigmoid"):
        share = (
            length * length / size
            if api == "tanh"
            else 1 - 4 * max(mean - length * length / size, 0.0)
        )
        if share > _SATURATED and step.arrives(place):
            yield step.found(
                SUSPICIOUS, "numbers", say("health.saturated", name=name, share=share), place
            )
    if output.get("dtype") == "Float16" and _SUMS.match(api):
        largest = _RANGES["Float16"][0]
        if largest * _NEAR < high < math.inf and any(
            (real(record.get("Max")) or 0) < high for record in given
        ):
            facts = {"name": name, "value": high, "largest": largest}
            yield step.found(SUSPICIOUS, "numbers", say("health.half_sum", **facts), place)
    is_cast = (
        bool(given) and given[0].get("dtype") == "Float32" and output.get("dtype") == "Float16"
    )
    if is_cast and length == 0 < (norm(given[0]) or 0):
        yield step.found(SUSPICIOUS, "numbers", say("health.cast_to_zero", name=name), place)


def _epsilon(
    step: Step, place: int, parts: EntryName, entry: Any, output: Record
) -> Iterator[HealthFinding]:
    """Yield a number that its dtype rounds to zero, and that so protects of no division by zero."""
    dtype = str(output.get("dtype"))
    if dtype not in _RANGES or not _ADDITIONS.match(parts.api):
        return
    least = _RANGES[dtype][1]
    given = plain_values(entry, ("input_args", "input_kwargs", "attributes"))
    value = next(
        (value for value in given if type(value) is float and 0 < abs(value) < least), None
    )
    if value is not None:
        facts = {"name": step.flow.names[place], "value": value, "dtype": dtype}
        yield step.found(SUSPICIOUS, "numbers", say("health.epsilon", **facts), place)


def _scale(step: Step) -> Iterator[HealthFinding]:
    """Yield a loss scale that stays in the gradients, or is taken out twice."""
    scale = _scale_of_loss(step)
    if scale is None or len(step.losses) != 1 or len(step.updates) != 1:
        return
    update = step.updates[0]
    place = step.losses[0]
    ratios = []
    for name, record in update.entered.items():
        arrived = [norm(item) for item in step.gradients.get(name, [])]
        entered = norm(record)
        if len(arrived) == 1 and arrived[0] and entered:
            ratios.append(entered / arrived[0])
    if len(ratios) < 2 or max(ratios) > 1.01 * min(ratios):
        return
    name = next(iter(update.entered))
    #: the part of the loss's scale that the update applies
    left = scale * ratios[0] / update.number("loss_scale", name, 1.0)
    facts = {"name": step.flow.names[place], "scale": scale, "optimizer": update.name}
    for key, apart in (("health.scale_kept", left / scale), ("health.scale_twice", left * scale)):
        if abs(apart - 1) < 0.02:
            yield step.found(FAULT, "numbers", say(key, **facts), place, update.name)


def _scale_of_loss(step: Step) -> float | None:
    """Return the number by which the loss is multiplied before its backward, if it looks like a loss scale."""
    if not step.losses:
        return None
    place = step.losses[0]
    backward = step.flow.backward_of(place)
    given = (
        [item for _, item in leaves(step.entry(backward).get("input"))]
        if backward is not None
        else []
    )
    sent = real(given[0].get("Max")) if given and is_tensor(given[0]) else None
    if sent is not None and _is_scale(sent):
        return sent
    parts = step.flow.parts[place]
    entry = step.entry(place)
    if "scale" not in parts.api and "mul" not in parts.api.lower():
        return None
    for _, leaf in leaves(entry.get("input_args")):
        value = real(leaf.get("Max")) if is_tensor(leaf) else real(plain(leaf))
        if value is not None and _is_scale(value):
            return value
    return None


def _is_scale(value: float) -> bool:
    return value >= _LEAST_SCALE and math.frexp(value)[0] == 0.5


def _decay(step: Step) -> Iterator[HealthFinding]:
    for update in step.updates:
        names = [
            name
            for name in update.entered
            if _is_plain(step, name) and update.number("weight_decay", name)
        ]
        if names:
            facts = {"names": listed(names), "decay": update.number("weight_decay", names[0])}
            yield HealthFinding(
                NOTE, "decay", say("health.decay", **facts), names[0], rank=step.dump.rank
            )


def _is_plain(step: Step, name: str) -> bool:
    path = (
        str((step.snapshot.parameters.get(name) or {}).get("cell") or "") if step.snapshot else ""
    )
    kind = step.snapshot.cells.get(path, "") if step.snapshot else ""
    return name.endswith(("bias", "beta", "gamma")) or bool(_NORMS.search(kind))


def bound(update: Update, name: str, size: int) -> float | None:
    """Return how far an update can change the norm of a parameter; None where its kind is not known."""
    rate = update.number("learning_rate", name)
    entered = norm(update.entered.get(name))
    if entered is None:
        return None
    if (
        "beta1" in update.numbers or "beta2" in update.numbers
    ):  # each element changes by about the rate at most
        return 4 * rate * math.sqrt(size)
    if update.number("momentum", name) and update.number("global_step", name, 1.0):
        return None  # how much the steps before have gathered is not known
    kind = update.name.rpartition(f".{FORWARD}.")[0].rpartition(".")[2]
    return 4 * rate * entered if kind in _LINEAR else None


class Kept(NamedTuple):
    """The facts of one step about what stays as it is."""

    found: list[HealthFinding]  # findings of this step alone
    records: dict[str, Record]  # parameter -> its record when the step began
    bounds: dict[
        str, float | None
    ]  # parameter -> how far its update can change its norm; None where that is not known
    #: keys of the outputs of the calls after the first update: such a call may give a parameter its value
    made: frozenset[Any]
    step: int | None


def facts(step: Step) -> Kept:
    """Return the facts of a step."""
    bounds: dict[str, float | None] = {}
    for update in step.updates:
        for name in update.entered:
            size = element_count((step.records.get(name) or {}).get("shape"))
            decay = update.number("weight_decay", name) * update.number("learning_rate", name)
            limit = bound(update, name, size) if size else None
            before = norm(step.records.get(name)) or 0.0
            bounds[name] = None if name in bounds or limit is None else limit + 2 * decay * before
    begin = step.updates[0].position if step.updates else len(step.flow.names)
    made = {
        content_key(record)
        for place, parts, _ in step.forwards()
        if place > begin and not _COPIES.match(parts.api)
        for record in step.outputs(place)
    }
    return Kept(list(_without_effect(step)), step.records, bounds, frozenset(made), step.dump.step)


def over_steps(steps: Sequence[Kept]) -> Iterator[HealthFinding]:
    """Yield parameters that change between an update and the next forward."""
    found: dict[str, int | None] = {}
    buffers: dict[str, int | None] = {}
    held = {name for step in steps for name in step.bounds}
    for a, b in zip(steps, steps[1:]):
        if a.step is None or b.step != a.step + 1 or not a.bounds:
            continue
        for name, record in a.records.items():
            after = b.records.get(name)
            if after is None or name.endswith(_MOVING) or content_key(after) in a.made:
                continue
            before = norm(record)
            behind = norm(after)
            limit = a.bounds.get(name)
            if name not in held and content_key(record) != content_key(after):
                buffers.setdefault(name, a.step)
            elif (
                limit is not None
                and before is not None
                and behind is not None
                and abs(before - behind) > limit + 1e-6 * before
            ):
                found.setdefault(name, a.step)
    weight = SUSPICIOUS if len(buffers) <= _FEW else NOTE
    for key, of, names in (
        ("health.changed_beyond", SUSPICIOUS, found),
        ("health.buffer", weight, buffers),
    ):
        for first, step in list(names.items())[:1]:
            yield HealthFinding(
                of, "in place", say(key, names=listed(names), step=step), first, step
            )


def _without_effect(step: Step) -> Iterator[HealthFinding]:
    """Yield calls in place whose input stays as it was, and whose result no call uses."""
    for place, parts, entry in step.forwards():
        is_in_place = parts.api.endswith("_") and not parts.api.endswith("__")
        if not is_in_place or parts.prefix not in ("Tensor", "Functional", "Mint"):
            continue
        given = next((item for _, item in leaves(entry.get("input_args")) if is_tensor(item)), None)
        made = step.outputs(place)
        before = content_key(given) if given else None
        if before is None or not made or content_key(made[0]) == before:
            continue
        is_used = any(user > place for user in step.flow.used_by.get(place, ()))
        later = [
            other
            for other in range(place + 1, len(step.flow.names))
            if any(content_key(link.record) == before for link in step.flow.links[other])
        ]
        if later and not is_used:
            names = {"name": step.flow.names[place], "next": step.flow.names[later[0]]}
            yield step.found(FAULT, "in place", say("health.no_effect", **names), place)
