# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The function whose gradient a backward entry has: one call, or the calls inside of a Cell or own backward."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from probe.naming import CELL, PRIMITIVE
from probe.reading.dumps import entry_name
from probe.reading.dumps.dump import Call
from probe.reading.dumps.flow import content_key, is_constant
from probe.reading.dumps.load import load_array
from probe.reading.dumps.values import Record, is_tensor, leaves
from probe.replaying.described import CannotReplayError, Program, Wire
from probe.replaying.describing import describe, gradients, refuse_kind, tensor
from probe.replaying.functions import bare

#: their output carries no gradient
_STOPS = frozenset(("stop_gradient", "StopGradient", "detach", "detach_"))
_FLOATS = ("Float", "BFloat")
_INPUTS = (("input_args", "input"), ("input_kwargs", "kwargs"))
#: a place in the dump, as (number of the entry, number of the output)
_Output = tuple[int, int]


def is_own_backward(call: Call) -> bool:
    """Return whether an entry is a backward of the user's own: a bprop or a ``_Function``."""
    key = call.parts.key
    return key.startswith(f"{PRIMITIVE}.fn:") and bare(key) in ("bprop", "backward")


def program_of(call: Call) -> Program:
    """Return the function of a backward entry, its inputs, and their recorded gradients.

    Raise CannotReplayError when it cannot be put together.
    """
    forward = call.dump.get(call.parts.forward)
    if forward is None or not isinstance(forward.entry, dict):
        raise CannotReplayError("replay.no_forward")
    sens, expected, places = gradients(call, forward)
    if any(leaf and leaf["dtype"].startswith("Complex") for leaf in sens):
        raise CannotReplayError("replay.complex_gradient")
    if call.kind == CELL or is_own_backward(call):
        return _Composer(forward).program(sens, expected, places)
    refuse_kind(call)
    step = describe(forward)
    given = [record for _, _, record in _inputs(forward)]
    wanted = [number for number, leaf in enumerate(expected) if leaf and leaf["dtype"].startswith(_FLOATS)]
    inputs = [tensor(forward, record, str(number)) for number, record in enumerate(given)]
    numbers = [number for number, (_, record) in enumerate(_outputs(forward)) if is_tensor(record)]
    wires: list[Wire] = [(-1, wanted.index(number)) if number in wanted else None for number in range(len(inputs))]
    return Program(
        [step._asdict()], [wires], [inputs[number] for number in wanted], [[expected[number]] for number in wanted],
        [places[number] for number in wanted], [(0, numbers[place]) for place, leaf in enumerate(sens) if leaf],
        [leaf for leaf in sens if leaf], "",
    )  # fmt: skip


