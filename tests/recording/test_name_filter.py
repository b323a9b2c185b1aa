# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Which calls are recorded, by name: list, exclude, regular expressions."""

from __future__ import annotations

import logging

import pytest
from mindspore import ops

from probe import SettingsError
from tests.support import nets
from tests.support.tensors import tensor

X = tensor([[1.0, -2.0], [3.0, 0.5]])


def test_list_takes_regular_expressions(debug):
    _, dump = debug.record(lambda: (ops.exp(X), ops.tanh(X), ops.exp(X)), list=[r"name-regex(^Functional\.exp\.[1-9])"])
    assert list(dump.data) == ["Functional.exp.1.forward"]


def test_exclude_wins_over_list(debug):
    _, dump = debug.record(
        lambda: (ops.exp(X), ops.tanh(X), ops.relu(X)), list=["Functional"], exclude=["tanh", "name-regex(rel.)"]
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
    with pytest.raises(SettingsError, match=rf"statistics\.{key}: 'name-regex\(\[\)' is not allowed.*name-regex"):
        debug(**{key: ["name-regex([)"]})


def test_a_name_in_exclude_that_matched_nothing_is_warned_about(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    debug.record(lambda: ops.exp(X), exclude=["no_such_call"])
    assert any("no_such_call" in message for message in caplog.messages)
