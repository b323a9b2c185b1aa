# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The batches of two runs: the first that differs, and batches in another order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.reading.check.difference import Difference, Importance, are_equal, listed, pair
from probe.reading.check.parameters import is_tensor, values_differ
from probe.reading.check.snapshot import Described, RunSnapshot
from probe.reading.dumps.text import shape


def check_data(a: RunSnapshot, b: RunSnapshot) -> Iterator[Difference]:
    """Yield how the batches of two runs differ."""
    steps = sorted({*a.inputs} & {*b.inputs})
    differ = [step for step in steps if _first(a.inputs[step], b.inputs[step])]
    if not differ:
        if not steps and a.inputs and b.inputs:
            said = say("check.no_common_step", a_first=min(a.inputs), a_last=max(a.inputs),
                       b_first=min(b.inputs), b_last=max(b.inputs))  # fmt: skip
            yield _difference(said)
        return
    order = _order(a, b, steps)
    if order:
        yield _difference(say("check.batches_moved", steps=order))
        return
    first = differ[0]
    if len(steps) == 1:
        many = say("check.only_step_recorded")
    elif len(differ) == 1:
        many = say("check.only_step", step=first)
    else:
        many = say("check.steps_differ", count=len(differ), all=len(steps))
    batch = say("check.batch", step=first, said=_first(a.inputs[first], b.inputs[first]))
    yield _difference(clauses(batch, many, _parts(a, b, first)))


def _difference(said: Sentence) -> Difference:
    return Difference(Importance.DATA, say("check.data"), said)


def _first(a: Described, b: Described) -> Sentence:
    """Return how the first value of two batches differs, if one does."""
    for place in {**a, **b}:
        if place not in a or place not in b:
            return say("check.input_only", place=place, side="A" if place in a else "B")
        x, y = a[place], b[place]
        if is_tensor(x) and is_tensor(y):
            if x["shape"] != y["shape"]:
                return say("check.input_shape", place=place, values=pair(shape(x["shape"]), shape(y["shape"])))
            if x.get("dtype") != y.get("dtype"):
                return say("check.input_dtype", place=place, values=pair(x.get("dtype"), y.get("dtype")))
            if values_differ(x, y):
                same = x.get("sum") is not None and x["sum"] == y.get("sum")
                order = say("check.input_order") if same else NOTHING
                return say("check.input", place=place, dtype=str(x.get("dtype")), shape=shape(x["shape"]), order=order)
        elif not are_equal(x, y):
            return say("check.input_value", place=place, values=pair(x, y))
    return NOTHING


def _parts(a: RunSnapshot, b: RunSnapshot, step: int) -> Sentence:
    """Return which inputs of a step agree, if some do."""
    places = [place for place in a.inputs[step] if place in b.inputs[step]]
    equal = [place for place in places if not _first({place: a.inputs[step][place]}, {place: b.inputs[step][place]})]
    return say("check.input_agrees", places=listed(equal)) if equal and len(places) > 1 else NOTHING


def _order(a: RunSnapshot, b: RunSnapshot, steps: list[int]) -> Any:
    """Return where the batches of A are in B, if both have the same ones in another order."""
    keys = [{step: _key(run.inputs[step]) for step in steps} for run in (a, b)]
    if Counter(keys[0].values()) != Counter(keys[1].values()):
        overlap = sum(
            (Counter(_key(x) for x in a.inputs.values()) & Counter(_key(x) for x in b.inputs.values())).values()
        )
        shift = _shift(a, b)
        if overlap < 2 or not shift:
            return NOTHING
        return say("check.step_shift", shift=shift)
    places = {key: step for step, key in keys[1].items()}
    moved = [(step, places[key]) for step, key in keys[0].items() if places[key] != step]
    return listed(say("check.step_moved", step=step, other=other) for step, other in moved)


def _shift(a: RunSnapshot, b: RunSnapshot) -> int:
    """Return by how many steps the batches of B come later, where it is one number for all; else 0."""
    places = {_key(value): step for step, value in b.inputs.items()}
    shifts = Counter(places[key] - step for step, key in ((s, _key(v)) for s, v in a.inputs.items()) if key in places)
    return next(iter(shifts)) if len(shifts) == 1 else 0


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
