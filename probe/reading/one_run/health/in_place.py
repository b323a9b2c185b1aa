# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls in place that change nothing, and parameters that something else than the update changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from probe.findings.sentence import say
from probe.reading.check.difference import listed
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import Record, element_count, is_tensor, leaves
from probe.reading.one_run.health.numbers import bound
from probe.reading.one_run.health.step import FAULT, NOTE, SUSPICIOUS, HealthFinding, Step, norm

#: the statistics of a norm, which the forward itself changes
_MOVING = ("moving_mean", "moving_variance", "running_mean", "running_var", "num_batches_tracked")
_FEW = 2
#: calls that only copy: they do not explain a value
_COPIES = re.compile(r"^(assign|copy_|inplace_?copy|load)", re.IGNORECASE)


class Kept(NamedTuple):
    """The facts of one step about what stays as it is."""

    found: list[HealthFinding]  # findings of this step alone
    records: dict[str, Record]  # parameter -> its record when the step began
    bounds: dict[str, float | None]  # parameter -> how far its update can change its norm; None where that is not known
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
            limit = bound(update, name, size or 0) if size else None
            before = norm(step.records.get(name)) or 0.0
            known = name not in bounds and limit is not None
            bounds[name] = limit + 2 * decay * before if known and limit is not None else None
    begin = step.updates[0].position if step.updates else len(step.flow.names)
    made = {
        content_key(record) for place, parts, _ in step.forwards() if place > begin and not _COPIES.match(parts.api)
        for record in step.outputs(place)
    }  # fmt: skip
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
            lengths = norm(record), norm(after)
            limit = a.bounds.get(name)
            if name not in held and content_key(record) != content_key(after):
                buffers.setdefault(name, a.step)
            elif limit is not None and None not in lengths and abs(lengths[0] - lengths[1]) > limit + 1e-6 * lengths[0]:  # type: ignore[operator]
                found.setdefault(name, a.step)
    if found:
        first = next(iter(found))
        said = say("health.changed_beyond", names=listed(found), step=found[first])
        yield HealthFinding(SUSPICIOUS, "in place", said, first, found[first])
    if buffers:
        first = next(iter(buffers))
        said = say("health.buffer", names=listed(buffers), step=buffers[first])
        yield HealthFinding(SUSPICIOUS if len(buffers) <= _FEW else NOTE, "in place", said, first, buffers[first])


def _without_effect(step: Step) -> Iterator[HealthFinding]:
    """Yield calls in place whose input stays as it was, and whose result no call uses."""
    for place, parts, entry in step.forwards():
        if (
            not parts.api.endswith("_")
            or parts.api.endswith("__")
            or parts.prefix not in ("Tensor", "Functional", "Mint")
        ):
            continue
        given = next((item for _, item in leaves(entry.get("input_args")) if is_tensor(item)), None)
        made = step.outputs(place)
        before = content_key(given) if given else None
        if before is None or not made or content_key(made[0]) == before:
            continue
        is_used = any(user > place for user in step.flow.used_by.get(place, ()))
        later = [
            other for other in range(place + 1, len(step.flow.names))
            if any(content_key(link.record) == before for link in step.flow.links[other])
        ]  # fmt: skip
        if later and not is_used:
            names = {"name": step.flow.names[place], "next": step.flow.names[later[0]]}
            yield step.found(FAULT, "in place", say("health.no_effect", **names), place)
