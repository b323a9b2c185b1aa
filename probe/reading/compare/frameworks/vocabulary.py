# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Brings the names of two dumps to one vocabulary: the words of both frameworks, and the user's map."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from probe.reading.compare.frameworks.words import are_two, call_word, class_word
from probe.reading.dumps.entry_name import CELL, GRADIENT, EntryName, parse
from probe.reading.dumps.flow import Flow

Header = dict[str, Any]


class Vocabulary:
    """Brings the names of A and B to one vocabulary; ``mapping`` has parts of names in A -> those in B."""

    def __init__(self, headers: tuple[Header, Header], mapping: Mapping[str, str] | None) -> None:
        header_a, header_b = headers
        #: whether one side is of PyTorch and the other of MindSpore
        self.is_foreign = are_two(header_a, header_b)
        self._frameworks = (str(header_a.get("framework")), str(header_b.get("framework")))
        self._mapping = mapping or {}
        self._mapped = _mapper(mapping)

    def name(self, side: int, name: str) -> str:
        """Return the name of an entry of a side: 0 for A, 1 for B."""
        if side == 0:
            name = self._mapped(name)
        return _one_word(name) if self.is_foreign else name

    def positions(self, flow: Flow) -> Mapping[str, int]:
        """Return the place of each entry of B by its name in this vocabulary."""
        if not self.is_foreign:
            return flow.position
        return {self.name(1, name): place for place, name in enumerate(flow.names)}

    def call(self, side: int, parts: EntryName) -> str:
        """Return the word for an API: Tensor.__add__, Functional.add and mint.add are one."""
        word = _plain_api(parts)
        if side == 0:
            word = self._mapped(word)
        return call_word(word, self._frameworks[side]) if self.is_foreign else word

    def class_name(self, parts: EntryName) -> str:
        """Return the word for the class of a Cell."""
        return class_word(parts.api) if self.is_foreign else parts.api

    def unused(self, flows: tuple[Flow, Flow]) -> tuple[str, ...]:
        """Return the lines of the user's map that rename no call of A into a name that B has."""
        if not self._mapping:
            return ()
        flow_a, flow_b = flows
        known_a = _known_names(flow_a)
        known_b = _known_names(flow_b)
        unused: list[str] = []
        for name, other in self._mapping.items():
            is_in_a = _part(name).search(known_a)
            is_in_b = _part(other).search(known_b)
            if not is_in_a or not is_in_b:
                unused.append(f"{name}: {other}")
        return tuple(unused)


def _known_names(flow: Flow) -> str:
    """Return the names that a user's map may have, one a line."""
    apis = map(_plain_api, flow.parts)
    return "\n".join({*flow.names, *apis})


def _part(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")


def _one_word(name: str) -> str:
    """Return the name of a Cell's entry in the words of MindSpore; other names as they are.

    >>> _one_word("Module.fc.Linear.forward.0"), _one_word("Functional.relu.0.forward")
    ('Cell.fc.Dense.forward.0', 'Functional.relu.0.forward')
    """
    parts = parse(name)
    if parts.kind not in (CELL, GRADIENT):
        return name
    path = f"{parts.path}." if parts.path else ""
    word = class_word(parts.api)
    ending = name[len(parts.key) :]
    return f"Cell.{path}{word}{ending}"


def _mapper(mapping: Mapping[str, str] | None) -> Callable[[str], str]:
    """Return a function that renames as the user's map says; longer names first."""
    if not mapping:
        return lambda name: name
    longest_first = sorted(mapping, key=len, reverse=True)
    any_of_them = "|".join(_part(name).pattern for name in longest_first)
    pattern = re.compile(any_of_them)

    def renamed(name: str) -> str:
        return pattern.sub(lambda match: mapping[match[0]], name)

    return renamed


def _plain_api(parts: EntryName) -> str:
    """Return the part of an API's name that all its spellings share: Tensor.__add__, Functional.add, mint.add."""
    name = parts.api.strip("_").lower()
    is_reflected = parts.api.startswith("__r") and name in ("radd", "rmul")
    return name[1:] if is_reflected else name
