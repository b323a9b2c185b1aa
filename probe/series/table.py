# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The table of all rules for series: in the recorded steps of dumps, and in each step of the monitor.

None of them proves an error. A dump has few steps, so its conditions need fewer, and differ. The words of a condition
are in docs/large-runs.md and docs/monitor.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from probe.series import looks
from probe.series.looks import LEAST_STEPS
from probe.series.series_name import ACTIVATION, GRADIENT, PARAMETER


class Condition(NamedTuple):
    """The condition of a rule."""

    threshold: float  # its default
    kinds: frozenset[str]  # the kinds of series that it looks at; see ``series_name``
    warm_up: int  # the number of values of a series before it looks
    look: looks.Look | None  # looks at one value; None where the rule looks at several series together
    least: int  # of dumps: the number of recorded steps before it looks


class Rule(NamedTuple):
    """A rule."""

    source: str  # the origin of rule and threshold
    dump: Condition | None  # its condition in dumps; None where it does not look at them
    online: Condition | None = None  # its condition in the monitor; likewise


def _on(threshold: float, kinds: str, warm_up: int, *look: Any, least: int = LEAST_STEPS) -> Condition:
    return Condition(threshold, frozenset(kinds.split()), warm_up, partial(look[0], *look[1:]) if look else None, least)


_ANY, _FEW = "any", LEAST_STEPS - 1
_STRANGE = "cell loss grad grad_in param update state logged total"
RULES = {
    "NaN/Inf": Rule(
        "smdebug ExplodingTensor",
        _on(0.0, _ANY, 0, looks.not_a_number, "trend.nan", least=0),
        _on(0.0, _STRANGE, 0, looks.not_a_number, "alarm.nan"),
    ),
    "spike": Rule(
        "ZClip, llm.c",
        _on(6.0, _ANY, _FEW, looks.spike, "trend.spike", False),
        _on(4.0, "loss total logged", 20, looks.spike, "alarm.spike", True),
    ),
    "gradient spike": Rule("ZClip", None, _on(30.0, "grad", 20, looks.gradient_spike, "alarm.spike")),
    "rising": Rule("probe", None, _on(2.0, "loss", 40, looks.rising, "alarm.rising")),
    "growing": Rule(
        "probe",
        _on(10.0, GRADIENT, _FEW, looks.growing, "trend.growing", 0.0),
        _on(10.0, "grad total", 20, looks.growing, "alarm.growing", 2.0),
    ),
    "vanishing": Rule(
        "smdebug VanishingGradient",
        _on(1e-7, GRADIENT, 0, looks.vanishing, "trend.vanishing", False),
        _on(1e-4, "grad", 20, looks.vanishing, "alarm.vanishing", True),
    ),
    "update ratio": Rule(
        "smdebug WeightUpdateRatio",
        _on(10.0, PARAMETER, 1, looks.update_ratio, "trend.update_ratio", False),
        _on(20.0, "update", 4, looks.update_ratio, "alarm.update_ratio", True),
    ),
    "unchanged": Rule(
        "smdebug UnchangedTensor",
        _on(3.0, _ANY, 0, looks.unchanged, "trend.unchanged", False),
        _on(2.0, "update", 2, looks.unchanged, "alarm.zeros", True),
    ),
    "missing": Rule(
        "OLMo issue 266", _on(1.0, GRADIENT, 0, looks.zero_gradient, "trend.zero_gradient"), _on(3.0, "grad", 10)
    ),
    "zeros": Rule("smdebug DeadRelu", None, _on(3.0, "grad grad_in", 2, looks.unchanged, "alarm.zeros", True)),
    "never": Rule("probe", None, _on(20.0, "grad", 19, looks.never, "alarm.never")),
    "no gradient": Rule("probe", None, _on(1.0, "total", 0, looks.no_gradient, "alarm.no_gradient")),
    "constant": Rule("probe", None, _on(10.0, "loss", 9, looks.unchanged, "alarm.constant", False)),
    "dead units": Rule("smdebug DeadRelu", _on(0.99, ACTIVATION, 0, looks.dead_units, "trend.dead_units")),
    "saturation": Rule("probe", _on(0.9, _ANY, 0, looks.saturation, "trend.saturation", least=0)),
    "one layer apart": Rule("OLMo issue 266", _on(6.0, "", 0)),
    "weight drift": Rule(
        "probe",
        _on(2.0, PARAMETER, 1, looks.weight_drift, "trend.weight_drift", False),
        _on(3.0, "param", 10, looks.weight_drift, "alarm.weight_drift", True),
    ),
    "setting": Rule("probe", None, _on(5.0, "scalar", 20, looks.setting, "alarm.setting")),
    "reset": Rule("probe", None, _on(20.0, "state", 2)),
    "scaled": Rule("probe", None, _on(100.0, "grad_in", 20)),
    "stuck": Rule("probe", None, _on(4.0, "loss", 20, looks.stuck, "alarm.stuck")),
    "collapse": Rule("probe", None, _on(64.0, "scale", 5, looks.collapse, "alarm.collapse")),
}
#: the rules of msprobe's key "alert": the numbers that each looks at, none for all, and its function
MSPROBE: dict[str, tuple[tuple[str, ...], Callable[[float, float, Any], bool]]] = {
    "AnomalyTurbulence": (("norm", "mean"), looks.is_above),
    "AnomalyNan": ((), looks.is_strange),
}
#: the conditions in dumps, and in the monitor
IN_DUMPS = {name: rule.dump for name, rule in RULES.items() if rule.dump is not None}
ONLINE = {name: rule.online for name, rule in RULES.items() if rule.online is not None}