class _Composer:
    """Puts the recorded calls inside of a Cell or an own backward together, by the contents of tensors."""

    def __init__(self, forward: Call) -> None:
        self._forward, self._flow = forward, forward.dump.flow
        self._is_cell = forward.kind == CELL or bare(forward.parts.key) == "bprop"
        self._end = self._flow.position[forward.name]
        self._made: dict[Any, list[tuple[_Output, Call, Record]]] = defaultdict(list)
        self._given: list[tuple[str, Record]] = [(place, record) for place, _, record in _inputs(forward)]
        self._steps: dict[int, tuple[Call, list[Any]] | None] = {}
        self._outside = ""
        for place in self._inside():
            made = forward.dump[self._flow.names[place]]
            for number, (_, record) in enumerate(_outputs(made)):
                if is_tensor(record):
                    self._made[content_key(record)].append(((place, number), made, record))

    def _inside(self) -> Iterator[int]:
        """Yield the calls that may be a part of it."""
        flow = self._flow
        around = self._forward.name if self._forward.kind == CELL else flow.cells[self._end]
        for place in range(self._end):
            parts = flow.parts[place]
            is_call = parts.kind == entry_name.API and parts.direction != entry_name.BACKWARD
            if is_call and not is_own_backward(self._forward.dump[flow.names[place]]):
                above = flow.cells[place]
                while above not in (around, None):
                    above = flow.cells[flow.position[above]] if above in flow.position else None
                if above == around:
                    yield place

    def program(self, sens: list[Any], expected: list[Any], places: list[str]) -> Program:
        """Return the function; inputs of equal content are one, with the sum of their gradients."""
        outputs = [(place, record) for place, record in _outputs(self._forward) if is_tensor(record)]
        wires = [self._wire(self._forward, place, record, self._end) if leaf else None
                 for leaf, (place, record) in zip(sens, outputs)]  # fmt: skip
        if not any(wires):
            raise CannotReplayError("replay.not_composed")
        found: dict[int, list[Any]] = {}
        names: dict[int, str] = {}
        for number, leaf in enumerate(expected[: len(self._given)]):
            first = self._input(self._forward, *self._given[number])
            if leaf and leaf["dtype"].startswith(_FLOATS) and first is not None:
                found.setdefault(first[1], []).append(leaf)
                names.setdefault(first[1], places[number])
        if not found:
            raise CannotReplayError("replay.no_input_gradient")
        kept = {number: place for place, number in enumerate(found)}
        order = {place: number for number, place in enumerate(sorted(p for p, step in self._steps.items() if step))}

        def chosen(wire: Any) -> Wire:
            if wire is None or wire[0] >= 0:
                return wire and (order[wire[0]], wire[1])
            return (-1, kept[wire[1]]) if wire[1] in kept else None

        steps = [self._steps[place] for place in order]
        pairs = [(wire, leaf) for wire, leaf in zip(wires, sens) if leaf and wire]
        return Program(
            [describe(step[0])._asdict() for step in steps if step],
            [[chosen(wire) for wire in step[1]] for step in steps if step],
            [tensor(self._forward, self._given[number][1], self._given[number][0]) for number in found],
            list(found.values()), [names[number] for number in found],
            [chosen(wire) for wire, _ in pairs], [leaf for _, leaf in pairs], self._outside,
        )  # fmt: skip

    def _wire(self, call: Call, place: str, record: Record, before: int) -> Any:
        """Return where a tensor comes from: (entry, number of its output), (-1, number of an input), or None."""
        found = self._input(call, place, record)
        for output, maker, made in reversed(self._made.get(content_key(record), [])):
            is_fit = output[0] < before and made.get("shape") == record.get("shape")
            if is_fit and self._same(call, place, record, maker, "", made) and (found is None or self._keeps(maker)):
                return output if self._depends(output[0], maker) else None
        if found is None and not is_constant(record) and str(record.get("dtype", "")).startswith(_FLOATS):
            number = self._flow.position[call.name]
            link = next((link for link in self._flow.links[number] if link.place == place), None)
            is_known = link is not None and (link.parameter is not None or 0 <= link.producer < self._first)
            self._outside = self._outside or ("" if is_known else f"{call.name}.{place}")
        return found

    def _keeps(self, maker: Call) -> bool:
        """Return whether a call that gives the values of an input is inside: as relu of positive numbers."""
        if self._is_cell:
            return True
        keys = {content_key(record) for _, _, record in _inputs(maker)}
        return bare(maker.parts.key) not in _STOPS and any(content_key(record) in keys for _, record in _outputs(maker))

    @property
    def _first(self) -> int:
        return min((output[0] for made in self._made.values() for output, _, _ in made), default=self._end)

    def _depends(self, place: int, maker: Call) -> bool:
        """Return whether a call depends on the inputs; it is a step then."""
        if place not in self._steps:
            self._steps[place] = None
            if bare(maker.parts.key) not in _STOPS:
                wires = [self._wire(maker, where, record, place) for where, _, record in _inputs(maker)]
                self._steps[place] = (maker, wires) if any(wires) else None
        return self._steps[place] is not None

    def _input(self, call: Call, place: str, record: Record) -> Any:
        key = content_key(record)
        for number, (where, given) in enumerate(self._given):
            is_same = content_key(given) == key and given.get("shape") == record.get("shape")
            if is_same and self._same(call, place, record, self._forward, where, given):
                return -1, number
        return None

    def _same(self, call: Call, place: str, record: Record, other: Call, where: str, given: Record) -> bool:
        """Return whether two tensors have the same bytes."""
        return _bytes(tensor(call, record, place)) == _bytes(tensor(other, given, where))


def _bytes(leaf: dict[str, Any]) -> int:
    return zlib.crc32(load_array(leaf["array"], leaf["dtype"]).tobytes())


def _inputs(call: Call) -> Iterator[tuple[str, str, Record]]:
    for key, word in _INPUTS:
        for inner, record in leaves(call.entry.get(key)):
            if is_tensor(record):
                yield f"{word}.{inner}", inner, record


def _outputs(call: Call) -> list[tuple[str, Any]]:
    given = call.entry.get("output")
    return [(f"output.{inner}", record) for inner, record in leaves(given)]
