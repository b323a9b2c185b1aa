# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads the tensors of a PyTorch checkpoint, .pt or .bin, without torch. Nothing is imported, called or executed.

The description is followed opcode by opcode, as for one tensor (``torch_pickle``), with dicts and lists besides. An
object of any other class becomes a placeholder without content.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

import numpy as np

from probe.door import open_file
from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import reason_of
from probe.reading.check.weights.weight import DTYPES, Array, Weight, in_file, numpy_dtype
from probe.reading.dumps import torch_pickle
from probe.reading.dumps.load import NAMED_DTYPES
from probe.reading.dumps.torch_arrays import (
    _BROKEN,
    Archive,
    archive_file,
    open_archive,
    storage_of,
    tensor_of,
)
from probe.reading.dumps.torch_pickle import MemoryOrder, NotATensor

_MOST_MEMBERS = 1 << 20
_MOST_DESCRIPTION = 1 << 28
_MOST_DEPTH = 100
#: dtype of torch -> MindSpore's word
_WORDS = {
    **{word.lower(): word for word in DTYPES},
    **{name: word for word, name in NAMED_DTYPES.items()},
}


class _Other:
    """An object of a class that no tensor needs; it was not made."""


class _Dict(dict[Any, Any]):
    """A dict or OrderedDict."""


class StateMachine(torch_pickle.Machine):
    """A stack and a memo, for the opcodes of nested dicts and lists of tensors."""

    def __init__(self) -> None:
        super().__init__()
        put = self._stack.append
        more: dict[str, Callable[[Any], None]] = {
            "EMPTY_DICT": lambda _: put(_Dict()),
            "EMPTY_LIST": lambda _: put([]),
            "EMPTY_SET": lambda _: put([]),
            "BINFLOAT": put,
            "SETITEM": lambda _: self._set([self._stack.pop(-2), self._stack.pop()]),
            "SETITEMS": lambda _: self._set(self._marked()),
            "APPEND": lambda _: self._extend([self._stack.pop()]),
            "APPENDS": lambda _: self._extend(self._marked()),
            "ADDITEMS": lambda _: self._extend(self._marked()),
            "BUILD": lambda _: self._stack.pop() and None,
            "NEWOBJ": self._new,
            "NEWOBJ_EX": self._new,
            "POP": lambda _: self._stack.pop() and None,
            "DICT": lambda _: self._made(self._marked()),
            "LIST": lambda _: put(self._marked()),
        }
        self._others.update(more)
        for opcode in "LONG4 SHORT_BINBYTES BINBYTES BINBYTES8 BINUNICODE8 BINSTRING SHORT_BINSTRING INT FLOAT".split():
            self._others[opcode] = put

    def result(self) -> Any:
        """Return the one value that is left."""
        if len(self._stack) != 1:
            raise NotATensor(say("torch.broken"))
        return self._stack[0]

    def _made(self, items: list[Any]) -> None:
        self._stack.append(_Dict())
        self._set(items)

    def _set(self, items: list[Any]) -> None:
        if isinstance(self._stack[-1], _Dict):
            for key, value in zip(items[::2], items[1::2]):
                with contextlib.suppress(TypeError):  # a key that cannot be one
                    self._stack[-1][key] = value

    def _extend(self, items: list[Any]) -> None:
        if isinstance(self._stack[-1], list):
            self._stack[-1].extend(items)

    def _new(self, _: Any) -> None:
        del self._stack[-2:]
        self._stack.append(_Other())

    def _name(self, argument: str) -> None:
        try:
            super()._name(argument)
        except NotATensor:
            self._stack.append(_Other())

    def _call(self, _: Any) -> None:
        arguments, name = self._stack[-2:][::-1]
        if type(name) is _Other or type(arguments) is not tuple:
            self._new(None)
        elif name.text == torch_pickle._HOOKS:
            del self._stack[-2:]
            pairs = arguments[0] if arguments and isinstance(arguments[0], list) else []
            items: list[Any] = []
            for pair in pairs:
                if isinstance(pair, (list, tuple)) and len(pair) == 2:
                    items += pair
            self._made(items)
        else:
            is_plain = arguments and isinstance(arguments[-1], _Dict) and not arguments[-1]
            if is_plain and name.text != torch_pickle._TYPED_TENSOR:
                self._stack[-1] = (*arguments[:-1], torch_pickle._Hooks())
            elif len(arguments) == 7:
                self._stack[-1] = (*arguments[:5], torch_pickle._Hooks(), arguments[6])
            try:
                super()._call(None)
            except NotATensor:
                self._stack.append(_Other())


def read_torch(path: str) -> dict[str, Weight]:
    """Return the tensors of a checkpoint by dotted places; raise UsageError when it is cut, too old, or has none."""
    with archive_file(path) as file:
        archive = open_archive(file, _MOST_MEMBERS, _MOST_DESCRIPTION)
        layouts = dict(
            _tensors(torch_pickle.follow(archive.description, StateMachine()), "", set())
        )
        found = {name: _weight(file, path, layout, archive) for name, layout in layouts.items()}
    if not found:
        raise UsageError(say("check.no_names", path=path))
    return _without_wrapper(found)


def _tensors(value: Any, place: str, seen: set[int]) -> Iterator[tuple[str, MemoryOrder]]:
    """Yield the tensors of nested containers; one that is inside of itself, or stands twice, is looked into once."""
    if type(value) is MemoryOrder:
        yield place or "tensor", value
    elif (
        isinstance(value, (dict, list, tuple))
        and id(value) not in seen
        and place.count(".") < _MOST_DEPTH
    ):
        seen.add(id(value))
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _tensors(item, f"{place}.{key}" if place else str(key), seen)


def _without_wrapper(found: dict[str, Weight]) -> dict[str, Weight]:
    """Return the names without "model." or "state_dict.", under which trainers keep the state dict."""
    for word in ("state_dict.", "model_state_dict.", "model.", "module."):
        if all(name.startswith(word) for name in found):
            return {name[len(word) :]: weight for name, weight in found.items()}
    return found


def _weight(file: BinaryIO, path: str, layout: MemoryOrder, archive: Archive) -> Weight:
    """Return one tensor; one that lies in order in its storage is read piece by piece."""
    word = _WORDS.get(layout.dtype, layout.dtype)
    dtype = numpy_dtype(word)
    member = storage_of(layout, archive)
    shape = layout.shape
    count = 1
    is_in_order = True
    for length, stride in zip(reversed(shape), reversed(layout.strides)):
        is_in_order &= length == 1 or stride == count
        count *= length
    if not is_in_order or archive.order == ">" or min(shape, default=0) < 0:
        tensor_of(file, layout, archive, mapped=True)  # is refused now, if it does not fit
        return Weight(word, shape, lambda: _loaded(path, layout, archive))
    size = count * dtype.itemsize
    start = layout.offset * dtype.itemsize
    if start < 0 or start + size > member.size:
        raise NotATensor(say("torch.unfit", shape=list(shape)[:9]))
    part = (member.start + start, size)
    return Weight(word, shape, in_file(path, [part], dtype))


def _loaded(path: str, layout: MemoryOrder, archive: Archive) -> Iterator[Array]:
    try:
        with open_file(path) as file:
            yield cast("Array", np.ascontiguousarray(tensor_of(file, layout, archive))).reshape(-1)
    except _BROKEN as error:
        raise UsageError(say("error.unreadable", path=path, reason=reason_of(error))) from None
