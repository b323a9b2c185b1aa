# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Turns an entry of a dump into the description of a call, or of the function whose gradient it has; see ``described``.

Such a function is one call, or the calls inside of a Cell or own backward.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from probe.naming import CELL, COLLECTIVE, JIT, PREFIXES, PRIMITIVE
from probe.reading.dumps import entry_name, values
from probe.reading.dumps.dump import Call, Tensor
from probe.reading.dumps.flow import content_key, is_constant
from probe.reading.dumps.load import load_array
from probe.replaying.described import (
    PLAIN_DTYPES,
    CallDescription,
    CannotReplayError,
    Program,
    Wire,
)
from probe.replaying.functions import OPERATORS, bare

_NUMPY = re.compile(r"^(bool_?|u?int(8|16|32|64)|float(16|32|64))$")
_KNOWN = frozenset(("bool", "int", "float", "str"))
_STOPS = frozenset(
    ("stop_gradient", "StopGradient", "detach", "detach_")
)  # their output carries no gradient
_FLOATS = ("Float", "BFloat")
_At = tuple[
    Call, str, values.Record
]  # a tensor in the dump: the call that has it, its place, and its record


def describe(call: Call) -> CallDescription:
    """Return the description of a call, forward or backward; raise CannotReplayError where it cannot be made again."""
    refuse_kind(call)
    backward = call.direction == entry_name.BACKWARD
    forward = call.dump.get(call.parts.forward) if backward else call
    if forward is None or not isinstance(forward.entry, dict):
        raise CannotReplayError("replay.no_forward")
    entry = forward.entry
    if "input_args" not in entry:
        raise CannotReplayError("replay.no_inputs")
    for key, reason in (
        ("raised", "replay.raised"),
        ("pending", "replay.pending"),
        ("error", "replay.error"),
    ):
        if entry.get(key) is not None and not (backward and key == "error"):
            raise CannotReplayError(reason, text=str(entry[key])[:200])
    reader = _Describer(forward)
    args = [reader.value(item, f"input.{i}") for i, item in enumerate(_list(entry["input_args"]))]
    kwargs = {
        str(k): reader.value(v, f"kwargs.{k}") for k, v in _dict(entry.get("input_kwargs")).items()
    }
    attributes = {str(k): reader.value(v, k) for k, v in _dict(entry.get("attributes")).items()}
    refuse_random(call.parts.key, [*args, *kwargs.values()])
    outputs = _list(entry.get("output"))
    is_cast = bare(call.parts.key) == "Cast" and len(args) > 1 and type(args[1]) is int
    if is_cast and any(
        map(values.is_tensor, outputs[:1])
    ):  # MindSpore hands its dtype on as a number
        args[1] = {"dtype": _dtype(str(outputs[0].get("dtype")))}
    if backward:
        sens, expected, places = gradients(call, forward)
    else:
        leaves = _flat(outputs, "output")
        sens = None
        expected = [_expected(forward, leaf, place) for place, leaf in leaves]
        places = [place for place, _ in leaves]
    if not any(expected):
        raise CannotReplayError("replay.no_output")
    return CallDescription(
        call.parts.key, args, kwargs, attributes, reader.unsure, expected, places, sens
    )


def is_own_backward(call: Call) -> bool:
    """Return whether an entry is a backward of the user's own: a bprop or a ``_Function``."""
    key = call.parts.key
    return key.startswith(f"{PRIMITIVE}.fn:") and bare(key) in ("bprop", "backward")


def refuse_kind(call: Call) -> None:
    """Raise CannotReplayError for entries that are no call of an API or a Primitive."""
    prefix = call.kind
    for is_one, reason in (
        (prefix in (CELL, "Module"), "replay.cell"),
        (prefix == JIT, "replay.compiled"),
        (prefix != PRIMITIVE and _is_of_torch(call), "replay.of_torch"),
        (prefix in COLLECTIVE, "replay.collective"),
        (is_own_backward(call), "replay.own_backward"),
        (prefix != PRIMITIVE and prefix not in PREFIXES.values(), "replay.own_function"),
        (bare(call.parts.key) in OPERATORS["forbidden"], "replay.effects"),
    ):
        if is_one:
            raise CannotReplayError(reason)


def _is_of_torch(call: Call) -> bool:
    """Return whether a call is of torch on MindSpore, whose functions may have the names of others of MindSpore."""
    return call.dump.header.get("framework") == "mindtorch"


def refuse_random(key: str, given: list[Any]) -> None:
    """Raise CannotReplayError for a call that draws random numbers."""
    word = bare(key)
    is_idle = "dropout" in word.lower() and (
        any(item is False for item in given)  # not in training
        or (word != "Dropout" and any(type(item) in (int, float) and item == 0 for item in given))
    )
    if word in OPERATORS["random"] and not is_idle:
        raise CannotReplayError("replay.random")


