# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads the description of a tensor, ``data.pkl``, opcode by opcode. Nothing is imported, called or executed.

The description is a pickle. Its opcodes may import and call anything, so that Python's reader of pickles is not used.
``pickletools`` takes the opcodes apart. Those that a tensor needs are followed here, with values that are numbers,
texts and tuples. Every other opcode, and every other name to import, is refused.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from probe.findings.sentence import say
from probe.findings.system import foreign

#: class of a storage -> dtype of torch
_STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
}  # fmt: skip
#: a storage of bytes, whose tensor says the dtype
_BYTES = "UntypedStorage"
#: dtypes that tensors on such a storage have
_DTYPES = frozenset(
    (
        *_STORAGES.values(),
        "uint16",
        "uint32",
        "uint64",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
    )
)
_TENSOR = "torch._utils _rebuild_tensor_v2"
_TYPED_TENSOR = "torch._utils _rebuild_tensor_v3"
_PARAMETER = "torch._utils _rebuild_parameter"
_HOOKS = "collections OrderedDict"
_NAMES = frozenset(
    (
        _TENSOR,
        _TYPED_TENSOR,
        _PARAMETER,
        _HOOKS,
        f"torch.storage {_BYTES}",
        *(f"torch {name}" for name in _STORAGES),
        *(f"torch {name}" for name in _DTYPES),
    )
)
#: a storage's number in the archive
_MOST_KEY = 20
#: opcodes that push their argument, and that push one value
_PUSHED = frozenset(("BINUNICODE", "SHORT_BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1"))
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class NotATensor(Exception):
    """A file holds anything but one tensor; the message names it on one line."""


class Storage(NamedTuple):
    """The place of the numbers of a tensor."""

    key: str  # the member of the archive, below ``data/``
    dtype: str | None  # the dtype of torch; None for a storage of bytes
    size: int  # the number of elements; of a storage of bytes that of bytes


class MemoryOrder(NamedTuple):
    """How a tensor lies in its storage."""

    storage: Storage
    dtype: str  # the dtype of torch, without "torch."
    offset: int  # the place of the first element
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # how many elements lie between neighbours, for each dimension


class _Name(NamedTuple):
    """A name that the pickle would import: "torch FloatStorage"."""

    text: str


class _Hooks(NamedTuple):
    """An empty OrderedDict: the backward hooks that a saved tensor does not have."""


class _Mark(NamedTuple):
    """The beginning of a tuple on the stack."""


_CONSTANTS: dict[str, Any] = {
    "NEWTRUE": True,
    "NEWFALSE": False,
    "NONE": None,
    "EMPTY_TUPLE": (),
    "MARK": _Mark(),
}


def read_layout(description: bytes) -> MemoryOrder:
    """Return how the tensor that ``data.pkl`` describes lies in its storage; raise NotATensor for anything else."""
    found: MemoryOrder = follow(description, Machine())
    return found


def follow(description: bytes, machine: Machine) -> Any:
    """Return the value that a machine makes of a description; raise NotATensor when it refuses it, or it is broken."""
    try:
        for opcode, argument in _opcodes(description):
            if opcode == "STOP":
                return machine.result()
            machine.step(opcode, argument)
    except (IndexError, KeyError, AttributeError, TypeError):
        pass
    raise NotATensor(say("torch.broken"))


def _opcodes(description: bytes) -> Iterator[tuple[str, Any]]:
    try:
        for opcode, argument, _ in pickletools.genops(description):
            yield opcode.name, argument
    except (ValueError, IndexError, KeyError, OverflowError, struct.error) as error:
        raise NotATensor(
            say("torch.broken_by", reason=foreign(" ".join(str(error).split())[:120]))
        ) from None


