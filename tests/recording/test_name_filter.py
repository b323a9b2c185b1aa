# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which calls are recorded, by name: list, exclude, regular expressions."""

from __future__ import annotations

import logging

import pytest
from mindspore import ops

from probe import SettingsError
from probe.config.settings import Settings
from probe.entry import Kind
from probe.recording.call import Call
from probe.recording.step_recorder import NameFilter
from tests.support import nets
from tests.support.tensors import tensor

X = tensor([[1.0, -2.0], [3.0, 0.5]])


def test_list_takes_regular_expressions(debug):
    _, dump = debug.record(
        lambda: (ops.exp(X), ops.tanh(X), ops.exp(X)), list=[r"name-regex(^Functional\.exp\.[1-9])"]
    )
    assert list(dump.data) == ["Functional.exp.1.forward"]


def test_exclude_wins_over_list(debug):
    _, dump = debug.record(
        lambda: (ops.exp(X), ops.tanh(X), ops.relu(X)),
        list=["Functional"],
        exclude=["tanh", "name-regex(rel.)"],
    )
    assert list(dump.data) == ["Functional.exp.0.forward"]


def test_exclude_of_a_cell_leaves_out_its_gradients_and_everything_inside_it(debug):
    net, train = nets.build("digits")
    debugger = debug(level="mix", exclude=["Cell.conv"])
    debugger.start(net)
    train(0)
    debugger.step()
    dump = debug.dump()
    assert dump.names("Cell.")
    assert not dump.names("Cell.conv")
    assert not [name for name, cell in dump.construct.items() if "Cell.conv" in f"{name} {cell}"]


@pytest.mark.parametrize("key", ["list", "exclude", "tensor_list"])
def test_a_broken_regular_expression_is_named(debug, key):
    with pytest.raises(
        SettingsError, match=rf"statistics\.{key}: 'name-regex\(\[\)' is not allowed.*name-regex"
    ):
        debug(**{key: ["name-regex([)"]})