class _Describer:
    def __init__(self, call: Call) -> None:
        self._call = call
        self.unsure = ""  # the places of values that the record does not hold

    def value(self, value: Any, place: str) -> Any:
        """Return the description of a value of a record; note the place of one that the record does not hold."""
        if isinstance(value, list):
            return [self.value(item, f"{place}.{i}") for i, item in enumerate(value)]
        if not isinstance(value, dict):
            if value is None and not self.unsure:
                self.unsure = place
            return value
        kind = value.get("type")
        if not isinstance(kind, str):
            return {
                "items": {
                    str(key): self.value(item, f"{place}.{key}") for key, item in value.items()
                }
            }
        if values.is_tensor(value):
            return tensor(self._call, value, place)
        return self._plain(kind, value.get("value"), place)

    def _plain(self, kind: str, value: Any, place: str) -> Any:
        if kind == "mindspore.dtype":
            return {"dtype": str(value)}
        if kind == "slice" and isinstance(value, list) and len(value) == 3:
            return {"slice": [item if type(item) is int else None for item in value]}
        if kind == "ellipsis":
            return {"ellipsis": True}
        if kind == "str" and isinstance(value, str):
            return value[1:] if value[:1] == "_" and value[1:2] in tuple("+-=%@") else value
        if kind in _KNOWN and type(value).__name__ == kind:
            return value
        if _NUMPY.match(kind) and type(value) in (bool, int, float):
            return {"numpy": "bool_" if kind == "bool" else kind, "value": value}
        raise CannotReplayError("replay.no_value", place=place, kind=kind[:80])


def tensor(call: Call, record: dict[str, Any], place: str) -> dict[str, Any]:
    """Return the description of a tensor; raise CannotReplayError when the dump has no array of it."""
    path = Tensor(call, place, record).path
    if path is None:
        raise CannotReplayError(
            "replay.unwritten" if record.get("unwritten") else "replay.tensor_array", place=place
        )
    shape = record.get("shape")
    if not isinstance(shape, list):
        raise CannotReplayError("replay.tensor_shape", place=place)
    return {"array": path, "dtype": _dtype(str(record.get("dtype"))), "shape": shape}


def _dtype(name: str) -> str:
    """Return the name of a dtype as MindSpore writes it; numpy's arrays and msprobe have other spellings.

    >>> _dtype("float32"), _dtype("BFloat16"), _dtype("bool")
    ('Float32', 'BFloat16', 'Bool')
    """
    words = {
        "bfloat16": "BFloat16",
        "uint8": "UInt8",
        "uint16": "UInt16",
        "uint32": "UInt32",
        "uint64": "UInt64",
    }
    return words.get(name.lower(), name[:1].upper() + name[1:])


def _expected(call: Call, leaf: Any, place: str) -> dict[str, Any] | None:
    """Return the description of an output; None for one that cannot be judged."""
    if values.is_tensor(leaf):
        try:
            return tensor(call, leaf, place)
        except CannotReplayError:
            return None
    value = values.plain(leaf) if isinstance(leaf, dict) else None
    dtype = PLAIN_DTYPES.get(type(value))
    return {"array": "", "value": value, "dtype": dtype, "shape": []} if dtype else None


def _flat(tree: Any, place: str) -> list[tuple[str, Any]]:
    return [(f"{place}.{key}", leaf) for key, leaf in values.leaves(tree)]


def gradients(call: Call, forward: Call) -> tuple[list[Any], list[Any], list[str]]:
    """Return the gradients of a backward entry: those of the outputs, those of the inputs, and the places of these."""
    entry = call.entry
    if not isinstance(entry, dict) or entry.get("raised") or entry.get("error"):
        raise CannotReplayError("replay.incomplete")
    if entry.get("later_passes"):
        raise CannotReplayError("replay.second_pass")
    sens = _flat(_list(entry.get("input")), "input")
    outputs = [
        leaf
        for _, leaf in _flat(_list(forward.entry.get("output")), "output")
        if values.is_tensor(leaf)
    ]
    slots = _flat(_list(entry.get("output")), "output")
    slots += _flat(_dict(entry.get("output_kwargs")), "output_kwargs")
    inputs = [
        leaf for _, leaf in _flat(_list(forward.entry["input_args"]), "") if values.is_tensor(leaf)
    ]
    named = [
        leaf
        for _, leaf in _flat(_dict(forward.entry.get("input_kwargs")), "")
        if values.is_tensor(leaf)
    ]
    if len(sens) != len(outputs) or len(slots) not in (len(inputs), len(inputs) + len(named)):
        raise CannotReplayError("replay.unfit")
    if not any(leaf for _, leaf in sens):
        raise CannotReplayError("replay.no_output_gradient")
    known = [tensor(call, leaf, place) if leaf else None for place, leaf in sens]
    expected = [_expected(call, leaf, place) if leaf else None for place, leaf in slots]
    if not any(expected):
        raise CannotReplayError("replay.no_input_gradient")
    return known, expected, [place for place, _ in slots]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


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
    wanted = [
        number for number, leaf in enumerate(expected) if leaf and leaf["dtype"].startswith(_FLOATS)
    ]
    inputs = [tensor(forward, record, place) for _, place, record in _inputs(forward)]
    numbers = [number for number, _ in _outputs(forward)]
    wires: list[Wire] = [
        (-1, wanted.index(number)) if number in wanted else None for number in range(len(inputs))
    ]
    return Program(
        [step._asdict()],
        [wires],
        [inputs[number] for number in wanted],
        [[expected[number]] for number in wanted],
        [places[number] for number in wanted],
        [(0, numbers[place]) for place, leaf in enumerate(sens) if leaf],
        [leaf for leaf in sens if leaf],
        "",
    )


