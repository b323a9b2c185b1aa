# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The parameters of two runs: which of A is which of B, their values, and what of them is structure.

The content and the end of the name tell it, if names differ.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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
from probe.reading.check.snapshot import RunSnapshot
from probe.reading.dumps.text import shape as shape_text
from probe.reading.dumps.values import grouped

_NUMBERS = ("Max", "Min", "Mean", "Norm")
#: the bits of 1 in each dtype
_ONE = {"Float32": 0x3F800000, "Float16": 0x3C00, "BFloat16": 0x3F80}
_LAYER = re.compile(r"(.*?)\.(\d+)\.")


class Key(NamedTuple):
    """The things that tell which parameter is which."""

    content: (
        Hashable | None
    )  # its shape and checksum; None where the checksum is not known, or is that of many
    shape: Hashable


class Matched(NamedTuple):
    """The partners of parameters."""

    pairs: dict[str, str]  # name in A -> name in B, in the order of A
    renamed: dict[str, str]  # those of other names
    only: tuple[list[str], list[str]]  # the names that only A has, and only B
    keys: tuple[Mapping[str, Key], Mapping[str, Key]]  # name -> key, in A and in B

    def exchanged(self, names: Sequence[str]) -> dict[str, str]:
        """Return those of some parameters that have the values of another one of them in B -> that one."""
        owners = {self.keys[0][name].content: name for name in names}
        found = {name: owners.get(self.keys[1][self.pairs[name]].content) for name in names}
        return {
            name: it
            for name, it in found.items()
            if it not in (None, name) and self.keys[0][it].content
        }


def match_names(a: Mapping[str, Key], b: Mapping[str, Key]) -> Matched:
    """Return the partners of all parameters of A and B: first by content, then by shape."""
    left = [name for name in a if name not in b]
    right = [name for name in b if name not in a]
    renamed: dict[str, str] = {}
    for key in ("content", "shape"):
        taken = set(renamed.values())
        groups = grouped((getattr(b[name], key), name) for name in right if name not in taken)
        groups.pop(None, None)
        for name in left:
            if name not in renamed:
                _pair(name, groups.get(getattr(a[name], key), []), renamed, by_name=key == "shape")
    taken = set(renamed.values())
    return Matched(
        {name: renamed.get(name, name) for name in a if name in b or name in renamed},
        {name: renamed[name] for name in a if name in renamed},
        (
            [name for name in left if name not in renamed],
            [name for name in right if name not in taken],
        ),
        (a, b),
    )


def _pair(name: str, partners: list[str], found: dict[str, str], by_name: bool) -> None:
    """Pair a name with that partner whose end is most alike; ``by_name`` asks for one equal part at least."""
    scored = [(common_end(name, other), -place) for place, other in enumerate(partners)]
    best = max(scored, default=(0, 0))
    if scored and (best[0] or not by_name):
        found[name] = partners.pop(-best[1])


def exchange(found: Mapping[str, str], most: int = 3) -> Sentence:
    """Return which parameters have the values of others in B."""
    parts = (say("check.has_values", name=name, other=other) for name, other in found.items())
    return say("check.in_b", names=listed(parts, most))


def common_end(a: str, b: str) -> int:
    """Return how many dotted parts two names share at their ends.

    >>> common_end("net.fc.weight", "fc.weight")
    2
    """
    pairs = zip(reversed(a.split(".")), reversed(b.split(".")))
    return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))


def renaming(renamed: Mapping[str, str]) -> Sentence:
    """Return how names were changed.

    >>> str(renaming({"fc.w": "net.fc.w", "fc.b": "net.fc.b"}))
    '2 names have the prefix "net." in B'
    """
    for one, two, side in ((0, 1, "B"), (1, 0, "A")):
        pairs = [(pair[one], pair[two]) for pair in renamed.items()]
        prefixes = {long[: -len(short)] for short, long in pairs if long.endswith(short)}
        if len(prefixes) == 1 and all(long.endswith(short) for short, long in pairs):
            return say("check.prefix", count=len(pairs), prefix=prefixes.pop(), side=side)
    return say("check.names_differ", count=len(renamed), first=both(*next(iter(renamed.items()))))


def is_tensor(value: Any) -> bool:
    """Return whether a value describes a tensor."""
    return isinstance(value, dict) and "shape" in value


