# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Turns a backward entry into the function whose gradient it has: one call, or those inside of a Cell or own bprop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from probe.naming import CELL
from probe.reading.dumps import entry_name, values
from probe.reading.dumps.dump import Call
from probe.reading.dumps.flow import content_key, is_constant
from probe.reading.dumps.load import load_array
from probe.replaying.described import CannotReplayError, Program, Wire
from probe.replaying.describing import describe, gradients, is_own_backward, refuse_kind, tensor
from probe.replaying.functions import bare

#: their output carries no gradient
_STOPS = frozenset(("stop_gradient", "StopGradient", "detach", "detach_"))
_FLOATS = ("Float", "BFloat")


class _At(NamedTuple):
    """A tensor in the dump."""

    call: Call
    place: str
    record: values.Record

    def described(self) -> dict[str, Any]:
        """Return its description."""
        return tensor(self.call, self.record, self.place)

    def bytes(self) -> bytes:
        """Return its values."""
        leaf = self.described()
        return bytes(load_array(leaf["array"], leaf["dtype"]).tobytes())


class _Output(NamedTuple):
    """An output of a call inside."""

    place: int  # the place of the call
    number: int  # which of its outputs
    at: _At


class _Step(NamedTuple):
    """A call that depends on the inputs of the function."""

    call: Call
    wires: list[Any]  # for each of its inputs where it comes from


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
    wanted = [number for number, leaf in enumerate(expected) if _has_floats(leaf)]
    inputs = [at.described() for at in _inputs(forward)]
    numbers = [number for number, _ in _outputs(forward)]
    wires: list[Wire] = [None] * len(inputs)
    for place, number in enumerate(wanted):
        if number < len(wires):
            wires[number] = (-1, place)
    return Program(
        steps=[step._asdict()],
        wires=[wires],
        inputs=[inputs[number] for number in wanted],
        gradients=[[expected[number]] for number in wanted],
        places=[places[number] for number in wanted],
        outputs=[(0, numbers[place]) for place, leaf in enumerate(sens) if leaf],
        sens=[leaf for leaf in sens if leaf],
        outside="",
    )


def _has_floats(leaf: Any) -> bool:
    """Return whether a described tensor has fractions."""
    return bool(leaf) and leaf["dtype"].startswith(_FLOATS)


