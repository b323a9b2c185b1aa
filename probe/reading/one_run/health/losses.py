# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Losses that cannot be right: zero, constant, of ignored labels, of broadcast shapes, of probabilities."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from probe.findings.sentence import NOTHING, say
from probe.reading.check.snapshot import is_described
from probe.reading.dumps.entry_name import CELL, EntryName
from probe.reading.dumps.flow import Link, is_constant
from probe.reading.dumps.values import Record, is_tensor, plain_values, real
from probe.reading.one_run.health.step import FAULT, SUSPICIOUS, HealthFinding, Step, is_zero

_ENTROPY = re.compile(r"cross_?entropy|softmaxcrossentropy|sparsesoftmax", re.IGNORECASE)
_OF_LOGITS = re.compile(r"with_?logits|sigmoidcrossentropy", re.IGNORECASE)
_NLL = re.compile(r"^nll_?loss", re.IGNORECASE)
#: calls that compare a result with labels, element by element
_ELEMENTWISE = re.compile(
    r"(smooth_?)?l1|mse|huber|kl_?div|bce|binary_?cross_?entropy|.*loss$", re.IGNORECASE
)
_DIFFERENCES = re.compile(r"^(__sub__|sub(_ext)?|__rsub__|squared_?difference)$", re.IGNORECASE)
_REDUCTIONS = re.compile(r"^(reduce)?_?(mean|sum)(ext|_ext)?$", re.IGNORECASE)
_IGNORE = -100
_NO_CONTENT = re.compile(
    r"(zeros|ones|full|empty)_?like|^(shape|size|rank|ones|zeros)$|^dyn_?shape", re.IGNORECASE
)


class Lost(NamedTuple):
    """The facts of one step about its losses."""

    found: list[HealthFinding]  # findings of this step alone
    losses: dict[str, float]  # call -> its value
    inputs: str  # a key of the batch; "" where it is not known
    has_gradient: (
        bool | None
    )  # whether a gradient that entered an optimizer is not zeros; None without an update
    places: dict[str, HealthFinding]  # call -> a finding at its place, without a sentence


def facts(step: Step) -> Lost:
    """Return the facts of a step."""
    losses: dict[str, float] = {}
    places = {}
    for place in step.losses:
        value = real(step.outputs(place)[0].get("Max"))
        if value is not None:
            losses[step.flow.names[place]] = value
            places[step.flow.names[place]] = step.found(FAULT, "loss", NOTHING, place)
    entered = [
        record for update in step.updates for record in update.entered.values() if is_tensor(record)
    ]
    number = step.dump.step
    inputs = (
        step.snapshot.inputs.get(number)
        if step.snapshot is not None and number is not None
        else None
    )
    return Lost(
        list(_in_calls(step)),
        losses,
        repr(inputs or ""),
        not is_zero(entered) if entered else None,
        places,
    )


def over_steps(steps: Sequence[Lost]) -> Iterator[HealthFinding]:
    """Yield what the losses of several steps tell."""
    updates = [step for step in steps if step.has_gradient is not None]
    is_still = bool(updates) and not any(step.has_gradient for step in updates)
    for name in dict.fromkeys(name for step in steps for name in step.losses):
        series = [(step.losses[name], step.inputs) for step in steps if name in step.losses]
        values = {value for value, _ in series}
        at = next(step.places[name] for step in steps if name in step.places)
        said = None
        if values == {0.0}:
            said = say("health.loss_zero", name=name, count=len(series))
        elif (
            len(series) > 2 and len(values) == 1 and len({key for _, key in series}) == len(series)
        ):
            said = say("health.loss_constant", name=name, value=series[0][0], count=len(series))
        if said:
            alone = len([*steps[0].losses]) == 1
            yield dataclasses.replace(
                at, said=said, weight=FAULT if is_still or alone else SUSPICIOUS
            )


def _in_calls(step: Step) -> Iterator[HealthFinding]:
    for place, parts, entry in step.forwards():
        links = step.flow.links[place]
        if not links:
            continue
        if (
            _ENTROPY.search(parts.api)
            and not _OF_LOGITS.search(parts.api)
            and "binary" not in parts.api.lower()
        ):
            yield from _entropy(step, place, parts, entry, links)
        elif _OF_LOGITS.search(parts.api) and _is_made_by(step, links[0], ("sigmoid",)):
            name = step.flow.names[place]
            yield step.found(FAULT, "loss", say("health.sigmoid_twice", name=name), place)
        elif _NLL.match(parts.api) and (real(links[0].record.get("Max")) or 0.0) > 0:
            yield step.found(
                FAULT, "loss", say("health.nll_positive", name=step.flow.names[place]), place
            )
        yield from _broadcast(step, place, parts, links)
    yield from _unused_input(step)


