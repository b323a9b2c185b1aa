# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A comparison as a workbook."""

from __future__ import annotations

import os
from collections.abc import Iterator

from probe.reading.compare.answer.comparison import Comparison
from probe.reading.compare.answer.export import COLUMNS
from probe.reading.dumps.tables import write_xlsx


def to_xlsx(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Write sheets: the summary, the origins, and every tensor.

    Raises:
        UsageError: when XlsxWriter is not installed.
    """
    origins = [origin.to_dict() for origin in (*comparison.origins, *comparison.later)]
    keys = ("kind", "step", "rank", "name", "place", "cell", "sentence", "file", "line", "source")
    summary = [(line,) for line in str(comparison).split("\n")]
    write_xlsx(
        path,
        {
            "summary": (("summary",), summary),
            "origins": (keys, [tuple(origin[key] for key in keys) for origin in origins]),
            "tensors": (COLUMNS, (tuple(row.values()) for row in comparison.table())),
            "only": (("only in A", "only in B"), [*_two(comparison.only_a, comparison.only_b)]),
        },
    )


def _two(a: list[str], b: list[str]) -> Iterator[tuple[str, str]]:
    for place in range(max(len(a), len(b))):
        yield (a[place] if place < len(a) else "", b[place] if place < len(b) else "")
