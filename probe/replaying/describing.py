# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Turns an entry of a dump into the description of a call, in plain JSON; see ``calling``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from probe.naming import CELL, COLLECTIVE, JIT, PREFIXES, PRIMITIVE
from probe.reading.dumps import entry_name, values
from probe.reading.dumps.dump import Call, Tensor
from probe.replaying.refusals import FORBIDDEN, RANDOM, RefusedError, bare

_NUMPY = re.compile(r"^(bool_?|u?int(8|16|32|64)|float(16|32|64))$")
_KNOWN = frozenset(("bool", "int", "float", "str"))
#: outputs that are plain numbers -> the dtype in which they are judged
_NUMBERS = {bool: "Bool", int: "Int64", float: "Float32"}


def describe(call: Call) -> dict[str, Any]:
    """Return the description of a call.

    Args:
        call: the entry, forward or backward.

    Raises:
        RefusedError: when the call cannot be made again; the message says why.
    """
    refuse_kind(call)
    backward = call.direction == entry_name.BACKWARD
    forward = call.dump.get(call.parts.forward) if backward else call
    if forward is None or not isinstance(forward.entry, dict):
        raise RefusedError("its forward entry is not in the dump")
    entry = forward.entry
    if "input_args" not in entry:
        raise RefusedError("its inputs are not in the dump")
    for key in ("raised", "pending", "error"):
        if entry.get(key) is not None and not (backward and key == "error"):
            raise RefusedError(f"{key}: {str(entry[key])[:200]}")
    reader = _Describer(forward)
    description: dict[str, Any] = {
        "key": call.parts.key,
        "args": [reader.value(item, f"input.{i}") for i, item in enumerate(_list(entry["input_args"]))],
        "kwargs": {str(k): reader.value(v, f"kwargs.{k}") for k, v in _dict(entry.get("input_kwargs")).items()},
        "attributes": {str(k): reader.value(v, k) for k, v in _dict(entry.get("attributes")).items()},
        "unsure": reader.unsure,
    }
    refuse_random(description)
    _name_dtype(description, entry)
    if backward:
        description.update(_gradients(call, forward))
    else:
        leaves = list(_flat(_list(entry.get("output")), "output"))
        description["expected"] = [_expected(forward, leaf, place) for place, leaf in leaves]
        description["places"] = [place for place, _ in leaves]
    if not any(description["expected"]):
        raise RefusedError("no output is in the record")
    return description


def refuse_kind(call: Call) -> None:
    """Raise RefusedError for entries that are no call of an API or a Primitive."""
    key, prefix = call.parts.key, call.kind
    word = bare(call.parts.key)
    if prefix in (CELL, "Module"):
        raise RefusedError("a Cell: its calls inside are judged")
    if prefix == JIT:
        raise RefusedError("a compiled function: its code is not in the dump")
    if prefix in COLLECTIVE:
        raise RefusedError("a collective: it needs the other ranks")
    if prefix == PRIMITIVE and key.startswith(f"{PRIMITIVE}.fn:") and word in ("bprop", "backward"):
        raise RefusedError("a backward of your own: its code is not in the dump")
    if prefix != PRIMITIVE and prefix not in PREFIXES.values():
        raise RefusedError("a function of your own: its code is not in the dump")
    if word in FORBIDDEN:
        raise RefusedError("an operation with effects outside of its outputs")


def refuse_random(call: dict[str, Any]) -> None:
    """Raise RefusedError for a call that draws random numbers."""
    word = bare(call["key"])
    if word not in RANDOM:
        return
    plain = [item for item in (*call["args"], *call["kwargs"].values()) if not isinstance(item, (dict, list))]
    if "dropout" in word.lower() and (False in [item for item in plain if isinstance(item, bool)]):
        return  # not in training
    if (
        "dropout" in word.lower()
        and word != "Dropout"
        and any(type(item) in (int, float) and item == 0 for item in plain)
    ):
        return
    raise RefusedError("random: the numbers that it drew are not in the dump")


def _name_dtype(description: dict[str, Any], entry: dict[str, Any]) -> None:
    """Name the dtype of a Cast, which MindSpore hands on as a number."""
    args, outputs = description["args"], _list(entry.get("output"))
    if (
        bare(description["key"]) == "Cast"
        and len(args) > 1
        and type(args[1]) is int
        and any(map(values.is_tensor, outputs[:1]))
    ):
        args[1] = {"dtype": _dtype(str(outputs[0].get("dtype")))}


