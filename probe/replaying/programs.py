# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The function whose gradient a backward entry has: one call, or the calls inside of a Cell or own backward."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from probe.naming import CELL
from probe.reading.dumps import entry_name
from probe.reading.dumps.dump import Call
from probe.reading.dumps.flow import content_key, is_constant
from probe.reading.dumps.load import load_array
from probe.reading.dumps.values import Record, is_tensor, leaves
from probe.replaying.described import CannotReplayError, Program, Wire
from probe.replaying.describing import describe, gradients, is_own_backward, refuse_kind, tensor
from probe.replaying.functions import bare

#: their output carries no gradient
_STOPS = frozenset(("stop_gradient", "StopGradient", "detach", "detach_"))
_FLOATS = ("Float", "BFloat")
#: a tensor in the dump: the call that has it, its place, and its record
_At = tuple[Call, str, Record]


def program_of(call: Call) -> Program:
    """Return the function of a backward entry, with its inputs and their recorded gradients, or raise a reason."""
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
    wanted = [number for number, leaf in enumerate(expected) if leaf and leaf["dtype"].startswith(_FLOATS)]
    inputs = [tensor(forward, record, place) for _, place, record in _inputs(forward)]
    numbers = [number for number, _ in _outputs(forward)]
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
        self._made: dict[Any, list[tuple[tuple[int, int], _At]]] = defaultdict(list)
        self._given = list(_inputs(forward))
        self._steps: dict[int, tuple[Call, list[Any]] | None] = {}
        self._outside = ""
        for place in self._inside():
            for number, made in _outputs(forward.dump[self._flow.names[place]]):
                self._made[content_key(made[2])].append(((place, number), made))

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
        outputs = [at for _, at in _outputs(self._forward)]
        wires = [self._wire(at, self._end) if leaf else None for leaf, at in zip(sens, outputs)]
        if not any(wires):
            raise CannotReplayError("replay.not_composed")
        found: dict[int, list[Any]] = {}
        names: dict[int, str] = {}
        for number, leaf in enumerate(expected[: len(self._given)]):
            first = self._input(self._given[number])
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
            [tensor(call, record, place) for call, place, record in map(self._given.__getitem__, found)],
            list(found.values()), [names[number] for number in found],
            [chosen(wire) for wire, _ in pairs], [leaf for _, leaf in pairs], self._outside,
        )  # fmt: skip

    def _wire(self, at: _At, before: int) -> Any:
        """Return where a tensor comes from: (entry, number of its output), (-1, number of an input), or None."""
        found, (call, place, record) = self._input(at), at
        for output, made in reversed(self._made.get(content_key(record), [])):
            if output[0] < before and _is_same(at, made) and (found is None or self._keeps(made[0])):
                return output if self._depends(output[0], made[0]) else None
        if found is None and not is_constant(record) and str(record.get("dtype", "")).startswith(_FLOATS):
            number = self._flow.position[call.name]
            link = next((link for link in self._flow.links[number] if link.place == place), None)
            first = min((output[0] for made in self._made.values() for output, _ in made), default=self._end)
            is_known = link is not None and (link.parameter is not None or 0 <= link.producer < first)
            self._outside = self._outside or ("" if is_known else f"{call.name}.{place}")
        return found

    def _keeps(self, maker: Call) -> bool:
        """Return whether a call that gives the values of an input is inside: as relu of positive numbers."""
        if self._is_cell:
            return True
        keys = {content_key(record) for _, _, record in _inputs(maker)}
        return bare(maker.parts.key) not in _STOPS and any(content_key(made[2]) in keys for _, made in _outputs(maker))

    def _depends(self, place: int, maker: Call) -> bool:
        """Return whether a call depends on the inputs; it is a step then."""
        if place not in self._steps:
            self._steps[place] = None
            if bare(maker.parts.key) not in _STOPS:
                wires = [self._wire(at, place) for at in _inputs(maker)]
                self._steps[place] = (maker, wires) if any(wires) else None
        return self._steps[place] is not None

    def _input(self, at: _At) -> Any:
        return next(((-1, number) for number, given in enumerate(self._given) if _is_same(given, at)), None)


def _is_same(one: _At, other: _At) -> bool:
    """Return whether two tensors have the same bytes."""
    if content_key(one[2]) != content_key(other[2]) or one[2].get("shape") != other[2].get("shape"):
        return False
    described = [tensor(call, record, place) for call, place, record in (one, other)]
    first, second = (load_array(leaf["array"], leaf["dtype"]).tobytes() for leaf in described)
    return bool(first == second)


def _inputs(call: Call) -> Iterator[_At]:
    for key, word in (("input_args", "input"), ("input_kwargs", "kwargs")):
        for inner, record in leaves(call.entry.get(key)):
            if is_tensor(record):
                yield call, f"{word}.{inner}", record


def _outputs(call: Call) -> Iterator[tuple[int, _At]]:
    """Yield the tensors among the outputs of a call, with their numbers."""
    for number, (inner, record) in enumerate(leaves(call.entry.get("output"))):
        if is_tensor(record):
            yield number, (call, f"output.{inner}", record)
