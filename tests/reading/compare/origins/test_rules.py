# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The tables of rules: which fact decides, and in which order."""

from __future__ import annotations

import itertools

import pytest

from probe.reading.compare.origins import table
from probe.reading.compare.origins.table import (
    CallFacts,
    GradientFacts,
    InputFacts,
    UpdateFacts,
    first_rule,
)

TABLES = [
    (table.INPUT_RULES, InputFacts),
    (table.CALL_RULES, CallFacts),
    (table.GRADIENT_RULES, GradientFacts),
    (table.UPDATE_RULES, UpdateFacts),
]
#: the facts that hold -> the kind
INPUTS = [
    ("", "outside value"), ("is_data", "data"), ("made_by_partners", "wiring"),
    ("made_by_partners other_output", "wiring"),
    ("made_by_partners follows", "earlier"), ("made_by_partners other_output follows", "wiring"),
    ("made_by_others", "wiring"), ("made_alone made_by_others", "calls"), ("is_parameter", "parameter"),
    ("is_state is_parameter", "parameter"), ("of_container is_parameter", ""), ("other_output", "outside value"),
    ("follows", "outside value"), ("follows is_data", "data"), ("is_parameter is_data", "parameter"),
    ("of_other_call one_sided", "calls"), ("one_sided is_data", "argument"), ("made_alone one_sided", "calls"),
    ("one_sided is_parameter", "parameter"), ("one_sided made_by_others", "argument"),
]  # fmt: skip
CALLS = [
    ("", "computation"), ("is_collective", "communication"), ("is_random", "random"), ("argument", "argument"),
    ("argument is_random", "argument"), ("carried", ""), ("carried argument", ""), ("follows", "earlier"),
    ("follows carried", "earlier"), ("is_random is_collective", "random"),
]  # fmt: skip
GRADIENTS = [
    ("", "gradient"), ("carried", ""), ("missing", "gradient"), ("follows", "earlier"), ("missing follows", "earlier"),
    ("missing ended_alone", "calls"), ("ended_alone", "gradient"), ("missing at_parameter follows", "gradient"),
    ("missing not_updated", "optimizer"), ("not_updated", "gradient"), ("missing not_updated ended_alone", "optimizer"),
    ("missing carried", "gradient"), ("follows carried", "earlier"),
]  # fmt: skip
UPDATES = [
    ("", "optimizer"), ("is_number", "optimizer"), ("follows", "earlier"), ("follows missing", "optimizer"),
    ("follows made_alone", "optimizer"), ("follows is_number", "optimizer"), ("is_gradient", "optimizer"),
    ("is_state", "optimizer"), ("follows is_gradient", "earlier"),
]  # fmt: skip
CASES = [
    (table, facts, given, kind)
    for (table, facts), rows in zip(TABLES, (INPUTS, CALLS, GRADIENTS, UPDATES))
    for given, kind in rows
]


@pytest.mark.parametrize(
    ("table", "facts", "given", "kind"),
    CASES,
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_the_first_rule_whose_condition_holds_decides(table, facts, given, kind):
    assert first_rule(table, facts(**dict.fromkeys(given.split(), True))).kind == kind


@pytest.mark.parametrize(("table", "facts"), TABLES)
def test_every_rule_can_decide_and_has_a_name_of_its_own(table, facts):
    every = itertools.product((False, True), repeat=len(facts._fields))
    assert {first_rule(table, facts(*given)).why for given in every} == {rule.why for rule in table}
    assert len({rule.why for rule in table}) == len(table)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("is_number missing", "a number of the update differs"),
        ("missing", "a parameter is missing in the optimizer"),
        ("made_alone is_gradient", "a call between gradients and optimizer that one side lacks"),
        ("is_gradient", "the gradients agree, those that enter do not"),
        ("is_state", "a state differs before the update"),
        ("", "all that enters agrees, the results do not"),
    ],
)
def test_the_rules_of_updates_differ_in_their_names(given, why):
    assert (
        first_rule(table.UPDATE_RULES, UpdateFacts(**dict.fromkeys(given.split(), True))).why == why
    )
