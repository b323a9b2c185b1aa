# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A run that goes on from a checkpoint of another one: the steps that can be compared are named."""

from __future__ import annotations

import pytest

from probe.reading.check.optimizers import same_update
from probe.reading.check.snapshot import RunSnapshot

ADAM = "Cell.optimizer.Adam"


def run(first_step, count, steps):
    """Return a snapshot whose first recorded update has a number, with the batches of so many steps."""
    return RunSnapshot(
        "run",
        {},
        optimizers={ADAM: {"global_step": count}},
        first_updates={ADAM: first_step},
        inputs={step: {} for step in range(first_step, first_step + steps)},
    )


@pytest.mark.parametrize(
    ("a", "b", "step_a", "step_b"),
    [
        ((0, 0, 12), (0, 6, 6), 6, 0),
        ((0, 6, 6), (0, 0, 12), 0, 6),
        ((2, 2, 10), (5, 9, 3), 9, 5),
        ((0, 0, 7), (0, 6, 6), 6, 0),  # the last step of A is the one
    ],
)
def test_the_steps_with_the_same_update_are_named(a, b, step_a, step_b):
    said = str(same_update(run(*a), run(*b)))
    assert said.endswith(f"`probe compare A/step{step_a} B/step{step_b}`")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((0, 0, 6), (0, 6, 6)),  # A ends before B begins
        ((0, 6, 6), (0, 6, 6)),
        ((0, None, 6), (0, 6, 6)),  # SGD does not count
        ((0, True, 6), (0, 6, 6)),
    ],
)
def test_no_step_is_named_where_none_is_the_same(a, b):
    assert not same_update(run(*a), run(*b))
