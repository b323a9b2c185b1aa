# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A rule of recorded steps is no fault where another watched step shows the contrary."""

from __future__ import annotations

import pytest

import probe
from probe.reading.one_run.health.rows import read_rows
from probe.search.on_disk import look
from tests.reading.one_run.test_health import Training, left_as_it_is, stop_gradient
from tests.reading.report.rows import write_rows


def watched(folder, gradients=(), updates=(), name="fc.weight"):
    """Write rows of ten steps, with the numbers of one parameter in some of them."""

    def row(step, _):
        gradient = 0.5 if step in gradients else 0.0
        update = 0.01 if step in updates else 0.0
        return {f"{name}.grad": gradient, f"{name}.update": update, "loss": 3.0 - step / 10}

    return write_rows(folder, row, steps=10, ranks=1)


def weights(path):
    """Return the rule and the weight of the findings in the recorded steps."""
    rules = ("gradient ends", "not updated")
    return [(item.rule, item.weight) for item in probe.check(path).findings if item.rule in rules]


@pytest.mark.parametrize(
    ("gradients", "updates", "weight"),
    [
        ((4, 5), (), "note"),
        ((), (), "fault"),
        ((1,), (), "fault"),  # a recorded step: the gradient that enters is zero there
        ((), (4, 5), "fault"),  # weight decay changes it without a gradient
    ],
)
def test_a_gradient_in_another_step_contradicts_its_end(tmp_path, gradients, updates, weight):
    training = Training()
    stop_gradient(training)
    path = training.write(tmp_path)
    watched(path, gradients, updates)
    assert weights(path) == [("gradient ends", weight)]


def test_a_gradient_of_another_parameter_contradicts_nothing(tmp_path):
    training = Training()
    stop_gradient(training)
    path = training.write(tmp_path)
    watched(path, (4, 5), name="other")
    assert weights(path) == [("gradient ends", "fault")]


def test_nan_is_no_gradient_that_contradicts(tmp_path):
    training = Training()
    stop_gradient(training)
    path = training.write(tmp_path)
    write_rows(path, lambda *_: {"fc.weight.grad": float("nan")}, steps=10, ranks=1)
    assert weights(path) == [("gradient ends", "fault")]


@pytest.mark.parametrize(("updates", "weight"), [((4,), "note"), ((), "fault"), ((0,), "fault")])
def test_an_update_in_another_step_contradicts_that_there_is_none(tmp_path, updates, weight):
    training = Training()
    left_as_it_is(training)
    path = training.write(tmp_path)
    watched(path, range(10), updates)
    assert set(weights(path)) == {("not updated", weight)}


@pytest.mark.parametrize(("gradients", "status"), [((4, 5), 0), ((), 1)])
def test_find_asks_the_rows_of_another_run(tmp_path, gradients, status):
    training = Training()
    stop_gradient(training)
    path = training.write(tmp_path / "record")
    rows = read_rows(str(watched(tmp_path / "watch", gradients))).ranks
    seen = look(path, watched=rows)
    assert (seen.cause is None) is (status == 0)
    assert bool(seen.remarks) is (status == 0)
    if not status:
        assert "in step 4 fc.weight has a gradient" in str(seen.remarks[0])


def test_a_finding_has_all_its_parameters(tmp_path):
    training = Training()
    stop_gradient(training)
    found = probe.check(training.write(tmp_path)).findings
    assert [item.parameters for item in found if item.rule == "gradient ends"] == [("fc.weight",)]


def test_an_end_of_the_gradient_has_the_first_step_that_shows_it(tmp_path):
    training = Training(steps=5)
    stop_gradient(training)
    first = training.steps[0]
    update = next(name for name in first if "SGD" in name)
    first.pop(update)  # no update yet, so nothing is known of this step
    found = probe.check(training.write(tmp_path)).findings
    assert [item.step for item in found if item.rule == "gradient ends"] == [1]
