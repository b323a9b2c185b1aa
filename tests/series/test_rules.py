# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The rules of series are those of the documents, and each of them can say something."""

from __future__ import annotations

import json
import math
import re

import pytest

from probe.reading.one_run.trend import findings
from probe.series.history import Point
from probe.series.online_rules import OnlineRules
from probe.series.rules import IN_DUMPS, ONLINE, RULES
from tests.series.test_call_rules import of_call
from tests.support.paths import ROOT


def rows(head):
    """Return the first cells of the table of docs/monitor.md that begins with this line."""
    lines = (ROOT / "docs" / "monitor.md").read_text("utf-8").splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(head)) + 2
    end = next(place for place in range(start, len(lines)) if not lines[place].startswith("|"))
    return [line.split("|")[1].strip(" `") for line in lines[start:end]]


def test_the_documents_have_a_row_for_each_rule():
    assert sorted(rows("| rule | looks at |")) == sorted([*ONLINE, "ranks apart"])
    assert sorted(rows("| rule | threshold |")) == sorted(IN_DUMPS)
    assert set(RULES) == {*IN_DUMPS, *ONLINE}


GRADIENTS = {"w.grad": 1.0, "b.grad": 1.0, "v.grad": 1.0}
STATES = ["optimizer.moment2.u", "optimizer.moment2.v", "optimizer.moment2.w"]
#: the series of the calls below
CALL = "Functional.relu.0.forward.output.0.norm"
#: rule -> a series, and its values or the steps' numbers, of which the last ones are strange
STRANGE = {
    "call NaN/Inf": ("", [of_call(), of_call(norm=math.nan, highest=math.nan)]),
    "call range": ("", [of_call(peak=0.5), of_call(peak=0.95)]),
    "call zeros": ("", [of_call(zeros=0.5)] * 4 + [of_call(zeros=1.0)] * 2),
    "call gain": ("", [of_call()] * 14 + [of_call(norm=4.0)] * 2),
    "NaN/Inf": ("loss", [1.0, math.nan]),
    "spike": ("loss", [1 + 0.01 * (i % 3) for i in range(30)] + [9.0]),
    "gradient spike": ("w.grad", [1 + 0.01 * (i % 3) for i in range(30)] + [90.0]),
    "rising": ("loss", [1.0 - 0.02 * i for i in range(45)] + [0.9] * 12),
    "growing": ("w.grad", [1.0] * 30 + [3.0 * 3**i for i in range(5)]),
    "vanishing": ("w.grad", [1.0] * 30 + [1e-6] * 6),
    "update ratio": ("w.update", [1e-3] * 10 + [1.0]),
    "unchanged": ("w.update", [1e-3] * 10 + [0.0, 0.0]),
    "missing": ("w.grad", [1.0] * 20 + [None] * 4),
    "zeros": ("w.grad", [1.0] * 20 + [0.0] * 3),
    "never": ("w.grad", [0.0] * 20),
    "no update": ("w.update", [0.0] * 20),
    "no gradient": ("optimizer.global_norm", [1.0] * 5 + [0.0]),
    "constant": ("loss", [0.7] * 10),
    "weight drift": ("w.param", [1.2**i for i in range(20)]),
    "collapse": ("loss_scale", [4096.0] * 10 + [1.0]),
    "attention entropy": ("Cell.a.attention_entropy", [2.0 - 0.01 * i for i in range(20)] + [0.2]),
    "attention logits": ("Cell.a.attention_logits", [5.0] * 10 + [120.0]),
    "expert": ("Cell.r.expert_smallest", [0.9] * 5 + [0.05] * 5),
    "expert takes all": ("Cell.r.expert_largest", [0.3] * 5 + [0.95] * 5),
    "stable rank": ("w.stable_rank", [20.0] * 10 + [2.0]),
    "table update": ("embedding.update_ratio", [0.01] * 5 + [0.2, 0.2]),
    "setting": ("optimizer.momentum", [0.9] * 20 + [0.999]),
    "reset": (
        "optimizer.moment2.v",
        [dict.fromkeys(STATES, 1e-3)] * 5 + [dict.fromkeys(STATES, 1e-6)],
    ),
    "scaled": (
        "w.grad_in",
        [dict.fromkeys(GRADIENTS, 1.0)] * 20 + [{**GRADIENTS, "w.grad_in": 1e-3}] * 3,
    ),
    "stuck": (
        "loss",
        [1.0 + 0.1 * (i % 2) for i in range(60)] + [1.0 - 0.01 * i for i in range(20)],
    ),
}


