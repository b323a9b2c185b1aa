# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The batches of two runs: the first that differs, and batches in another order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from probe.reading.check.difference import Difference, Importance, are_equal, listed, only, pair
from probe.reading.check.parameters import is_tensor, values_differ
from probe.reading.check.snapshot import Described, RunSnapshot
from probe.reading.dumps.text import shape


def check_data(a: RunSnapshot, b: RunSnapshot) -> Iterator[Difference]:
    """Yield how the batches of two runs differ."""
    steps = sorted({*a.inputs} & {*b.inputs})
    differ = [step for step in steps if _first(a.inputs[step], b.inputs[step])]
    if not differ:
        if not steps and a.inputs and b.inputs:
            said = f"no step was recorded in both: A has {_range(a)}, B has {_range(b)}"
            yield Difference(Importance.DATA, "data", said)
        return
    order = _order(a, b, steps)
    first = differ[0]
    if order:
        yield Difference(Importance.DATA, "data", f"the same batches in another order: {order}")
        return
    many = f"{len(differ)} of {len(steps)} steps differ" if len(differ) > 1 else f"only step {first} differs"
    if len(steps) == 1:
        many = "it is the only step of both runs"
    yield Difference(
        Importance.DATA,
        "data",
        f"step {first}, {_first(a.inputs[first], b.inputs[first])}; {many}{_parts(a, b, first)}",
    )


def _range(snapshot: RunSnapshot) -> str:
    return f"steps {min(snapshot.inputs)} to {max(snapshot.inputs)}"


def _first(a: Described, b: Described) -> str:
    """Return how the first value of two batches differs, or ""."""
    for place in {**a, **b}:
        if place not in a or place not in b:
            return f"input {only([place], 'A' if place in a else 'B')}"
        x, y = a[place], b[place]
        if is_tensor(x) and is_tensor(y):
            for key in ("shape", "dtype"):
                if x.get(key) != y.get(key):
                    shown = [shape(item.get(key)) if key == "shape" else item.get(key) for item in (x, y)]
                    return f"input {place} has another {key}: {pair(*shown)}"
            if values_differ(x, y):
                same = x.get("sum") is not None and x["sum"] == y.get("sum")
                return f"input {place} ({x.get('dtype')} {shape(x['shape'])}) differs" + (
                    ": the same elements in another order" if same else ""
                )
        elif not are_equal(x, y):
            return f"input {place}: {pair(x, y)}"
    return ""


def _parts(a: RunSnapshot, b: RunSnapshot, step: int) -> str:
    """Return which inputs of a step agree, if some do."""
    places = [place for place in a.inputs[step] if place in b.inputs[step]]
    equal = [place for place in places if not _first({place: a.inputs[step][place]}, {place: b.inputs[step][place]})]
    return f"; input {listed(equal)} agrees" if equal and len(places) > 1 else ""


def _order(a: RunSnapshot, b: RunSnapshot, steps: list[int]) -> str:
    """Return where the batches of A are in B, if both have the same ones in another order; else ""."""
    keys = [{step: _key(run.inputs[step]) for step in steps} for run in (a, b)]
    if Counter(keys[0].values()) != Counter(keys[1].values()):
        overlap = sum(
            (Counter(_key(x) for x in a.inputs.values()) & Counter(_key(x) for x in b.inputs.values())).values()
        )
        shift = _shift(a, b)
        if overlap < 2 or not shift:
            return ""
        return f"step n of A is step n{shift:+d} of B"
    places = {key: step for step, key in keys[1].items()}
    moved = [(step, places[key]) for step, key in keys[0].items() if places[key] != step]
    return listed(f"step {step} of A is step {other} of B" for step, other in moved)


def _shift(a: RunSnapshot, b: RunSnapshot) -> int:
    """Return by how many steps the batches of B come later, where it is one number for all; else 0."""
    places = {_key(value): step for step, value in b.inputs.items()}
    shifts = Counter(places[key] - step for step, key in ((s, _key(v)) for s, v in a.inputs.items()) if key in places)
    return next(iter(shifts)) if len(shifts) == 1 else 0


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
