# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The rules of the monitor that look at several series of one kind together; each keeps its own numbers."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Iterator, Mapping

from probe.findings.sentence import say
from probe.series import series_name
from probe.series.alarm import Alarm
from probe.series.history import History, Now
from probe.series.rules import ONLINE
from probe.series.series_name import state_kind

#: so many steps in a row another part of a gradient enters
_IN_A_ROW = 3
#: behind so many steps without it a gradient begins anew
_PAUSE = 10
#: so few series tell nothing of one that differs from the others
_FEW = 2
#: so many values are a median of a loss
_MEDIAN_OF = 10
#: a loss has fallen that is below so large a part of what it was
_FALLEN = 0.9


class MissingGradients:
    """Gradients that are missing in so many steps, after so many in a row.

    If all gradients of a step have begun since, another part of the training has begun, as that of a student behind
    its teacher: then none is missing.
    """

    _KEY = "alarm.missing"

    def __init__(self, limit: float, gradients: Mapping[str, History]) -> None:
        self._limit = int(limit)
        self._gradients = gradients
        self._streaks: dict[str, int] = {}  # steps in a row that have the gradient, but the first
        self._seen: dict[str, int] = {}  # the last step that has the gradient
        self._began: dict[str, int] = {}  # the first one, or the first behind a long pause

    def look(self, now: Now, values: Mapping[str, float]) -> Iterator[Alarm]:
        """Yield the gradients that are missing from this step on."""
        streaks = self._streaks
        least = ONLINE["missing"].warm_up
        for name, series in self._gradients.items():
            if name in values:
                series.active.pop(self._KEY, None)
                goes_on = series.last_step >= now.step - 1
                streaks[name] = streaks.get(name, 0) + 1 if goes_on else 0
                if now.step - self._seen.get(name, -math.inf) > _PAUSE:
                    self._began[name] = now.step
                self._seen[name] = now.step
                continue
            is_told = self._KEY in series.active
            if (
                is_told
                or streaks.get(name, 0) < least
                or now.step - series.last_step != self._limit
            ):
                continue
            series.active[self._KEY] = math.inf
            if self._are_all_new(values, series.last_step):
                continue
            said = say(self._KEY, last=series.last_step, step=now.step)
            yield Alarm("missing", name, now.step, said)

    def _are_all_new(self, values: Mapping[str, float], last: int) -> bool:
        """Return whether a step has gradients, and all of them have begun behind a step."""
        present = [name for name in self._gradients if name in values]
        return bool(present) and all(self._began.get(name, 0) > last for name in present)


class LossBalance:
    """Tells whether a loss rises while another one of the same steps falls, as those of a GAN do."""

    def __init__(self) -> None:
        self._recent: dict[str, deque[float]] = {}
        self._medians: dict[str, float] = {}
        self._lowest: dict[str, float] = {}
        #: loss -> the medians of all losses when its own was lowest
        self._then: dict[str, dict[str, float]] = {}

    def take(self, losses: Mapping[str, float]) -> None:
        """Take the losses of a step."""
        if len(losses) < _FEW:
            return
        for name, value in losses.items():
            self._recent.setdefault(name, deque(maxlen=_MEDIAN_OF)).append(value)
        self._medians = {name: statistics.median(last) for name, last in self._recent.items()}
        for name, middle in self._medians.items():
            if len(self._recent[name]) == _MEDIAN_OF and middle <= self._lowest.get(name, math.inf):
                self._lowest[name] = middle
                self._then[name] = self._medians

    def falls_beside(self, name: str) -> bool:
        """Return whether another loss has fallen since this one was lowest."""
        then = self._then.get(name, {})
        return any(
            self._medians[other] < _FALLEN * value for other, value in then.items() if other != name
        )


class FallenStates:
    """A kind of states of an optimizer that fell together: one alone may cross zero."""

    def __init__(self, limit: float, states: Mapping[str, History]) -> None:
        self._limit = limit
        self._states = states

    def look(self, now: Now, values: Mapping[str, float]) -> Iterator[Alarm]:
        """Yield the kinds that fell in this step; look before the histories take its values."""
        first = next(iter(self._states), None)
        if first not in values:
            return
        for kind, parts in self._parts(values).items():
            part, name = sorted(parts)[len(parts) // 2]
            if len(parts) <= _FEW or not 0 <= part * self._limit <= 1:
                continue
            before = self._states[name]
            said = say(
                "alarm.reset",
                step=now.step,
                kind=kind,
                value=part * before.last,
                before=before.last,
                then=before.last_step,
            )
            yield Alarm("reset", name, now.step, said)

    def _parts(self, values: Mapping[str, float]) -> dict[str, list[tuple[float, str]]]:
        """Return, for each kind, the part that is left of each state, with its name."""
        kinds: dict[str, list[tuple[float, str]]] = {}
        warm_up = ONLINE["reset"].warm_up
        for name, series in self._states.items():
            value = values.get(name, math.nan)
            if series.count >= warm_up and series.last > 0 and math.isfinite(value):
                kinds.setdefault(state_kind(name), []).append((value / series.last, name))
        return kinds


class ScaledGradients:
    """Gradients of which another part enters the optimizer than of the others."""

    _KEY = "alarm.scaled"

    def __init__(
        self, limit: float, gradients: Mapping[str, History], entered: Mapping[str, History]
    ) -> None:
        self._limit = limit
        self._gradients = gradients
        self._entered = entered
        #: gradient -> steps in a row in which another part entered than of the others
        self._apart: dict[str, int] = {}

    def look(self, now: Now, values: Mapping[str, float]) -> Iterator[Alarm]:
        """Yield the gradients of which another part enters from this step on."""
        if not any(name in values for name in self._entered):
            return
        parts = self._parts(values)
        middle = statistics.median(parts.values()) if len(parts) > _FEW else 0.0
        for name, part in parts.items():
            series = self._gradients[name]
            is_near = middle / self._limit < part < middle * self._limit
            is_apart = middle > 0 and part > 0 and not is_near
            self._apart[name] = self._apart.get(name, 0) + 1 if is_apart else 0
            if self._apart[name] != _IN_A_ROW or self._KEY in series.active:
                continue
            if series.count >= ONLINE["scaled"].warm_up:
                said = say(self._KEY, part=part, others=middle, step=now.step)
                yield Alarm("scaled", series_name.entered(name), now.step, said)
            series.active[self._KEY] = math.inf  # also where it was so from the first step on

    def _parts(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the part of each gradient that enters."""
        parts: dict[str, float] = {}
        for name in self._gradients:
            arrived = values.get(name, 0.0)
            if arrived > 0:
                part = values.get(series_name.entered(name), arrived) / arrived
                if math.isfinite(part):
                    parts[name] = part
        return parts
