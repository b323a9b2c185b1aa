# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The series of the monitor on the report's page of steps: every step, not only those that were dumped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from probe.reading.one_run.trend import TrendFinding
from probe.series.series import find_series
from probe.store.file_names import Rank

#: the lines of the page, and the series that they show
_LINES = {"loss": "loss", "norm": "optimizer.global_norm", "learning_rate": "optimizer.learning_rate",
          "global_norm": "optimizer.global_norm"}  # fmt: skip
#: most points of a line
_MOST = 2000


def main_lines(path: str) -> Iterator[tuple[Rank, dict[str, list[list[Any]]]]]:
    """Yield each rank of the monitor in a folder with its lines; nothing where there is no monitor."""
    if not path or not find_series(path):
        return
    from probe.reading.one_run.series_views import lines_of
    from probe.series.series import open_series

    for rank in open_series(path):
        lines = {key: lines_of(rank, name) for key, name in _LINES.items() if name in rank.names}
        yield rank.rank, {key: found[:: -(-len(found) // _MOST)] for key, found in lines.items() if found}


def alarms_of(path: str) -> list[TrendFinding]:
    """Return what the rules say about the series of the monitor in a folder."""
    if not path or not find_series(path):
        return []
    from probe.reading.one_run.series_views import findings_of
    from probe.series.series import open_series

    return [item for rank in open_series(path) for item in findings_of(rank)]
