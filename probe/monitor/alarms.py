# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Alarms of the monitor: on the log, in alarms.jsonl, and to the user's function."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping

from probe.findings.sentence import NOTHING, say, table
from probe.monitor.neighbour import Neighbour
from probe.series.rules import Alarm, OnlineRules
from probe.store import file_io, file_names
from probe.store.error_log import ErrorLog

_log = logging.getLogger("probe")

#: takes an alarm
AlarmFunction = Callable[[Alarm], object]


class Alarms:
    """Lets the rules look at each step, and tells what they say.

    Args:
        folder: the folder of alarms.jsonl.
        errors: reports errors of the tool, and of the user's function.
    """

    def __init__(self, folder: str, errors: ErrorLog) -> None:
        self._folder, self._errors = folder, errors
        table()  # an update of the package during a long training would bring the table of another version
        self._rules, self._neighbour = OnlineRules(), Neighbour(folder)
        self.function: AlarmFunction | None = None

    def look(self, step: int, values: Mapping[str, float]) -> list[Alarm]:
        """Return the alarms of a step, after they were told."""
        found: list[Alarm] = []
        with self._errors.guard("looking at the numbers of a step"):
            found += self._rules.feed(step, values)
        with self._errors.guard("comparing with the next rank"):
            found += self._neighbour.compare(step, values)
        for rule in dict.fromkeys(alarm.rule for alarm in found):
            first, *others = (alarm for alarm in found if alarm.rule == rule)
            with self._errors.guard("telling an alarm"):
                more = say("alarm.more", count=len(others)) if others else NOTHING
                _log.warning("%s", say("alarm.line", rule=rule, series=first.series, said=first.said, more=more))
        for alarm in found:
            with self._errors.guard("writing an alarm"):
                file_io.make_dirs(self._folder)
                file_io.append(os.path.join(self._folder, file_names.ALARMS), json.dumps(alarm.to_dict()) + "\n")
            if self.function is not None:
                with self._errors.guard("the function given to on_alarm()"):
                    self.function(alarm)
        return found
