# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Finds the dumps below a folder and reads them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from probe.errors import UsageError
from probe.store import layout


@dataclass(frozen=True)
class Dump:
    """One step of one rank, as dump.json has it.

    Attributes:
        folder: the rank folder.
        header: task, level, framework and dump_data_dir.
        data: entry name -> entry, in the order of the file.
    """

    folder: str
    header: dict[str, Any]
    data: dict[str, Any]

    def tensors(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (place, record) of every tensor: ("Functional.relu.0.forward.output.0", {...})."""
        for name, entry in self.data.items():
            yield from _tensors(name, entry)


def find(path: str) -> list[str]:
    """Return the rank folders below a path that hold a dump, by step and rank.

    Raises:
        UsageError: when there is none.
    """
    found = [folder for folder, _, files in os.walk(path) if {layout.DUMP, layout.DEBUG} & {*files}]
    if not found:
        raise UsageError(f"{path}: no {layout.DUMP} in it or below it")
    return sorted(
        found, key=lambda folder: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", folder)]
    )


def read(folder: str) -> Dump:
    """Read the dump of one rank folder.

    Raises:
        UsageError: when dump.json (at level "debug" debug.json) cannot be read or is no dump.
    """
    path = os.path.join(folder, layout.DUMP)
    if not os.path.exists(path):
        path = os.path.join(folder, layout.DEBUG)
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("data"), dict):
        raise UsageError(f'{path} is no dump: it has no "data"')
    return Dump(folder, {key: value for key, value in document.items() if key != "data"}, document["data"])


def _tensors(place: str, value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        if value.get("type") == "mindspore.Tensor":
            yield place, value
            return
        for key, item in value.items():
            yield from _tensors(f"{place}.{key}", item)
    elif isinstance(value, list):
        for key, item in enumerate(value):
            yield from _tensors(f"{place}.{key}", item)