@pytest.mark.parametrize("rule", list(ONLINE))
def test_each_rule_of_the_monitor_can_say_something(rule):
    name, values = STRANGE[rule]
    looking = OnlineRules()
    found = []
    for step, value in enumerate(values):
        found += looking.feed(
            step, value if isinstance(value, dict) else {} if value is None else {name: value}
        )
    assert rule in {alarm.rule for alarm in found}
    assert {alarm.series for alarm in found} == {name or CALL}


def test_an_update_that_is_rounding_raises_no_alarm():
    looking, found = OnlineRules(), []
    for step, value in enumerate([1e-10] * 10 + [1e-7]):
        found += looking.feed(step, {"conv.bias.update": value, "conv.weight.update": 0.1})
    assert found == []


def alarms_of(name, values):
    looking = OnlineRules()
    return [
        alarm for step, value in enumerate(values) for alarm in looking.feed(step, {name: value})
    ]


def test_a_loss_near_zero_whose_numbers_vary_much_has_a_spike():
    noise = [10.0 ** -(i % 4) for i in range(20)]
    (alarm,) = alarms_of("loss", [*noise, *(0.01 * value for value in noise), 1.5])
    assert (alarm.rule, alarm.step) == ("spike", 40)


@pytest.mark.parametrize(("still", "expected"), [(19, []), (22, ["collapse"])])
def test_a_scaler_that_looks_for_its_scale_does_not_collapse(still, expected):
    search = [2.0**24 / 2**i for i in range(8)]
    fall = [search[-1] / 2**i for i in range(1, 7)]
    found = alarms_of("loss_scale", [*search, *[search[-1]] * still, *fall])
    assert [alarm.rule for alarm in found] == expected


def test_a_scale_below_one_collapses_at_any_time():
    assert [alarm.rule for alarm in alarms_of("loss_scale", [4.0 / 2**i for i in range(7)])] == [
        "collapse"
    ]


@pytest.mark.parametrize(("dip", "expected"), [(0.036, []), (0.04, ["growing"])])
def test_a_gradient_that_comes_back_from_a_dip_does_not_grow(dip, expected):
    values = [0.3] * 20 + [dip * 3**i for i in range(5)]
    found = {alarm.rule for alarm in alarms_of("w.grad", values)} - {"gradient spike"}
    assert sorted(found) == expected


@pytest.mark.parametrize(("first", "expected"), [(0.0, []), (0.01, ["weight drift"])])
def test_a_parameter_that_begins_with_zeros_does_not_drift(first, expected):
    values = [first] * 5 + [0.01 * 1.6**i for i in range(12)]
    assert [alarm.rule for alarm in alarms_of("lora_b.param", values)] == expected


@pytest.mark.parametrize(
    ("rates", "growth", "expected"),
    [
        ([0.01 * step for step in range(1, 21)], 1.0, []),  # a warm-up
        ([0.01 * step for step in range(1, 21)], 1.3, ["weight drift"]),
        ([0.0] * 5 + [0.1] * 15, 1.0, []),
        ([0.1] * 20, 1.0, []),
        ([0.1] * 20, 1.3, ["weight drift"]),
    ],
)
def test_a_small_weight_that_grows_as_the_sum_of_its_learning_rates_does_not_drift(
    rates, growth, expected
):
    looking = OnlineRules()
    found = []
    path = 0.1
    for step, rate in enumerate(rates):
        path += rate
        values = {"optimizer.learning_rate": rate, "table.param": path * growth**step}
        found += looking.feed(step, values)
    assert [alarm.rule for alarm in found if alarm.series == "table.param"] == expected


