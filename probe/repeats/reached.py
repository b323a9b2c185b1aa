# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""All that a function can use: tensors, objects with attributes, generators of random numbers, iterators."""

from __future__ import annotations

import contextlib
import dis
import functools
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

_MOST_ITEMS = 4096  # a longer list holds data, which no function uses whole
_MOST_DEPTH = 1  # objects that are no Cells, one in the other: a trainer has a loss scaler, which has its scale
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type, ModuleType)
_FOREIGN = ("mindspore.", "numpy.", "probe.")
_GENERATORS = ("random", "numpy.random", "mindspore.common.generator")


class Reached:
    """All that some objects lead to: through closures, globals and attributes, also those of objects in objects."""

    def __init__(
        self,
        tensor: type,
        cell: type,
        left_out: tuple[type, ...],
        common: frozenset[str],
        *roots: Any,
    ) -> None:
        self.roots = roots
        self._tensor = tensor
        self._cell = cell
        self._left_out = (
            left_out  # the classes of objects that no gradient function uses, or that hold nothing
        )
        self._common = (
            common  # the names of attributes that each Cell has: whoever installs hooks writes them
        )
        self._seen: dict[int, Any] = {}  # held, so that identities stay unique
        self.tensors: list[Any] = []  # all tensors, each once
        self.generators: list[Any] = []  # objects with a state of random numbers
        self._objects: list[Any] = []
        self._iterators: list[Any] = []
        waiting = deque[tuple[Any, int]]((root, 0) for root in roots)
        while waiting:
            item, depth = waiting.popleft()
            if not isinstance(item, _PLAIN) and id(item) not in self._seen:
                self._seen[id(item)] = item
                waiting += self._within(item, depth)

    def _within(self, item: Any, depth: int) -> list[tuple[Any, int]]:
        found: list[Any] = []
        if isinstance(item, self._tensor):
            self.tensors.append(item)
        elif _is_generator(type(item)):
            self.generators.append(item)
        elif isinstance(item, (list, tuple, set, frozenset, Mapping)):
            found = (
                list(item.values() if isinstance(item, Mapping) else item)
                if len(item) <= _MOST_ITEMS
                else []
            )
        elif isinstance(item, MethodType):
            found = [item.__self__, item.__func__]
        elif isinstance(item, functools.partial):
            found = [item.func, item.args, item.keywords]
        elif isinstance(item, FunctionType):
            found = _of_function(item)
        elif isinstance(item, Iterator):
            self._iterators.append(item)
        elif hasattr(item, "__dict__") and depth <= _MOST_DEPTH and not self._ends(item):
            self._objects += [] if type(item).__module__.startswith("mindspore.") else [item]
            depth = 0 if isinstance(item, self._cell) else depth + 1
            found = [
                value
                for name, value in vars(item).items()
                if self._is_own(item, name) or (isinstance(value, dict) and value)
            ]
            found += [getattr(type(item), "construct", None), vars(type(item)).get("__call__")]
        return [(inner, depth) for inner in found]

    def _ends(self, item: Any) -> bool:
        return isinstance(item, self._left_out) or type(item).__module__.startswith("probe.")

    def _is_own(self, item: Any, name: str) -> bool:
        return name not in self._common or not isinstance(item, self._cell)

    def attributes(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return the attributes of each object that are numbers, texts or None: as they are, and a copy."""
        found = []
        for item in self._objects:
            held = vars(item)
            plain = [(name, value) for name, value in held.items() if isinstance(value, _PLAIN)]
            kept = {name: value for name, value in plain if self._is_own(item, name)}
            if kept:
                found.append((held, kept))
        return found

    def positions(self) -> list[Any]:
        """Return where each iterator is: it has moved where that differs."""
        return [_position(item) for item in self._iterators]


def _of_function(function: FunctionType) -> list[Any]:
    if str(function.__module__).startswith(_FOREIGN):
        return [*cell_contents(function)]
    names = _globals_of(function.__code__)
    used = (function.__globals__.get(name) for name in names)
    return [*cell_contents(function), *used, *(function.__defaults__ or ())]


def cell_contents(function: FunctionType) -> Iterator[Any]:
    """Yield the values of the names of outer functions that a function uses."""
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # it has no value yet
            yield cell.cell_contents


@functools.lru_cache(1024)
def _globals_of(code: CodeType) -> tuple[str, ...]:
    names = {
        step.argval
        for step in dis.get_instructions(code)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    for inner in code.co_consts:
        names |= set(_globals_of(inner)) if isinstance(inner, CodeType) else set()
    return tuple(sorted(names))


def _position(iterator: Any) -> Any:
    if isinstance(iterator, GeneratorType):
        frame = iterator.gi_frame
        return frame and (frame.f_lasti, [id(value) for value in frame.f_locals.values()])
    try:
        return [id(value) for value in vars(iterator).values()]
    except TypeError:
        return (
            iterator.__length_hint__()
            if hasattr(iterator, "__length_hint__")
            else repr(iterator.__reduce__())
        )


def _draws(kind: type) -> bool:
    is_known = any(base.__module__.startswith(_GENERATORS) for base in kind.__mro__)
    return is_known and any(
        hasattr(kind, name) for name in ("getstate", "get_state", "bit_generator")
    )


#: returns whether objects of a class have a state of random numbers
_is_generator: Callable[[type], bool] = functools.lru_cache(1024)(_draws)


def state_of(generator: Any) -> Callable[[], Any]:
    """Return what puts the state of a generator of random numbers back.

    >>> import random
    >>> own = random.Random(1)
    >>> put = state_of(own)
    >>> first = own.random()
    >>> put()
    >>> own.random() == first
    True
    """
    if hasattr(generator, "getstate"):  # Python's
        return functools.partial(generator.setstate, generator.getstate())
    if hasattr(generator, "get_state"):  # numpy's old ones, and MindSpore's
        return functools.partial(generator.set_state, generator.get_state())
    return functools.partial(
        setattr, generator.bit_generator, "state", generator.bit_generator.state
    )
