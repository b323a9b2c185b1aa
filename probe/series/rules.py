# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The rules on series: each with its source, and its condition in dumps and in the monitor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from probe.series import dump_looks, looks, own_looks
from probe.series.history import LEAST_STEPS, Look
from probe.series.own_looks import OwnLook


class Condition(NamedTuple):
    """The condition of a rule."""

    threshold: float  # its default
    kinds: frozenset[str]  # the kinds of series that it looks at; see ``series_name``
    warm_up: int  # the number of values of a series before it looks
    #: looks at one value; None where ``new_rule`` does, and where the rule looks at several series together
    look: Look | None = None
    least: int = LEAST_STEPS  # of dumps: the number of recorded steps before it looks
    #: makes a rule with numbers of its own, one for each series
    new_rule: Callable[[], OwnLook] | None = None

    def look_of_series(self) -> Look | None:
        """Return the function that looks at one series; None where the rule looks at several together."""
        return self.look if self.new_rule is None else self.new_rule().look


class Rule(NamedTuple):
    """A rule."""

    source: str  # the origin of rule and threshold
    dump: Condition | None = None  # its condition in dumps; None where it does not look at them
    online: Condition | None = None  # its condition in the monitor; likewise


def _kinds(*names: str) -> frozenset[str]:
    return frozenset(names)