def test_a_name_in_exclude_that_matched_nothing_is_warned_about(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    debug.record(lambda: ops.exp(X), exclude=["no_such_call"])
    assert any("no_such_call" in message for message in caplog.messages)


@pytest.mark.parametrize("data_mode", [["forward"], ["all"]])
@pytest.mark.parametrize(
    "further", [{"list": ["name-regex(exp|tanh)"]}, {"exclude": ["relu"]}], ids=str
)
def test_a_scope_ends_with_a_call_that_is_not_recorded_itself(debug, caplog, data_mode, further):
    scope = ["Functional.exp.0.forward", "Functional.relu.0.forward"]
    caplog.set_level(logging.WARNING, "probe")
    _, dump = debug.record(
        lambda: (ops.exp(X), ops.relu(X), ops.tanh(X)), scope=scope, data_mode=data_mode, **further
    )
    assert list(dump.data) == ["Functional.exp.0.forward"]
    assert caplog.messages == []


# -- NameFilter itself ---------------------------------------------------------------------------------------------


def api(key, number=0, cell=None):
    return Call(Kind.API, f"Functional.{key}", number, cell)


def cell(name, around=None):
    return Call(Kind.CELL, f"Cell.{name}", 0, around)


def chosen(name_filter, *calls):
    """Begin and end calls one after the other; return the forward names of those that are recorded."""
    names = []
    for call in calls:
        if name_filter.begin(call):
            names.append(call.forward)
        name_filter.end(call.forward)
    return names


def test_without_settings_the_filter_is_not_active_and_chooses_every_call():
    name_filter = NameFilter(Settings())
    assert (name_filter.is_active, name_filter.is_open, name_filter.unmatched()) == (
        False,
        True,
        [],
    )
    assert chosen(name_filter, api("exp")) == ["Functional.exp.0.forward"]
    assert name_filter.may_record_backward(api("exp"))


@pytest.mark.parametrize("key", ["scope", "list", "exclude"])
def test_a_filter_by_name_is_active(key):
    assert NameFilter(Settings(**{key: ("a", "b")})).is_active


def test_tensor_list_chooses_arrays_and_no_calls():
    name_filter = NameFilter(Settings(tensor_list=("exp", r"name-regex(relu\.[13])")))
    assert not name_filter.is_active
    names = ["Functional.exp.0.forward", "Functional.relu.0.forward", "Functional.relu.3.backward"]
    assert [name_filter.keeps_arrays(name) for name in names] == [True, False, True]
    assert name_filter.unmatched() == []


def test_a_scope_is_the_time_from_its_first_to_its_last_name_and_opens_again_with_the_first():
    name_filter = NameFilter(
        Settings(scope=("Functional.exp.0.forward", "Functional.relu.1.forward"))
    )
    calls = [api("tanh"), api("exp"), api("relu"), api("tanh", 1), api("relu", 1), api("tanh", 2)]
    assert not name_filter.is_open
    assert chosen(name_filter, *calls) == [call.forward for call in calls[1:5]]
    assert not name_filter.is_open
    assert chosen(name_filter, *calls) == [call.forward for call in calls[1:5]]
    assert name_filter.unmatched() == []


def test_a_scope_of_one_name_is_one_call():
    name = "Functional.exp.0.forward"
    name_filter = NameFilter(Settings(scope=(name, name)))
    assert chosen(name_filter, api("tanh"), api("exp"), api("exp", 1)) == [name]


def test_a_scope_that_was_not_opened_is_not_closed():
    scope = "Functional.exp.0.forward", "Functional.relu.0.forward"
    name_filter = NameFilter(Settings(scope=scope))
    assert chosen(name_filter, api("relu"), api("tanh")) == []
    assert name_filter.unmatched() == sorted(scope)


def test_a_scope_of_gradients_is_open_from_the_first_backward():
    first, last = api("exp"), api("relu")
    name_filter = NameFilter(Settings(scope=(last.backward, first.backward)))
    assert chosen(name_filter, first, last) == []
    assert name_filter.may_record_backward(first)  # as far as can be told now
    assert name_filter.begin(last, backward=True)
    name_filter.end(last.backward)
    assert name_filter.begin(first, backward=True)
    name_filter.end(first.backward)
    assert not name_filter.begin(first, backward=True)


def test_list_opens_all_that_runs_inside_a_cell_and_exclude_closes_it():
    outer = cell("block")
    inner = cell("block.norm", outer)
    calls = outer, inner, api("exp", 0, outer), api("exp", 1, inner), api("exp", 2)
    assert chosen(NameFilter(Settings(list=("Cell.block",))), *calls) == [
        call.forward for call in calls[:4]
    ]
    both = NameFilter(Settings(list=("Cell.block",), exclude=("norm",)))
    assert chosen(both, *calls) == [outer.forward, calls[2].forward]
    assert not both.may_record_backward(calls[3])
    assert both.unmatched() == []


def test_a_name_is_matched_in_the_direction_of_its_entry():
    name_filter = NameFilter(Settings(list=("exp.0.backward",)))
    assert not name_filter.begin(api("exp"))
    assert name_filter.may_record_backward(api("exp"))
    assert name_filter.begin(api("exp"), backward=True)
    assert not name_filter.begin(api("exp", 1), backward=True)


def test_names_that_no_call_has_met_are_told_sorted():
    name_filter = NameFilter(
        Settings(list=("relu", "exp", "name-regex(tan.)", "name-regex(sin.)"), tensor_list=("a",))
    )
    assert name_filter.unmatched() == ["a", "exp", "name-regex(sin.)", "name-regex(tan.)", "relu"]
    chosen(name_filter, api("exp"), api("tanh"))
    assert name_filter.unmatched() == ["a", "name-regex(sin.)", "relu"]


def test_a_text_that_looks_like_a_regular_expression_is_none():
    name_filter = NameFilter(Settings(list=("exp.0",)))
    assert chosen(name_filter, api("exp"), api("expX0")) == ["Functional.exp.0.forward"]
