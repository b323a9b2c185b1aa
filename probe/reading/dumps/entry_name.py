# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Takes the names of entries apart."""

from __future__ import annotations

from sys import intern
from typing import NamedTuple

API = "api"
CELL = "cell"
GRADIENT = "parameters_grad"
DEBUG = "debug"
OTHER = "other"
FORWARD = "forward"
BACKWARD = "backward"
_CELLS = ("Cell", "Module")


class EntryName(NamedTuple):
    """The parts of an entry's name."""

    kind: str  # "api", "cell", "parameters_grad", "debug" or "other"
    prefix: str  # the first word: "Functional", "Cell"
    key: str  # the name without number and direction: "Functional.relu", "Cell.fc.Dense"
    path: str  # a Cell's place in the model: "blocks.0.fc"; of others ""
    api: str  # the last word of the key: "relu", "Dense"
    number: int  # which call of this key it is; -1 where the name does not say
    direction: str  # "forward" or "backward"; of gradients of parameters "backward"

    @property
    def forward(self) -> str:
        """The name of the forward entry of this call."""
        if self.kind == CELL:
            return f"{self.key}.{FORWARD}.{self.number}"
        return f"{self.key}.{self.number}.{FORWARD}"


def parse(name: str) -> EntryName:
    """Take a name apart; a name of no known form is of kind "other".

    >>> parse("Functional.softmax.1.backward")[2:]
    ('Functional.softmax', '', 'softmax', 1, 'backward')
    >>> parse("Cell.blocks.0.fc.Dense.forward.2")[2:]
    ('Cell.blocks.0.fc.Dense', 'blocks.0.fc', 'Dense', 2, 'forward')
    >>> parse("Cell.fc.Dense.parameters_grad").kind, parse("logits.0.debug").kind, parse("x").kind
    ('parameters_grad', 'debug', 'other')
    """
    prefix, _, rest = name.partition(".")
    above, _, last = name.rpartition(".")
    prefix = intern(prefix)  # thousands of names share their parts
    last = intern(last)
    if last in (FORWARD, BACKWARD):
        key, _, number = above.rpartition(".")
        if key and _is_number(number):
            return EntryName(
                API, prefix, intern(key), "", intern(key.rpartition(".")[2]), int(number), last
            )
    elif prefix in _CELLS:
        if last == "parameters_grad":  # of an older recorder: without a number
            return _cell(GRADIENT, above, 0, BACKWARD, prefix)
        key, _, word = above.rpartition(".")
        if _is_number(last) and key:
            if word == "parameters_grad":
                return _cell(GRADIENT, key, int(last), BACKWARD, prefix)
            if word in (FORWARD, BACKWARD):
                return _cell(CELL, key, int(last), intern(word), prefix)
    if last == "debug" and rest:
        key, _, number = above.rpartition(".")
        if key and _is_number(number):
            backward = key.endswith("_grad")
            return EntryName(
                DEBUG, "debug", key, "", key, int(number), BACKWARD if backward else FORWARD
            )
    return EntryName(OTHER, prefix, name, "", name, -1, FORWARD)


def _cell(kind: str, key: str, number: int, direction: str, prefix: str) -> EntryName:
    path, _, class_name = key[len(prefix) + 1 :].rpartition(".")
    return EntryName(kind, prefix, intern(key), intern(path), intern(class_name), number, direction)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12


def cell_label(name: str | None, parts: EntryName | None = None) -> str | None:
    """Return the path and class of a Cell's entry; ``parts`` is its name taken apart, where that is known.

    >>> cell_label("Cell.blocks.1.attention.Attention.forward.0")
    'blocks.1.attention.Attention'
    """
    if not name:
        return None
    parts = parts or parse(name)
    return parts.key[len(parts.prefix) + 1 :] if parts.kind in (CELL, GRADIENT) else name
