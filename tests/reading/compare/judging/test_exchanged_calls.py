# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls whose inputs have equal statistics, and that ran in another order, are paired by their outputs."""

from __future__ import annotations

import pytest

import probe
from tests.reading.builders import forward, tensor, write

GIVEN = {"norm": 3.0, "Max": 1.5, "Min": -1.25, "mean": 0.25}
LINES = ("one = loss(x)", "two = loss(x.T)", "three = loss(-x)")


def losses(folder, outputs, lines=LINES, **more):
    """Write calls of one API that are given equal numbers, and give these norms, each from its own line."""
    data = {}
    stack = {}
    for number, (norm, line) in enumerate(zip(outputs, lines)):
        name = f"Functional.cross_entropy.{number}.forward"
        made = tensor(norm=norm, Max=norm, Min=norm, mean=norm, shape=[])
        data[name] = forward([tensor(**{**GIVEN, **more})], [made])
        stack[str(number)] = [[name], [f"File /me/t.py, line {number + 5}, in step, \n {line}"]]
    return write(folder / "step0" / "rank0", data, stack)


def statuses(tmp_path, in_a, in_b, lines=LINES, **more):
    losses(tmp_path / "a", in_a, **more)
    losses(tmp_path / "b", in_b, lines, **more)
    found = probe.compare(tmp_path / "a", tmp_path / "b")
    return found.status, probe.compare(tmp_path / "b", tmp_path / "a").status


def turned(*places):
    return [LINES[place] for place in places]


@pytest.mark.parametrize("near", [1.0, 1 + 1e-7])
def test_two_calls_in_another_order_are_no_difference(tmp_path, near):
    assert statuses(tmp_path, (1.8, 1.7), (1.7 * near, 1.8), turned(1, 0)) == (0, 0)


def test_three_calls_in_another_order_are_no_difference(tmp_path):
    assert statuses(tmp_path, (1.8, 1.7, 1.6), (1.6, 1.8, 1.7), turned(2, 0, 1)) == (0, 0)


@pytest.mark.parametrize(
    ("outputs", "lines"),
    [
        ((1.7, 1.8), LINES),  # the lines are in one order: each gives the other's value
        ((1.7, 1.9), turned(1, 0)),  # one value is another one
        ((1.7, 1.7), turned(1, 0)),
        ((1.7, 1.8), ("two = loss(x.T)", "one = loss(y)")),  # a line was edited
    ],
)
def test_another_value_is_a_difference(tmp_path, outputs, lines):
    assert statuses(tmp_path, (1.8, 1.7), outputs, lines) == (1, 1)


def test_inputs_that_differ_are_no_equal_ones(tmp_path):
    losses(tmp_path / "a", (1.8, 1.7))
    losses(tmp_path / "b", (1.7, 1.8), turned(1, 0), Max=2.5)
    assert probe.compare(tmp_path / "a", tmp_path / "b").status == 1
