# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The parameters of two runs: how their values, dtypes and orders differ, and what of them is structure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.reading.check.difference import (
    Difference,
    Importance,
    are_equal,
    both,
    listed,
    named,
    only,
    pair,
)
from probe.reading.check.names import Key, exchange, match_names, renaming
from probe.reading.check.snapshot import RunSnapshot
from probe.reading.dumps.text import shape as shape_text

_NUMBERS = ("Max", "Min", "Mean", "Norm")
#: the bits of 1 in each dtype
_ONE = {"Float32": 0x3F800000, "Float16": 0x3C00, "BFloat16": 0x3F80}
_LAYER = re.compile(r"(.*?)\.(\d+)\.")


def is_tensor(value: Any) -> bool:
    """Return whether a value describes a tensor."""
    return isinstance(value, dict) and "shape" in value


def values_differ(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Return whether two tensors of one shape have other values: by their checksums, else by their statistics."""
    if "crc" in a and "crc" in b:
        return bool(a["crc"] != b["crc"])
    common = [key for key in _NUMBERS if key in a and key in b]
    return any(not are_equal(a[key], b[key]) for key in common)


def _keys(parameters: dict[str, dict[str, Any]]) -> dict[str, Key]:
    keys = {}
    for name, item in parameters.items():
        shape = str(item.get("shape"))
        is_told = "crc" in item and not _is_constant(item)
        keys[name] = Key((shape, item["crc"]) if is_told else None, shape)
    return keys


def _is_constant(item: dict[str, Any]) -> bool:
    """Return whether a parameter is all zeros or ones, as its sum tells: a seed does not change it."""
    total = item.get("sum")
    sizes = item.get("shape")
    if not isinstance(total, int) or not isinstance(sizes, list):
        return False
    size = math.prod(size for size in sizes if isinstance(size, int))
    return total in (0, _ONE.get(str(item.get("dtype")), 0) * size % 2**32)


class ParameterCheck:
    """Compares the parameters of two runs."""

    def __init__(self, a: RunSnapshot, b: RunSnapshot) -> None:
        self._run_a = a
        self._run_b = b
        self._a = a.parameters
        self._b = b.parameters
        self.matched = match_names(_keys(self._a), _keys(self._b))  # the partners of all parameters
        self._pairs = [
            (name, self._a[name], self._b[other]) for name, other in self.matched.pairs.items()
        ]

    def values(self) -> Iterator[Difference]:
        """Yield how values, dtypes and orders differ."""
        yield from self._dtypes()
        turned = [name for name, x, y in self._pairs if _is_turned(x, y)]
        if turned:
            yield _values(say("check.turned", names=listed(turned)))
        others = [
            name
            for name, x, y in self._pairs
            if x.get("dtype") == y.get("dtype")
            and x.get("shape") == y.get("shape")
            and values_differ(x, y)
        ]
        exchanged = self.matched.exchanged(others)
        if exchanged:
            yield _values(say("check.exchanged", names=exchange(exchanged)))
        rest = [name for name in others if name not in exchanged]
        if rest:
            yield _values(clauses(self._which(rest), self._begins()))

    def _dtypes(self) -> Iterator[Difference]:
        others = [
            (name, x.get("dtype"), y.get("dtype"))
            for name, x, y in self._pairs
            if x.get("dtype") != y.get("dtype")
        ]
        if others:
            name, dtype_a, dtype_b = others[0]
            yield _values(other_dtypes(len(others), len(self._pairs), name, dtype_a, dtype_b))

    def _begins(self) -> Sentence:
        """Return the first steps of the runs, if they begin at different ones."""
        begin_a = self._run_a.run.get("first_step")
        begin_b = self._run_b.run.get("first_step")
        if begin_a == begin_b:
            return NOTHING
        return say("check.begins", a=str(begin_a), b=str(begin_b))

    def _which(self, names: list[str]) -> Sentence:
        """Return which parameters have other values, and the likely cause."""
        if all(map(self._has_same_sum, names)):
            return say("check.parameters_other_order", names=listed(names))
        changeable = [name for name, x, _ in self._pairs if not _is_constant(x)]
        first = self._with_cell(names[0])
        if len(names) > 1 and len(names) >= len(changeable):
            cause = self._cause_for_all()
            return say("check.all_differ", count=len(names), cause=cause, first=first)
        size = len(self._pairs)
        layers = _layers(names) if len(names) > 1 else ()
        if layers:
            return say(
                "check.layers_differ", count=len(names), all=size, layers=layers, first=first
            )
        return say("check.some_differ", count=len(names), all=size, first=first)

    def _has_same_sum(self, name: str) -> bool:
        """Return whether a parameter has the same sum of bits in B: then it may have its elements in another order."""
        total = self._a[name].get("sum")
        return total is not None and total == self._b[self.matched.pairs[name]].get("sum")

    def _with_cell(self, name: str) -> Any:
        """Return the name of a parameter with its Cell, where it is known."""
        cell = self._a[name].get("cell")
        if not cell:
            return name
        kind = str(self._run_a.cells.get(str(cell)))
        return say("check.parameter_in", name=name, cell=str(cell), kind=kind)

    def _cause_for_all(self) -> Sentence:
        seed_a = self._run_a.run.get("seed")
        seed_b = self._run_b.run.get("seed")
        if seed_a == seed_b:
            return say("check.other_weights")
        return say("check.other_seed", seeds=pair(seed_a, seed_b))

    def structure(self) -> Iterator[Difference]:
        """Yield how names, shapes and trainable differ."""
        renamed = self.matched.renamed
        if renamed:
            yield _structure(say("check.names_of_parameters"), renaming(renamed))
        for side, names in zip("AB", self.matched.only):
            if names:
                yield _structure(say("check.parameters"), only(names, side))
        shapes = [
            named(name, both(shape_text(x["shape"]), shape_text(y["shape"])))
            for name, x, y in self._pairs
            if "shape" in x and "shape" in y and x["shape"] != y["shape"] and not _is_turned(x, y)
        ]
        if shapes:
            said = say("check.values", values=listed(shapes))
            yield _structure(say("check.shapes_of_parameters"), said)
        for side, in_a, in_b in (("A", True, False), ("B", False, True)):
            names = [
                name
                for name, x, y in self._pairs
                if x.get("trainable") == in_a and y.get("trainable") == in_b
            ]
            if names:
                yield _structure(say("check.trainable"), only(names, side))

    @property
    def share_of_other_values(self) -> float:
        """The part of the parameters whose values differ, of those that a seed can change."""
        changeable = [
            (x, y)
            for _, x, y in self._pairs
            if x.get("shape") == y.get("shape") and not _is_constant(x)
        ]
        others = sum(values_differ(x, y) for x, y in changeable)
        return others / max(len(changeable), 1)


def other_dtypes(count: int, size: int, name: str, a: Any, b: Any) -> Sentence:
    """Return how many of all parameters have another dtype, and those of the first."""
    return say("check.dtypes", count=count, all=size, name=name, values=pair(a, b))


def _values(said: Sentence) -> Difference:
    return Difference(Importance.PARAMETERS, say("check.parameters"), said)


def _structure(subject: Sentence, said: Sentence) -> Difference:
    return Difference(Importance.STRUCTURE, subject, said)


def _is_turned(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Return whether B has the transposed of A, by shape and sum."""
    shape_a = a.get("shape")
    shape_b = b.get("shape")
    total = a.get("sum")
    if not isinstance(shape_a, list) or shape_a == shape_b or total is None:
        return False
    return shape_a == list(reversed(shape_b or [])) and total == b.get("sum")


def _layers(names: list[str]) -> Any:
    """Return the range of layers that names belong to, as a fact; nothing where they belong to none.

    >>> str(_layers(["blocks.3.w", "blocks.4.w", "blocks.4.b"]))
    'blocks.3 to blocks.4'
    """
    matches = [match for match in map(_LAYER.match, names) if match]
    stems = {match[1] for match in matches}
    if len(matches) < len(names) or len(stems) != 1:
        return ()
    stem = stems.pop()
    numbers = sorted({int(match[2]) for match in matches})
    layers = [f"{stem}.{number}" for number in numbers]
    first = numbers[0]
    last = numbers[-1]
    if numbers != list(range(first, last + 1)):
        return listed(layers)
    if first == last:
        return layers[0]
    return say("check.layers", first=layers[0], last=layers[-1])
