# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Losses that cannot be right: zero, constant, of ignored labels, of broadcast shapes, of probabilities."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from probe.findings.sentence import NOTHING, Sentence, say
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
    #: whether a gradient that entered an optimizer is not zeros; None without an update
    has_gradient: bool | None
    places: dict[str, HealthFinding]  # call -> a finding at its place, without a sentence


def facts(step: Step) -> Lost:
    """Return the facts of a step."""
    losses: dict[str, float] = {}
    places = {}
    for place in step.losses:
        value = real(step.outputs(place)[0].get("Max"))
        if value is not None:
            name = step.flow.names[place]
            losses[name] = value
            places[name] = step.found(FAULT, "loss", NOTHING, place)
    entered = [record for update in step.updates for record in update.entered.values()]
    gradients = [record for record in entered if is_tensor(record)]
    return Lost(
        found=list(_in_calls(step)),
        losses=losses,
        inputs=repr(_inputs(step) or ""),
        has_gradient=not is_zero(gradients) if gradients else None,
        places=places,
    )


def _inputs(step: Step) -> dict[str, Any] | None:
    """Return the batch of a step by the places of its inputs; None where it is not known."""
    number = step.dump.step
    if step.snapshot is None or number is None:
        return None
    return step.snapshot.inputs.get(number)


def over_steps(steps: Sequence[Lost]) -> Iterator[HealthFinding]:
    """Yield what the losses of several steps tell."""
    updates = [step for step in steps if step.has_gradient is not None]
    is_still = bool(updates) and not any(step.has_gradient for step in updates)
    for name in dict.fromkeys(name for step in steps for name in step.losses):
        own = [step for step in steps if name in step.losses]
        said = _constant(name, own)
        if said:
            is_alone = len(steps[0].losses) == 1
            weight = FAULT if is_still or is_alone else SUSPICIOUS
            yield dataclasses.replace(own[0].places[name], said=said, weight=weight)


def _constant(name: str, steps: Sequence[Lost]) -> Sentence:
    """Return that a loss is zero, or the same for several batches; nothing where it changes."""
    values = {step.losses[name] for step in steps}
    batches = {step.inputs for step in steps}
    count = len(steps)
    if values == {0.0}:
        return say("health.loss_zero", name=name, count=count)
    if count > 2 and len(values) == 1 and len(batches) == count:
        return say("health.loss_constant", name=name, value=steps[0].losses[name], count=count)
    return NOTHING


def _in_calls(step: Step) -> Iterator[HealthFinding]:
    for place, parts, entry in step.forwards():
        links = step.flow.links[place]
        if not links:
            continue
        name = step.flow.names[place]
        api = parts.api
        is_of_logits = _OF_LOGITS.search(api) is not None
        if _ENTROPY.search(api) and not is_of_logits and "binary" not in api.lower():
            yield from _entropy(step, place, parts, entry, links)
        elif is_of_logits and _is_made_by(step, links[0], ("sigmoid",)):
            yield step.found(FAULT, "loss", say("health.sigmoid_twice", name=name), place)
        elif _NLL.match(api) and (real(links[0].record.get("Max")) or 0.0) > 0:
            yield step.found(FAULT, "loss", say("health.nll_positive", name=name), place)
        yield from _broadcast(step, place, parts, links)
    yield from _unused_input(step)


def _entropy(
    step: Step, place: int, parts: EntryName, entry: Any, links: Sequence[Link]
) -> Iterator[HealthFinding]:
    """Yield a cross entropy of probabilities in place of logits, or of labels that cannot be right."""
    name = step.flow.names[place]
    logits = links[0].record
    shape = logits.get("shape") or [0]
    classes = shape[1] if len(shape) > 1 else shape[0]
    if _are_shares(logits, classes):
        if _is_softmax(logits, classes):
            yield step.found(FAULT, "loss", say("health.softmax_twice", name=name), place)
        elif _is_made_by(step, links[0], ("sigmoid", "softmax")):
            yield step.found(SUSPICIOUS, "loss", say("health.probabilities", name=name), place)
    labels = links[1].record if len(links) > 1 else {}
    if not str(labels.get("dtype")).startswith(("Int", "UInt")):
        return
    least = labels.get("Min")
    most = labels.get("Max")
    negative = [value for value in plain_values(entry) if type(value) is int and value < 0]
    if least == most and least in (_IGNORE, *negative):
        count = " x ".join(map(str, labels.get("shape") or []))
        said = say("health.all_ignored", name=name, count=count, value=least)
        yield step.found(FAULT, "loss", said, place)
    elif parts.kind != CELL and type(most) is int and most >= classes > 1:
        said = say("health.label_too_large", name=name, label=most, classes=classes)
        yield step.found(FAULT, "loss", said, place)


