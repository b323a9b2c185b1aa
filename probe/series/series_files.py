# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Finds the files of the monitor. It imports nothing that is heavy: every reading command may ask."""

from __future__ import annotations

import os
import re

from probe.store.layout import MONITOR, SERIES, Rank

_RANK = re.compile(r"rank(\d*)")


def find_series(path: str) -> list[tuple[str, Rank]]:
    """Return the files of the monitor below a folder with their ranks; a file itself may be given too."""
    if os.path.isfile(path) and os.path.basename(path) == SERIES:
        return [(path, _rank(os.path.basename(os.path.dirname(os.path.abspath(path)))))]
    for folder in (os.path.join(path, MONITOR), path):
        found = [(os.path.join(folder, name, SERIES), _rank(name)) for name in _names(folder) if _RANK.fullmatch(name)]
        found = [item for item in found if os.path.isfile(item[0])]
        if found:
            return sorted(found, key=lambda item: -1 if item[1] is None else item[1])
    own = os.path.join(path, SERIES)
    return [(own, _rank(os.path.basename(os.path.abspath(path))))] if os.path.isfile(own) else []


def _names(folder: str) -> list[str]:
    return os.listdir(folder) if os.path.isdir(folder) else []


def _rank(name: str) -> Rank:
    match = _RANK.fullmatch(name)
    return int(match[1]) if match and match[1] else None
