# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The batches of two runs: the first input that differs, or the order of A's batches in B."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.reading.check.batch import (
    batches_of,
    call_number,
    dump_of,
    is_argument,
    is_made,
    label,
)
from probe.reading.check.difference import Difference, Importance, are_equal, listed, pair
from probe.reading.check.parameters import is_tensor, values_differ
from probe.reading.check.snapshot import Described, RunSnapshot
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.text import shape as shape_text

#: step -> the values that entered it, by place
Batches = dict[int, Described]


class BatchCheck:
    """Compares the batches of two runs."""

    def __init__(self, a: RunSnapshot, b: RunSnapshot) -> None:
        self._run_a = a
        self._run_b = b
        self._a = batches_of(a)
        self._b = batches_of(b)
        self.steps = sorted({*self._a} & {*self._b})  # the steps that both have batches of
        self.made: list[
            Any
        ] = []  # the values of the first step that differs which a recorded call made
        for step in self.steps:
            self._leave_out_calls(step)
        self._leave_out_made()

    def _leave_out_calls(self, step: int) -> None:
        """Leave out the gradient functions that one side alone has called, or has noted."""
        counts = [len(run.gradient_calls.get(step, ())) for run in (self._run_a, self._run_b)]
        for batches in (self._a, self._b):
            batches[step] = {
                place: value
                for place, value in batches[step].items()
                if not is_argument(place) or call_number(place) < min(counts)
            }

    def _leave_out_made(self) -> None:
        """Leave out the values that a recorded call made: its own inputs tell more."""
        first = next(filter(self._differs, self.steps), None)
        if first is None:
            return
        made = {place for place in self._a[first] if self._is_made(first, place)}
        if not made:
            return
        self.made = [label(self._run_a, first, place) for place in made]
        for batches in (self._a, self._b):
            for step, batch in batches.items():
                batches[step] = {place: it for place, it in batch.items() if place not in made}

    def known(self, step: int) -> set[Any]:
        """Return the contents of a step that agree by their checksums, as ``content_key`` has them."""
        a = self._a[step]
        agreeing = [
            a[place]
            for place in self._places(step)
            if not self._other(step, place) and is_tensor(a[place]) and "crc" in a[place]
        ]
        return {content_key(value) for value in agreeing}

    def _is_made(self, step: int, place: str) -> bool:
        """Return whether a value that differs was made by a recorded call on one side."""
        if not self._other(step, place):
            return False
        values = (self._a[step].get(place), self._b[step].get(place))
        dumps = (dump_of(self._run_a, step), dump_of(self._run_b, step))
        return any(
            dump is not None and value is not None and is_tensor(value) and is_made(dump, value)
            for dump, value in zip(dumps, values)
        )

    def _differs(self, step: int) -> bool:
        return any(True for _ in self._others(step))

    def has_arguments(self) -> bool:
        """Return whether both runs have the arguments of gradient functions in all of these steps."""
        runs = (self._run_a, self._run_b)
        return all(step in run.gradient_calls for run in runs for step in self.steps)

    def differences(self) -> Iterator[Difference]:
        """Yield how the batches differ."""
        a = self._a
        b = self._b
        if not self.steps and a and b:
            said = say(
                "check.no_common_step",
                a_first=min(a),
                a_last=max(a),
                b_first=min(b),
                b_last=max(b),
            )
            yield _difference(said)
        yield from self._counts()
        others = [step for step in self.steps if self._differs(step)]
        if not others:
            return
        order = _order(a, b, self.steps)
        if order:
            yield _difference(say("check.batches_moved", steps=order))
            return
        first = others[0]
        if len(self.steps) == 1:
            many = say("check.only_step_recorded")
        elif len(others) == 1:
            many = say("check.only_step", step=first)
        else:
            many = say("check.steps_differ", count=len(others), all=len(self.steps))
        batch = say("check.batch", step=first, said=next(self._others(first)))
        again = [_repeated(side, run, first) for side, run in (("A", a), ("B", b))]
        yield _difference(clauses(batch, many, *again, self._agreeing(first)))

    def _counts(self) -> Iterator[Difference]:
        """Yield the first step in which both runs call gradient functions, and one of them more."""
        for step in self.steps:
            count_a = len(self._run_a.gradient_calls.get(step, ()))
            count_b = len(self._run_b.gradient_calls.get(step, ()))
            if count_a and count_b and count_a != count_b:
                values = pair(count_a, count_b)
                yield _difference(say("check.gradient_calls", step=step, values=values))
                return

    def _others(self, step: int) -> Iterator[Sentence]:
        """Yield how each value of a step differs."""
        for place in self._places(step):
            said = self._other(step, place)
            if said:
                yield said

    def _places(self, step: int) -> dict[str, Any]:
        return {**self._a[step], **self._b[step]}

    def _other(self, step: int, place: str) -> Sentence:
        """Return how the values at a place of a step differ; nothing where they agree."""
        a = self._a[step]
        b = self._b[step]
        if place not in a or place not in b:
            run = self._run_a if place in a else self._run_b
            side = "A" if place in a else "B"
            return say("check.input_only", place=label(run, step, place), side=side)
        shown = label(self._run_a, step, place)
        x = a[place]
        y = b[place]
        if is_tensor(x) and is_tensor(y):
            return _other_tensor(shown, x, y)
        return (
            NOTHING if are_equal(x, y) else say("check.input_value", place=shown, values=pair(x, y))
        )

    def _agreeing(self, step: int) -> Sentence:
        """Return which values of a step agree, if some do; a value that entered twice is told once."""
        places = self._places(step)
        agreeing = {
            _content(self._a[step][place]): label(self._run_a, step, place)
            for place in reversed(places)
            if not self._other(step, place)
        }
        if not agreeing or len(places) < 2:
            return NOTHING
        return say("check.input_agrees", places=listed(reversed(agreeing.values())))


