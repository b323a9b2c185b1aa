# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The tensors inside some arguments or results, and where each one's gradient belongs in the backward entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from probe.measure.describe import is_mapping, items_of

_DEEPEST = 8
_SCALARS = frozenset((int, float, bool, str, type(None)))
_PLACES = {kind: tuple(f"{kind}.{i}" for i in range(16)) for kind in ("input", "output")}


class TensorTree:
    """The tensors of some values, in order, and how they are nested. What is no tensor has no slot.

    Args:
        tensor: the class of tensors.
        values: positional arguments, or the items of a result.
        kind: "output" for arguments (a backward's outputs are the gradients of its inputs), "input" for results.

    Attributes:
        tensors: the leaves.
        places: for each leaf its place in the entry: "output.0", "output.1.0", "output_kwargs.x".
        layout: an item per value that holds a tensor: the leaf's number, or a list or dict of such.
        flat: no value holds tensors inside: the layout is the leaves in order.
    """

    __slots__ = ("_tensor", "flat", "layout", "places", "tensors")

    def __init__(self, tensor: type, values: Sequence[Any], kind: str) -> None:
        self._tensor = tensor
        self.tensors: list[Any] = []
        self.places: list[str] = []
        self.layout: list[Any] = []
        self.flat = True
        known = _PLACES[kind]
        for value in values:
            if type(value) in _SCALARS:
                continue
            count = len(self.layout)
            place = known[count] if count < len(known) else f"{kind}.{count}"
            if isinstance(value, tensor):
                self.layout.append(len(self.tensors))
                self.tensors.append(value)
                self.places.append(place)
                continue
            slot = self._slot(value, place, 0)
            if slot is not None:
                self.flat = False
                self.layout.append(slot)

    def keywords(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Add keyword arguments and return their layout."""
        layout = {name: self._slot(value, f"output_kwargs.{name}", 0) for name, value in values.items()}
        return {name: slot for name, slot in layout.items() if slot is not None}

    def _slot(self, value: Any, place: str, depth: int) -> Any:
        if isinstance(value, self._tensor):
            self.tensors.append(value)
            self.places.append(place)
            return len(self.tensors) - 1
        items = None if type(value) in _SCALARS or depth > _DEEPEST else items_of(value)
        if not items:
            return None
        if is_mapping(value):
            named = {key: self._slot(item, f"{place}.{key}", depth + 1) for key, item in items}
            return {key: slot for key, slot in named.items() if slot is not None} or None
        listed: list[Any] = []
        for _, item in items:
            slot = self._slot(item, f"{place}.{len(listed)}", depth + 1)
            if slot is not None:
                listed.append(slot)
        return listed or None


def as_outputs(result: Any) -> Sequence[Any]:
    """Return the outputs that a result stands for: a tuple's items, or the one thing it is."""
    return result if isinstance(result, tuple) and not hasattr(result, "_fields") else (result,)


def fill(layout: Any, values: Sequence[Any]) -> Any:
    """Return the layout with every leaf's number replaced by its value.

    >>> fill([0, [2, 1]], "abc")
    ['a', ['c', 'b']]
    """
    if isinstance(layout, int):
        return values[layout]
    if isinstance(layout, dict):
        return {key: fill(item, values) for key, item in layout.items()}
    return [fill(item, values) for item in layout]
