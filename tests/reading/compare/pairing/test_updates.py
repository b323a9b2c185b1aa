# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two updates of an optimizer in one form: gradients by parameter, and numbers that both sides know."""

from __future__ import annotations

import pytest

from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.normal_dump import NormalDump
from probe.reading.compare.pairing.updates import fit_updates
from probe.reading.dumps.updates import by_parameter
from tests.reading.builders import dump, named, tensor, value

NAME = "Cell.optimizer.AdamW.forward.0"


def update(names, groups=(), **numbers):
    """Return the entry of an update; a group is (its parameters, its numbers)."""
    given = {
        "parameters": [value(name) for name in names],
        **{key: value(item) for key, item in numbers.items()},
    }
    if groups:
        given["groups"] = [
            {
                "parameters": [value(name) for name in own],
                **{key: value(item) for key, item in more.items()},
            }
            for own, more in groups
        ]
    return {
        NAME: {
            "input_args": [[named(f"g{name}") for name in names]],
            "input_kwargs": given,
            "output": [],
        }
    }


def fitted(a, b):
    """Return the places of updates, and the entries of A and B."""
    dumps = NormalDump(dump(a)), NormalDump(dump(b))
    alignment = Alignment(*dumps)
    places = fit_updates(alignment, *dumps)
    return places, *(side.data[NAME] for side in dumps)


def numbers(entry):
    given = {key: item for key, item in entry["input_kwargs"].items() if key != "parameters"}
    return {
        key: item["value"]
        if "value" in item
        else {name: one["value"] for name, one in item.items()}
        for key, item in given.items()
    }


def test_gradients_stand_by_their_parameters_in_any_order():
    places, a, b = fitted(update(["u", "v"]), update(["v", "u"]))
    assert places == [0]
    assert a["input_args"] == b["input_args"] == [{"u": named("gu"), "v": named("gv")}]


def test_one_number_for_all_is_one_number():
    _, a, b = fitted(update(["u", "v"], learning_rate=0.1), update(["u", "v"], learning_rate=0.2))
    assert (numbers(a), numbers(b)) == ({"learning_rate": 0.1}, {"learning_rate": 0.2})


def test_groups_with_one_number_are_the_same_as_no_groups():
    groups = [(["u"], {"learning_rate": 0.1}), (["v"], {"learning_rate": 0.1})]
    _, a, b = fitted(update(["u", "v"], learning_rate=0.1), update(["u", "v"], groups))
    assert numbers(a) == numbers(b) == {"learning_rate": 0.1}


@pytest.mark.parametrize("swapped", [False, True])
def test_a_number_of_each_group_on_one_side_is_compared_for_each_parameter(swapped):
    groups = [(["u"], {"weight_decay": 0.1}), (["v"], {"weight_decay": 0.0})]
    plain, grouped = update(["u", "v"], weight_decay=0.1), update(["u", "v"], groups)
    _, *entries = fitted(*((grouped, plain) if swapped else (plain, grouped)))
    wanted = [{"weight_decay": {"u": 0.1, "v": 0.1}}, {"weight_decay": {"u": 0.1, "v": 0.0}}]
    assert [numbers(entry) for entry in entries] == (wanted[::-1] if swapped else wanted)


def test_a_number_that_one_side_lacks_is_left_out():
    _, a, b = fitted(update(["u"], learning_rate=0.1, eps=1e-8), update(["u"], learning_rate=0.1))
    assert set(numbers(a)) == set(numbers(b)) == {"learning_rate"}


def test_parameters_of_other_names_are_one_by_their_shapes_and_order():
    _, a, b = fitted(update(["u:2x2", "v"]), update(["p:2x2", "q"]))
    assert list(a["input_args"][0]) == list(b["input_args"][0])


def test_a_parameter_that_only_one_side_has_keeps_its_name():
    _, a, b = fitted(update(["u", "v"]), update(["u"]))
    assert (list(a["input_args"][0]), list(b["input_args"][0])) == (["u", "v"], ["u"])


def test_another_cell_is_no_update():
    assert fitted({NAME: {"input_args": [named("x")], "output": []}}, update(["u"]))[0] == []


def test_a_state_of_one_element_is_no_setting():
    name = value("fc.bias")
    numbers = {"parameters": [name], "learning_rate": value(0.1), "moment1.fc.bias": value(-0.02)}
    entry = {"input_args": [[tensor()]], "input_kwargs": numbers}
    assert by_parameter(entry) == {"learning_rate": {"fc.bias": 0.1}}
