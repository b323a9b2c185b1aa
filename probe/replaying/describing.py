# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Turns an entry of a dump into the description of a call; see ``described``."""

from __future__ import annotations

import re
from typing import Any

from probe.naming import CELL, COLLECTIVE, JIT, PREFIXES, PRIMITIVE
from probe.reading.dumps import entry_name, values
from probe.reading.dumps.dump import Call, Tensor
from probe.replaying.described import (
    PLAIN_DTYPES,
    CallDescription,
    CannotReplayError,
)
from probe.replaying.functions import OPERATORS, bare

_NUMPY = re.compile(r"^(bool_?|u?int(8|16|32|64)|float(16|32|64))$")
_KNOWN = frozenset(("bool", "int", "float", "str"))


def describe(call: Call) -> CallDescription:
    """Return the description of a call, forward or backward; raise CannotReplayError where it cannot be made again."""
    refuse_kind(call)
    is_backward = call.direction == entry_name.BACKWARD
    forward = call.dump.get(call.parts.forward) if is_backward else call
    if forward is None or not isinstance(forward.entry, dict):
        raise CannotReplayError("replay.no_forward")
    entry = forward.entry
    _refuse_incomplete(entry, is_backward)
    reader = _Describer(forward)
    args: list[Any] = []
    for number, item in enumerate(as_list(entry["input_args"])):
        args.append(reader.value(item, f"input.{number}"))
    kwargs: dict[str, Any] = {}
    for name, item in as_dict(entry.get("input_kwargs")).items():
        kwargs[str(name)] = reader.value(item, f"kwargs.{name}")
    attributes: dict[str, Any] = {}
    for name, item in as_dict(entry.get("attributes")).items():
        attributes[str(name)] = reader.value(item, name)
    refuse_random(call.parts.key, [*args, *kwargs.values()])
    outputs = as_list(entry.get("output"))
    is_cast = bare(call.parts.key) == "Cast" and len(args) > 1 and type(args[1]) is int
    if is_cast and outputs and values.is_tensor(outputs[0]):
        # MindSpore hands its dtype on as a number
        args[1] = {"dtype": _dtype(str(outputs[0].get("dtype")))}
    if is_backward:
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


def _refuse_incomplete(entry: dict[str, Any], is_backward: bool) -> None:
    """Raise CannotReplayError for a call whose inputs or outputs are not whole; a backward needs no outputs."""
    if "input_args" not in entry:
        raise CannotReplayError("replay.no_inputs")
    for key, reason in (
        ("raised", "replay.raised"),
        ("pending", "replay.pending"),
        ("error", "replay.error"),
    ):
        if entry.get(key) is not None and not (is_backward and key == "error"):
            raise CannotReplayError(reason, text=str(entry[key])[:200])


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
    if word not in OPERATORS["random"]:
        return
    if "dropout" in word.lower():
        is_training = not any(item is False for item in given)
        numbers = [item for item in given if type(item) in (int, float)]
        if not is_training or (word != "Dropout" and 0 in numbers):
            return
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
            items = {str(key): self.value(item, f"{place}.{key}") for key, item in value.items()}
            return {"items": items}
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
            # the recorder has put the mark before a text that a spreadsheet would take for a formula
            is_marked = value[:1] == "_" and value[1:2] in tuple("+-=%@")
            return value[1:] if is_marked else value
        if kind in _KNOWN and type(value).__name__ == kind:
            return value
        if _NUMPY.match(kind) and type(value) in (bool, int, float):
            return {"numpy": "bool_" if kind == "bool" else kind, "value": value}
        raise CannotReplayError("replay.no_value", place=place, kind=kind[:80])


def tensor(call: Call, record: dict[str, Any], place: str) -> dict[str, Any]:
    """Return the description of a tensor; raise CannotReplayError when the dump has no array of it."""
    path = Tensor(call, place, record).path
    if path is None:
        reason = "replay.unwritten" if record.get("unwritten") else "replay.tensor_array"
        raise CannotReplayError(reason, place=place)
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
    sens = _flat(as_list(entry.get("input")), "input")
    slots = _flat(as_list(entry.get("output")), "output")
    slots += _flat(as_dict(entry.get("output_kwargs")), "output_kwargs")
    outputs = _tensors(as_list(forward.entry.get("output")))
    inputs = _tensors(as_list(forward.entry["input_args"]))
    named = _tensors(as_dict(forward.entry.get("input_kwargs")))
    if len(sens) != len(outputs) or len(slots) not in (len(inputs), len(inputs) + len(named)):
        raise CannotReplayError("replay.unfit")
    if not any(leaf for _, leaf in sens):
        raise CannotReplayError("replay.no_output_gradient")
    known = [tensor(call, leaf, place) if leaf else None for place, leaf in sens]
    expected = [_expected(call, leaf, place) if leaf else None for place, leaf in slots]
    if not any(expected):
        raise CannotReplayError("replay.no_input_gradient")
    return known, expected, [place for place, _ in slots]


def _tensors(tree: Any) -> list[Any]:
    return [leaf for _, leaf in values.leaves(tree) if values.is_tensor(leaf)]


def as_list(value: Any) -> list[Any]:
    """Return a list as it is, None as an empty one, and any other value in one."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def as_dict(value: Any) -> dict[str, Any]:
    """Return a dict as it is, anything else as an empty one."""
    return value if isinstance(value, dict) else {}