def _entropy(
    step: Step, place: int, parts: EntryName, entry: Any, links: Sequence[Link]
) -> Iterator[HealthFinding]:
    name = step.flow.names[place]
    logits = links[0].record
    shape = logits.get("shape") or [0]
    classes = shape[1] if len(shape) > 1 else shape[0]
    low, high, mean = (real(logits.get(key)) for key in ("Min", "Max", "Mean"))
    if low is None or high is None or mean is None:
        is_share = False
        is_softmax = False
    else:
        is_share = low >= 0 and 0 < high <= 1 and classes > 1
        is_softmax = is_share and abs(mean * classes - 1) < 1e-3 and high > low
    if is_softmax:
        yield step.found(FAULT, "loss", say("health.softmax_twice", name=name), place)
    elif is_share and _is_made_by(step, links[0], ("sigmoid", "softmax")):
        yield step.found(SUSPICIOUS, "loss", say("health.probabilities", name=name), place)
    labels = links[1].record if len(links) > 1 else {}
    if not str(labels.get("dtype")).startswith(("Int", "UInt")):
        return
    ends = labels.get("Min"), labels.get("Max")
    ignored = {
        _IGNORE,
        *(value for value in plain_values(entry) if type(value) is int and value < 0),
    }
    if ends[0] == ends[1] and ends[0] in ignored:
        count = " x ".join(map(str, labels.get("shape") or []))
        yield step.found(
            FAULT, "loss", say("health.all_ignored", name=name, count=count, value=ends[0]), place
        )
    elif parts.kind != CELL and type(ends[1]) is int and ends[1] >= classes > 1:
        yield step.found(
            FAULT,
            "loss",
            say("health.label_too_large", name=name, label=ends[1], classes=classes),
            place,
        )


def _is_made_by(step: Step, link: Link, words: tuple[str, ...]) -> bool:
    """Return whether a tensor is the output of a call; reshapes, casts and transposes are looked through."""
    place = link.root if link.root >= 0 else link.producer
    api = step.flow.parts[place].api.lower() if place >= 0 else ""
    return any(word in api for word in words) and "log" not in api


def _broadcast(
    step: Step, place: int, parts: EntryName, links: Sequence[Link]
) -> Iterator[HealthFinding]:
    """Yield a result and labels of shapes (n, 1) and (n,), of which n x n differences are made."""
    if len(links) < 2 or not (_DIFFERENCES.match(parts.api) or _ELEMENTWISE.match(parts.api)):
        return
    shapes = [link.record.get("shape") or [] for link in links[:2]]
    narrow, wide = sorted(shapes, key=len)
    if len(narrow) != 1 or len(wide) != 2 or wide[1] != 1 or wide[0] != narrow[0] or wide[0] < 2:
        return
    if _DIFFERENCES.match(parts.api) and not _is_reduced(step, place):
        return
    facts_ = {
        "name": step.flow.names[place],
        "left": str(tuple(shapes[0])),
        "right": str(tuple(shapes[1])),
    }
    yield step.found(FAULT, "loss", say("health.broadcast", **facts_, count=narrow[0]), place)


def _is_reduced(step: Step, place: int) -> bool:
    """Return whether nothing but a reduction to the loss follows on a difference within five calls."""
    waiting = [(place, 0)]
    while waiting:
        place, depth = waiting.pop()
        outputs = step.outputs(place)
        if depth and (_REDUCTIONS.match(step.flow.parts[place].api) or place in step.losses):
            return bool(outputs) and not outputs[0].get("shape")
        waiting += [
            (user, depth + 1)
            for user in step.flow.used_by.get(place, ())
            if depth < 5 and user > place
        ]
    return False


def _unused_input(step: Step) -> Iterator[HealthFinding]:
    """Yield inputs of the model whose values no call uses: only their shapes, or nothing."""
    number = step.dump.step
    if step.snapshot is None or number is None or not step.losses:
        return
    outside = [
        (place, link)
        for place, _, _ in step.forwards()
        for link in step.flow.links[place]
        if link.producer < 0 and link.parameter is None and not is_constant(link.record)
    ]
    for key, value in step.snapshot.inputs.get(number, {}).items():
        if not is_described(value):
            continue
        users = [place for place, link in outside if _is_like(link.record, value)]
        apis = {step.flow.parts[place].api for place in users}
        if users and all(_NO_CONTENT.search(api) for api in apis):
            name = step.flow.names[users[0]]
            yield step.found(
                SUSPICIOUS, "loss", say("health.input_unused", place=key, name=name), users[0]
            )


def _is_like(record: Record, value: dict[str, Any]) -> bool:
    if record.get("md5") and value.get("crc"):
        return bool(record["md5"] == value["crc"])
    return bool(record.get("shape") == value["shape"] and record.get("dtype") == value["dtype"])
