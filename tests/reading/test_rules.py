# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The rules of series are those of the documents, and each of them can say something."""

from __future__ import annotations

import math

import pytest

from probe.reading.online_rules import OnlineRules
from probe.reading.rules import IN_DUMPS, ONLINE, RULES
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


#: rule -> a series, and its values, of which the last ones are strange
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
}


@pytest.mark.parametrize("rule", list(ONLINE))
def test_each_rule_of_the_monitor_can_say_something(rule):
    name, values = STRANGE[rule]
    looking = OnlineRules()
    found = []
    for step, value in enumerate(values):
        found += looking.feed(step, {} if value is None else {name: value})
    assert rule in {alarm.rule for alarm in found}
    assert {alarm.series for alarm in found} == {name}


def test_an_update_that_is_rounding_raises_no_alarm():
    looking, found = OnlineRules(), []
    for step, value in enumerate([1e-10] * 10 + [1e-7]):
        found += looking.feed(step, {"conv.bias.update": value, "conv.weight.update": 0.1})
    assert found == []


def test_a_rule_is_told_again_only_when_it_was_over_for_twenty_steps():
    def said(distance):
        looking, found = OnlineRules(), []
        for step in range(40 + distance + 1):
            value = 9.0 if step in (40, 40 + distance) else 1 + 0.01 * (step % 3)
            found += looking.feed(step, {"validation": value})
        return [alarm.step for alarm in found if alarm.rule == "spike"]

    assert said(15) == [40]
    assert said(30) == [40, 70]
