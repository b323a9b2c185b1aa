# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The words of PyTorch and MindSpore for the same thing, as their public documents have them: ``words.json``.

Both sides are brought to one word: that of MindSpore where it has one. A word that no table has stands for itself.
The calls of two dumps are looked for by these names, and by the user's map.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from probe.reading.dumps.entry_name import CELL, GRADIENT, EntryName, parse
from probe.reading.dumps.flow import Flow

PYTORCH = "pytorch"
MINDSPORE = "mindspore"
MINDTORCH = "mindtorch"  # torch on MindSpore: the names of PyTorch, the dtypes of MindSpore
_FILE = Path(__file__).parent / "words.json"
_TABLES: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
#: class of torch.nn, or of mindspore.mint.nn -> class of mindspore.nn
_CLASSES: dict[str, str] = _TABLES["classes"]
#: parameter of torch -> parameters of mindspore.nn, tried where the other side has no parameter of that name
_PARAMETERS: dict[str, list[str]] = _TABLES["parameters"]
#: other word of both frameworks -> one word for a call: functions, methods and Primitives, in small letters
_CALL_WORDS: dict[str, str] = {}
for _one, _others in _TABLES["calls"].items():
    _CALL_WORDS.update(dict.fromkeys(_others.split(), _one))
#: framework -> words that mean something else in it
_OWN_CALLS: dict[str, dict[str, str]] = _TABLES["own_calls"]
_DTYPES: dict[str, str] = _TABLES["dtypes"]
_KINDS: dict[str, str] = _TABLES["kinds"]


def are_two(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Return whether two headers are of two frameworks."""
    frameworks = {a.get("framework"), b.get("framework")}
    return len(frameworks) == 2 and frameworks <= {PYTORCH, MINDSPORE, MINDTORCH}


def class_word(name: str) -> str:
    """Return one word for a class that both frameworks have.

    >>> class_word("Linear"), class_word("Dense"), class_word("Block")
    ('Dense', 'Dense', 'Block')
    """
    return _CLASSES.get(name, name)


def call_word(word: str, framework: str) -> str:
    """Return one word for a call that both frameworks have.

    >>> call_word("linear", "pytorch"), call_word("layernorm", "mindspore"), call_word("iadd", "pytorch")
    ('dense', 'layer_norm', 'add')
    """
    own = _OWN_CALLS.get(framework, {}).get(word)
    return own or _CALL_WORDS.get(word, word)


def parameter_word(name: str, others: set[str]) -> str:
    """Return the name that a parameter of torch has among those of the same Cell on the other side.

    >>> parameter_word("weight", {"gamma", "beta"}), parameter_word("weight", {"weight", "bias"})
    ('gamma', 'weight')
    """
    if name in others:
        return name
    return next((word for word in _PARAMETERS.get(name, ()) if word in others), name)


def dtype_word(dtype: Any) -> Any:
    """Return a dtype of torch as MindSpore spells it; anything else as it is.

    >>> dtype_word("torch.bfloat16"), dtype_word("torch.uint8"), dtype_word("torch.float"), dtype_word("Float32")
    ('BFloat16', 'UInt8', 'Float32', 'Float32')
    """
    if type(dtype) is not str or not dtype.startswith("torch."):
        return dtype
    if dtype in _DTYPES:
        return _DTYPES[dtype]
    word = dtype.removeprefix("torch.")
    kind = word.rstrip("0123456789")
    if kind not in _KINDS:
        return dtype
    return _KINDS[kind] + word.removeprefix(kind)


class Vocabulary:
    """Brings the names of A and B to one vocabulary; ``mapping`` has parts of names in A -> those in B."""

    def __init__(
        self, headers: tuple[dict[str, Any], dict[str, Any]], mapping: Mapping[str, str] | None
    ) -> None:
        header_a, header_b = headers
        #: whether one side is of PyTorch and the other of MindSpore
        self.is_foreign = are_two(header_a, header_b)
        self._frameworks = [str(header.get("framework")) for header in headers]
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
        known_a, known_b = map(_known_names, flows)
        unused: list[str] = []
        for name, other in self._mapping.items():
            if not _part(name).search(known_a) or not _part(other).search(known_b):
                unused.append(f"{name}: {other}")
        return tuple(unused)


def _known_names(flow: Flow) -> str:
    """Return the names that a user's map may have, one a line."""
    return "\n".join({*flow.names, *map(_plain_api, flow.parts)})


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
    return f"Cell.{path}{class_word(parts.api)}{name[len(parts.key) :]}"


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
    return name[1:] if parts.api.startswith("__r") and name in ("radd", "rmul") else name