class Machine:
    """A stack and a memo, as the reader of pickles has them, for the opcodes of a tensor."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._others: dict[str, Callable[[Any], None]] = {
            "PROTO": lambda _: None,
            "FRAME": lambda _: None,
            "GLOBAL": self._name,
            "STACK_GLOBAL": self._name_on_stack,
            "MEMOIZE": lambda _: self._keep(len(self._memo)),
            "BINPERSID": self._storage,
            "REDUCE": self._call,
            "TUPLE": lambda _: self._stack.append(tuple(self._marked())),
            "BINPUT": self._keep,
            "LONG_BINPUT": self._keep,
            "BINGET": self._get,
            "LONG_BINGET": self._get,
        }

    def step(self, opcode: str, argument: Any) -> None:
        """Follow one opcode."""
        if opcode in _PUSHED:
            self._stack.append(argument)
        elif opcode in _CONSTANTS:
            self._stack.append(_CONSTANTS[opcode])
        elif opcode in _TUPLES:
            items = [self._stack.pop() for _ in range(_TUPLES[opcode])]
            self._stack.append(tuple(reversed(items)))
        elif opcode in self._others:
            self._others[opcode](argument)
        else:
            raise NotATensor(say("torch.opcode", opcode=opcode))

    def result(self) -> Any:
        """Return the one value that is left."""
        if len(self._stack) != 1 or type(self._stack[0]) is not MemoryOrder:
            kinds = [type(item).__name__ for item in self._stack]
            one = foreign(kinds[0]) if kinds else say("torch.nothing")
            shown = say("torch.several") if len(kinds) > 1 else one
            raise NotATensor(say("torch.describes", found=shown))
        return self._stack[0]

    def _name(self, argument: str) -> None:
        if argument not in _NAMES:
            shown = "".join(letter if letter.isprintable() else "?" for letter in argument[:60])
            raise NotATensor(say("torch.asks", name=shown.replace(" ", ".", 1)))
        self._stack.append(_Name(argument))

    def _name_on_stack(self, _: Any) -> None:
        word = self._stack.pop()
        module = self._stack.pop()
        if type(word) is not str or type(module) is not str:
            raise NotATensor(say("torch.broken"))
        self._name(f"{module} {word}")

    def _marked(self) -> list[Any]:
        items: list[Any] = []
        while type(item := self._stack.pop()) is not _Mark:
            items.append(item)
        return items[::-1]

    def _keep(self, place: int) -> None:
        self._memo[place] = self._stack[-1]

    def _get(self, place: int) -> None:
        self._stack.append(self._memo[place])

    def _storage(self, _: Any) -> None:
        """Replace a persistent id, ("storage", class, key, device, size), by the storage."""
        given = self._stack.pop()
        if _kinds(given) != (str, _Name, str, str, int):
            raise NotATensor(say("torch.no_storage"))
        word, kind, key, _, size = given
        name = kind.text.rpartition(" ")[2]
        is_number = key.isascii() and key.isdigit() and len(key) <= _MOST_KEY
        if word != "storage" or not is_number or size < 0 or name not in (*_STORAGES, _BYTES):
            raise NotATensor(say("torch.no_storage"))
        self._stack.append(Storage(key, _STORAGES.get(name), size))

    def _call(self, _: Any) -> None:
        arguments = self._stack.pop()
        name = self._stack.pop()
        if type(name) is not _Name or type(arguments) is not tuple:
            raise NotATensor(say("torch.call"))
        if name.text == _HOOKS and not arguments:
            self._stack.append(_Hooks())
        elif name.text == _TENSOR:
            self._stack.append(_layout(arguments, None))
        elif name.text == _TYPED_TENSOR and len(arguments) == 7:
            self._stack.append(_layout(arguments[:6], arguments[6]))
        elif name.text == _PARAMETER and _kinds(arguments) == (MemoryOrder, bool, _Hooks):
            self._stack.append(arguments[0])
        else:
            raise NotATensor(say("torch.arguments", name=name.text.rpartition(" ")[2]))


def _kinds(values: Any) -> tuple[type, ...]:
    return tuple(map(type, values)) if type(values) is tuple else ()


def _layout(arguments: tuple[Any, ...], kind: Any) -> MemoryOrder:
    """Return the layout that (storage, offset, shape, strides, requires_grad, hooks) describe, with a dtype perhaps."""
    if _kinds(arguments) != (Storage, int, tuple, tuple, bool, _Hooks):
        raise NotATensor(say("torch.tensor_arguments"))
    storage, offset, shape, strides, _, _ = arguments
    dtype = storage.dtype
    if kind is not None and type(kind) is _Name:
        dtype = kind.text.rpartition(" ")[2]
    if dtype not in _DTYPES or (storage.dtype is None) is (kind is None):
        raise NotATensor(say("torch.no_dtype"))
    if any(type(item) is not int for item in (*shape, *strides)):
        raise NotATensor(say("torch.no_numbers"))
    return MemoryOrder(storage, dtype, offset, shape, strides)