@pytest.mark.parametrize("rule", list(ONLINE))
@pytest.mark.parametrize("strange", [math.nan, math.inf, -math.inf])
def test_no_rule_fails_behind_nan_or_inf(rule, strange):
    name, values = STRANGE[rule]
    rows = [
        value if isinstance(value, dict) else {} if value is None else {name: value}
        for value in values
    ]
    for count in (1, 5, 30):
        for before in (0, 5, len(rows)):
            looking = OnlineRules()
            middle = [dict.fromkeys(rows[0], strange)] * count
            for step, row in enumerate([*rows[:before], *middle, *rows]):
                looking.feed(step, row)


@pytest.mark.parametrize(("fall", "expected"), [(0.3, []), (0.0, ["rising"])])
def test_one_loss_that_rises_while_another_falls_is_no_alarm(fall, expected):
    looking = OnlineRules()
    found = []
    for step in range(80):
        part = max(0.0, (step - 45) / 5)
        rises = 1.0 - 0.015 * min(step, 45) + part
        falls = 9.0 - 0.1 * min(step, 45) - fall * 5 * part
        found += looking.feed(step, {"loss": falls, "loss1": rises + 0.001 * (step % 3)})
    assert [alarm.rule for alarm in found if alarm.series == "loss1"] == expected


PHASES = {
    "other parameters": ({"teacher.grad": 1.0}, {"student.grad": 1.0}, []),
    "a parameter more": ({"a.grad": 1.0}, {"a.grad": 1.0, "b.grad": 1.0}, ["spike"]),
    "experts": ({"a.grad": 1.0, "one.grad": 1.0}, {"a.grad": 1.0, "two.grad": 1.0}, ["spike"]),
}


@pytest.mark.parametrize(("before", "behind", "expected"), PHASES.values(), ids=PHASES)
def test_the_loss_of_another_phase_is_no_spike(before, behind, expected):
    looking = OnlineRules()
    found = []
    for step in range(60):
        is_first = step < 30
        loss = 1 + 0.01 * (step % 3) if is_first else 9.0 - 0.01 * step
        found += looking.feed(step, {"loss": loss, **(before if is_first else behind)})
    assert [alarm.rule for alarm in found if alarm.series == "loss"] == expected


def test_the_losses_of_phases_in_turn_are_judged_each_by_its_own():
    looking = OnlineRules()
    found = []
    for step in range(80):
        name = ("generator.grad", "discriminator.grad")[step % 2]
        loss = (1.0, 50.0)[step % 2] + 0.01 * (step % 3)
        found += looking.feed(step, {"loss": 9.0 if step == 78 else loss, name: 1.0})
    (alarm,) = [alarm for alarm in found if alarm.series == "loss"]
    assert (alarm.rule, alarm.step) == ("spike", 78)


def test_updates_that_grow_little_by_little_raise_no_alarm():
    assert alarms_of("w.update", [1e-5 * 1.8**i for i in range(12)]) == []


@pytest.mark.parametrize("sign", [1, -1], ids=["a loss", "that of a policy"])
def test_gradients_that_fall_with_the_loss_do_not_vanish(sign):
    looking, found = OnlineRules(), []
    for step in range(400):
        found += looking.feed(step, {"loss": sign * 0.95**step, "w.grad": 0.95**step})
    assert found == []


def test_a_hard_batch_when_nearly_all_is_learnt_is_no_spike():
    assert alarms_of("loss", [*[1.0, 1.01] * 10, *[0.9**i for i in range(60)], 0.05]) == []


@pytest.mark.parametrize(
    ("name", "left", "value", "expected"),
    [
        ("loss", 0.01, 0.45, []),
        ("loss", 0.01, 0.6, ["spike"]),
        ("loss", 0.12, 0.6, ["spike"]),
        ("optimizer.global_norm", 0.01, 3.9, []),
        ("optimizer.global_norm", 0.01, 4.2, ["spike"]),
        ("optimizer.global_norm", 0.12, 0.6, ["spike"]),
    ],
)
def test_a_spike_is_measured_by_the_first_values_once_nearly_all_is_learnt(
    name, left, value, expected
):
    looking = OnlineRules()
    found = []
    for step in range(80):
        usual = (1.0 if step < 25 else left) * (1 + 0.01 * (step % 3))
        values = {"loss": usual, "optimizer.global_norm": usual}
        if step == 79:
            values[name] = value
        found += looking.feed(step, values)
    assert [alarm.rule for alarm in found] == expected