def values_differ(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Return whether two tensors of one shape have other values: by their checksums, else by their statistics."""
    if "crc" in a and "crc" in b:
        return bool(a["crc"] != b["crc"])
    return any(not are_equal(a[key], b[key]) for key in _NUMBERS if key in a and key in b)


def _keys(parameters: dict[str, dict[str, Any]]) -> dict[str, Key]:
    found = {}
    for name, item in parameters.items():
        shape = str(item.get("shape"))
        found[name] = Key(
            (shape, item["crc"]) if "crc" in item and not _is_constant(item) else None, shape
        )
    return found


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
        begins = self._run_a.run.get("first_step"), self._run_b.run.get("first_step")
        later = (
            say("check.begins", a=str(begins[0]), b=str(begins[1]))
            if begins[0] != begins[1]
            else NOTHING
        )
        dtypes = [(name, x.get("dtype"), y.get("dtype")) for name, x, y in self._pairs]
        other = [item for item in dtypes if item[1] != item[2]]
        if other:
            yield _values(other_dtypes(len(other), len(dtypes), *other[0]))
        turned = [name for name, x, y in self._pairs if _is_turned(x, y)]
        if turned:
            yield _values(say("check.turned", names=listed(turned)))
        differ = [
            name
            for name, x, y in self._pairs
            if x.get("dtype") == y.get("dtype")
            and x.get("shape") == y.get("shape")
            and values_differ(x, y)
        ]
        exchanged = self.matched.exchanged(differ)
        if exchanged:
            yield _values(say("check.exchanged", names=exchange(exchanged)))
        rest = [name for name in differ if name not in exchanged]
        if rest:
            yield _values(clauses(self._which(rest), later))

    def _which(self, names: list[str]) -> Sentence:
        shuffled = [
            name
            for name in names
            if self._a[name].get("sum") is not None
            and self._a[name]["sum"] == self._b[self.matched.pairs[name]].get("sum")
        ]
        if shuffled == names:
            return say("check.parameters_other_order", names=listed(names))
        total = [name for name, x, _ in self._pairs if not _is_constant(x)]
        seed_a = self._run_a.run.get("seed")
        seed_b = self._run_b.run.get("seed")
        first: Any = names[0]
        cell = self._a[first].get("cell")
        if cell:
            kind = str(self._run_a.cells.get(str(cell)))
            first = say("check.parameter_in", name=first, cell=str(cell), kind=kind)
        if len(names) > 1 and len(names) >= len(total):
            cause = (
                say("check.other_seed", seeds=pair(seed_a, seed_b))
                if seed_a != seed_b
                else say("check.other_weights")
            )
            return say("check.all_differ", count=len(names), cause=cause, first=first)
        layers = _layers(names) if len(names) > 1 else ()
        if layers:
            return say(
                "check.layers_differ",
                count=len(names),
                all=len(self._pairs),
                layers=layers,
                first=first,
            )
        return say("check.some_differ", count=len(names), all=len(self._pairs), first=first)

    def structure(self) -> Iterator[Difference]:
        """Yield how names, shapes and trainable differ."""
        matched = self.matched
        if matched.renamed:
            yield Difference(
                Importance.STRUCTURE, say("check.names_of_parameters"), renaming(matched.renamed)
            )
        for side, names in zip("AB", matched.only):
            if names:
                yield Difference(Importance.STRUCTURE, say("check.parameters"), only(names, side))
        shapes = [
            (name, x["shape"], y["shape"])
            for name, x, y in self._pairs
            if "shape" in x and "shape" in y and x["shape"] != y["shape"] and not _is_turned(x, y)
        ]
        if shapes:
            values = listed(
                named(name, both(shape_text(x), shape_text(y))) for name, x, y in shapes
            )
            said = say("check.values", values=values)
            yield Difference(Importance.STRUCTURE, say("check.shapes_of_parameters"), said)
        for word, before, after in (("A", True, False), ("B", False, True)):
            names = [
                name
                for name, x, y in self._pairs
                if (x.get("trainable"), y.get("trainable")) == (before, after)
            ]
            if names:
                yield Difference(Importance.STRUCTURE, say("check.trainable"), only(names, word))

    @property
    def share_of_other_values(self) -> float:
        """The part of the parameters whose values differ, of those that a seed can change."""
        can = [
            (x, y)
            for _, x, y in self._pairs
            if x.get("shape") == y.get("shape") and not _is_constant(x)
        ]
        return sum(values_differ(x, y) for x, y in can) / max(len(can), 1)


def other_dtypes(count: int, size: int, name: str, a: Any, b: Any) -> Sentence:
    """Return how many of all parameters have another dtype, and those of the first."""
    return say("check.dtypes", count=count, all=size, name=name, values=pair(a, b))


def _values(said: Sentence) -> Difference:
    return Difference(Importance.PARAMETERS, say("check.parameters"), said)


def _is_turned(a: dict[str, Any], b: dict[str, Any]) -> bool:
    sizes = a.get("shape"), b.get("shape")
    if not isinstance(sizes[0], list) or sizes[0] == sizes[1] or a.get("sum") is None:
        return False
    return sizes[0] == list(reversed(sizes[1] or [])) and a["sum"] == b.get("sum")


def _layers(names: list[str]) -> Any:
    """Return the range of layers that names belong to, as a fact; nothing where they belong to none.

    >>> str(_layers(["blocks.3.w", "blocks.4.w", "blocks.4.b"]))
    'blocks.3 to blocks.4'
    """
    found = [_LAYER.match(name) for name in names]
    if None in found or len({match[1] for match in found if match}) != 1:
        return ()
    numbers = sorted({int(match[2]) for match in found if match})
    stem = next(match[1] for match in found if match)
    if numbers != list(range(numbers[0], numbers[-1] + 1)):
        return listed(f"{stem}.{number}" for number in numbers)
    first = f"{stem}.{numbers[0]}"
    last = f"{stem}.{numbers[-1]}"
    return say("check.layers", first=first, last=last) if len(numbers) > 1 else first