class _Composer:
    """Puts the recorded calls inside of a Cell or an own backward together, by the contents of tensors."""

    def __init__(self, forward: Call) -> None:
        self._forward = forward
        self._flow = forward.dump.flow
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
        order = {
            place: number
            for number, place in enumerate(sorted(p for p, step in self._steps.items() if step))
        }

        def chosen(wire: Any) -> Wire:
            if wire is None or wire[0] >= 0:
                return wire and (order[wire[0]], wire[1])
            return (-1, kept[wire[1]]) if wire[1] in kept else None

        steps = [self._steps[place] for place in order]
        pairs = [(wire, leaf) for wire, leaf in zip(wires, sens) if leaf and wire]
        return Program(
            [describe(step[0])._asdict() for step in steps if step],
            [[chosen(wire) for wire in step[1]] for step in steps if step],
            [
                tensor(call, record, place)
                for call, place, record in map(self._given.__getitem__, found)
            ],
            list(found.values()),
            [names[number] for number in found],
            [chosen(wire) for wire, _ in pairs],
            [leaf for _, leaf in pairs],
            self._outside,
        )

    def _wire(self, at: _At, before: int) -> Any:
        """Return where a tensor comes from: (entry, number of its output), (-1, number of an input), or None."""
        found = self._input(at)
        (call, place, record) = at
        for output, made in reversed(self._made.get(content_key(record), [])):
            if (
                output[0] < before
                and _is_same(at, made)
                and (found is None or self._keeps(made[0]))
            ):
                return output if self._depends(output[0], made[0]) else None
        if (
            found is None
            and not is_constant(record)
            and str(record.get("dtype", "")).startswith(_FLOATS)
        ):
            number = self._flow.position[call.name]
            link = next((link for link in self._flow.links[number] if link.place == place), None)
            first = min(
                (output[0] for made in self._made.values() for output, _ in made), default=self._end
            )
            is_known = link is not None and (
                link.parameter is not None or 0 <= link.producer < first
            )
            self._outside = self._outside or ("" if is_known else f"{call.name}.{place}")
        return found

    def _keeps(self, maker: Call) -> bool:
        """Return whether a call that gives the values of an input is inside: as relu of positive numbers."""
        if self._is_cell:
            return True
        keys = {content_key(record) for _, _, record in _inputs(maker)}
        return bare(maker.parts.key) not in _STOPS and any(
            content_key(made[2]) in keys for _, made in _outputs(maker)
        )

    def _depends(self, place: int, maker: Call) -> bool:
        """Return whether a call depends on the inputs; it is a step then."""
        if place not in self._steps:
            self._steps[place] = None
            if bare(maker.parts.key) not in _STOPS:
                wires = [self._wire(at, place) for at in _inputs(maker)]
                self._steps[place] = (maker, wires) if any(wires) else None
        return self._steps[place] is not None

    def _input(self, at: _At) -> Any:
        return next(
            ((-1, number) for number, given in enumerate(self._given) if _is_same(given, at)), None
        )


def _is_same(one: _At, other: _At) -> bool:
    if content_key(one[2]) != content_key(other[2]) or one[2].get("shape") != other[2].get("shape"):
        return False
    described = [tensor(call, record, place) for call, place, record in (one, other)]
    first, second = (load_array(leaf["array"], leaf["dtype"]).tobytes() for leaf in described)
    return bool(first == second)


def _inputs(call: Call) -> Iterator[_At]:
    for key, word in (("input_args", "input"), ("input_kwargs", "kwargs")):
        for inner, record in values.leaves(call.entry.get(key)):
            if values.is_tensor(record):
                yield call, f"{word}.{inner}", record


def _outputs(call: Call) -> Iterator[tuple[int, _At]]:
    """Yield the tensors among the outputs of a call, with their numbers."""
    for number, (inner, record) in enumerate(values.leaves(call.entry.get("output"))):
        if values.is_tensor(record):
            yield number, (call, f"output.{inner}", record)
