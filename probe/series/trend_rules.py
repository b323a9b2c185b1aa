# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Looks at series of norms in dumps by the rules of ``rules.RULES``, as ``probe trend`` does."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from probe.series.table import LEAST_STEPS, is_far
from probe.store.layout import Rank

#: tensor -> rank -> step -> number
Trend = dict[str, dict[Rank, dict[int, float]]]

_WINDOW = 20
_NUMBER = re.compile(r"\.\d+(?=\.)")
_RATE = re.compile(r"\.forward\.\d+\.learning_rate(\.\d+)?$")
_RELU = re.compile(r"relu\w*\.\d+\.forward\.output|\.ReLU\w*\.forward\.\d+\.output", re.IGNORECASE)
#: rule, step, sentence
Hit = tuple[str, int, str]


class Point(NamedTuple):
    """Further numbers of a tensor in one step.

    Attributes:
        size: the number of its elements.
        zeros: the part of them that is zero; None where that is unknown.
        peak: the largest absolute value by the largest number of a 16-bit dtype; 0.0 for other dtypes.
        highest: Max.
        is_gradient: whether it is a parameter's gradient.
        is_parameter: whether it is a parameter.
    """

    size: int
    zeros: float | None
    peak: float
    highest: float
    is_gradient: bool
    is_parameter: bool


#: tensor -> rank -> step -> further numbers
Points = dict[str, dict[Rank, dict[int, Point]]]


def series_hits(
    name: str, series: dict[int, float], points: Mapping[int, Point], steps: Sequence[int], limits: Mapping[str, float]
) -> Iterator[Hit]:
    """Yield what the rules say about one tensor on one rank."""
    if _RATE.search(name):  # it may stay, jump and fall to zero
        return
    strange = [step for step, value in series.items() if not math.isfinite(value)]
    if strange:
        yield "NaN/Inf", strange[0], f"{series[strange[0]]} in step {strange[0]}"
        return
    for step, at in points.items():
        if at.peak >= limits["saturation"] and math.isfinite(at.peak):
            yield "saturation", step, f"{at.peak:.0%} of the largest number of its dtype in step {step}"
            break
    if len(steps) < LEAST_STEPS:
        return
    missing = [step for step in steps if step > min(series) and step not in series]
    if missing and limits["missing"]:
        yield "missing", missing[0], f"not recorded in step {missing[0]}, but before"
    values = list(series.items())
    yield from _spike(values, limits)
    if ".parameters_grad." in name:
        yield from _gradient(values, points, limits)
    if ".parameters." in name:
        yield from _parameter(values, limits)
    yield from _unchanged(values, limits)
    yield from _dead(name, points, limits)


def _spike(values: list[tuple[int, float]], limits: Mapping[str, float]) -> Iterator[Hit]:
    for place in range(LEAST_STEPS - 1, len(values)):
        before = [math.log(value) for _, value in values[max(place - _WINDOW, 0) : place] if value > 0]
        step, value = values[place]
        if len(before) >= LEAST_STEPS - 1 and value > 0 and is_far(math.log(value), before, limits["spike"]):
            yield "spike", step, f"{value:.4g} in step {step}, about {math.exp(statistics.median(before)):.4g} before"
            return


def _gradient(
    values: list[tuple[int, float]], points: Mapping[int, Point], limits: Mapping[str, float]
) -> Iterator[Hit]:
    for place in range(LEAST_STEPS - 1, len(values)):
        window = [value for _, value in values[place - LEAST_STEPS + 1 : place + 1]]
        rises = all(x < y for x, y in zip(window, window[1:]))
        if rises and window[0] > 0 and window[-1] >= limits["growing"] * window[0]:
            yield (
                "growing",
                values[place][0],
                f"from {window[0]:.4g} to {window[-1]:.4g} in {LEAST_STEPS} recorded steps",
            )
            break
    for (_, before), (step, value) in zip(values, values[1:]):
        if value == 0 and before > 0 and limits["missing"]:
            yield "missing", step, f"a gradient of zeros in step {step}, but not before"
            break
    for step, value in values:
        count = points[step].size if step in points else 0
        if count and 0 < value / math.sqrt(count) < limits["vanishing"]:
            yield "vanishing", step, f"no more than {value / math.sqrt(count):.2g} on average in step {step}"
            break


def _parameter(values: list[tuple[int, float]], limits: Mapping[str, float]) -> Iterator[Hit]:
    for (_, before), (step, value) in zip(values, values[1:]):
        if before > 0 and abs(value - before) > limits["update ratio"] * before:
            yield "update ratio", step, f"from {before:.4g} to {value:.4g} in one step"
            break
    first = values[0][1]
    for step, value in values[1:]:
        if first > 0 and value >= limits["weight drift"] * first:
            yield "weight drift", step, f"{value:.4g} in step {step}, {first:.4g} at first"
            break


def _unchanged(values: list[tuple[int, float]], limits: Mapping[str, float]) -> Iterator[Hit]:
    count = int(limits["unchanged"])
    for place in range(count - 1, len(values)):
        if count > 1 and len({value for _, value in values[place - count + 1 : place + 1]}) == 1 and values[place][1]:
            yield "unchanged", values[place][0], f"{values[place][1]:.6g} in {count} recorded steps"
            return


def _dead(name: str, points: Mapping[int, Point], limits: Mapping[str, float]) -> Iterator[Hit]:
    """Yield activations that are zero. Without a count of zeros it is known of a relu whose largest output is zero."""
    is_relu, row = _RELU.search(name) is not None, 0
    for step, at in points.items():
        known = 1.0 if is_relu and at.zeros is None and at.highest <= 0 and at.size else at.zeros or 0.0
        is_dead = ".output." in name and ".forward" in name and known > limits["dead units"]
        row = row + 1 if is_dead else 0
        if row == LEAST_STEPS:
            yield "dead units", step, f"{known:.1%} zeros in {LEAST_STEPS} recorded steps"
            return


def layer_hits(trend: Trend, limits: Mapping[str, float]) -> Iterator[tuple[str, Rank, Hit]]:
    """Yield (tensor, rank, hit) where one of many layers of one kind is far from the others in one step."""
    kinds: dict[tuple[str, Rank], list[str]] = {}
    for name, by_rank in trend.items():
        if name.startswith("Cell.") and _NUMBER.search(name.partition(".forward.")[0].partition(".parameters")[0]):
            for rank in by_rank:
                kinds.setdefault((_NUMBER.sub(".*", name), rank), []).append(name)
    for (_, rank), names in kinds.items():
        said: set[str] = set()
        for step in sorted({step for name in names for step in trend[name][rank]}):
            logs = {name: math.log(value) for name in names if 0 < (value := trend[name][rank].get(step, 0)) < math.inf}
            if len(logs) < LEAST_STEPS:
                continue
            for name, own in logs.items():
                others = [value for other, value in logs.items() if other != name]
                if name not in said and is_far(own, others, limits["one layer apart"]):
                    said.add(name)
                    middle = math.exp(statistics.median(others))
                    text = f"{math.exp(own):.4g} in step {step}, about {middle:.4g} in {len(others)} layers of its kind"
                    yield name, rank, ("one layer apart", step, text)
