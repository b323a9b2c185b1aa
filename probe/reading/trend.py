# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""One statistic of many tensors over steps and ranks."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from probe.errors import UsageError
from probe.process.progress import progress
from probe.reading.dump import Dump
from probe.reading.source import Rank
from probe.reading.values import NUMBERS, real

if TYPE_CHECKING:
    from probe.reading.run import Run

#: tensor -> rank -> step -> number
Trend = dict[str, dict[Rank, dict[int, float]]]

STATISTICS = {key.lower(): key for key in (*NUMBERS, "nan_count", "inf_count", "zero_count")}


def collect(run: Run, like: str, stat: str = "norm") -> Trend:
    """Return a statistic of the tensors whose names contain ``like``: name -> rank -> step -> number.

    Raises:
        UsageError: when the statistic is unknown, or no tensor fits.
    """
    if stat.lower() not in STATISTICS:
        raise UsageError(f"trend: {stat!r} is not allowed. Allowed: {', '.join(STATISTICS)}.")
    key = STATISTICS[stat.lower()]
    found: Trend = {}
    for folder in progress(run.folders, "reading"):
        if folder.step is None:
            continue
        for name, record in Dump(folder).tensors():
            value = real(record.get(key)) if like in name else None
            if value is not None:
                found.setdefault(name, {}).setdefault(folder.rank, {})[folder.step] = value
    if not found:
        raise UsageError(f"trend: no tensor with {stat} has {like!r} in its name")
    return found


class TrendFinding(NamedTuple):
    """A series that a rule has something to say on.

    Attributes:
        rule: the rule's name.
        name: the tensor.
        rank: the rank.
        step: the step.
        sentence: what is to be said of it.
    """

    rule: str
    name: str
    rank: Rank
    step: int
    sentence: str


#: rule -> (threshold, what it says, where it comes from)
RULES = {
    "NaN/Inf": (0.0, "any NaN or Inf", "smdebug ExplodingTensor"),
    "spike": (6.0, "robust z of log(norm) against the last 20 recorded steps, and twice as large", "ZClip, llm.c"),
    "growing": (10.0, "grows so many times over 5 recorded steps, in each of them", "probe"),
    "vanishing": (1e-7, "norm by the root of the number of elements is below", "smdebug VanishingGradient"),
    "unchanged": (3.0, "equal over so many recorded steps", "smdebug UnchangedTensor"),
    "missing": (1.0, "recorded before, and not in this step", "probe"),
}
_LEAST, _WINDOW = 5, 20
_BARS = " .:-=+*#%@"


def findings(trend: Trend, steps: Sequence[int], thresholds: Mapping[str, float] | None = None) -> list[TrendFinding]:
    """Return what the rules have to say on series; most need five recorded steps.

    Args:
        trend: the series, of norms.
        steps: the recorded steps.
        thresholds: rule -> another threshold.
    """
    limits = {name: (thresholds or {}).get(name, rule[0]) for name, rule in RULES.items()}
    found: list[TrendFinding] = []
    for name, by_rank in trend.items():
        for rank, series in by_rank.items():
            found += [
                TrendFinding(rule, name, rank, step, f"{rule}: {text}")
                for rule, step, text in _rules(series, list(steps), limits, ".parameters_grad." in name)
            ]
    return sorted(found, key=lambda item: item.step)


def _rules(
    series: dict[int, float], steps: list[int], limits: Mapping[str, float], is_gradient: bool
) -> Iterator[tuple[str, int, str]]:
    strange = [step for step, value in series.items() if not math.isfinite(value)]
    if strange:
        yield "NaN/Inf", strange[0], f"{series[strange[0]]} in step {strange[0]}"
        return
    if len(steps) < _LEAST:
        return
    missing = [step for step in steps if step > min(series) and step not in series]
    if missing and limits["missing"]:
        yield "missing", missing[0], f"not recorded in step {missing[0]}, but before"
    values = list(series.items())
    for place in range(_LEAST - 1, len(values)):
        before = [math.log(value) for _, value in values[max(place - _WINDOW, 0) : place] if value > 0]
        step, value = values[place]
        if len(before) >= _LEAST - 1 and value > 0:
            middle = statistics.median(before)
            spread = max(statistics.median(abs(item - middle) for item in before) * 1.4826, 1e-3)
            if (math.log(value) - middle) / spread > limits["spike"] and math.log(value) - middle > math.log(2):
                yield "spike", step, f"{value:.4g} in step {step}, about {math.exp(middle):.4g} before"
                break
    for place in range(_LEAST - 1, len(values)):
        window = [value for _, value in values[place - _LEAST + 1 : place + 1]]
        rises = all(x < y for x, y in zip(window, window[1:]))
        if is_gradient and rises and window[0] > 0 and window[-1] >= limits["growing"] * window[0]:
            yield "growing", values[place][0], f"from {window[0]:.4g} to {window[-1]:.4g} in {_LEAST} recorded steps"
            break
    count = int(limits["unchanged"])
    for place in range(count - 1, len(values)):
        if count > 1 and len({value for _, value in values[place - count + 1 : place + 1]}) == 1 and values[place][1]:
            yield "unchanged", values[place][0], f"{values[place][1]:.6g} in {count} recorded steps"
            break


def sparkline(values: Sequence[float]) -> str:
    """Return a line of letters that rises and falls with the numbers; "!" is NaN or Inf.

    >>> sparkline([1.0, 2.0, 4.0, float("nan")])
    ' -@!'
    """
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((value - low) * scale)] if math.isfinite(value) else "!" for value in values)