RULES = {
    "NaN/Inf": Rule(
        "smdebug ExplodingTensor",
        dump=Condition(
            0.0, _kinds("any"), warm_up=0, look=partial(looks.not_a_number, "trend.nan"), least=0
        ),
        online=Condition(
            0.0,
            _kinds(
                "cell", "grad", "grad_in", "logged", "loss", "param", "state", "total", "update"
            ),
            warm_up=0,
            look=partial(looks.not_a_number, "alarm.nan"),
        ),
    ),
    "spike": Rule(
        "ZClip, llm.c",
        dump=Condition(
            6.0, _kinds("any"), warm_up=4, look=partial(dump_looks.spike, "trend.spike")
        ),
        online=Condition(
            4.0,
            _kinds("logged", "loss", "total"),
            warm_up=20,
            look=partial(looks.spike, "alarm.spike"),
        ),
    ),
    "gradient spike": Rule(
        "ZClip",
        online=Condition(
            30.0, _kinds("grad"), warm_up=20, look=partial(looks.gradient_spike, "alarm.spike")
        ),
    ),
    "rising": Rule(
        "probe",
        online=Condition(
            2.0, _kinds("loss"), warm_up=40, new_rule=partial(own_looks.Rising, "alarm.rising")
        ),
    ),
    "growing": Rule(
        "probe",
        dump=Condition(
            10.0, _kinds("gradient"), warm_up=4, look=partial(looks.growing, "trend.growing", 0.0)
        ),
        online=Condition(
            10.0,
            _kinds("grad", "total"),
            warm_up=20,
            look=partial(looks.growing, "alarm.growing", 2.0),
        ),
    ),
    "vanishing": Rule(
        "smdebug VanishingGradient",
        dump=Condition(
            1e-07,
            _kinds("gradient"),
            warm_up=0,
            look=partial(dump_looks.vanishing, "trend.vanishing"),
        ),
        online=Condition(
            0.0001,
            _kinds("grad"),
            warm_up=20,
            look=partial(looks.vanishing, "alarm.vanishing"),
        ),
    ),
    "update ratio": Rule(
        "smdebug WeightUpdateRatio",
        dump=Condition(
            10.0,
            _kinds("parameter"),
            warm_up=1,
            look=partial(dump_looks.update_ratio, "trend.update_ratio"),
        ),
        online=Condition(
            20.0,
            _kinds("update"),
            warm_up=4,
            look=partial(looks.update_ratio, "alarm.update_ratio"),
        ),
    ),
    "unchanged": Rule(
        "smdebug UnchangedTensor",
        dump=Condition(
            3.0, _kinds("any"), warm_up=0, look=partial(looks.unchanged, "trend.unchanged")
        ),
        online=Condition(
            2.0, _kinds("update"), warm_up=2, look=partial(looks.zeros, "alarm.zeros")
        ),
    ),
    "missing": Rule(
        "OLMo issue 266",
        dump=Condition(
            1.0,
            _kinds("gradient"),
            warm_up=0,
            look=partial(looks.zero_gradient, "trend.zero_gradient"),
        ),
        online=Condition(3.0, _kinds("grad"), warm_up=10),
    ),
    "zeros": Rule(
        "smdebug DeadRelu",
        online=Condition(
            3.0,
            _kinds("grad", "grad_in"),
            warm_up=2,
            look=partial(looks.zeros, "alarm.zeros"),
        ),
    ),
    "never": Rule(
        "probe",
        online=Condition(
            20.0, _kinds("grad"), warm_up=19, look=partial(looks.never, "alarm.never")
        ),
    ),
    "no update": Rule(
        "probe",
        online=Condition(
            20.0, _kinds("update"), warm_up=19, look=partial(looks.never, "alarm.never")
        ),
    ),
    "no gradient": Rule(
        "probe",
        online=Condition(
            1.0, _kinds("total"), warm_up=0, look=partial(looks.no_gradient, "alarm.no_gradient")
        ),
    ),
    "constant": Rule(
        "probe",
        online=Condition(
            10.0, _kinds("loss"), warm_up=9, look=partial(looks.unchanged, "alarm.constant")
        ),
    ),
    "dead units": Rule(
        "smdebug DeadRelu",
        dump=Condition(
            0.99,
            _kinds("activation"),
            warm_up=0,
            new_rule=partial(own_looks.DeadUnits, "trend.dead_units"),
        ),
    ),
    "saturation": Rule(
        "probe",
        dump=Condition(
            0.9,
            _kinds("any"),
            warm_up=0,
            look=partial(looks.saturation, "trend.saturation"),
            least=0,
        ),
    ),
    "one layer apart": Rule(
        "OLMo issue 266",
        dump=Condition(6.0, _kinds(), warm_up=0),
    ),
    "weight drift": Rule(
        "probe",
        dump=Condition(
            2.0,
            _kinds("parameter"),
            warm_up=1,
            look=partial(dump_looks.weight_drift, "trend.weight_drift"),
        ),
        online=Condition(
            3.0,
            _kinds("param"),
            warm_up=0,
            new_rule=partial(own_looks.Drifting, "alarm.weight_drift"),
        ),
    ),
    "setting": Rule(
        "probe",
        online=Condition(
            5.0, _kinds("scalar"), warm_up=20, look=partial(looks.setting, "alarm.setting")
        ),
    ),
    "reset": Rule(
        "probe",
        online=Condition(20.0, _kinds("state"), warm_up=2),
    ),
    "scaled": Rule(
        "probe",
        online=Condition(100.0, _kinds("grad_in"), warm_up=20),
    ),
    "stuck": Rule(
        "probe",
        online=Condition(
            4.0, _kinds("loss"), warm_up=20, new_rule=partial(own_looks.Stuck, "alarm.stuck")
        ),
    ),
    "collapse": Rule(
        "probe",
        online=Condition(
            64.0,
            _kinds("scale"),
            warm_up=5,
            new_rule=partial(own_looks.FallenScale, "alarm.collapse"),
        ),
    ),
    "attention entropy": Rule(
        "arXiv 2303.06296",
        online=Condition(
            4.0,
            _kinds("attention_entropy"),
            warm_up=2,
            look=partial(looks.entropy_collapse, "alarm.collapse"),
        ),
    ),
    "attention logits": Rule(
        "arXiv 2309.14322, 2507.20534",
        online=Condition(
            100.0,
            _kinds("attention_logits"),
            warm_up=1,
            new_rule=partial(own_looks.Swollen, "alarm.swollen"),
        ),
    ),
    "expert": Rule(
        "arXiv 2101.03961",
        online=Condition(
            0.1,
            _kinds("expert_smallest"),
            warm_up=4,
            look=partial(looks.beyond, "alarm.expert_least", 5, False),
        ),
    ),
    "expert takes all": Rule(
        "arXiv 2101.03961",
        online=Condition(
            0.9,
            _kinds("expert_largest"),
            warm_up=4,
            look=partial(looks.beyond, "alarm.expert_most", 5, True),
        ),
    ),
    "stable rank": Rule(
        "arXiv 2510.04212",
        online=Condition(
            5.0,
            _kinds("stable_rank"),
            warm_up=2,
            look=partial(looks.collapse, "alarm.stable_rank", 3.0),
        ),
    ),
    "call NaN/Inf": Rule(
        "probe",
        online=Condition(0.0, _kinds("call"), warm_up=0),
    ),
    "call range": Rule(
        "probe",
        online=Condition(0.9, _kinds("call"), warm_up=0),
    ),
    "call zeros": Rule(
        "smdebug DeadRelu",
        online=Condition(0.99, _kinds("call"), warm_up=4),
    ),
    "call gain": Rule(
        "probe",
        online=Condition(12.0, _kinds("call"), warm_up=12),
    ),
    "table update": Rule(
        "smdebug WeightUpdateRatio",
        online=Condition(
            0.1,
            _kinds("update_ratio"),
            warm_up=1,
            new_rule=partial(own_looks.Swollen, "alarm.table"),
        ),
    ),
}
#: the conditions in dumps, and in the monitor
IN_DUMPS = {name: rule.dump for name, rule in RULES.items() if rule.dump is not None}
ONLINE = {name: rule.online for name, rule in RULES.items() if rule.online is not None}
