# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Nested containers (pytrees): walk them, map their leaves, take their tensors out and put records in."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

_log = logging.getLogger("probe")

_MAX_DEPTH = 40  # deeper than this, and inside a cycle, a container is None; no argument of a real API comes near
MAX_ITEMS = 4096  # a container's items beyond this number are left out
_SCALARS = frozenset((int, float, bool, str, type(None)))


def is_mapping(value: Any) -> bool:
    """Return whether a container becomes a JSON object: dict, namedtuple and dataclass do."""
    return (
        isinstance(value, Mapping) or hasattr(value, "_fields") or dataclasses.is_dataclass(value)
    )


def items_of(value: Any) -> list[tuple[str, Any]] | None:
    """Return the items of a container with their places, or None for a leaf.

    >>> items_of((3, 4))
    [('0', 3), ('1', 4)]
    """
    if isinstance(value, (list, tuple)):
        fields = getattr(value, "_fields", None)
        return (
            [(str(place), item) for place, item in enumerate(value)]
            if fields is None
            else list(zip(fields, value))
        )
    if isinstance(value, Mapping):
        names = [str(key) for key in value]
        if len(set(names)) < len(names):  # 1 and "1"
            names = [f"{name}_{place}" for place, name in enumerate(names)]
        return list(zip(names, value.values()))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [
            (field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)
        ]
    return None


def tree_map(
    function: Callable[[Any, str], Any],
    value: Any,
    place: str = "",
    leaf_type: type | tuple[type, ...] = (),
    _around: tuple[int, ...] = (),
) -> Any:
    """Return the same structure with every leaf replaced by ``function(leaf, place)``.

    Mappings, namedtuples and dataclasses become dicts, lists and tuples become lists. The items of ``value`` have the
    place ``f"{place}.{key}"``. Values of ``leaf_type`` are leaves, also if they are containers.

    >>> tree_map(lambda leaf, place: f"{place}={leaf}", {"a": (1, 2)}, "x")
    {'a': ['x.a.0=1', 'x.a.1=2']}
    """
    items = None if type(value) in _SCALARS or isinstance(value, leaf_type) else items_of(value)
    if items is None:
        return function(value, place)
    if len(_around) >= _MAX_DEPTH or id(value) in _around:
        return None
    if len(items) > MAX_ITEMS:
        _log.warning(
            "%s has %d items; only the first %d are recorded", place, len(items), MAX_ITEMS
        )
    around = (*_around, id(value))
    mapped = {
        key: tree_map(function, item, f"{place}.{key}", leaf_type, around)
        for key, item in items[:MAX_ITEMS]
    }
    return mapped if is_mapping(value) else list(mapped.values())


def leaves(value: Any) -> Iterator[Any]:
    """Yield the leaves of nested dicts, lists and tuples, in order.

    >>> list(leaves({"a": [1, (2, 3)]}))
    [1, 2, 3]
    """
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        yield value
        return
    for item in value:
        yield from leaves(item)


def prune(value: Any) -> Any:
    """Return nested dicts and lists without None, or None if nothing is left.

    >>> prune({"a": [None, 1], "b": [None]})
    {'a': [1]}
    """
    if isinstance(value, dict):
        named = {key: kept for key, item in value.items() if (kept := prune(item)) is not None}
        return named or None
    if isinstance(value, list):
        return [kept for item in value if (kept := prune(item)) is not None] or None
    return value


def unflatten(layout: Any, values: Sequence[Any]) -> Any:
    """Return the layout with every leaf's number replaced by its value.

    >>> unflatten([0, [2, 1]], "abc")
    ['a', ['c', 'b']]
    """
    return tree_map(lambda number, place: values[number], layout)


def as_outputs(result: Any) -> Sequence[Any]:
    """Return the outputs of a call: the items of a tuple, or the result itself."""
    return result if isinstance(result, tuple) and not hasattr(result, "_fields") else (result,)


class Slot(NamedTuple):
    """The place of one gradient in a backward entry."""

    place: str  # "input.0", "output.1.0", "output_kwargs.x"
    is_input: bool  # whether it is a gradient of the call's outputs: an input of its backward


def _slot(position: int, is_input: bool) -> Slot:
    return Slot(f"{'input' if is_input else 'output'}.{position}", is_input)


class SlotLayout(NamedTuple):
    """The places of some tensors' gradients in a backward entry."""

    slots: list[Slot]  # the place of each tensor's gradient
    layout: list[
        Any
    ]  # an item per value that holds a tensor: the tensor's number, or a list or dict of numbers
    keywords: dict[str, Any]  # the same for keyword arguments, by name
    is_flat: bool  # no value holds tensors inside: the layout is the numbers in order

    def fill(self, values: list[Any]) -> list[Any]:
        """Return the layout with each tensor's number replaced by its value."""
        return (
            values
            if self.is_flat and not self.keywords
            else [unflatten(item, values) for item in self.layout]
        )

    def fill_keywords(self, values: list[Any]) -> dict[str, Any]:
        """Return the same for the keyword arguments."""
        return (
            {name: unflatten(item, values) for name, item in self.keywords.items()}
            if self.keywords
            else {}
        )


@functools.lru_cache(64)
def _flat_layout(count: int, is_input: bool) -> SlotLayout:
    """Return the layout of so many tensors; nobody changes it."""
    return SlotLayout(
        [_slot(place, is_input) for place in range(count)], list(range(count)), {}, True
    )


class TensorTree:
    """The tensors of some values, in order, and how they are nested. Non-tensors are skipped."""

    __slots__ = ("_is_input", "_tensor", "slot_layout", "tensors")

    def __init__(
        self,
        tensor: type,
        values: Sequence[Any],
        is_input: bool,
        keywords: Mapping[str, Any] | None = None,
    ) -> None:
        found = [value for value in values if type(value) not in _SCALARS]
        self.tensors: list[Any] = found  # the leaves
        if not keywords and not [
            value for value in found if not isinstance(value, tensor)
        ]:  # as nearly always
            self.slot_layout = _flat_layout(
                len(found), is_input
            )  # the places of their gradients, no tensor
            return
        self._tensor = tensor
        self._is_input = is_input  # gradients of a call's outputs are inputs of its backward
        self.tensors = []
        slots: list[Slot] = []
        layout: list[Any] = []
        for value in found:
            inner = self._inner(value, _slot(len(layout), is_input).place, slots)
            if inner is not None:
                layout.append(inner)
        named: dict[str, Any] = {}
        if keywords:
            inside = {
                name: self._inner(value, f"output_kwargs.{name}", slots)
                for name, value in keywords.items()
            }
            named = {name: inner for name, inner in inside.items() if inner is not None}
        self.slot_layout = SlotLayout(slots, layout, named, is_flat=False)

    def _inner(self, value: Any, place: str, slots: list[Slot]) -> Any:
        """Add the tensors inside a value and return its layout; positions count the items that hold tensors."""
        layout = prune(tree_map(self._number, value, place, self._tensor))
        if layout is not None:
            tree_map(lambda _, where: slots.append(Slot(where, self._is_input)), layout, place)
        return layout

    def _number(self, value: Any, _: str) -> int | None:
        if not isinstance(value, self._tensor):
            return None
        self.tensors.append(value)
        return len(self.tensors) - 1
