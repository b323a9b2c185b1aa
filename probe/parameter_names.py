# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One name for each parameter object. Parameters of several models may have equal names, and so may those outside."""

from __future__ import annotations

import re
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from probe.layers.layer import Layer, layer_of

_RANDOM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Owned(NamedTuple):
    """A parameter of a Cell."""

    name: str  # no other parameter has it
    path: str  # the path of its Cell; the number of the model is its first part, if there are several models
    parameter: Any


class _Place(NamedTuple):
    """The place of a parameter in a Cell."""

    path: str  # the path of the Cell
    cell: Any
    key: str  # the key under which the Cell holds it
    parameter: Any
    layer: Layer

    @property
    def own_name(self) -> str:
        """The name that its layer gives it."""
        return self.layer.parameter_name(self.parameter, self.path, self.key)

    @property
    def is_current(self) -> bool:
        """Whether the Cell still holds it there."""
        return self.layer.parameters(self.cell).get(self.key) is self.parameter


class ParameterNames:
    """The names of the parameters of some models, and of others that are met later.

    A name that occurs once stays as it is. If parameters of several models have one name, the number of the model
    stands before it, as in the dump: "0.fc.weight", "1.fc.weight". Any further parameter of a name that is taken has a
    number behind it: "fc.weight#2".
    """

    def __init__(self, cells: Iterable[tuple[str, Any]] = ()) -> None:
        """``cells`` are the Cells of the models with their paths; that of a lone model is ""."""
        cells = list(cells)
        self._places = list(_places(cells))
        self._names: dict[int, str] = {}  # by identity, of the parameters of the models
        self._others: dict[
            int, tuple[weakref.ref[Any], str]
        ] = {}  # of those outside, which may come and go
        own_names = Counter(place.own_name for place in self._places)
        self._taken = {name for name, count in own_names.items() if count == 1}
        is_lone = any(path == "" for path, _ in cells)
        for place in self._places:
            name = place.own_name
            if own_names[name] > 1:
                name = self._free(
                    [*([name] if is_lone else [f"{_model(place.path)}.{name}"]), _by_path(place)],
                    name,
                )
            self._names[id(place.parameter)] = name
        self._taken.update(own_names)

    @property
    def owned(self) -> Iterator[Owned]:
        """The parameters of the models, in the order of their Cells."""
        for place in self._places:
            yield Owned(self._names[id(place.parameter)], place.path, place.parameter)

    def of(self, parameter: Any) -> str:
        """Return the name of a parameter. One outside of the models gets its name now."""
        name = self._names.get(id(parameter))
        if name is not None:
            return name
        other = self._others.get(id(parameter))
        if other is None or other[0]() is not parameter:
            own_name = _own_name(parameter)
            other = self._others[id(parameter)] = (
                weakref.ref(parameter),
                self._free([own_name], own_name),
            )
        return other[1]

    @property
    def are_current(self) -> bool:
        """Whether the Cells still hold these parameters. It does not look for new Cells."""
        return all(place.is_current for place in self._places)

    def _free(self, wanted: list[str], own_name: str) -> str:
        """Return the first of these names that no parameter has; else the own name with a number."""
        number = 2
        for name in wanted:
            if name not in self._taken:
                break
        else:
            while (name := f"{own_name}#{number}") in self._taken:
                number += 1
        self._taken.add(name)
        return name


def _places(cells: Iterable[tuple[str, Any]]) -> Iterator[_Place]:
    """Yield each parameter at its first place."""
    seen: set[int] = set()
    for path, cell in cells:
        layer = layer_of(cell)
        if layer is None:  # an object that stands for several Cells
            continue
        for key, parameter in layer.parameters(cell).items():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield _Place(path, cell, key, parameter, layer)


def _own_name(parameter: Any) -> str:
    """Return the name of a parameter outside of the models; a random one, as torch on MindSpore gives, is none."""
    name = str(getattr(parameter, "name", None) or "")
    return "parameter" if _RANDOM.fullmatch(name) else name


def _model(path: str) -> str:
    """Return the number of a model, which begins the paths of its Cells."""
    return path.partition(".")[0]


def _by_path(place: _Place) -> str:
    return f"{place.path}.{place.key}" if place.path else place.key