@pytest.mark.parametrize(("fall", "expected"), [(0.85, []), (0.95, ["attention entropy"])])
def test_attention_that_sharpens_while_the_loss_falls_fast_does_not_collapse(fall, expected):
    looking = OnlineRules()
    found = []
    for step in range(25):
        loss = 3.0 * fall ** max(step - 5, 0)
        entropy = 1.6 * 0.8 ** max(step - 5, 0)
        found += looking.feed(step, {"loss": loss, "Cell.a.attention_entropy": entropy})
    assert [alarm.rule for alarm in found] == expected


@pytest.mark.parametrize(
    ("name", "count", "expected"),
    [
        ("w.grad", 3, ["zeros"]),
        ("experts.1.w.grad", 19, []),
        ("moe.Expert_1.w.grad", 20, ["zeros"]),
    ],
)
def test_an_expert_may_have_no_token_in_some_steps(name, count, expected):
    found = alarms_of(name, [1.0] * 20 + [0.0] * count)
    assert [alarm.rule for alarm in found] == expected


def test_a_weight_that_grows_by_equal_steps_from_near_zero_does_not_drift():
    assert alarms_of("embedding.param", [0.1 + 0.2 * i for i in range(40)]) == []


def test_a_rate_that_rises_slowly_or_comes_back_is_no_alarm():
    warm = [1e-4 * (i + 1) for i in range(40)]
    assert (
        alarms_of("optimizer.learning_rate", [*warm, *warm[::-1], *[1e-5] * 30, *warm[-10:]]) == []
    )
    assert [alarm.step for alarm in alarms_of("optimizer.learning_rate.1", [*warm, 0.04])] == [40]


def test_one_state_alone_that_crosses_zero_is_no_reset():
    looking, found = OnlineRules(), []
    for step in range(8):
        found += looking.feed(step, {**dict.fromkeys(STATES, 1.0), "optimizer.moment2.d": step % 7})
        found += looking.feed(step, {"optimizer.moment1.bias": 0.5 - step % 2})
    assert found == []


def test_a_part_that_enters_from_the_first_step_on_is_no_alarm():
    looking = OnlineRules()
    assert not any(looking.feed(step, {**GRADIENTS, "w.grad_in": 1e-3}) for step in range(60))


def test_a_loss_that_falls_smoothly_from_the_first_step_on_is_not_stuck():
    assert alarms_of("loss", [0.99**i for i in range(200)]) == []


def test_a_rule_is_told_again_only_when_it_was_over_for_twenty_steps():
    def said(distance):
        looking, found = OnlineRules(), []
        for step in range(40 + distance + 1):
            value = 9.0 if step in (40, 40 + distance) else 1 + 0.01 * (step % 3)
            found += looking.feed(step, {"validation": value})
        return [alarm.step for alarm in found if alarm.rule == "spike"]

    assert said(15) == [40]
    assert said(30) == [40, 70]


def tensor_of(rule):
    return {
        "dead units": "Functional.relu.0.forward.output.0",
        "saturation": "Functional.relu.0.forward.output.0",
        "update ratio": "Cell.fc.Dense.forward.0.parameters.weight",
        "weight drift": "Cell.fc.Dense.forward.0.parameters.weight",
    }.get(rule, "Cell.fc.Dense.parameters_grad.0.weight.0")


