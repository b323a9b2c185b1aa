# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The batches of two runs: the first input that differs, or the order of A's batches in B."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.reading.check.difference import Difference, Importance, are_equal, listed, pair
from probe.reading.check.parameters import is_tensor, values_differ
from probe.reading.check.snapshot import Described, RunSnapshot
from probe.reading.dumps.text import shape as shape_text


def check_data(a: RunSnapshot, b: RunSnapshot) -> Iterator[Difference]:
    """Yield how the batches of two runs differ."""
    steps = sorted({*a.inputs} & {*b.inputs})
    if not steps and a.inputs and b.inputs:
        yield _difference(
            say(
                "check.no_common_step",
                a_first=min(a.inputs),
                a_last=max(a.inputs),
                b_first=min(b.inputs),
                b_last=max(b.inputs),
            )
        )
    others = [step for step in steps if _first_other(a.inputs[step], b.inputs[step])]
    if not others:
        return
    order = _order(a, b, steps)
    if order:
        yield _difference(say("check.batches_moved", steps=order))
        return
    first = others[0]
    if len(steps) == 1:
        many = say("check.only_step_recorded")
    elif len(others) == 1:
        many = say("check.only_step", step=first)
    else:
        many = say("check.steps_differ", count=len(others), all=len(steps))
    batch_a = a.inputs[first]
    batch_b = b.inputs[first]
    batch = say("check.batch", step=first, said=_first_other(batch_a, batch_b))
    again = [_repeated(side, run, first) for side, run in (("A", a), ("B", b))]
    yield _difference(clauses(batch, many, *again, _agreeing(batch_a, batch_b)))


def _repeated(side: str, run: RunSnapshot, step: int) -> Sentence:
    """Return which earlier step of a run has the batch of a step too; nothing if none has."""
    wanted = _key(run.inputs[step])
    earlier = [other for other in run.inputs if other < step and _key(run.inputs[other]) == wanted]
    if not earlier:
        return NOTHING
    return say("check.batch_repeats", side=side, step=step, other=min(earlier))


def _difference(said: Sentence) -> Difference:
    return Difference(Importance.DATA, say("check.data"), said)


def _first_other(a: Described, b: Described) -> Sentence:
    """Return how the first value of two batches differs, if one does."""
    for place in {**a, **b}:
        if place not in a or place not in b:
            return say("check.input_only", place=place, side="A" if place in a else "B")
        x = a[place]
        y = b[place]
        if is_tensor(x) and is_tensor(y):
            said = _other_tensor(place, x, y)
            if said:
                return said
        elif not are_equal(x, y):
            return say("check.input_value", place=place, values=pair(x, y))
    return NOTHING


def _other_tensor(place: str, x: dict[str, Any], y: dict[str, Any]) -> Sentence:
    """Return how two tensors differ: in shape, in dtype, or in their values; nothing if they are equal."""
    if x["shape"] != y["shape"]:
        values = pair(shape_text(x["shape"]), shape_text(y["shape"]))
        return say("check.input_shape", place=place, values=values)
    dtype = x.get("dtype")
    if dtype != y.get("dtype"):
        return say("check.input_dtype", place=place, values=pair(dtype, y.get("dtype")))
    if not values_differ(x, y):
        return NOTHING
    has_same_sum = x.get("sum") is not None and x["sum"] == y.get("sum")
    return say(
        "check.input",
        place=place,
        dtype=str(dtype),
        shape=shape_text(x["shape"]),
        order=say("check.input_order") if has_same_sum else NOTHING,
    )


def _agreeing(a: Described, b: Described) -> Sentence:
    """Return which inputs of a step agree, if some do."""
    common = [place for place in a if place in b]
    equal = [place for place in common if not _first_other({place: a[place]}, {place: b[place]})]
    if not equal or len(common) < 2:
        return NOTHING
    return say("check.input_agrees", places=listed(equal))


def _order(a: RunSnapshot, b: RunSnapshot, steps: list[int]) -> Any:
    """Return where the batches of A are in B, if both have the same ones in another order."""
    keys_a = {step: _key(a.inputs[step]) for step in steps}
    keys_b = {step: _key(b.inputs[step]) for step in steps}
    if Counter(keys_a.values()) != Counter(keys_b.values()):
        return _shifted(a, b)
    places = {key: step for step, key in keys_b.items()}
    moved = [
        say("check.step_moved", step=step, other=places[key])
        for step, key in keys_a.items()
        if places[key] != step
    ]
    return listed(moved)


def _shifted(a: RunSnapshot, b: RunSnapshot) -> Sentence:
    """Return by how many steps the batches of B come later, if several are A's."""
    all_a = Counter(_key(batch) for batch in a.inputs.values())
    all_b = Counter(_key(batch) for batch in b.inputs.values())
    shift = _shift(a, b)
    common = sum((all_a & all_b).values())
    return say("check.step_shift", shift=shift) if shift and common > 1 else NOTHING


def _shift(a: RunSnapshot, b: RunSnapshot) -> int:
    """Return by how many steps the batches of B come later, where it is one number for all; else 0."""
    places = {_key(batch): step for step, batch in b.inputs.items()}
    shifts = set()
    for step, batch in a.inputs.items():
        key = _key(batch)
        if key in places:
            shifts.add(places[key] - step)
    return shifts.pop() if len(shifts) == 1 else 0


def _key(batch: Described) -> str:
    return json.dumps(batch, sort_keys=True)