def _repeated(side: str, batches: Batches, step: int) -> Sentence:
    """Return which earlier step of a run has the batch of a step too; nothing if none has."""
    wanted = _text(batches[step])
    earlier = [other for other in batches if other < step and _text(batches[other]) == wanted]
    if not earlier:
        return NOTHING
    return say("check.batch_repeats", side=side, step=step, other=min(earlier))


def _difference(said: Sentence) -> Difference:
    return Difference(Importance.DATA, say("check.data"), said)


def _other_tensor(place: Any, x: dict[str, Any], y: dict[str, Any]) -> Sentence:
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


def _order(a: Batches, b: Batches, steps: list[int]) -> Any:
    """Return where the batches of A are in B, if both have the same ones in another order."""
    keys_a = {step: _text(a[step]) for step in steps}
    keys_b = {step: _text(b[step]) for step in steps}
    if Counter(keys_a.values()) != Counter(keys_b.values()):
        return _shifted(a, b)
    places = {key: step for step, key in keys_b.items()}
    moved = [
        say("check.step_moved", step=step, other=places[key])
        for step, key in keys_a.items()
        if places[key] != step
    ]
    return listed(moved)


def _shifted(a: Batches, b: Batches) -> Sentence:
    """Return by how many steps the batches of B come later, if several are A's."""
    all_a = Counter(_text(batch) for batch in a.values())
    all_b = Counter(_text(batch) for batch in b.values())
    shift = _shift(a, b)
    common = sum((all_a & all_b).values())
    return say("check.step_shift", shift=shift) if shift and common > 1 else NOTHING


def _shift(a: Batches, b: Batches) -> int:
    """Return by how many steps the batches of B come later, where it is one number for all; else 0."""
    places = {_text(batch): step for step, batch in b.items()}
    shifts = set()
    for step, batch in a.items():
        key = _text(batch)
        if key in places:
            shifts.add(places[key] - step)
    return shifts.pop() if len(shifts) == 1 else 0


def _content(value: Any) -> str:
    """Return a text that is equal for equal values: the checksum of a tensor, where it has one."""
    return str(value["crc"]) if is_tensor(value) and "crc" in value else _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
