# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Numbers of one step: outputs that are zero or saturated, half precision, epsilons of zero, scales and decays."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from probe.findings.sentence import say
from probe.reading.check.difference import listed
from probe.reading.dumps.entry_name import EntryName
from probe.reading.dumps.values import (
    Record,
    count_of,
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


class _Range(NamedTuple):
    """The range of the numbers of a dtype."""

    largest: float
    least: float  # half of the smallest one above zero: smaller ones are rounded to zero


_RANGES = {
    "Float16": _Range(65504.0, 2.98e-8),
    "Float32": _Range(3.4e38, 7e-46),
    "BFloat16": _Range(3.39e38, 4.6e-41),
}


def in_step(step: Step) -> Iterator[HealthFinding]:
    """Yield what the numbers of one step tell."""
    for place, parts, entry in step.forwards():
        for output in step.outputs(place)[:1]:
            yield from _of_output(step, place, parts, output)
            yield from _epsilon(step, place, parts, entry, output)
    yield from _scale(step)
    yield from _decay(step)


def _of_output(step: Step, place: int, parts: EntryName, output: Record) -> Iterator[HealthFinding]:
    length = norm(output)
    low = real(output.get("Min"))
    high = real(output.get("Max"))
    mean = real(output.get("Mean"))
    if length is None or low is None or high is None or mean is None or not math.isfinite(length):
        return
    name = step.flow.names[place]
    api = parts.api.lower()
    size = count_of(output) or 0
    given = [link.record for link in step.flow.links[place]]
    if size >= _LEAST_SIZE and "relu" in api:
        if high == low == 0 and not is_zero(given[:1]):
            said = say("health.all_zero", name=name, size=size)
            yield step.found(SUSPICIOUS, "numbers", said, place)
    elif size >= _LEAST_SIZE and api in ("tanh", "sigmoid"):
        share = _saturated_share(api, mean, length * length / size)
        if share > _SATURATED and step.arrives(place):
            said = say("health.saturated", name=name, share=share)
            yield step.found(SUSPICIOUS, "numbers", said, place)
    if output.get("dtype") != "Float16":
        return
    largest = _RANGES["Float16"].largest
    if _SUMS.match(api) and largest * _NEAR < high < math.inf and _is_above_one(high, given):
        said = say("health.half_sum", name=name, value=high, largest=largest)
        yield step.found(SUSPICIOUS, "numbers", said, place)
    is_cast = bool(given) and given[0].get("dtype") == "Float32"
    if is_cast and length == 0 < (norm(given[0]) or 0):
        said = say("health.cast_to_zero", name=name)
        yield step.found(SUSPICIOUS, "numbers", said, place)


def _saturated_share(api: str, mean: float, mean_square: float) -> float:
    """Return about which share of the elements of a tanh or sigmoid are at one of its ends."""
    if api == "tanh":
        return mean_square
    return 1 - 4 * max(mean - mean_square, 0.0)


def _is_above_one(high: float, given: Sequence[Record]) -> bool:
    """Return whether an input is nowhere as large as the output."""
    return any((real(record.get("Max")) or 0) < high for record in given)


def _epsilon(
    step: Step, place: int, parts: EntryName, entry: Any, output: Record
) -> Iterator[HealthFinding]:
    """Yield a number that its dtype rounds to zero, and that so protects of no division by zero."""
    dtype = str(output.get("dtype"))
    if dtype not in _RANGES or not _ADDITIONS.match(parts.api):
        return
    least = _RANGES[dtype].least
    name = step.flow.names[place]
    for value in plain_values(entry, ("input_args", "input_kwargs", "attributes")):
        if type(value) is float and 0 < abs(value) < least:
            said = say("health.epsilon", name=name, value=value, dtype=dtype)
            yield step.found(SUSPICIOUS, "numbers", said, place)
            return


def _scale(step: Step) -> Iterator[HealthFinding]:
    """Yield a loss scale that stays in the gradients, or is taken out twice."""
    scale = _scale_of_loss(step)
    if scale is None or len(step.losses) != 1 or len(step.updates) != 1:
        return
    update = step.updates[0]
    place = step.losses[0]
    ratios = _entered_by_arrived(step, update)
    if len(ratios) < 2 or max(ratios) > 1.01 * min(ratios):
        return
    first = next(iter(update.entered))
    # the part of the loss's scale that the update applies
    left = scale * ratios[0] / update.number("loss_scale", first, 1.0)
    facts = {"name": step.flow.names[place], "scale": scale, "optimizer": update.name}
    for key, apart in (("health.scale_kept", left / scale), ("health.scale_twice", left * scale)):
        if abs(apart - 1) < 0.02:
            yield step.found(FAULT, "numbers", say(key, **facts), place, update.name)


def _entered_by_arrived(step: Step, update: Update) -> list[float]:
    """Return for the parameters with one gradient by how much it was multiplied before it entered the update."""
    ratios = []
    for name, record in update.entered.items():
        entered = norm(record)
        arrived = [norm(gradient) for gradient in step.gradients.get(name, [])]
        if len(arrived) == 1 and arrived[0] and entered:
            ratios.append(entered / arrived[0])
    return ratios


def _scale_of_loss(step: Step) -> float | None:
    """Return the number by which the loss is multiplied before its backward, if it looks like a loss scale."""
    if not step.losses:
        return None
    place = step.losses[0]
    sent = _first_gradient(step, place)
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


def _first_gradient(step: Step, place: int) -> float | None:
    """Return the number with which the backward of a loss begins."""
    backward = step.flow.backward_of(place)
    if backward is None:
        return None
    for _, leaf in leaves(step.entry(backward).get("input")):
        return real(leaf.get("Max")) if is_tensor(leaf) else None
    return None


def _is_scale(value: float) -> bool:
    """Return whether a number is a power of two, and large."""
    fraction, _ = math.frexp(value)
    return value >= _LEAST_SCALE and fraction == 0.5


def _decay(step: Step) -> Iterator[HealthFinding]:
    for update in step.updates:
        decayed = [name for name in update.entered if update.number("weight_decay", name)]
        names = [name for name in decayed if _is_plain(step, name)]
        if names:
            decay = update.number("weight_decay", names[0])
            said = say("health.decay", names=listed(names), decay=decay)
            yield HealthFinding(NOTE, "decay", said, names[0], rank=step.dump.rank)


def _is_plain(step: Step, name: str) -> bool:
    """Return whether a parameter is a bias, or one of a norm: a decay is seldom meant for it."""
    if name.endswith(("bias", "beta", "gamma")):
        return True
    if not step.snapshot:
        return False
    parameter = step.snapshot.parameters.get(name) or {}
    path = str(parameter.get("cell") or "")
    kind = step.snapshot.cells.get(path, "")
    return bool(_NORMS.search(kind))
