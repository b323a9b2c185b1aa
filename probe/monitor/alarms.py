# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Alarms of the monitor: on the log, in alarms.jsonl, and to the user's function."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from probe.findings.sentence import NOTHING, say, table
from probe.naming import BACKWARD
from probe.series.alarm import Alarm
from probe.series.call_file import Rows
from probe.series.file import SeriesTail
from probe.series.msprobe_csv import Tables
from probe.series.msprobe_rules import RunningRules
from probe.series.neighbour import RankPair, gradient_of
from probe.series.online_rules import OnlineRules
from probe.series.series_name import parse
from probe.series.skipped import is_skipped_now
from probe.store import file_io, file_names
from probe.store.error_log import ErrorLog
from probe.store.file_names import SERIES, rank_name, rank_of

_log = logging.getLogger("probe")


AlarmFunction = Callable[[Alarm], object]  # takes an alarm
_MOST_SKIPS = 24  # a loss scale of 2**24 falls to 1 in so many steps; more are an alarm
_MOST = 1000  # most alarms in anomaly.json, which is written anew with each
#: the words of msprobe for the kinds of numbers, where they are not those of the files
_TAGS = {"grad_unreduced": "acc_grad", "grad_reduced": "post_grad"}


class Alarms:
    """Lets the rules look at each step, and tells what they say, also in alarms.jsonl in a folder."""

    def __init__(self, folder: str, errors: ErrorLog) -> None:
        self._folder = folder
        self._errors = errors
        table()  # an update of the package during a long training would bring the table of another version
        self._rules = OnlineRules()
        self._neighbour = Neighbour(folder)
        self._skips = 0  # steps in a row whose update a loss scaler has skipped
        self.function: AlarmFunction | None = None

    def look(
        self, step: int, values: Mapping[str, float], calls: Rows = MappingProxyType({})
    ) -> list[Alarm]:
        """Return the alarms of a step, after they were told. ``calls`` are those of rolling records."""
        found: list[Alarm] = []
        with self._errors.guard("looking at the numbers of a step"):
            judged = values
            if self._is_usual_skip(values):
                judged = {name: value for name, value in values.items() if math.isfinite(value)}
                calls = {entry: row for entry, row in calls.items() if f".{BACKWARD}" not in entry}
            found += self._rules.feed(step, judged, calls)
        with self._errors.guard("comparing with the next rank"):
            found += self._neighbour.compare(step, values)
        return self.told(found)

    def _is_usual_skip(self, values: Mapping[str, float]) -> bool:
        """Return whether a loss scaler skips the update of this step as usual: NaN/Inf in gradients is no alarm."""
        self._skips = self._skips + 1 if is_skipped_now(values) else 0
        return 0 < self._skips <= _MOST_SKIPS

    def told(self, found: list[Alarm]) -> list[Alarm]:
        """Tell alarms, and return them: the first of each rule on the log."""
        for rule in dict.fromkeys(alarm.rule for alarm in found):
            first, *others = (alarm for alarm in found if alarm.rule == rule)
            with self._errors.guard("telling an alarm"):
                more = say("alarm.more", count=len(others)) if others else NOTHING
                _log.warning(
                    "%s",
                    say("alarm.line", rule=rule, series=first.series, said=first.said, more=more),
                )
        for alarm in found:
            self.tell(alarm)
        return found

    def tell(self, alarm: Alarm) -> None:
        """Write an alarm, and give it to the user's function."""
        with self._errors.guard("writing an alarm"):
            file_io.make_dirs(self._folder)
            file_io.append(
                os.path.join(self._folder, file_names.ALARMS), json.dumps(alarm.to_dict()) + "\n"
            )
        if self.function is not None:
            with self._errors.guard("the function given to on_alarm()"):
                self.function(alarm)


class Alerts:
    """Tells what TrainerMon's rules say: on the log, and in anomaly.json in a folder below ``above``."""

    def __init__(
        self, alert: tuple[Sequence[tuple[str, float | None]], bool], above: str, rank: int
    ) -> None:
        table()  # as in Alarms
        rules, self._is_written = (
            alert  # the rules with their thresholds, and whether there is such a file
        )
        self._rules = RunningRules(rules) if rules else None
        self._rank = rank
        self._folder = os.path.join(above, "anomaly_detected", f"rank{rank}")
        self._found: dict[str, dict[str, Any]] = {}

    def look(self, step: int, tables: Tables) -> None:
        """Look at the numbers of a step."""
        rules = self._rules
        count = len(self._found)
        if rules is None:
            return
        places = (
            (kind, place, row) for kind, rows in tables.items() for place, row in rows.items()
        )
        for call, (kind, (name, part), row) in enumerate(places):
            tag = f"{name}{':' if part else ''}{part}/rank{self._rank}/{_TAGS.get(kind, kind)}"
            numbers = [(op, value) for op, value in row.items() if isinstance(value, float)]
            for said in filter(None, [rules.look(step, tag, op, value) for op, value in numbers]):
                _log.warning("alarm: %s", said)
                if self._is_written and len(self._found) < _MOST:
                    self._found["_".join((tag, "step", str(step), "call", str(call)))] = {
                        "rank": self._rank,
                        "step": step,
                        "micro_step": 0,
                        "pp_stage": 0,
                        "vpp_stage": int(name.partition(":")[0]),
                        "call_id": call,
                        "tag_name": tag,
                        "message": str(said),
                        "group_mates": [self._rank],
                    }
        if len(self._found) > count:
            with file_io.atomic_write(
                os.path.join(file_io.make_dirs(self._folder), "anomaly.json")
            ) as file:
                json.dump(self._found, file, indent=1)


class Neighbour:
    """The next rank, whose rows are compared as they come."""

    def __init__(self, folder: str) -> None:
        self._above, self._own = os.path.split(folder)
        self._tail: SeriesTail | None = None
        self._name = ""
        self._waiting: dict[int, dict[str, float]] = {}  # step -> our norms of parameters
        self._pair = RankPair()

    def compare(self, step: int, values: Mapping[str, float]) -> Iterator[Alarm]:
        """Yield the parameters that differ from those of the next rank, from the steps that both have written."""
        parameters = [name for name in values if parse(name).is_parameter]
        tail = self._find() if parameters else None
        if tail is None:
            return
        gradients = filter(None, (gradient_of(name, values) for name in parameters))
        self._waiting[step] = {name: values[name] for name in (*parameters, *gradients)}
        while len(self._waiting) > 8:  # the other rank is gone
            del self._waiting[min(self._waiting)]
        for other_step, others in tail.new_rows():
            own = self._waiting.pop(other_step, {})
            yield from self._pair.compare(other_step, own, others, self._name)

    def _find(self) -> SeriesTail | None:
        own = rank_of(self._own)
        if self._tail is None and own is not None:
            files = {
                rank_of(name): os.path.join(self._above, name, SERIES)
                for name in os.listdir(self._above)
            }
            others = [
                rank
                for rank, file in files.items()
                if rank is not None and rank != own and os.path.isfile(file)
            ]
            if others:
                found = min((rank for rank in others if rank > own), default=min(others))
                self._name = rank_name(found)
                self._tail = SeriesTail(files[found])
        return self._tail
