# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The parameters of a checkpoint, of a run's snapshot, or of its first dump; and those of one as text."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.reading.check.snapshot import mapping, read_snapshots
from probe.reading.check.weights.kinds import is_checkpoint, reader_of
from probe.reading.check.weights.weight import Array, Weight
from probe.reading.dumps import entry_name, text
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import CELL, FORWARD
from probe.reading.dumps.folders import find_folders
from probe.reading.dumps.load import load_array
from probe.reading.dumps.values import array_name
from probe.store import file_names

#: how many parameters of a checkpoint are shown
_ROWS = 40
Weights = dict[str, Weight]


def read_weights(path: str) -> Weights:
    """Return the parameters of a checkpoint, or of a run's snapshot or first dump; raise UsageError without them."""
    if is_checkpoint(path):
        if not os.path.exists(path):
            raise UsageError(say("error.no_file", path=path))
        return reader_of(path)(path)
    try:
        snapshot = read_snapshots(path)[0]
    except UsageError:
        return read_dumped(path)
    weights: Weights = {}
    for name, item in snapshot.parameters.items():
        shape = item.get("shape")
        if isinstance(shape, list):
            dtype = str(item.get("dtype"))
            crc = str(item.get("crc") or "")
            total = item["sum"] if isinstance(item.get("sum"), int) else -1
            weights[name] = Weight(dtype, tuple(shape), None, crc, total)
    return weights


def describe_weights(path: str, as_json: bool, language: str) -> str:
    """Return the parameters of a checkpoint as text."""
    weights = read_weights(path)
    if as_json:
        return json.dumps(
            {
                name: {
                    "dtype": weight.dtype,
                    "shape": weight.shape,
                    "crc": weight.digest().crc,
                }
                for name, weight in weights.items()
            },
            indent=1,
        )
    size = sum(weight.bytes for weight in weights.values())
    head = say("check.weights", path=path, count=len(weights), size=text.size(size))
    header = [say(key).text(language) for key in ("check.parameter", "show.dtype", "show.shape")]
    rows = [
        [text.shorten(text.safe(name), 70), weight.dtype, text.shape(weight.shape)]
        for name, weight in weights.items()
    ]
    parts = [head.text(language), text.columns([header, *rows[:_ROWS]])]
    if len(rows) > _ROWS:
        parts.append(say("check.rest", count=len(rows) - _ROWS).text(language))
    return "\n".join(parts)


def read_dumped(path: str) -> dict[str, Weight]:
    """Return Cell and name -> parameter of the first dump; raise UsageError without arrays or checksums of them."""
    folder = find_folders(path)[0]
    found: dict[str, Weight] = {}
    for name, entry in Dump(folder).data.items():
        parts = entry if isinstance(entry, dict) else {}
        cell = _first_called_cell(name)
        own = mapping(parts.get("parameters")) if cell else {}
        records = {f"{cell}.{key}": record for key, record in own.items()}
        for key, record in [*records.items(), *mapping(parts.get("model_parameters")).items()]:
            weight = _weight(folder.path, record)
            if weight is not None:
                found.setdefault(key, weight)
    if not found:
        raise UsageError(say("check.nothing_in", path=path, file=file_names.RUN))
    return found


def _first_called_cell(name: str) -> str:
    """Return the path of a Cell of the first forward call; "" for another entry."""
    own = entry_name.parse(name)
    is_first = own.kind == CELL and own.number == 0 and own.direction == FORWARD
    return own.path if is_first else ""


def _weight(folder: str, record: Any) -> Weight | None:
    if not isinstance(record, dict) or not isinstance(record.get("shape"), list):
        return None
    dtype = str(record.get("dtype"))
    shape = tuple(record["shape"])
    name = array_name(record)
    if name:
        path = os.path.join(folder, file_names.ARRAYS, name)
        return Weight(dtype, shape, partial(_pieces, path, dtype))
    crc: Any = record.get("md5")
    is_told = isinstance(crc, str) and dtype != "BFloat16"
    return Weight(dtype, shape, None, crc) if is_told else None


def _pieces(path: str, dtype: str) -> Iterator[Array]:
    yield load_array(path, dtype).reshape(-1)