class _Describer:
    """Describes the values of one entry.

    Args:
        call: the entry.

    Attributes:
        unsure: the places of values that the record does not hold.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self.unsure = ""

    def value(self, value: Any, place: str) -> Any:
        """Return the description of one value."""
        if isinstance(value, list):
            return [self.value(item, f"{place}.{i}") for i, item in enumerate(value)]
        if not isinstance(value, dict):
            if value is None and not self.unsure:
                self.unsure = place
            return value
        kind = value.get("type")
        if not isinstance(kind, str):
            return {"items": {str(key): self.value(item, f"{place}.{key}") for key, item in value.items()}}
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
        raise RefusedError(f"{place} is not in the record: {kind[:80]}")


def tensor(call: Call, record: dict[str, Any], place: str) -> dict[str, Any]:
    """Return the description of a tensor.

    Raises:
        RefusedError: when the dump has no array of it.
    """
    path = Tensor(call, place, record).path
    if path is None:
        raise RefusedError(f"{place} has no array" + (": no kernel wrote it" if record.get("unwritten") else ""))
    shape = record.get("shape")
    if not isinstance(shape, list):
        raise RefusedError(f"{place} has no shape")
    return {"array": path, "dtype": _dtype(str(record.get("dtype"))), "shape": shape}


def _dtype(name: str) -> str:
    """Return the name of a dtype as MindSpore writes it; numpy's arrays and msprobe have other spellings.

    >>> _dtype("float32"), _dtype("BFloat16"), _dtype("bool")
    ('Float32', 'BFloat16', 'Bool')
    """
    words = {"bfloat16": "BFloat16", "uint8": "UInt8", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64"}
    return words.get(name.lower(), name[:1].upper() + name[1:])


def _expected(call: Call, leaf: Any, place: str) -> dict[str, Any] | None:
    """Return the description of an output; None for one that cannot be judged."""
    if values.is_tensor(leaf):
        try:
            return tensor(call, leaf, place)
        except RefusedError:
            return None
    value = values.plain(leaf) if isinstance(leaf, dict) else None
    dtype = _NUMBERS.get(type(value))
    return {"array": "", "value": value, "dtype": dtype, "shape": []} if dtype else None


def _flat(tree: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, list):
        for number, item in enumerate(tree):
            yield from _flat(item, f"{place}.{number}")
    elif isinstance(tree, dict) and not isinstance(tree.get("type"), str):
        for key, item in tree.items():
            yield from _flat(item, f"{place}.{key}")
    else:
        yield place, tree


def _gradients(call: Call, forward: Call) -> dict[str, Any]:
    """Return the gradients of a backward entry: "sens" of the outputs, "expected" of the inputs."""
    entry = call.entry
    if not isinstance(entry, dict) or entry.get("raised") or entry.get("error"):
        raise RefusedError("the backward entry is not complete")
    if entry.get("later_passes"):
        raise RefusedError("a second pass went through this call")
    sens = list(_flat(_list(entry.get("input")), "input"))
    outputs = [leaf for _, leaf in _flat(_list(forward.entry.get("output")), "output") if values.is_tensor(leaf)]
    slots = list(_flat(_list(entry.get("output")), "output"))
    slots += list(_flat(_dict(entry.get("output_kwargs")), "output_kwargs"))
    inputs = [leaf for _, leaf in _flat(_list(forward.entry["input_args"]), "") if values.is_tensor(leaf)]
    named = [leaf for _, leaf in _flat(_dict(forward.entry.get("input_kwargs")), "") if values.is_tensor(leaf)]
    if len(sens) != len(outputs) or len(slots) not in (len(inputs), len(inputs) + len(named)):
        raise RefusedError("the gradients do not fit the tensors of the forward entry")
    if not any(leaf for _, leaf in sens):
        raise RefusedError("no gradient of an output is in the record")
    found: dict[str, Any] = {
        "sens": [tensor(call, leaf, place) if leaf else None for place, leaf in sens],
        "expected": [_expected(call, leaf, place) if leaf else None for place, leaf in slots],
        "places": [place for place, _ in slots],
    }
    if not any(found["expected"]):
        raise RefusedError("no gradient of an input is in the record")
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
