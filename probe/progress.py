# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A line on the terminal while something takes longer than two seconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")

_PATIENCE = 2.0


def progress(items: Iterable[Item], what: str) -> Iterable[Item]:
    """Return the items, and show how far they are where somebody looks and the extra "progress" (tqdm) is installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    shown: Iterable[Item] = tqdm(items, desc=f"probe: {what}", delay=_PATIENCE, disable=None, leave=False, unit="")
    return shown
