# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The rules of the key ``alert``: on the log, and in anomaly.json for msprobe's reader."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from typing import Any

from probe.findings.sentence import say, table
from probe.series.msprobe_csv import Tables
from probe.series.table import MSPROBE
from probe.store import file_io

_log = logging.getLogger("probe")

#: the part of the older mean in the running mean
_KEPT = 0.99
#: most alarms in anomaly.json, which is written anew with each
_MOST = 1000
#: the words of msprobe for the kinds of numbers, where they are not those of the files
_TAGS = {"grad_unreduced": "acc_grad", "grad_reduced": "post_grad"}


class Alerts:
    """Compares each number with the running mean of its series.

    Args:
        rules: the rules with their thresholds; of several that hold, the first counts.
        folder: the folder of anomaly.json; "" where it is not written.
        rank: the rank.
    """

    def __init__(self, rules: Sequence[tuple[str, float | None]], folder: str, rank: int) -> None:
        table()  # as in Alarms
        self._rules, self._folder, self._rank = rules, folder, rank
        self._means: dict[tuple[str, str], float] = {}
        self._found: dict[str, dict[str, Any]] = {}

    def look(self, step: int, tables: Tables) -> None:
        """Look at the numbers of a step."""
        found = len(self._found)
        places = ((kind, place, row) for kind, rows in tables.items() for place, row in rows.items())
        for call, (kind, (name, part), row) in enumerate(places if self._rules else ()):
            tag = f"{name}{':' if part else ''}{part}/rank{self._rank}/{_TAGS.get(kind, kind)}"
            for op, value in row.items():
                text = self._judge(tag, op, value, step) if isinstance(value, float) else ""
                if text and self._folder and len(self._found) < _MOST:
                    self._found["_".join((tag, "step", str(step), "call", str(call)))] = {
                        "rank": self._rank, "step": step, "micro_step": 0, "pp_stage": 0, "vpp_stage": name.stage,
                        "call_id": call, "tag_name": tag, "message": text, "group_mates": [self._rank],
                    }  # fmt: skip
        if len(self._found) > found:
            self._write()

    def _judge(self, tag: str, op: str, value: float, step: int) -> str:
        """Return what the first rule that holds says, after it was told; "" where none does."""
        mean = self._means.setdefault((tag, op), abs(value))
        self._means[tag, op] = _KEPT * mean + (1 - _KEPT) * abs(value)
        for rule, threshold in self._rules:
            ops, holds = MSPROBE[rule]
            if (not ops or op in ops) and holds(value, mean, threshold):
                facts = {"op": op, "value": value, "mean": mean, "step": step}
                text = str(say("alarm.msprobe", rule=rule, tag=tag, **facts))
                _log.warning("alarm: %s", text)
                return text
        return ""

    def _write(self) -> None:
        folder = file_io.make_dirs(os.path.join(self._folder, f"rank{self._rank}"))
        with file_io.atomic_write(os.path.join(folder, "anomaly.json")) as file:
            json.dump(self._found, file, indent=1)
