# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The result of a check, and the place that a check works at."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

OK, WARNING, FAILED, NOT_RUN = "ok", "warning", "failed", "not run"

Entries = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """The result of a check.

    Attributes:
        result: ``OK``, ``WARNING``, ``FAILED`` or ``NOT_RUN``.
        fact: the fact, in one line.
        details: numbers and names for ``--json``.
    """

    result: str
    fact: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Recorded:
    """A step that was recorded.

    Attributes:
        result: that of the recorded function.
        data: the entries by name.
        error: the first error of probe in this step, or "".
    """

    result: Any
    data: Entries
    error: str


@dataclass(frozen=True)
class Bench:
    """The place that the checks work at.

    Attributes:
        device: the name of the device, as MindSpore spells it.
        chosen: the folder that the user has chosen, or "".
        folder: an empty folder for the files of the checks.
    """

    device: str
    chosen: str
    folder: str

    def record(self, name: str, function: Callable[[], Any], model: Any = None, **settings: Any) -> Recorded:
        """Run a function in a recorded step.

        Args:
            name: the name of the dump, new for each.
            function: the function.
            model: the Cell for ``start``.
            **settings: the settings; those of the task too.
        """
        from probe.debugger import PrecisionDebugger

        path = os.path.join(self.folder, name)
        debugger = PrecisionDebugger(self.settings_file(name, **settings))
        debugger.start(model)
        try:
            result = function()
        finally:
            debugger.stop()
            debugger.step()
            debugger.close()
        return Recorded(result, read_entries(path), read_error(path))

    def settings_file(self, name: str, **settings: Any) -> str:
        """Write the settings of a dump into a file, and return its path."""
        path = os.path.join(self.folder, f"{name}.json")
        common = {"task": "statistics", "level": "mix", "rank": [], "step": []}
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**common, "dump_path": os.path.join(self.folder, name), **settings}, file)
        return path


def read_entries(path: str) -> Entries:
    """Return the entries of the first step of a dump; none if there is no dump."""
    for name in ("dump.json", "debug.json"):
        file = os.path.join(path, "step0", "rank", name)
        if os.path.exists(file):
            with open(file, encoding="utf-8") as opened:
                return dict(json.load(opened)["data"])
    return {}


def read_error(path: str) -> str:
    """Return the first error of probe in the first step of a dump, or ""."""
    file = os.path.join(path, "step0", "rank", "dump_error_info.log")
    if not os.path.exists(file):
        return ""
    with open(file, encoding="utf-8", errors="replace") as opened:
        lines = [line.strip() for line in opened]
    return next((line for line in lines if "Error" in line and not line.startswith("File")), lines[0] if lines else "")
