# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A line on the terminal while something takes longer than two seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")

_PATIENCE = 2.0


def progress(items: Iterable[Item], operation: str, count: int | None = None) -> Iterable[Item]:
    """Return the items, and show the progress on a terminal, if the extra "progress" (tqdm) is installed."""
    if not sys.stderr.isatty():
        return items
    try:
        from tqdm import tqdm
    except ImportError:
        return items

    class Line(tqdm):  # type: ignore[type-arg]  # of no type of items
        """A bar that shares nothing with others: neither a thread, nor a lock that a killed child may hold."""

        monitor_interval = 0
        _lock = threading.RLock()

    # without a count the items say themselves how many they are
    shown: Iterable[Item] = Line(
        items, desc=f"probe: {operation}", total=count, delay=_PATIENCE, leave=False, unit=""
    )
    return shown