STEADY = [1.0, 1.1, 0.9, 1.05, 1.0, 0.95]
#: rule -> norms of the recorded steps, further numbers, and the whole finding
IN_STEPS = {
    "NaN/Inf": (
        [1.0, math.nan],
        Point(),
        "NaN/Inf: nan in step 1 (threshold 0; smdebug ExplodingTensor)",
    ),
    "spike": (
        [*STEADY, 30.0],
        Point(),
        "spike: 30 in step 6, about 1 before (threshold 6; ZClip, llm.c)",
    ),
    "growing": (
        [1.0, 3.0, 9.0, 27.0, 81.0],
        Point(),
        "growing: from 1 to 81 in 5 recorded steps (threshold 10; probe)",
    ),
    "vanishing": (
        [*STEADY, 1e-8],
        Point(size=4),
        "vanishing: no more than 5e-09 on average in step 6 (threshold 1e-07; smdebug VanishingGradient)",
    ),
    "update ratio": (
        [*STEADY, 12.0],
        Point(),
        "update ratio: from 0.95 to 12 in one step (threshold 10; smdebug WeightUpdateRatio)",
    ),
    "unchanged": (
        [*STEADY, 1.25, 1.25, 1.25],
        Point(),
        "unchanged: 1.25 in 3 recorded steps (threshold 3; smdebug UnchangedTensor)",
    ),
    "missing": (
        [*STEADY[:3], None, *STEADY],
        Point(),
        "missing: not recorded in step 3, but before (threshold 1; OLMo issue 266)",
    ),
    "dead units": (
        STEADY,
        Point(zeros=1.0),
        "dead units: 100.0% zeros in 5 recorded steps (threshold 0.99; smdebug DeadRelu)",
    ),
    "saturation": (
        [1.0],
        Point(peak=0.95),
        "saturation: 95% of the largest number of its dtype in step 0 (threshold 0.9; probe)",
    ),
    "weight drift": (
        [*STEADY, 2.0],
        Point(),
        "weight drift: 2 in step 6, 1 at first (threshold 2; probe)",
    ),
    "one layer apart": (
        [*STEADY, 80.0],
        Point(),
        "one layer apart: 80 in step 6, about 1 in 7 layers of its kind (threshold 6; OLMo issue 266)",
    ),
}


def found_in_dumps(rule):
    norms, point, _ = IN_STEPS[rule]
    series = {step: norm for step, norm in enumerate(norms) if norm is not None}
    trend = {tensor_of(rule): {None: series}}
    if rule == "one layer apart":
        names = [f"Cell.blocks.{place}.fc.Dense.parameters_grad.0.weight.0" for place in range(8)]
        trend = {
            name: {None: series if place == 3 else dict.fromkeys(series, 1.0)}
            for place, name in enumerate(names)
        }
    points = {name: {None: dict.fromkeys(series, point)} for name in trend}
    return [item for item in findings(trend, range(len(norms)), points=points) if item.rule == rule]


@pytest.mark.parametrize("rule", list(IN_DUMPS))
def test_each_rule_of_dumps_says_its_numbers_once(rule):
    assert [item.sentence for item in found_in_dumps(rule)] == [IN_STEPS[rule][2]]


BIAS = "Cell.fc.Dense.parameters_grad.0.bias.0"
WEIGHT = "Cell.fc.Dense.parameters_grad.0.weight.0"


def rules_in(series, points=None):
    """Return (rule, step) of what is found in dumps of these series: name -> step -> number."""
    trend = {name: {None: values} for name, values in series.items()}
    known = {
        name: {None: dict.fromkeys(series[name], point)} for name, point in (points or {}).items()
    }
    steps = sorted(set().union(*series.values()))
    return {(item.rule, item.step) for item in findings(trend, steps, points=known)}


@pytest.mark.parametrize(
    ("last", "expected"), [(6, {("spike", 6)}), (7, {("spike", 7)}), (8, set())]
)
def test_a_value_behind_a_gap_of_steps_is_no_spike(last, expected):
    assert rules_in({WEIGHT: {**dict(enumerate(STEADY[:6])), last: 30.0}}) == expected