def _are_shares(logits: Record, classes: int) -> bool:
    """Return whether numbers lie between 0 and 1, as probabilities do."""
    low = real(logits.get("Min"))
    high = real(logits.get("Max"))
    if low is None or high is None or real(logits.get("Mean")) is None:
        return False
    return low >= 0 and 0 < high <= 1 and classes > 1


def _is_softmax(shares: Record, classes: int) -> bool:
    """Return whether shares of classes add up to 1."""
    mean = real(shares.get("Mean")) or 0.0
    high = real(shares.get("Max")) or 0.0
    low = real(shares.get("Min")) or 0.0
    return abs(mean * classes - 1) < 1e-3 and high > low


def _is_made_by(step: Step, link: Link, words: tuple[str, ...]) -> bool:
    """Return whether a tensor is the output of a call; reshapes, casts and transposes are looked through."""
    place = link.root if link.root >= 0 else link.producer
    if place < 0:
        return False
    api = step.flow.parts[place].api.lower()
    return "log" not in api and any(word in api for word in words)


def _broadcast(
    step: Step, place: int, parts: EntryName, links: Sequence[Link]
) -> Iterator[HealthFinding]:
    """Yield a result and labels of shapes (n, 1) and (n,), of which n x n differences are made."""
    is_difference = _DIFFERENCES.match(parts.api) is not None
    if len(links) < 2 or not (is_difference or _ELEMENTWISE.match(parts.api)):
        return
    left = links[0].record.get("shape") or []
    right = links[1].record.get("shape") or []
    narrow, wide = sorted((left, right), key=len)
    if len(narrow) != 1 or wide != [narrow[0], 1] or narrow[0] < 2:
        return
    if is_difference and not _is_reduced(step, place):
        return
    said = say(
        "health.broadcast",
        name=step.flow.names[place],
        left=str(tuple(left)),
        right=str(tuple(right)),
        count=narrow[0],
    )
    yield step.found(FAULT, "loss", said, place)


def _is_reduced(step: Step, place: int) -> bool:
    """Return whether nothing but a reduction to the loss follows on a difference within five calls."""
    waiting = [(place, 0)]
    while waiting:
        place, depth = waiting.pop()
        outputs = step.outputs(place)
        if depth and (_REDUCTIONS.match(step.flow.parts[place].api) or place in step.losses):
            return bool(outputs) and not outputs[0].get("shape")
        users = step.flow.used_by.get(place, ()) if depth < 5 else ()
        waiting += [(user, depth + 1) for user in users if user > place]
    return False


def _unused_input(step: Step) -> Iterator[HealthFinding]:
    """Yield inputs of the model whose values no call uses: only their shapes, or nothing."""
    batch = _inputs(step)
    if not batch or not step.losses:
        return
    outside: list[tuple[int, Record]] = []  # the calls that are given tensors from outside
    for place, _, _ in step.forwards():
        for link in step.flow.links[place]:
            is_made = link.producer >= 0 or link.parameter is not None
            if not is_made and not is_constant(link.record):
                outside.append((place, link.record))
    for key, value in batch.items():
        if not is_described(value):
            continue
        users = [place for place, record in outside if _is_like(record, value)]
        apis = {step.flow.parts[place].api for place in users}
        if users and all(_NO_CONTENT.search(api) for api in apis):
            first = users[0]
            said = say("health.input_unused", place=key, name=step.flow.names[first])
            yield step.found(SUSPICIOUS, "loss", said, first)


def _is_like(record: Record, value: dict[str, Any]) -> bool:
    if record.get("md5") and value.get("crc"):
        return bool(record["md5"] == value["crc"])
    has_same_shape = record.get("shape") == value["shape"]
    return bool(has_same_shape and record.get("dtype") == value["dtype"])