class _Composer:
    """Puts the recorded calls inside of a Cell or an own backward together, by the contents of tensors."""

    def __init__(self, forward: Call) -> None:
        self._forward = forward
        self._flow = forward.dump.flow
        self._is_cell = forward.kind == CELL or bare(forward.parts.key) == "bprop"
        self._end = self._flow.position[forward.name]
        self._made: dict[Any, list[_Output]] = defaultdict(
            list
        )  # content -> the outputs that have it
        self._given = list(_inputs(forward))
        self._steps: dict[int, _Step | None] = {}  # place -> its step; None for one that needs none
        self._outside = ""
        for place in self._inside():
            call = forward.dump[self._flow.names[place]]
            for number, at in _outputs(call):
                made = _Output(place, number, at)
                self._made[content_key(at.record)].append(made)

    def _inside(self) -> Iterator[int]:
        """Yield the places of the calls in the Cell, or around the own backward."""
        flow = self._flow
        around = self._forward.name if self._forward.kind == CELL else flow.cells[self._end]
        for place in range(self._end):
            parts = flow.parts[place]
            if parts.kind != entry_name.API or parts.direction == entry_name.BACKWARD:
                continue
            if is_own_backward(self._forward.dump[flow.names[place]]):
                continue
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
        gradients_of: dict[int, list[Any]] = {}  # number of an input -> its gradients
        names: dict[int, str] = {}  # the same -> the place of the first of these
        for given, leaf, place in zip(self._given, expected, places):
            wire = self._input(given)
            if _has_floats(leaf) and wire is not None:
                _, number = wire
                gradients_of.setdefault(number, []).append(leaf)
                names.setdefault(number, place)
        if not gradients_of:
            raise CannotReplayError("replay.no_input_gradient")
        steps = {place: step for place, step in sorted(self._steps.items()) if step}
        numbers = _Numbers(_numbered(steps), _numbered(gradients_of))
        ends = [(wire, leaf) for wire, leaf in zip(wires, sens) if leaf and wire]
        return Program(
            steps=[describe(step.call)._asdict() for step in steps.values()],
            wires=[numbers.wires(step.wires) for step in steps.values()],
            inputs=[self._given[number].described() for number in gradients_of],
            gradients=list(gradients_of.values()),
            places=[names[number] for number in gradients_of],
            outputs=numbers.wires([wire for wire, _ in ends]),
            sens=[leaf for _, leaf in ends],
            outside=self._outside,
        )

    def _wire(self, at: _At, before: int) -> Any:
        """Return where a tensor comes from: (entry, number of its output), (-1, number of an input), or None."""
        found = self._input(at)
        for made in reversed(self._made.get(content_key(at.record), [])):
            if made.place >= before or not _is_same(at, made.at):
                continue
            maker = made.at.call
            if found is None or self._keeps(maker):
                is_step = self._depends(made.place, maker)
                return (made.place, made.number) if is_step else None
        if found is None and not self._outside and self._is_unknown(at):
            self._outside = f"{at.call.name}.{at.place}"
        return found

    def _is_unknown(self, at: _At) -> bool:
        """Return whether a tensor with fractions comes from no recorded call, and is no parameter or constant."""
        dtype = str(at.record.get("dtype", ""))
        if is_constant(at.record) or not dtype.startswith(_FLOATS):
            return False
        links = self._flow.links[self._flow.position[at.call.name]]
        link = next((link for link in links if link.place == at.place), None)
        if link is None:
            return True
        places = [output.place for outputs in self._made.values() for output in outputs]
        first = min(places, default=self._end)
        return link.parameter is None and not 0 <= link.producer < first

    def _keeps(self, maker: Call) -> bool:
        """Return whether a call that gives the values of an input is inside: as relu of positive numbers."""
        if self._is_cell:
            return True
        if bare(maker.parts.key) in _STOPS:
            return False
        given = {content_key(at.record) for at in _inputs(maker)}
        made = {content_key(at.record) for _, at in _outputs(maker)}
        return not given.isdisjoint(made)

    def _depends(self, place: int, maker: Call) -> bool:
        """Return whether a call depends on the inputs; it is a step then."""
        if place not in self._steps:
            self._steps[place] = None
            if bare(maker.parts.key) not in _STOPS:
                wires = [self._wire(at, place) for at in _inputs(maker)]
                self._steps[place] = _Step(maker, wires) if any(wires) else None
        return self._steps[place] is not None

    def _input(self, at: _At) -> Any:
        """Return the input of the function that has the values of a tensor, as a wire; None where none has."""
        for number, given in enumerate(self._given):
            if _is_same(given, at):
                return -1, number
        return None


class _Numbers(NamedTuple):
    """The numbers that steps and inputs have in the program."""

    steps: dict[int, int]
    inputs: dict[int, int]

    def wires(self, wires: Iterable[Any]) -> list[Wire]:
        """Return wires by these numbers; None for an input that the program leaves out."""
        return [self._wire(wire) for wire in wires]

    def _wire(self, wire: Any) -> Wire:
        if wire is None:
            return None
        source, number = wire
        if source >= 0:
            return self.steps[source], number
        return (-1, self.inputs[number]) if number in self.inputs else None


def _numbered(keys: Iterable[int]) -> dict[int, int]:
    return {key: number for number, key in enumerate(keys)}


def _is_same(one: _At, other: _At) -> bool:
    """Return whether two tensors have equal values."""
    if content_key(one.record) != content_key(other.record):
        return False
    if one.record.get("shape") != other.record.get("shape"):
        return False
    return one.bytes() == other.bytes()


def _inputs(call: Call) -> Iterator[_At]:
    for key, word in (("input_args", "input"), ("input_kwargs", "kwargs")):
        for inner, record in values.leaves(call.entry.get(key)):
            if values.is_tensor(record):
                yield _At(call, f"{word}.{inner}", record)


def _outputs(call: Call) -> Iterator[tuple[int, _At]]:
    """Yield the tensors among the outputs of a call, with their numbers."""
    for number, (inner, record) in enumerate(values.leaves(call.entry.get("output"))):
        if values.is_tensor(record):
            yield number, _At(call, f"output.{inner}", record)