@pytest.mark.parametrize(("norm", "expected"), [(0.9e-5, {("vanishing", 0)}), (1.1e-5, set())])
def test_a_bias_before_a_norm_does_not_vanish(norm, expected):
    points = dict.fromkeys((BIAS, WEIGHT), Point(size=1))
    bias = {step: 1e-8 + step * 1e-10 for step in range(5)}
    weight = {step: norm - step * 1e-9 for step in range(5)}
    assert rules_in({BIAS: bias, WEIGHT: weight}, points) == expected


@pytest.mark.parametrize(("common", "expected"), [(4, {("missing", 5)}), (5, set())])
def test_gradients_of_an_ended_phase_are_not_missing(common, expected):
    first = dict.fromkeys(range(5), 1.0)
    second = dict.fromkeys(range(common, 9), 1.0)
    found = rules_in({WEIGHT: first, BIAS: second})
    assert {item for item in found if item[0] == "missing"} == expected


#: rule -> the sentence of the series above
SAID = {
    "call NaN/Inf": "makes NaN/Inf of finite values, from step 1 on",
    "call range": "uses 95% of the range of its dtype, from step 1 on",
    "call zeros": "100% of its elements are zero, from step 5 on",
    "call gain": "its norm is 4 times that of its inputs, and was 1 times, from step 15 on",
    "NaN/Inf": "NaN in step 1, after 1 in step 0",
    "spike": "9 in step 30, 1.02 at most in the 20 steps before",
    "gradient spike": "90 in step 30, about 1.01 in the 20 steps before",
    "rising": "about 0.55 in the 10 steps up to step 49, 0.21 at its lowest before",
    "growing": "from 1 to 81 in the 5 steps up to step 33",
    "vanishing": "1e-06 in step 34, about 1 in the first 20 steps",
    "update ratio": "1 in step 10, about 0.001 before",
    "unchanged": "zero in the 2 steps up to step 11",
    "missing": "no gradient since step 19, but in each step before",
    "zeros": "zero in the 3 steps up to step 22",
    "never": "zero in each of the first 20 steps, up to step 19",
    "no update": "zero in each of the first 20 steps, up to step 19",
    "no gradient": "all gradients are zero in step 5: is the loss 0?",
    "constant": "0.7 in the 10 steps up to step 9",
    "weight drift": "6.192 in step 10, 1 ten measured steps before",
    "collapse": "1 in step 10, 4096 before",
    "attention entropy": "0.2 in step 20, 2 before",
    "attention logits": "120 in step 10, 5 at its lowest",
    "expert": "at most 0.05 of an even share of the tokens prefers one expert, in 5 measured steps up to step 9",
    "expert takes all": "at least 95% of all preferences are for one expert, in 5 measured steps up to step 9",
    "stable rank": "2 in step 10, 20 within the last measured steps",
    "table update": "an update changes 0.2 of its norm, 0.01 at its lowest, in step 5",
    "setting": "0.999 in step 20, 0.9 at most before",
    "reset": "1e-06 in step 5, 0.001 in step 4; as half of optimizer.moment2 or more",
    "scaled": "0.001 of it enters the optimizer, 1 of the others, in step 22 and the two before",
    "stuck": "it turned 0 times in the 20 steps up to step 79, 39 times in the 40 before: is the batch stuck?",
}


def alarms_of_rule(rule):
    name, values = STRANGE[rule]
    looking, found = OnlineRules(), []
    for step, value in enumerate(values):
        found += looking.feed(
            step, value if isinstance(value, dict) else {} if value is None else {name: value}
        )
    return [alarm for alarm in found if alarm.rule == rule]


@pytest.mark.parametrize("rule", list(ONLINE))
def test_each_rule_of_the_monitor_says_its_numbers(rule):
    assert alarms_of_rule(rule)[0].sentence == SAID[rule]


def test_a_loss_that_is_nan_from_the_first_step_on_and_one_far_above_all():
    assert alarms_of("loss", [math.nan])[0].sentence == "NaN/Inf in step 0"
    steady = [1 + 0.01 * (i % 3) for i in range(30)]
    assert (
        alarms_of("loss", [*steady, 5.0])[0].sentence
        == "5 in step 30, about 1.01 in the 20 steps before"
    )


