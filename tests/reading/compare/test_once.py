# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One thing is told once: a list of gradients, changes that are alike, a batch that the data set makes."""

from __future__ import annotations

import numpy as np
import pytest

import probe
from probe.reading.compare.answer.summary import summary_text
from probe.reading.compare.origins.one_change import like_once
from tests.reading.builders import forward, record, write

FRAME = "File train.py, line {}, in step, \n y = ops.f(x)"


def tensor(seed, shape=(8, 4), scale=1.0):
    return record((np.random.RandomState(seed).randn(*shape) * scale).astype("f"))


@pytest.fixture
def compare(tmp_path):
    def run(a, b, stacks=None, tree=None):
        for side, data in (("a", a), ("b", b)):
            write(tmp_path / side / "step0" / "rank", data, (stacks or {}).get(side), tree)
        return probe.compare(tmp_path / "a", tmp_path / "b")

    return run


def clip(count, scale):
    """Return a call that is given a list of gradients, which no recorded call made."""
    entry = forward([tensor(0)], [tensor(1)])
    gradients = [tensor(100 + number, scale=scale) for number in range(count)]
    total = {"input_args": [gradients], "output": [tensor(3, scale=scale)]}
    return {"Functional.relu.0.forward": entry, "Functional.global_norm.0.forward": total}


@pytest.mark.parametrize("count", [2, 44])
def test_a_list_of_gradients_is_one_finding(compare, count):
    found = compare(clip(count, 1.0), clip(count, 1.5))
    (origin,) = found.origins
    assert (origin.name, origin.place) == ("Functional.global_norm.0.forward", "input.0.0")
    assert found.status == 1


def test_two_arguments_of_a_call_are_two_findings(compare):
    def calls(scale):
        given = [tensor(5, scale=scale), tensor(6, scale=scale)]
        return {
            "Functional.relu.0.forward": forward([tensor(0)], [tensor(1)]),
            "Functional.f.0.forward": forward(given, [tensor(3, scale=scale)]),
        }

    assert [origin.place for origin in compare(calls(1.0), calls(1.5)).origins] == [
        "input.0",
        "input.1",
    ]


def chain(count, shift):
    """Return calls of one line, each with an argument of its own; ``shift`` calls more stand before them in B."""
    x = tensor(1)
    entries = {}
    for number in range(count + shift):
        entries[f"Functional.identity.{number}.forward"] = forward([x], [x])
    return entries


def test_changes_that_are_alike_are_told_once(compare):
    a, b = chain(6, 0), chain(6, 3)
    stacks = {
        "a": {name: [FRAME.format(7)] for name in a},
        "b": {name: [FRAME.format(7)] for name in b},
    }
    found = compare(a, b, stacks)
    text = summary_text(found, "en")
    assert found.status == 0
    assert len(found.soft) == 1  # they feed each other
    assert len(like_once(found.soft)) == 1
    assert text.count("changed too") == 1, (
        text
    )  # the last may be the result: it is not proved to be harmless


def batch(scale, in_cells=True):
    """Return a model whose loss is given float labels outside of all Cells; the labels are of the data set."""
    x, y, labels = tensor(1), tensor(2), tensor(3, (8, 1), scale)
    cell = {"Cell.net.Net.forward.0": forward([x], [y])} if in_cells else {}
    return {
        "Functional.matmul.0.forward": forward([x], [y]),
        **cell,
        "Functional.mse_loss.0.forward": forward([y, labels], [tensor(4, (1,), scale)]),
    }


def test_float_labels_of_the_data_set_are_data(compare):
    tree = {"Functional.matmul.0.forward": "Cell.net.Net.forward.0", "Cell.net.Net.forward.0": None}
    found = compare(batch(1.0), batch(1.5), tree=tree)
    assert (found.first.kind, found.first.place) == ("data", "input.1")
    assert found.first.sentence.startswith("the batch differs: ")


@pytest.mark.parametrize(("count", "kind"), [(7, "data"), (8, "outside value")])
def test_targets_of_one_number_are_a_constant(compare, count, kind):
    tree = {"Functional.matmul.0.forward": "Cell.net.Net.forward.0", "Cell.net.Net.forward.0": None}
    sides = [batch(1.0), batch(1.0)]
    for side, number in zip(sides, (1.0, 0.0)):
        side["Functional.matmul.0.forward"]["input_args"][0]["shape"][0] = count
        side["Cell.net.Net.forward.0"]["input_args"][0]["shape"][0] = count
        targets = tensor(3, (count, 1), 1.0)
        targets.update(Max=number, Min=number, Mean=number, Norm=number * count**0.5)
        side["Functional.mse_loss.0.forward"]["input_args"][1] = targets
    assert compare(*sides, tree=tree).first.kind == kind


def test_a_constant_of_another_size_stays_an_outside_value(compare):
    tree = {"Functional.matmul.0.forward": "Cell.net.Net.forward.0", "Cell.net.Net.forward.0": None}
    sides = [batch(1.0), batch(1.5)]
    for side, scale in zip(sides, (1.0, 1.5)):
        side["Functional.mse_loss.0.forward"]["input_args"][1] = tensor(3, (5, 1), scale)
    assert compare(*sides, tree=tree).first.kind == "outside value"
