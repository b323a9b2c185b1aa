# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The names under which the calls of two dumps are looked for: by the user's map, and over two frameworks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from probe.reading.compare.frameworks import words
from probe.reading.dumps.entry_name import CELL, GRADIENT, EntryName, parse
from probe.reading.dumps.flow import Flow


class Vocabulary:
    """Brings the names of A and B to one vocabulary.

    Args:
        headers: the headers of A and B.
        mapping: names in A -> names in B: parts of names of Cells and APIs.

    Attributes:
        is_foreign: whether one side is of PyTorch and the other of MindSpore.
    """

    def __init__(self, headers: tuple[dict[str, Any], dict[str, Any]], mapping: Mapping[str, str] | None) -> None:
        self.is_foreign = words.are_two(*headers)
        self._frameworks = [str(header.get("framework")) for header in headers]
        self._mapping = mapping or {}
        self._mapped = _mapper(mapping)

    def name(self, side: int, name: str) -> str:
        """Return the name of an entry.

        Args:
            side: 0 for A, 1 for B.
            name: the name in the file.
        """
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
        return words.call_word(word, self._frameworks[side]) if self.is_foreign else word

    def class_name(self, parts: EntryName) -> str:
        """Return the word for the class of a Cell."""
        return words.class_word(parts.api) if self.is_foreign else parts.api

    def unused(self, flows: tuple[Flow, Flow]) -> tuple[str, ...]:
        """Return the lines of the user's map that rename no call of A into a name that B has."""
        if not self._mapping:
            return ()
        known = ["\n".join({*flow.names, *map(_plain_api, flow.parts)}) for flow in flows]
        return tuple(
            f"{name}: {other}" for name, other in self._mapping.items()
            if not (_part(name).search(known[0]) and _part(other).search(known[1]))
        )  # fmt: skip


def _part(name: str) -> re.Pattern[str]:
    """Return a pattern for whole words of a name."""
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
    return f"Cell.{path}{words.class_word(parts.api)}{name[len(parts.key) :]}"


def _mapper(mapping: Mapping[str, str] | None) -> Callable[[str], str]:
    """Return a function that renames as the user's map says; longer names first."""
    if not mapping:
        return lambda name: name
    ordered = sorted(mapping, key=len, reverse=True)
    pattern = re.compile("|".join(_part(name).pattern for name in ordered))
    return lambda name: pattern.sub(lambda found: mapping[found[0]], name)


def _plain_api(parts: EntryName) -> str:
    """Return the part of an API's name that all its spellings share: Tensor.__add__, Functional.add, mint.add."""
    name = parts.api.strip("_").lower()
    if parts.api.startswith("__r") and name in ("radd", "rmul", "rsub", "rtruediv", "rmatmul", "rpow"):
        name = name[1:] if name in ("radd", "rmul") else name
    return name