def without_names(text):
    """Return a text without the names of rules and their sources, which stay English."""
    for name in sorted([*RULES, *(rule.source for rule in RULES.values())], key=len, reverse=True):
        text = text.replace(name, "")
    return text


@pytest.mark.parametrize("rule", list(IN_DUMPS))
def test_a_finding_of_trend_has_no_english_words_in_chinese(rule):
    (finding,) = found_in_dumps(rule)
    said = finding.said.text("zh")
    assert said.startswith(rule) and "阈值" in said
    assert not re.search(r"[a-z]{2,}", without_names(said).replace("nan", "")), said


@pytest.mark.parametrize("rule", list(ONLINE))
def test_an_alarm_has_no_english_words_in_chinese(rule):
    said = alarms_of_rule(rule)[0].said.text("zh")
    assert not re.search(
        r"[a-z]{2,}", said.replace("optimizer.moment2", "").replace("NaN/Inf", "")
    ), said


def test_an_alarm_is_key_and_facts_in_json():
    (alarm,) = alarms_of("loss", [1.0, math.inf])
    written = json.loads(json.dumps(alarm.to_dict(), allow_nan=False))
    assert (written["key"], written["facts"]["step"]) == ("alarm.nan", 1)
    assert written["facts"]["after"] == {
        "key": "alarm.after",
        "facts": {"last": 1.0, "last_step": 0},
    }


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Cell.a.attention_entropy", [2.0 - 0.009 * i for i in range(200)]),  # slowly sharper
        ("Cell.a.attention_entropy", [0.2, 0.05, 0.2]),  # always sharp
        ("Cell.a.attention_logits", [150.0] * 30),  # a net without a factor
        ("Cell.a.attention_logits", [1.0, 50.0, 99.0]),
        ("Cell.r.expert_smallest", [0.01] * 4 + [0.5] * 30),  # before the balance loss has acted
        ("Cell.r.expert_smallest", [0.05, 0.5] * 20),
        ("Cell.r.expert_largest", [0.5] * 30),  # two experts
        ("w.stable_rank", [14.0 * 0.95**i + 3.0 for i in range(100)]),
        ("w.stable_rank", [1.0] * 20),  # one row
        (
            "embedding.update_ratio",
            [0.242, 0.165, 0.124, 0.106, 0.087, 0.074],
        ),  # Adam's first steps, without warm-up
        ("embedding.update_ratio", [0.15] + [0.03] * 20),  # the first update of small numbers
    ],
)
def test_a_healthy_mechanism_raises_no_alarm(name, values):
    assert alarms_of(name, values) == []


def test_an_update_that_was_rounding_before_may_be_zero():
    rules, small = OnlineRules(), [5.8e-11, 5.8e-11, 0.0, 0.0, 0.0]
    assert [
        rules.feed(step, {"a.update": 0.1, "b.update": value}) for step, value in enumerate(small)
    ] == [[]] * 5
    rules = OnlineRules()
    found = [
        rules.feed(step, {"a.update": 1e-3, "b.update": value, "b.param": 4.0})
        for step, value in enumerate([6e-8, 8e-8, 0.0, 0.0])
    ]
    assert found == [[]] * 4
    rules = OnlineRules()
    found = [
        rules.feed(step, {"a.update": 0.1, "b.update": value})
        for step, value in enumerate([0.01, 0.01, 0.0, 0.0])
    ]
    assert [alarm.rule for alarm in found[3]] == ["unchanged"]


@pytest.mark.parametrize(
    ("others", "expected"), [("new", []), ("old", ["missing"]), ("", ["missing"])]
)
def test_gradients_of_another_part_of_a_training_are_not_missing(others, expected):
    """A teacher has gradients up to step 19. Then a student has ("new"), or a part that had them before, or nobody."""
    looking = OnlineRules()
    found = []
    for step in range(30):
        row = {"teacher.weight.grad": 1.0} if step < 20 else {}
        if others == "old" or (others == "new" and step >= 20):
            row["student.weight.grad"] = 1.0
        found += looking.feed(step, row)
    assert [alarm.rule for alarm in found if alarm.rule == "missing"] == expected
