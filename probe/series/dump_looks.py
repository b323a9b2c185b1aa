# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The functions of the rules that look at dumps otherwise than at the monitor: a dump has few steps."""

from __future__ import annotations

import math
import statistics

from probe.findings.sentence import NOTHING, Sentence, say
from probe.series.history import LEAST_STEPS, WINDOW, History, Now
from probe.series.looks import is_far, logarithms


def spike(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """A value that is far above those before, by a robust z."""
    logs = logarithms(list(history.recent)[-WINDOW:])
    if value <= 0 or len(logs) < LEAST_STEPS - 1 or not is_far(math.log(value), logs, limit):
        return NOTHING
    before = math.exp(statistics.median(logs))
    return say(key, value=value, before=before, step=now.step)


def vanishing(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """A gradient that is small on average."""
    mean = value / math.sqrt(now.point.size) if now.point.size else 0.0
    if not 0 < mean < limit:
        return NOTHING
    return say(key, value=mean, first=history.first, step=now.step)


def update_ratio(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """An update that is large beside the norm of the parameter."""
    before = history.last
    holds = before > 0 and limit * before < abs(value - before) > 0
    return say(key, value=value, before=before, step=now.step) if holds else NOTHING


def weight_drift(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """A norm so many times that of the first step."""
    before = history.first
    holds = before > 0 and limit * before <= value >= 0
    return say(key, value=value, before=before, step=now.step) if holds else NOTHING
