# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The table of all rules for series: in the recorded steps of dumps, and in each step of the monitor.

None of them proves an error. ``trend_rules`` looks at dumps, ``online_rules`` at the monitor. A dump has few steps, so
its conditions need fewer, and differ.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

#: fewer steps than these are no series
LEAST_STEPS = 5


class Condition(NamedTuple):
    """The condition of a rule.

    Attributes:
        threshold: its default.
        meaning: the condition.
        kinds: of the monitor: the kinds of series that it looks at; see ``online_rules.kind_of``.
        warm_up: of the monitor: the number of values of a series before it looks.
    """

    threshold: float
    meaning: str
    kinds: frozenset[str] = frozenset()
    warm_up: int = 0


class Rule(NamedTuple):
    """A rule.

    Attributes:
        source: the origin of rule and threshold.
        dump: its condition in dumps; None where it does not look at them.
        online: its condition in the monitor; likewise.
    """

    source: str
    dump: Condition | None
    online: Condition | None = None


def _online(threshold: float, kinds: str, warm_up: int, meaning: str) -> Condition:
    return Condition(threshold, meaning, frozenset(kinds.split()), warm_up)


_FAR = "so many times the median of the last 20 steps, robust z above 6"
_STRANGE = "cell loss grad grad_in param update state logged total"
RULES = {
    "NaN/Inf": Rule(
        "smdebug ExplodingTensor", Condition(0.0, "any NaN or Inf"), _online(0.0, _STRANGE, 0, "NaN or Inf")
    ),
    "spike": Rule(
        "ZClip, llm.c",
        Condition(6.0, "robust z of log(norm) against the last 20 recorded steps, and twice as large"),
        _online(4.0, "loss total logged", 20, _FAR),
    ),
    "gradient spike": Rule("ZClip", None, _online(30.0, "grad", 20, f"{_FAR}, and twice the highest before")),
    "rising": Rule(
        "probe",
        None,
        _online(2.0, "loss", 40, "the median of 10 steps is so many times the lowest, and near the first"),
    ),
    "growing": Rule(
        "probe",
        Condition(10.0, "a gradient grows so many times over 5 recorded steps, in each of them"),
        _online(10.0, "grad total", 20, "grows so many times over 5 steps, in each, and to twice the highest before"),
    ),
    "vanishing": Rule(
        "smdebug VanishingGradient",
        Condition(1e-7, "a gradient's norm by the root of its size is below"),
        _online(1e-4, "grad", 20, "so small a part of the median of its first 20 steps, in 5 steps"),
    ),
    "update ratio": Rule(
        "smdebug WeightUpdateRatio",
        Condition(10.0, "a parameter's norm changes by so many times itself"),
        _online(20.0, "update", 4, "so many times the median of its updates, and no rounding"),
    ),
    "unchanged": Rule(
        "smdebug UnchangedTensor",
        Condition(3.0, "equal over so many recorded steps"),
        _online(2.0, "update", 2, "zero in so many measured steps, but not before"),
    ),
    "missing": Rule(
        "OLMo issue 266",
        Condition(1.0, "recorded before, and not in this step, or a gradient of zeros"),
        _online(3.0, "grad", 10, "not seen in so many steps, but in each before"),
    ),
    "zeros": Rule("smdebug DeadRelu", None, _online(3.0, "grad grad_in", 2, "zero in so many steps, but not before")),
    "dead units": Rule(
        "smdebug DeadRelu", Condition(0.99, "so large a part of an activation is zero in 5 recorded steps")
    ),
    "saturation": Rule("probe", Condition(0.9, "so near to the largest number of a 16-bit dtype")),
    "one layer apart": Rule(
        "OLMo issue 266", Condition(6.0, "robust z of log(norm) among layers of a kind, and twice as large")
    ),
    "weight drift": Rule(
        "probe",
        Condition(2.0, "a parameter's norm is so many times that of the first recorded step"),
        _online(3.0, "param", 10, "so many times the norm of ten measured steps before; no biases"),
    ),
    "setting": Rule(
        "probe", None, _online(5.0, "scalar", 20, "so many times the highest before, or so much nearer to 1")
    ),
    "reset": Rule(
        "probe", None, _online(20.0, "state", 2, "half of its kind fell so many times since the last measured")
    ),
    "scaled": Rule(
        "probe",
        None,
        _online(100.0, "grad_in", 20, "so much more or less of it than of the others enters, in 3 steps, not before"),
    ),
    "stuck": Rule(
        "probe", None, _online(4.0, "loss", 20, "turns so often at most in 20 steps, but half the time before")
    ),
    "collapse": Rule("probe", None, _online(64.0, "scale", 5, "falls so many times within 20 steps, or below 1")),
}
#: the conditions in dumps, and in the monitor
IN_DUMPS = {name: rule.dump for name, rule in RULES.items() if rule.dump is not None}
ONLINE = {name: rule.online for name, rule in RULES.items() if rule.online is not None}


def is_far(value: float, others: Sequence[float], limit: float) -> bool:
    """Return whether a logarithm is above others by a robust z, and by a factor of two."""
    middle = statistics.median(others)
    spread = max(statistics.median(abs(item - middle) for item in others) * 1.4826, 1e-3)
    return (value - middle) / spread > limit and value - middle > math.log(2)
