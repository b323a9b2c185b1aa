# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The rules of series are those of the documents, and each of them can say something."""

from __future__ import annotations

import math

import pytest

from probe.series.rules import OnlineRules
from probe.series.table import IN_DUMPS, ONLINE, RULES
from tests.support.paths import ROOT


def rows(page, head):
    """Return the first cells of the table that begins with this cell."""
    lines = (ROOT / "docs" / page).read_text("utf-8").splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(f"| {head} |")) + 2
    end = next(place for place in range(start, len(lines)) if not lines[place].startswith("|"))
    return [line.split("|")[1].strip(" `") for line in lines[start:end]]


def test_the_documents_have_a_row_for_each_rule():
    assert sorted(rows("monitor.md", "rule")) == sorted([*ONLINE, "ranks apart"])
    assert sorted(rows("large-runs.md", "rule")) == sorted(IN_DUMPS)
    assert set(RULES) == {*IN_DUMPS, *ONLINE}


GRADIENTS = {"w.grad": 1.0, "b.grad": 1.0, "v.grad": 1.0}
STATES = ["optimizer.moment2.u", "optimizer.moment2.v", "optimizer.moment2.w"]
#: rule -> a series, and its values or the steps' numbers, of which the last ones are strange
STRANGE = {
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
    "weight drift": ("w.param", [1.2**i for i in range(20)]),
    "collapse": ("loss_scale", [4096.0] * 10 + [1.0]),
    "setting": ("optimizer.momentum", [0.9] * 20 + [0.999]),
    "reset": ("optimizer.moment2.v", [dict.fromkeys(STATES, 1e-3)] * 5 + [dict.fromkeys(STATES, 1e-6)]),
    "scaled": ("w.grad_in", [dict.fromkeys(GRADIENTS, 1.0)] * 20 + [{**GRADIENTS, "w.grad_in": 1e-3}] * 3),
    "stuck": ("loss", [1.0 + 0.1 * (i % 2) for i in range(60)] + [1.0 - 0.01 * i for i in range(20)]),
}


@pytest.mark.parametrize("rule", list(ONLINE))
def test_each_rule_of_the_monitor_can_say_something(rule):
    name, values = STRANGE[rule]
    looking = OnlineRules()
    found = []
    for step, value in enumerate(values):
        found += looking.feed(step, value if isinstance(value, dict) else {} if value is None else {name: value})
    assert rule in {alarm.rule for alarm in found}
    assert {alarm.series for alarm in found} == {name}


def test_an_update_that_is_rounding_raises_no_alarm():
    looking, found = OnlineRules(), []
    for step, value in enumerate([1e-10] * 10 + [1e-7]):
        found += looking.feed(step, {"conv.bias.update": value, "conv.weight.update": 0.1})
    assert found == []


def alarms_of(name, values):
    looking = OnlineRules()
    return [alarm for step, value in enumerate(values) for alarm in looking.feed(step, {name: value})]


def test_a_loss_near_zero_whose_numbers_vary_much_has_a_spike():
    noise = [10.0 ** -(i % 4) for i in range(20)]
    (alarm,) = alarms_of("loss", [*noise, *(0.01 * value for value in noise), 1.5])
    assert (alarm.rule, alarm.step) == ("spike", 40)


def test_updates_that_grow_little_by_little_raise_no_alarm():
    assert alarms_of("w.update", [1e-5 * 1.8**i for i in range(12)]) == []


def test_gradients_that_fall_with_the_loss_do_not_vanish():
    looking, found = OnlineRules(), []
    for step in range(400):
        found += looking.feed(step, {"loss": 0.95**step, "w.grad": 0.95**step})
    assert found == []


def test_a_hard_batch_when_nearly_all_is_learnt_is_no_spike():
    assert alarms_of("loss", [*[1.0] * 20, *[0.9**i for i in range(60)], 0.05]) == []


def test_a_weight_that_grows_by_equal_steps_from_near_zero_does_not_drift():
    assert alarms_of("embedding.param", [0.1 + 0.2 * i for i in range(40)]) == []


def test_a_rate_that_rises_slowly_or_comes_back_is_no_alarm():
    warm = [1e-4 * (i + 1) for i in range(40)]
    assert alarms_of("optimizer.learning_rate", [*warm, *warm[::-1], *[1e-5] * 30, *warm[-10:]]) == []
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
