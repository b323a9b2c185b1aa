# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How large a dump with arrays would be, from one without."""

from __future__ import annotations

import os

from probe.reading.dumps.flow import content_key
from probe.reading.dumps.run import open as open_run
from probe.reading.dumps.values import Record, element_count
from probe.store import file_names

#: the size of numpy's header, and of the key in dump.json that names the file
_HEADER, _KEY = 128, len(',\n      "data_name": ".npy"')
_SINGLE = ("BFloat16", "Float8E4M3FN", "Float8E5M2", "HiFloat8")
_SIZES = {"Bool": 1, "Int4": 1, "Complex64": 8, "Complex128": 16, **dict.fromkeys(_SINGLE, 4)}


def estimate(folder: str, exact_dtypes: bool = False, link_equal: bool = True) -> int:
    """Return how many bytes the files of a rank folder would have with the array of every tensor.

    Args:
        folder: a rank folder of task "statistics".
        exact_dtypes: whether bfloat16 would be stored as it is.
        link_equal: whether arrays of equal bytes would be one file. Tensors of equal numbers stand for them here.

    Raises:
        UsageError: when the dump cannot be read.
    """
    sizes = {**_SIZES, "BFloat16": 2} if exact_dtypes else _SIZES
    documents = (os.path.join(folder, name) for name in (file_names.DUMP, file_names.STACK, file_names.CONSTRUCT))
    total = sum(os.path.getsize(path) for path in documents if os.path.exists(path))
    counted = set()
    for place, record in open_run(folder).dump().tensors():
        name = str(record.get("dtype"))
        bits = int("".join(filter(str.isdigit, name)) or 8)
        arrays = (element_count(record.get("shape")) or 0) * sizes.get(name, bits // 8)
        total += 0 if "data_name" in record else _KEY + len(place)
        content = content_key(record), str(record.get("shape"))
        if not link_equal or content[0] is None or content not in counted or not _tells_content(record):
            total += arrays + _HEADER
            counted.add(content)
    return total


def _tells_content(record: Record) -> bool:
    """Return whether tensors whose records are equal to this one are equal in all likelihood."""
    numbers = {str(record.get(key)).lower() for key in ("Mean", "Norm")}  # a document may hold anything
    is_real = not str(record.get("dtype")).startswith("Complex")  # those numbers are of the magnitudes
    return bool(record.get("md5")) or (is_real and numbers.isdisjoint(("none", "nan")))
