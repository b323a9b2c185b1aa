# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The parameters that a dump holds: those of the Cells in its first step, with arrays or checksums."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

from probe.errors import UsageError
from probe.reading.check.weights.weight import Array, Weight
from probe.reading.dumps import entry_name
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import CELL, FORWARD
from probe.reading.dumps.folders import find_folders
from probe.reading.dumps.load import load_array
from probe.store import file_names


def read_dumped(path: str) -> dict[str, Weight]:
    """Return the parameters of the first step and rank of a dump: Cell and name -> parameter.

    Raise UsageError when there is no dump, or it has no parameters with arrays or checksums.
    """
    folder = find_folders(path)[0]
    found: dict[str, Weight] = {}
    for name, entry in Dump(folder).data.items():
        own, parts = entry_name.parse(name), entry if isinstance(entry, dict) else {}
        is_first = own[-2:] == (0, FORWARD) and own.kind == CELL and own.path
        sides = [(own.path, parts.get("parameters"))] if is_first else []
        for cell, parameters in [*sides, ("", parts.get("model_parameters"))]:
            for key, record in parameters.items() if isinstance(parameters, dict) else ():
                weight = _weight(folder.path, record)
                if weight is not None:
                    found.setdefault(f"{cell}.{key}" if cell else key, weight)
    if not found:
        raise UsageError(
            f'{path}: no {file_names.RUN}, and no parameters with arrays (task "tensor") or "summary_mode": "md5"'
        )
    return found


def _weight(folder: str, record: Any) -> Weight | None:
    if not isinstance(record, dict) or not isinstance(record.get("shape"), list):
        return None
    dtype, shape, name = str(record.get("dtype")), tuple(record["shape"]), record.get("data_name")
    if isinstance(name, str) and os.path.basename(name) == name:
        return Weight(dtype, shape, partial(_pieces, os.path.join(folder, file_names.ARRAYS, name), dtype))
    crc = record.get("md5")
    return Weight(dtype, shape, None, crc) if isinstance(crc, str) and dtype != "BFloat16" else None


def _pieces(path: str, dtype: str) -> Iterator[Array]:
    yield load_array(path, dtype).reshape(-1)
