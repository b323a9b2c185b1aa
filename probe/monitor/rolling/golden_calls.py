# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compares the calls of each step with those of a golden run with rolling records, while the training runs."""

from __future__ import annotations

from typing import Any

from probe.errors import SettingsError
from probe.findings.sentence import say
from probe.series.alarm import Alarm
from probe.series.call_file import Head, Rows
from probe.series.call_pairs import SAME, compare_records
from probe.series.series import open_series
from probe.store.file_names import Rank, rank_of

GOLDEN = "golden"  # the name of the rule


class GoldenCalls:
    """The rows of a golden run. Raise SettingsError when the folder has no rolling records of this rank."""

    def __init__(self, path: str, rank: str) -> None:
        own: Rank = rank_of(rank)
        found = [item for item in open_series(path) if own is None or item.rank in (own, None)]
        calls = found[0].calls if found else None
        if calls is None:
            raise SettingsError(say("settings.no_golden_calls", path=path))
        self.count = 0  # of the calls that were compared
        self._records: dict[int, dict[Head, Any]] = {
            step: dict(records) for step, records in calls.records()
        }

    def look(self, step: int, rows: Rows) -> Alarm | None:
        """Return an alarm if a call of this step differs from the golden one; of several the one with most reason."""
        golden = self._records.get(step, {})
        self.count += sum(Head(entry, tuple(row)) in golden for entry, row in rows.items())
        own = {Head(entry, tuple(row)): list(row.values()) for entry, row in rows.items()}
        apart = [
            call
            for call in compare_records(step, golden, own)
            if max(call.inputs, call.outputs) > SAME
        ]
        if not apart:
            return None
        first = max(apart, key=lambda call: call.excess)
        said = say("alarm.golden", inputs=first.inputs, outputs=first.outputs, step=step)
        if first.has_bits and not first.inputs:
            said = say("alarm.golden_bits", step=step)
        return Alarm(GOLDEN, f"{first.entry}.output.0.norm", step, said)
